"""The conversations of a scope, as the list shows them: the newest first, with what came of each under it."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self
from urllib.parse import urlencode

from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.page.saving import Savings
from clew.screens.lines import count
from clew.sessions.about import About, Abouts, titled
from clew.sessions.chains import Chain, Family, conversations
from clew.sessions.sessions import Sessions
from clew.sessions.totals import Totals
from clew.store.records import Session

CAME = 30  # conversations that came of one, and are listed under it
CHOICES = 200  # names in a menu
DAY = 86_400.0
CAUSES = {"subagent": "sub-agent", "beside": "aside", "start": "conversation"}


class ListFilter(NamedTuple):
    """What a list is narrowed by; nothing: by none of it."""

    tag: str = ""
    archived: str = ""
    project: str = ""
    client: str = ""
    model: str = ""
    days: str = ""
    dollars: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Self:
        """The one that a query asks for."""
        given = {name: query.get(name, "") for name in cls._fields}
        return cls(**{**given, "archived": "yes" if "archived" in query else ""})

    @property
    def needs_abouts(self) -> bool:
        """Whether it must be known what conversations are about."""
        return bool(self.project or self.client)

    @property
    def query(self) -> str:
        """It as a query."""
        return urlencode({name: value for name, value in self._asdict().items() if value})

    def takes(self, family: Family, now: float) -> bool:
        """Whether a conversation is listed, as far as its sessions tell."""
        days, dollars, sessions = _figure(self.days), _figure(self.dollars), family.newest.sessions
        tags = (chain.first.tags for chain in (*family.branches, *family.others))
        return (
            (not self.tag or any(self.tag in some for some in tags))
            and (not self.model or any(s.model == self.model for s in sessions))
            and (days is None or max(s.ended or s.at for s in sessions) >= now - days * DAY)
            and (dollars is None or sum(s.cost for s in sessions) >= dollars)
        )

    def takes_about(self, about: About) -> bool:
        """The same, as far as it is about something."""
        return self.project in ("", about.project) and self.client in ("", about.agent)


def _figure(text: str) -> float | None:
    try:
        return float(text) if len(text) < 10 else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A line of the list: a conversation as it stands, and what came of it."""

    family: Family
    about: About
    totals: Totals | None  # None: not counted yet
    outcomes: Sequence[tuple[Chain, str]] = ()  # each with its title
    more: int = 0  # that came of it, and are not told

    @property
    def first(self) -> Session:
        return self.family.branches[0].first

    @property
    def sessions(self) -> Sequence[Session]:
        """Those of its newest branch."""
        return self.family.newest.sessions

    @property
    def branch(self) -> str:
        return self.sessions[0].branch

    @property
    def title(self) -> str:
        return titled(self.first, self.about)

    @property
    def outcome_words(self) -> str:
        """What came of it, in words."""
        tally = Counter(CAUSES.get(chain.first.cause, chain.first.cause) for chain in self.family.others)
        told = [count(number, cause) for cause, number in tally.items()]
        if gone := len({chain.first.branch for chain in self.family.branches}) - 1:
            told.append(count(gone, "earlier version"))
        return " · ".join(told)

    @property
    def last(self) -> float:
        """When something was last begun in it."""
        return max(s.ended or s.at for s in self.sessions)

    @property
    def model(self) -> str:
        return next((s.model for s in reversed(self.sessions) if s.model), "")

    @property
    def compactions(self) -> int:
        return sum(s.is_folded for s in self.sessions)

    @property
    def calls(self) -> int:
        return sum(s.calls for s in self.sessions)

    @property
    def cost(self) -> float:
        return sum(s.cost for s in self.sessions)


@dataclass(frozen=True, slots=True)
class ListedPage:
    """Some of the conversations."""

    rows: Sequence[ConversationRow]
    start: int
    stop: int
    of: int

    @property
    def uncounted(self) -> list[str]:
        return [row.branch for row in self.rows if row.totals is None]


class ListChoices(NamedTuple):
    """What conversations can be told apart by."""

    projects: Sequence[str]
    clients: Sequence[str]
    models: Sequence[str]


class Listing:
    """The list of conversations."""

    def __init__(self, engine: Engine, abouts: Abouts, savings: Savings) -> None:
        self._engine, self._abouts, self._savings = engine, abouts, savings

    async def some(self, scope: Scope, start: int, most: int, wanted: ListFilter) -> ListedPage:
        """So many conversations from the one at `start` on."""
        found = [root.family() for root in conversations(await self._every(scope, wanted.archived))]
        found = [one for one in found if wanted.takes(one, time.time())]
        if wanted.needs_abouts:
            abouts = await self._abouts.of(scope, [one.branches[0].first for one in found])
            found = [one for one in found if wanted.takes_about(abouts[one.branches[0].first.branch])]
        some = found[start : start + most]
        told = [chain.first for one in some for chain in (one.branches[0], *one.others[:CAME])]
        abouts = await self._abouts.of(scope, told)
        rows = [
            ConversationRow(
                one,
                abouts[one.branches[0].first.branch],
                self._savings.known(scope, one.newest.sessions),
                [(chain, titled(chain.first, abouts[chain.first.branch])) for chain in one.others[:CAME]],
                len(one.others[CAME:]),
            )
            for one in some
        ]
        return ListedPage(rows, start, start + len(some), len(found))

    async def choices(self, scope: Scope, wanted: ListFilter) -> ListChoices:
        """What they can be told apart by: what they are about is read of all of them, once."""
        every = await self._every(scope, wanted.archived)
        firsts = [root.first for root in conversations(every)]
        abouts = (await self._abouts.of(scope, firsts)).values()
        names = ({one.project for one in abouts}, {one.agent for one in abouts}, {s.model for s in every})
        return ListChoices(*(sorted(filter(None, some), key=str.lower)[:CHOICES] for some in names))

    async def _every(self, scope: Scope, archived: str) -> list[Session]:
        return [s for s in await Sessions(self._engine, scope).all() if bool(s.archived) == bool(archived)]
