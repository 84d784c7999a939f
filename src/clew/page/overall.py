"""What everything came to: by day and by model, beside sending everything; and which summaries no model wrote."""

from collections import Counter as Tally
from collections.abc import Sequence
from dataclasses import dataclass, fields

from clew.core.items import Scope
from clew.core.times import local
from clew.events import Declined, Drafted, Event
from clew.page.saving import Savings
from clew.sessions.chains import conversations
from clew.sessions.totals import Totals
from clew.store.records import Session

DAYS = 30  # the newest that are shown


@dataclass(slots=True)
class SpentLine:
    """What the sessions of one day, or of one model, came to."""

    name: str
    calls: int = 0
    sent: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    cost: float = 0.0

    def add(self, session: Session) -> None:
        for name in ("calls", "sent", "input", "cached", "output", "cost"):
            setattr(self, name, getattr(self, name) + getattr(session, name))

    @property
    def hit_share(self) -> float:
        """Of the tokens that providers reported, those that came from their caches."""
        return self.cached / self.input if self.input else 0.0


class SummaryWriters:
    """Who wrote the summaries since this process began: a listener of the engine's."""

    def __init__(self) -> None:
        self._drafted: dict[Scope, Tally[str]] = {}
        self._declined: dict[Scope, Tally[tuple[str, str]]] = {}

    def __call__(self, event: Event) -> None:
        if isinstance(event, Drafted):
            self._drafted.setdefault(event.scope, Tally())[event.model] += 1
        elif isinstance(event, Declined):
            self._declined.setdefault(event.scope, Tally())[event.model, event.fault] += 1

    def drafted(self, scope: Scope) -> Tally[str]:
        """How often each model wrote one."""
        return self._drafted.get(scope, Tally())

    def declined(self, scope: Scope) -> Tally[tuple[str, str]]:
        """How often a model's was not taken, by model and fault."""
        return self._declined.get(scope, Tally())


def by_day(sessions: Sequence[Session]) -> list[SpentLine]:
    """The newest days, the oldest of them first; a session counts for the day it began."""
    found: dict[str, SpentLine] = {}
    for session in sorted(sessions, key=lambda s: s.at):
        day = f"{local(session.at):%Y-%m-%d}"
        found.setdefault(day, SpentLine(day)).add(session)
    return list(found.values())[-DAYS:]


def by_model(sessions: Sequence[Session]) -> list[SpentLine]:
    """The models, that first to which most was sent."""
    found: dict[str, SpentLine] = {}
    for session in sessions:
        if session.model:
            found.setdefault(session.model, SpentLine(session.model)).add(session)
    return sorted(found.values(), key=lambda line: -line.sent)


async def everything(savings: Savings, scope: Scope, sessions: Sequence[Session]) -> Totals:
    """What all of these came to beside sending everything."""
    whole = Totals()
    for root in conversations(sessions):
        for chain in root.all():
            part = await savings.of(scope, chain.sessions)
            for field in fields(Totals):
                setattr(whole, field.name, getattr(whole, field.name) + getattr(part, field.name))
    return whole
