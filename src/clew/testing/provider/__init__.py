"""A provider on loopback, for tests: `strict` decides, a module a provider refuses, `serving` sends it."""

from clew.testing.provider.answers import Answer
from clew.testing.provider.strict import HeardRequest, StrictProvider
from clew.wire.streams.writing import Call

__all__ = ["Answer", "Call", "HeardRequest", "StrictProvider"]
