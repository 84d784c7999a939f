"""Who may write chapters: anything that reads a stretch of history and gives back what came of that."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from clew.core.items import Frame
from clew.core.view import View
from clew.facts.chapters import Written
from clew.steps.worklog.fold import ChapterStretch


class ReaderKnows(NamedTuple):
    """What a reader of the chapter will know anyway, and what an author may use."""

    titles: Sequence[str] = ()  # what earlier chapters tell, a line each
    in_view: frozenset[str] = frozenset()  # the lines that earlier chapters have in view
    frame: Frame | None = None  # the system prompt and the tools of the conversation
    after: View | None = None  # a request that shows all of it and was just sent: its model has that in its cache
    window: int | None = None  # of the conversation's own model, where somebody knows it to be smaller
    sent: int = 0  # tokens of that request, as this window is counted


NOTHING_KNOWN = ReaderKnows()


class Author(Protocol):
    """Whoever writes chapters. Whatever goes wrong is told in what it gives back: code then writes instead."""

    @property
    def name(self) -> str:
        """By which a reader is told who wrote it."""

    @property
    def size(self) -> int:
        """Tokens that one chapter may take."""

    @property
    def gives_way(self) -> bool:
        """Whether it may be asked only while nothing else is."""

    def refusal(self) -> str:
        """Why nobody may be asked now; empty if somebody may."""

    async def write(
        self, asked: Sequence[ChapterStretch], known: ReaderKnows = NOTHING_KNOWN, focus: str = ""
    ) -> Written:
        """What came of asking once for all of these, with more of what somebody cares for."""
