"""What an agent may need verbatim later, and a digest of a history that keeps it: by code alone, no model."""

from clew.facts.digests import Absent, Digest, digest
from clew.facts.finding import Fact, find
from clew.facts.sheets import Sheet, sheet

__all__ = ["Absent", "Digest", "Fact", "Sheet", "digest", "find", "sheet"]
