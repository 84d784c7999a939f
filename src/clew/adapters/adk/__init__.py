"""Google ADK: a plugin with which every request of an app's agents fits its window."""

from clew.errors import MissingExtra

try:
    import google.adk  # noqa: F401
except ImportError:
    raise MissingExtra("clew.adapters.adk needs Google ADK", "adk") from None

from clew.adapters.adk.plugin import ClewPlugin

__all__ = ["ClewPlugin"]
