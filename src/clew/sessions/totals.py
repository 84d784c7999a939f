"""What conversations came to, and what they would have come to without clew: everything sent in every call, or the
client's own compaction."""

from collections import Counter as Tally
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple

from clew.catalog import Prices
from clew.catalog.cost import cost
from clew.catalog.usage import Spent
from clew.core.items import Node, Scope
from clew.core.threads import LONG, in_thread_if
from clew.core.view import View
from clew.engine.engine import Engine
from clew.sessions.bill import CallBill
from clew.steps.worklog.blocks import author
from clew.store.records import Call, Session
from clew.store.trace import Trace
from clew.tokens.provider_size import ProviderSize

AT_ONCE = 1_000  # nodes that are read before others have their turn
SUMMARY = 3_000  # tokens that a client's own compaction leaves: as many as the two of Claude Code's that were priced


@dataclass(slots=True)
class Totals:
    """Sums over some sessions; estimated tokens where none were reported."""

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
    too_large: int = 0  # calls in which everything would not have fitted
    filled: int = 0  # tokens of the newest call of each branch
    limit: int = 0  # that were allowed in those
    # Dollars that prompts are thought to cost, read from the cache as far as the call before them went.
    cost_sent: float = 0.0
    cost_everything: float = 0.0
    cost_client: float = 0.0  # with the client's own compaction, and everything where it has none
    cost_chapters: float = 0.0  # what models were paid for chapters
    cost_unused: float = 0.0  # for those of them that no compaction used
    authors: Tally[str] = field(default_factory=Tally)  # of the chapters that compactions put into view

    @property
    def saved(self) -> float:
        """The share of tokens that need not be sent."""
        return max(0.0, 1 - self.sent / self.everything) if self.everything else 0.0

    @property
    def bill(self) -> Sequence[tuple[str, float, str]]:
        """What clew costs and what it spares, for people: a name, dollars, and a remark."""
        if not self.cost_everything:
            return ()
        unfit = f"{self.too_large:,} of the calls would not fit" if self.too_large else ""
        lines = [
            (
                "with clew",
                self.cost_sent + self.cost_chapters,
                "estimated: what was sent before is read from the cache",
            ),
            ("without", self.cost_everything, unfit),
        ]
        if self.cost_client != self.cost_everything:
            lines.append(("client compacting", self.cost_client, "its own compaction, where it has one"))
        if self.cost_chapters:
            lines.append(("for chapters", self.cost_chapters, "paid to models, a part of the first line"))
            lines.append(("never used", self.cost_unused, "of those, so far"))
        return lines


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
    unfolded = await everything_said(engine, scope, branch, calls, own)
    found.said += unfolded.said
    found.filled, found.limit = found.filled + calls[-1].predicted, found.limit + calls[-1].limit

    def added() -> None:
        gone = before = shown = 0  # of the client's own view: what it has taken out, and its size in the call before
        for number, (call, whole) in enumerate(zip(calls, unfolded.sizes, strict=True), 1):
            prices = engine.limits.windows.prices(call.model)
            helped = 0.0
            if unfolded.ceiling and shown and whole - gone > unfolded.ceiling:
                # Its model reads what came since that call, too: of that nothing is cached.
                helped = _priced(prices, min(whole - gone, call.limit), shown, SUMMARY)
                gone, shown = before - unfolded.frame - SUMMARY, unfolded.frame
            if call.branch == branch:
                found.everything += whole
                found.too_large += whole > call.limit
                found.cost_sent += CallBill.of(number, call, prices).estimated or 0.0
                found.cost_everything += _priced(prices, whole, before)
                found.cost_client += helped + _priced(prices, whole - gone, shown)
            before, shown = whole, whole - gone

    await in_thread_if(len(calls) > LONG, added)
    if trace := unfolded.trace:
        chapters, edits = trace.chapters, trace.edits
        if first := min((s.seq for s in own if s.cause == "fork"), default=0):  # what came before is its parent's
            before_it = await engine.store.load(scope, branch, first - 1)
            chapters, edits = chapters[len(before_it.chapters) :], edits[len(before_it.edits) :]
        found.authors.update(who for edit in edits if (who := author(edit)))
        # A chapter stands in the edit that took the place of its nodes.
        used = {edit.old for edit in trace.edits if "cost" in edit.evidence}
        found.cost_chapters += sum(one.cost or 0.0 for one in chapters)
        found.cost_unused += sum(one.cost or 0.0 for one in chapters if one.ids not in used)


def _priced(prices: Prices | None, size: int, before: int, output: int = 0) -> float:
    """Dollars for a prompt of this size whose beginning was sent before."""
    again = min(before, size)
    return cost(prices, Spent(size, output, again, size - again)) if prices else 0.0


class Unfolded(NamedTuple):
    """A branch as it would be had nothing been taken out of view."""

    sizes: list[int]  # tokens at each call
    said: int  # tokens that it said itself in the end
    frame: int = 0
    ceiling: int | None = None  # above which its client compacts by itself
    trace: Trace | None = None  # where it had to be read


async def everything_said(
    engine: Engine, scope: Scope, branch: str, calls: Sequence[Call], own: Collection[Session] | None = None
) -> Unfolded:
    """The tokens of all that had been said at each call of a branch."""
    own = await engine.store.sessions(scope, branch) if own is None else own
    # Where nothing was ever taken out of view and no model wrote, what was sent is all there was.
    folded = any(s.cause in ("compaction", "handoff", "fork") for s in own)
    if not calls or not (folded or any((call.due or {}).get("why") == "being read" for call in calls)):
        sent = [call.predicted for call in calls]
        return Unfolded(sent, sent[-1] if sent else 0)
    return await _counted(engine, scope, branch, calls, own)


async def _counted(
    engine: Engine, scope: Scope, branch: str, calls: Sequence[Call], own: Collection[Session]
) -> Unfolded:
    """The same where something left the view: from one call to the next all grew by as much as what was sent, where
    nothing else happened in between; only what was said elsewhere is read and counted."""
    trace = await engine.store.load(scope, branch)
    ends = [min(call.said, len(trace.said)) for call in calls]
    inherited = max(0, len(trace.said) - sum(s.items for s in own))
    first = next((n for n, call in enumerate(calls) if call.branch == branch), len(calls))
    before = ends[first - 1] if first else 0  # what came after it, and from a parent, no call of ours tells
    began, others = {s.seq for s in own}, [(before, inherited), (ends[-1], len(trace.said))]

    def unknown() -> tuple[list[bool], list[int]]:
        grew = [calls[0].seq <= 1, *(not trace.patched and _only_grew(*pair, began) for pair in pairwise(calls))]
        spans = [(a, b) for has, a, b in zip(grew, [0, *ends], ends, strict=False) if not has]
        return grew, sorted({at for a, b in [*spans, *others] for at in range(min(a, b), max(a, b))})

    grew, read = await in_thread_if(len(calls) > LONG, unknown)
    nodes = dict[str, Node]()
    for at in range(0, len(read), AT_ONCE):
        nodes |= await engine.store.nodes(scope, [trace.said[place].id for place in read[at : at + AT_ONCE]])
    frame = await engine.store.frame(scope, trace.frame)
    target, size = await engine.limits.target(scope, frame), ProviderSize()
    await engine.limits.weigh(scope, size, target, frame)
    view = View(frame, tuple(nodes[trace.said[place].id] for place in read), engine.digests(scope))

    def counted() -> Unfolded:
        rate = size.expected(view) / max(1, target.size(view).tokens)  # of the provider's tokens to ours
        tokens = dict(zip(read, (target.meter.node(node).tokens for node in view.nodes), strict=True))
        until = list(accumulate((rate * tokens.get(place, 0) for place in range(len(trace.said))), initial=0.0))
        framed, whole, wholes = target.frame * rate, target.frame * rate, list[int]()
        sent = end = 0
        for has, call, at in zip(grew, calls, ends, strict=True):
            whole = max(
                call.predicted, whole + call.predicted - sent if has and sent else whole + until[at] - until[end]
            )
            wholes.append(round(whole))
            sent, end = call.predicted, at
        said = whole + until[-1] - until[end]
        if inherited:
            said -= (wholes[first - 1] if first else framed) + until[inherited] - until[before]
        return Unfolded(wholes, round(said), round(framed), target.ceiling, trace)

    return await in_thread_if(len(calls) > LONG, counted)


def _only_grew(before: Call, call: Call, began: AbstractSet[int]) -> bool:
    """Whether a call sent what the one before it did, and what was said since: nothing stands between them in the log
    but that, and what the provider reported."""
    events = range(before.seq + 1, call.seq)
    return len(events) <= 1 + (before.usage is not None) and call.said > before.said and began.isdisjoint(events)
