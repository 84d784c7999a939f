"""What refusals taught of models, as the command and the page tell it."""

from typing import NamedTuple

from clew.catalog.stated import windows_in_headers
from clew.core.items import Scope
from clew.engine.windows import LearnedLimit, ModelWindows, parted
from clew.screens.lines import count


class LimitInWords(NamedTuple):
    """One model at one upstream."""

    place: str  # as it is known to those who forget it
    model: str
    upstream: str  # none: a library calls the provider itself
    asked: str  # the window that requests asked for in a header, in words
    limit: LearnedLimit

    @property
    def where(self) -> str:
        """Where it holds."""
        return ", ".join(filter(None, (self.upstream, self.asked)))

    @property
    def name(self) -> str:
        """The model, and where."""
        return f"{self.model} at {self.where}" if self.where else self.model

    @property
    def limits(self) -> str:
        """What was named, or taken from the size of what was refused."""
        about = "about " if self.limit.guessed else ""
        counts = {"tokens": self.limit.tokens} if self.limit.tokens else {}
        return ", ".join(f"{about}{most:,} {what}" for what, most in (counts | dict(self.limit.others)).items())

    @property
    def times(self) -> str:
        """How often a request had too many tokens for it."""
        return count(self.limit.refusals, "time") if self.limit.refusals else "–"


async def limits_in_words(windows: ModelWindows, scope: Scope) -> list[LimitInWords]:
    """All that count, by model and upstream."""
    return [_limit_row(place, limit) for place, limit in sorted((await windows.all_learned(scope)).items())]


def _limit_row(place: str, limit: LearnedLimit) -> LimitInWords:
    model, served = parted(place)
    upstream, headers = windows_in_headers(served)
    asked = " and ".join(f"{tokens:,} tokens asked for by {name}" for name, tokens in headers)
    return LimitInWords(place, model, upstream, asked, limit)
