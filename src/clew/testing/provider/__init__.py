"""A provider on loopback, for tests: `strict` decides, a module a format says it, `serving` sends it."""

from clew.testing.provider.answers import Answer, Call
from clew.testing.provider.strict import HeardRequest, StrictProvider

__all__ = ["Answer", "Call", "HeardRequest", "StrictProvider"]
