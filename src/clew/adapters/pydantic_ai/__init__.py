"""Pydantic AI: a capability with which every request of an agent fits its window."""

from clew.errors import MissingExtra

try:
    import pydantic_ai  # noqa: F401
except ImportError:
    raise MissingExtra("clew.adapters.pydantic_ai needs Pydantic AI", "pydantic-ai") from None

from clew.adapters.pydantic_ai.capability import ClewCapability

__all__ = ["ClewCapability"]
