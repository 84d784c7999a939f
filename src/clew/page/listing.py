"""The conversations of a scope, as the list shows them: the newest first, with what came of each under it."""

from collections.abc import Sequence
from dataclasses import dataclass

from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.page.saving import Savings
from clew.sessions.about import About, Abouts
from clew.sessions.chains import Chain, conversations
from clew.sessions.sessions import Sessions
from clew.sessions.totals import Totals

SPARKS = 40  # sessions that a spark line shows


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A line of the list: a conversation, or one that came of it."""

    chain: Chain
    depth: int
    about: About
    totals: Totals | None  # None: not counted yet

    @property
    def branch(self) -> str:
        return self.chain.first.branch

    @property
    def last(self) -> float:
        """When something was last begun in it."""
        return max(s.ended or s.at for s in self.chain.sessions)

    @property
    def model(self) -> str:
        return next((s.model for s in reversed(self.chain.sessions) if s.model), "")

    @property
    def compactions(self) -> int:
        return sum(s.is_folded for s in self.chain.sessions)

    @property
    def sent(self) -> int:
        return sum(s.sent for s in self.chain.sessions)

    @property
    def calls(self) -> int:
        return sum(s.calls for s in self.chain.sessions)

    @property
    def cost(self) -> float:
        return sum(s.cost for s in self.chain.sessions)

    @property
    def spark(self) -> str:
        """Points of a line through the tokens of a call, session by session, in a box of 100 by 20."""
        sizes = [s.sent / s.calls for s in self.chain.sessions if s.calls][-SPARKS:]
        if len(sizes) < 2:
            return ""
        most, step = max(sizes) or 1, 100 / (len(sizes) - 1)
        return " ".join(f"{n * step:.1f},{19 - 18 * size / most:.1f}" for n, size in enumerate(sizes))


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


class Listing:
    """The list of conversations."""

    def __init__(self, engine: Engine, abouts: Abouts, savings: Savings) -> None:
        self._engine, self._abouts, self._savings = engine, abouts, savings

    async def some(self, scope: Scope, start: int, count: int, tag: str = "", archived: bool = False) -> ListedPage:
        """So many conversations from the one at `start` on."""
        every = await Sessions(self._engine, scope).all()
        roots = conversations(s for s in every if bool(s.archived) == archived)
        if tag:
            roots = [root for root in roots if any(tag in chain.first.tags for chain in root.all())]
        some = roots[start : start + count]
        placed = [one for root in some for one in root.nested()]
        abouts = await self._abouts.of(scope, [chain.first for chain, _, _ in placed])
        rows = [
            ConversationRow(chain, depth, abouts[chain.first.branch], self._savings.known(scope, chain.sessions))
            for chain, depth, _ in placed
        ]
        return ListedPage(rows, start, start + len(some), len(roots))
