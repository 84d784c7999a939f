"""An answer that is put together, until it ends or breaks off."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol

from clew.errors import ModelError
from clew.wire.streams.pieces import BrokenOff, Piece, Spoken

MISSHAPEN = (AttributeError, IndexError, KeyError, TypeError)  # what reading an answer of no known shape ends in


class AnswerBuilder(Protocol):
    """What puts an answer together: one for each format."""

    over: bool  # nothing more is to come

    def add(self, event: Mapping[str, Any]) -> Sequence[Piece]:
        """Hear one event: what it adds."""

    def spoken(self) -> Spoken:
        """What was said so far."""


async def with_answer(
    name: str, pieces: AsyncGenerator[Piece, None], answer: AnswerBuilder
) -> AsyncGenerator[Piece, None]:
    """The pieces of an answer, and at its end what was spoken; one that breaks off says what had come."""
    begun, failure = False, None
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                begun = True
                yield piece
    except ModelError as error:
        failure = error
    try:
        spoken = answer.spoken()
    except MISSHAPEN as error:
        raise ModelError(f"{name} sent an unreadable answer: {type(error).__name__}", "refused") from None
    # A connection that fails after the last word did no harm.
    if spoken.stop != "cut" and (failure is None or failure.fault in ("network", "timeout")):
        yield spoken
        return
    failure = failure or ModelError(f"{name} broke off: its answer has no end", "network")
    if begun:
        raise BrokenOff(str(failure), failure.fault, spoken, retry_after=failure.retry_after)
    raise failure
