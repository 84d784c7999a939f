"""What an agent may need verbatim later, found by code alone."""

from typing import TYPE_CHECKING

from clew.core.lazy import loader

if TYPE_CHECKING:
    from clew.facts.finding import Fact, find
    from clew.facts.sheets import Sheet, sheet

__all__ = [
    "Fact",
    "Sheet",
    "find",
    "sheet",
]

# Loaded when first used: who only lists conversations need not wait for it.
_HOMES = {
    "finding": "Fact find",
    "sheets": "Sheet sheet",
}
__getattr__ = loader(__name__, _HOMES)
