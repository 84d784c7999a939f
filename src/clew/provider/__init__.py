"""A provider on loopback, for tests: `strict` decides, a module a format says it, `serving` sends it."""

from clew.provider.answers import Answer, Call
from clew.provider.strict import Heard, StrictProvider

__all__ = ["Answer", "Call", "Heard", "StrictProvider"]
