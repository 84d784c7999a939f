"""Is `clew.control` now; its names can be imported from here until 0.3."""

import warnings
from typing import Any

import clew.control

__all__ = clew.control.__all__


def __getattr__(name: str) -> Any:
    if name not in clew.control.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(f"clew.agent.control is clew.control now: {name} goes from here with 0.3", DeprecationWarning, 2)
    return getattr(clew.control, name)
