"""What conversations came to, and what they would have come to had everything been sent in every call."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate

from clew.catalog.cost import cost
from clew.catalog.usage import Spent
from clew.core.items import Scope
from clew.core.threads import LONG, in_thread_if
from clew.core.view import View
from clew.engine.engine import Engine
from clew.sessions.bill import CallBill
from clew.store.records import Call, Session
from clew.tokens.provider_size import ProviderSize


@dataclass(slots=True)
class Totals:
    """Sums over some sessions; tokens as foretold where nothing else is said."""

    conversations: int = 0
    sessions: int = 0
    compactions: int = 0
    undone: int = 0
    calls: int = 0
    said: int = 0
    sent: int = 0
    everything: int = 0  # that would have been sent, had nothing been taken out of view
    input: int = 0  # as reported; cached ones are among them
    output: int = 0
    cached: int = 0
    cost: float = 0.0  # dollars, as reported
    cost_sent: float = 0.0  # dollars that the prompts were thought to cost
    cost_everything: float = 0.0  # and those of everything, read from the cache as far as the call before it went

    @property
    def saved(self) -> float:
        """The share of tokens that need not be sent."""
        return max(0.0, 1 - self.sent / self.everything) if self.everything else 0.0


async def totals(
    engine: Engine,
    scope: Scope,
    sessions: Sequence[Session],
    progress: Callable[[int, int], None] | None = None,
) -> Totals:
    """What some sessions came to: all that there are of each branch, and of those it forked from."""
    found = Totals(
        conversations=len({s.name or s.branch for s in sessions}),
        sessions=len(sessions),
        compactions=sum(s.cause == "compaction" for s in sessions),
        undone=sum(s.undone is not None for s in sessions),
    )
    for name in ("calls", "sent", "input", "output", "cached", "cost"):
        setattr(found, name, sum(getattr(s, name) for s in sessions))
    branches: dict[str, list[Session]] = {}
    for session in sessions:
        branches.setdefault(session.branch, []).append(session)
    for done, (branch, own) in enumerate(branches.items()):
        if progress:
            progress(done, len(branches))
        await _add(found, engine, scope, branch, own)
    return found


async def _add(found: Totals, engine: Engine, scope: Scope, branch: str, own: Collection[Session]) -> None:
    """Add what one branch would have sent."""
    calls = await engine.store.calls(scope, branch)
    if not calls:
        return
    everything, said = await wholes(engine, scope, branch, calls, own)
    found.said += said
    before = 0
    for number, (call, whole) in enumerate(zip(calls, everything, strict=True), 1):
        if call.branch == branch:
            prices = engine.limits.windows.prices(call.model)
            again = min(before, whole)
            found.everything += whole
            found.cost_sent += CallBill.of(number, call, prices).foretold or 0.0
            found.cost_everything += cost(prices, Spent(whole, 0, again, whole - again)) if prices else 0.0
        before = whole


async def wholes(
    engine: Engine, scope: Scope, branch: str, calls: Sequence[Call], own: Collection[Session] | None = None
) -> tuple[list[int], int]:
    """The tokens of all that had been said at each call of a branch, and those that it said itself in the end."""
    own = await engine.store.sessions(scope, branch) if own is None else own
    # Where nothing was ever taken out of view, what was sent is all there was: nothing needs to be counted.
    if not calls or all(s.cause not in ("compaction", "handoff", "fork") for s in own):
        sent = [call.predicted for call in calls]
        return sent, sent[-1] if sent else 0
    return await _counted(engine, scope, branch, calls, sum(s.items for s in own))


async def _counted(
    engine: Engine, scope: Scope, branch: str, calls: Sequence[Call], items: int
) -> tuple[list[int], int]:
    """The tokens of all that had been said at each call, and of the newest items in the end."""
    nodes, frame = await engine.history(scope, branch), await engine.store.frame(scope, calls[-1].frame)
    target, size = await engine.limits.target(scope, frame), ProviderSize()
    await engine.limits.weigh(scope, size, target, frame)
    view = View(frame, tuple(nodes), engine.digests(scope))

    def counted() -> tuple[float, list[float]]:
        rate = size.expected(view) / max(1, target.size(view).tokens)  # of the provider's tokens to ours
        return rate, [target.meter.node(node).tokens * rate for node in view.nodes]

    rate, sizes = await in_thread_if(len(view.nodes) > LONG, counted)
    until = [round(n) for n in accumulate(sizes, initial=target.meter.frame(frame).tokens * rate)]
    wholes = [max(call.predicted, until[min(call.said, len(sizes))]) for call in calls]
    inherited = len(sizes) - items
    return wholes, until[-1] - (until[inherited] if inherited > 0 else 0)
