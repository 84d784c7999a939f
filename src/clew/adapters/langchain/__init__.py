"""LangChain, LangGraph and deepagents: a middleware with which each call of a model fits its window.

The agent's state keeps every message. What is sent is a view of them, and what is out of view can be recalled.
"""

from clew.errors import MissingExtra

try:
    from langchain.agents.middleware import AgentMiddleware  # noqa: F401
except ImportError:
    raise MissingExtra("clew.adapters.langchain needs LangChain", "langchain") from None

from clew.adapters.langchain.middleware import ClewMiddleware

__all__ = ["ClewMiddleware"]
