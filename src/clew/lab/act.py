"""What becomes of one conversation in the lab: a pure function of what was said, of settings and of prices."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from clew import catalog
from clew.audit.compactions import audited
from clew.catalog.cost import cost
from clew.catalog.usage import Spent
from clew.core.limits import Budget
from clew.engine.settings import Settings
from clew.lab.caches import Automatic, Marked, PriceCache
from clew.lab.replaying import Lived, as_it_was, clients_own, compactions, everything, with_clew
from clew.lab.session import LabSession
from clew.sessions.transcripts import Transcript
from clew.sessions.transcripts.shape import Script
from clew.steps import preset
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.tokens.target import Target

EVERYTHING, AS_IT_WAS, CLIENT, CLEW = "everything sent", "as it was", "client compacting", "clew"
MARKING = "anthropic", "bedrock"  # formats whose providers keep what ends at a mark
FAR = 0.6  # of where the first compaction may come: what stays below that is sent as it is in every way


@dataclass(frozen=True)
class LabWay:
    """clew with some settings."""

    name: str
    bounds: Mapping[str, Any]  # of a budget, without its window

    def budget(self, model: catalog.Model, window: int) -> Budget:
        """The budget for a model, in a window that somebody named or its own."""
        return Budget(
            **{
                **self.bounds,
                "window": window or model.max_input or model.window,
                "model": model.name,
                "paid": not model.local,
            }
        )


@dataclass(frozen=True)
class Lab:
    """Send it again in several ways."""

    name: ClassVar[str] = "lab"
    ways: tuple[LabWay, ...]
    window: int = 0  # 0: that of its model
    model: str = ""  # whose prices and window count, if not its own
    preset: str = "default"

    def settings(self) -> dict[str, Any]:
        return asdict(self)

    def needs(self, data: bytes) -> bool:
        return True

    def __call__(self, transcript: Transcript) -> dict[str, Any] | None:
        session = LabSession(transcript)
        return LabRun(self, session).record() if session.turns else None


@dataclass
class LabRun:
    """One session, in all ways."""

    lab: Lab
    session: LabSession
    known: catalog.Model = field(init=False)
    meter: Meter = field(init=False)

    def __post_init__(self) -> None:
        name = self.lab.model or self.session.transcript.model
        self.known = catalog.lookup(name)
        self.meter = Meter(counter_for(name, self.session.transcript.format))

    def record(self) -> dict[str, Any]:
        """What each way came to."""
        session, budget = self.session, self.lab.ways[0].budget(self.known, self.lab.window)
        limit = Target.of(budget, self.meter).around(session.full_view.frame).limit.tokens
        believed = max(budget.window, self.known.max_input or self.known.window)
        at = session.client.threshold(believed) if session.client else None
        size, ways = session.size(self.meter), dict[str, Any]()
        ways[EVERYTHING] = plain = self._row(everything, limit)
        ways[AS_IT_WAS] = self._row(as_it_was, limit) if session.transcript.compactions else plain
        if at is not None:
            own = size > at
            ways[CLIENT] = self._row(lambda s, lived: clients_own(s, lived, at, limit), limit) if own else plain
        for way in self.lab.ways:
            bounds = way.budget(self.known, self.lab.window)
            first = Target.of(bounds, self.meter).around(session.full_view.frame).threshold
            if size <= FAR * min(first, at or first):
                ways[way.name] = plain
                continue
            given = Settings(step=preset(self.lab.preset), author=None, expand=False)
            ways[way.name] = self._row(lambda s, lived: with_clew(s, lived, bounds, given, at), limit)  # noqa: B023
        return {"tokens": size, "window": budget.window, "priced": self.known.prices is not None, "ways": ways}

    def _row(self, way: Callable[[LabSession, Lived], Lived], limit: int) -> dict[str, Any]:
        cache, calls = self._cache(), list[Spent]()
        lived = way(self.session, Lived(lambda view, output: calls.append(cache.sent(view, output)), self.meter))
        prices = self.known.prices
        dollars = sum(cost(prices, spent) for spent in (*calls, *lived.helpers)) if prices else None
        return {
            "calls": len(calls),
            "sent": sum(lived.sizes),
            "dollars": dollars,
            "compactions": len(lived.folds),
            "client": lived.client,
            "too_large": sum(size > limit for size in lived.sizes),
            **self._missing(lived),
        }

    def _missing(self, lived: Lived) -> dict[str, int]:
        """What calls of the session looked up or used again that was out of view then."""
        session = self.session
        cuts = list(compactions(session, lived))
        script = Script(session.messages, cuts)
        lived_so = Transcript(
            session.transcript.format,
            script.stretches,
            agent=session.transcript.agent,
            model=self.known.name,
        )
        found = list(audited(lived_so)) if cuts else []
        kinds = [count for one in found for count in one.kinds.values()]
        return {
            "again": sum(n for one in found for n in one.again.values()),
            "again_tokens": sum(one.again_tokens for one in found),
            "needed": sum(count.needed for count in kinds),
            "facts": sum(count.before for count in kinds),
            "kept": sum(count.kept for count in kinds),
        }

    def _cache(self) -> PriceCache:
        return Marked(self.meter) if self.session.transcript.format in MARKING else Automatic(self.meter)


def bounds_of(budget: Budget) -> dict[str, Any]:
    """What somebody set of a budget; its window is each model's."""
    return {key: value for key, value in asdict(budget).items() if key not in ("window", "model", "paid")}


def ways(bounds: Mapping[str, Any], tries: Sequence[tuple[float, float]]) -> tuple[LabWay, ...]:
    """clew as it is set, and with other shares of the room at which it begins and stops."""
    return LabWay(CLEW, bounds), *(
        LabWay(f"{CLEW}, {high:g} to {low:g}", {**bounds, "high": high, "low": low}) for high, low in tries
    )
