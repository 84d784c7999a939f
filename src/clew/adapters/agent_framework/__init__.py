"""Microsoft Agent Framework: a context provider with which every request fits."""

from clew.errors import MissingExtra

try:
    import agent_framework  # noqa: F401
except ImportError:
    raise MissingExtra("clew.adapters.agent_framework needs Microsoft Agent Framework", "agent-framework") from None

from clew.adapters.agent_framework.provider import ClewProvider

__all__ = ["ClewProvider"]
