"""OpenAI's Agents SDK: a session with which each call of a model fits its window, and nothing that was said is lost.

The SDK's own session keeps its items whole. What is sent is a view of them, made before each call of a model.
"""

from clew.errors import MissingExtra

try:
    import agents  # noqa: F401
except ImportError:
    raise MissingExtra("clew.adapters.openai_agents needs OpenAI Agents", "openai-agents") from None

from clew.adapters.openai_agents.session import ClewSession

__all__ = ["ClewSession"]
