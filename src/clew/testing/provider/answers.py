"""What a script has a provider say, and how that comes over the line."""

from dataclasses import dataclass

from clew.wire.streams.writing import SaidAnswer, WrittenTurn

SEAL = "EqQBCkYIBxgCKkBzdHJpY3QgcHJvdmlkZXIgb2YgY2xldywgbm90aGluZyBzZWNyZXQ="  # with which thoughts are signed


@dataclass(frozen=True, slots=True)
class Answer(SaidAnswer):
    """What the provider says to one request; with a status that is not 200, an error in the provider's own words."""

    input: int | None = None  # tokens to report; else as many as the request is long
    status: int = 200
    error: str = ""  # instead of the provider's own words
    late: bool = False  # the error comes in the stream, after all that was said
    retry_after: float | None = None  # seconds, in a header; a 429 always has one
    seconds: float = 0  # before anything is sent
    packet: int | None = None  # bytes that are sent at once; else an event at a time
    pause: float = 0  # seconds between what is sent at once
    cut: int | None = None  # the connection ends after so many bytes
    raw: bytes | None = None  # sent as it is, whatever it is


@dataclass(frozen=True, slots=True)
class ProviderTurn(WrittenTurn):
    """A request and what is said to it."""

    answer: Answer = Answer()
    seal: str = SEAL
    listed: bool = False  # a stream of Gemini's comes as one list
