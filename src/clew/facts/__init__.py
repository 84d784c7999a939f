"""What an agent may need verbatim later, found by code alone."""

from clew.facts.finding import Fact, find
from clew.facts.sheets import Sheet, sheet

__all__ = ["Fact", "Sheet", "find", "sheet"]
