"""The three calls a host makes: `prepare` before a model call, `observe` after it, `recall` on demand."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import asdict
from dataclasses import replace as with_
from typing import TYPE_CHECKING, Any

from clew import catalog, events
from clew.catalog.usage import spent
from clew.core.items import Frame, Node, Scope
from clew.core.step import Step
from clew.core.view import View
from clew.engine.append import Addition, Additions
from clew.engine.cache_marks import anchored
from clew.engine.compaction import PATIENCE, Compaction, Fitting, at_once
from clew.engine.model_limits import Budgeting, Gauge
from clew.engine.pins import Back, back
from clew.engine.recall import candidates, resolve
from clew.engine.turn import Request, Turns
from clew.engine.undo import Undone, undo
from clew.errors import NotFound, Purged
from clew.events import Listener, tell
from clew.facts.coverage import Ledger, ledger, words_in
from clew.recognition.branch import Live
from clew.recognition.recognise import named_branch
from clew.secrets import Policy
from clew.steps import default
from clew.steps.handoff import Handoff
from clew.steps.notes.writer import Writer
from clew.steps.threshold import Proactive, proactive
from clew.store.protocol import Store
from clew.store.records import Batch, Call, Fork, Method, Pin, Usage
from clew.text.excerpts import SIZE, excerpt, whole
from clew.text.search import Found
from clew.tokens import Counter
from clew.tokens.budget import Budget, Filled
from clew.tokens.provider_size import Scale
from clew.wire import encode
from clew.wire.convert import convert

if TYPE_CHECKING:
    from clew.wire.overflow import Overflow

__all__ = ["Engine", "Request", "body"]

HOT = 64  # branches kept in memory


class Engine:
    """Keeps every history in a store and makes, for each call, a view of it that fits."""

    def __init__(
        self,
        store: Store,
        budget: Budget | Budgeting | None = None,
        step: Step | None = None,
        counter: Counter | None = None,
        listeners: Sequence[Listener] = (),
        hot: int = HOT,
        secrets: Policy = "off",
        expand: bool = True,
        models: Mapping[str, catalog.Model] | None = None,
        servers: Sequence[str] | None = (),
        writer: Writer | None = None,
        compaction: Compaction = "on",
        patience: float = PATIENCE,
        method: Method = "auto",
    ) -> None:
        self._settings = {name: value for name, value in locals().items() if name != "self"}
        self.store = store
        self.budget = budget
        self.listeners = tuple(listeners)
        self.secrets = secrets
        self.gauge = Gauge(store, budget, counter, models, servers)
        self._fitting = Fitting(store, step or default(), self.listeners, writer, expand, compaction, patience, method)
        self._turns = Turns(store, self._fitting, self.gauge, self.listeners, hot, secrets)
        self._additions = Additions(self._turns)

    def variant(self, **settings: Any) -> "Engine":
        """An engine over the same store, made as this one was but for these settings."""
        now = {"step": self.step, "compaction": self.compaction, "method": self.method}
        return Engine(**{**self._settings, **now, **settings})

    @property
    def step(self) -> Step:
        """How a history is made to fit; may be changed between two turns, and the next one obeys."""
        return self._fitting.step

    @step.setter
    def step(self, step: Step) -> None:
        self._fitting.step = step

    @property
    def compaction(self) -> Compaction:
        """`on`; `shadow`: all is tried and written down, and the original is sent; `off`. The next turn obeys."""
        return self._fitting.compaction

    @compaction.setter
    def compaction(self, compaction: Compaction) -> None:
        self._fitting.compaction = compaction

    @property
    def method(self) -> Method:
        """`auto`: clew decides when to compact; `llm`: the agent does, and clew only just before it is too late."""
        return self._fitting.method

    @method.setter
    def method(self, method: Method) -> None:
        self._fitting.method = method

    @property
    def proactive(self) -> Proactive | None:
        """When to compress before the window is full, instead of what the budget says; the next turn obeys.

        Set it to True for 0.7, to a mapping with `compression_threshold` (a share of the room) or `buffer_tokens` (left
        of it), to False or None for off: then only `compact`, or an overflow that is told with `refused`, makes a
        history shorter.
        """
        return self._fitting.proactive

    @proactive.setter
    def proactive(self, given: bool | Mapping[str, Any] | Proactive | None) -> None:
        self._fitting.proactive = proactive(given)
        self._fitting.compaction = "on" if self._fitting.proactive else "off"

    async def prepare(self, request: Request | Addition) -> View:
        """The view to send instead of the request's own history. Raises `OverBudget` if frame and pins do not fit."""
        if isinstance(request, Addition):
            return await self._additions.take(request)
        return await self._turns.take(request)

    async def open(self, addition: Addition) -> View:
        """A named conversation as it stands, to look at or to compact; nothing is sent, nothing is added."""
        return await self._additions.open(addition)

    async def append(self, said: Request | Addition) -> None:
        """Write down what was said, without sending anything."""
        if isinstance(said, Addition):
            await self._additions.append(said)
        else:
            await self._turns.take(said, silent=True)

    async def observe(self, view: View, usage: Any) -> None:
        """Record what the provider reported for the call this view was made for: its own object or a mapping."""
        report = spent(usage)
        cost = await self.gauge.cost(view.scope, view.frame.model, report)
        with suppress(Purged):  # while the model answered: there is no call left to say it of
            await self._turns.record(view.scope, view.branch, [Usage(view.seq, asdict(report), cost)])
        live = self._turns.memory.newest(view)
        if live and len(live.view.edits) != len(view.edits):
            live = None  # compacted since: the report is of what is no longer shown
        if live:
            await self.gauge.observe(view.scope, live.scale, live.view, report.input)
        await self.gauge.limits.took(view.scope, view.frame.model, report.input)
        if self.listeners:
            tell(self.listeners, [events.Observed(view.scope, view.branch, view.seq, **asdict(report), cost=cost)])
        if live and (worked := live.verdict.judge(report.input)) is not None:
            tell(self.listeners, [events.Judged(view.scope, view.branch, view.seq, worked, live.verdict.paused)])

    async def refused(self, view: View, error: BaseException | Mapping[str, Any] | str | bytes) -> "Overflow | None":
        """Whether an error says that what this view sent was too long: if so, the next `prepare` sends less.

        The limit that the provider named is remembered for its model.
        """
        from clew.wire.overflow import overflow  # its many patterns are compiled only where there is an error

        found = overflow(error)
        if found is None:
            return None
        live = self._turns.memory.newest(view)
        scale = live.scale if live else None
        window = await self.gauge.refuse(view.scope, scale, view, found)
        if window is not None:
            learned = events.Learned(view.scope, view.branch, view.seq, view.frame.model, window)
            tell(self.listeners, [learned])
        return found

    async def recall(self, scope: Scope, id: str, branch: str | None = None) -> Sequence[Node]:
        """The originals that an id stands for, byte for byte; with `branch`, only from its own past."""
        full = await resolve(self.store, scope, id, branch)
        nodes = await self.store.originals(scope, full)
        tell(self.listeners, [events.Recalled(scope, branch or "", 0, full, len(nodes))])
        return nodes

    async def excerpt(
        self, scope: Scope, id: str, branch: str | None = None, lines: str = "", pattern: str = "", size: int = SIZE
    ) -> str:
        """Some of what an id stands for, in about `size` characters: lines such as 10-40, or those around a match."""
        nodes = await self.recall(scope, id, branch)
        return excerpt(whole(nodes), id.strip(), lines, pattern, size)

    async def find(self, scope: Scope, text: str, branch: str, limit: int = 20) -> list[Found]:
        """What was said on this branch that a question is about, best first, with the lines that say so."""
        return (await candidates(self.store, scope, text, branch)).find(text, limit)

    async def answer(self, scope: Scope, text: str, branch: str, size: int = SIZE) -> str:
        """What was said on this branch that a question is about, in `size` characters of lines and names."""
        return (await candidates(self.store, scope, text, branch)).answer(text, size)

    async def search(self, scope: Scope, text: str, branch: str, limit: int = 20) -> Sequence[Node]:
        """The whole of what `find` finds."""
        ids = [f.id for f in await self.find(scope, text, branch, limit)]
        nodes = await self.store.nodes(scope, ids)
        return [nodes[id] for id in ids]

    async def coverage(self, scope: Scope, call: Call) -> Ledger:
        """What became of every fact that a call left out of view."""
        return await self.covered(await self.resume(scope, call))

    async def covered(self, view: View) -> Ledger:
        """What became of every fact that a view leaves out."""
        await self._fitting.remember(view.scope, view)
        made = view.stand_ins()
        hidden = [n for i, node in enumerate(view.nodes) if node.id in made for n in view.originals(i, i + 1)]
        return await asyncio.to_thread(ledger, hidden, words_in(view.nodes, view.past), view.past)

    async def compact(self, view: View, focus: str = "", step: Step | None = None, method: str = "manual") -> View:
        """Compact the newest view of a branch now, whatever its size, with more of what stands near `focus`.

        With a `step`, as that one does it, and nothing else.
        """

        async def act(live: Live, budget: Budget) -> View:
            return await self._fitting.compacted(view.scope, live, live.view, budget, focus, step)

        return await self._turns.compact(view, act, method)

    async def preview(self, view: View, focus: str = "") -> View:
        """What `compact` would make of a view now; nothing is written. The same view, if there is nothing to fold.

        A model that writes notes is not asked: its words would come on top.
        """
        scope = view.scope
        live, budget = self._turns.memory.newest(view), await self.gauge.budget(scope, view.frame)
        if live is None:
            scale = await self._weighed(scope, view.frame, budget)
            return await self._fitting.folded(scope, view, at_once(scale, view, budget), focus)
        async with live.lock:  # a turn that comes meanwhile has no focus
            now = live.view
            return await self._fitting.folded(scope, now, at_once(copy(live.scale), now, budget), focus)

    async def _weighed(self, scope: Scope, frame: Frame, budget: Budget) -> Scale:
        scale = Scale()
        await self.gauge.weigh(scope, scale, budget, frame)
        return scale

    async def begin(self, view: View, summary: str, method: str = "manual") -> View:
        """End the session of the newest view of a branch, and begin a child with this summary, as an agent would."""

        async def act(live: Live, budget: Budget) -> View:
            return await self._fitting.handed_over(view.scope, live, live.view, Handoff(summary), budget)

        return await self._turns.compact(view, act, method, "handoff")

    async def close(self) -> None:
        """End what goes on in the background; the store stays open, it is its owner's."""
        if self._fitting.drafts:
            await self._fitting.drafts.close()
            await self._fitting.take_down()

    async def expected(self, view: View) -> int:
        """How many tokens the provider will count in a view."""
        if live := self._turns.memory.newest(view):
            return live.scale.expected(live.view)
        scale = await self._weighed(view.scope, view.frame, await self.gauge.budget(view.scope, view.frame))
        return scale.expected(view)

    async def filled(self, view: View, more: int = 0) -> Filled:
        """How full the window is with a view, and so many tokens beside it."""
        budget = await self.gauge.budget(view.scope, view.frame)
        live = self._turns.memory.newest(view)
        own = budget.size(live.view if live else view).tokens
        return budget.filled(own + more, await self.expected(view) / max(1, own))

    async def window(self, view: View) -> int | None:
        """The tokens that the model of a view can read and write; None where nobody knows."""
        model = await self.gauge.limits.model(view.scope, view.frame.model)
        window = (await self.gauge.budget(view.scope, view.frame)).window
        guessed = model.source == "default" and window == model.window and not isinstance(self.budget, Budget)
        return None if guessed else window

    async def pin(self, view: View, *ids: str, off: bool = False) -> Back:
        """Keep these nodes verbatim in every later view of this branch, or no longer.

        What is out of view is quoted there from the next request on. Raises `NotFound` for what was not said here, and
        `OverBudget`, with the numbers, if more would come back than there is room for.
        """
        trace = await self.store.load(view.scope, view.branch)
        ids = tuple(trace.quoted.get(id, id) for id in ids)
        brought = Back()
        if not off:
            now = await self._turns.fold(view.scope, trace, view.frame, {n.id: n.item for n in view.nodes})
            budget = await self.gauge.budget(view.scope, view.frame)
            brought = await back(self.store, with_(now, scope=view.scope), budget, trace, ids)
        await self._turns.record(view.scope, view.branch, [Pin(ids, off)])
        return brought

    async def resume(self, scope: Scope, call: Call) -> View:
        """The view that was sent in an earlier call, from the log alone."""
        return await self.view(scope, call.branch, call.seq)

    async def view(self, scope: Scope, branch: str, until: int | None = None, frame: Frame | None = None) -> View:
        """A branch as it stands now, or stood after an earlier event, in the frame of its last call or in this one."""
        trace = await self.store.load(scope, branch, until)
        if frame is None:
            if not trace.frame:
                raise NotFound(f"nothing was sent on branch {branch} yet")
            frame = await self.store.frame(scope, trace.frame)
        view = await self._turns.fold(scope, trace, frame, {})
        return with_(view, scope=scope, branch=branch, seq=trace.seq - 1)

    async def undo(self, scope: Scope, branch: str, count: int = 1, dry_run: bool = False) -> Undone:
        """Take back the newest compactions of a branch; what was said since stays. Raises `OverBudget`.

        What comes back into view is not folded again while there is room for it. With `dry_run`, only say what would.
        """
        return await undo(self._turns, scope, branch, count, dry_run)

    async def fork(self, scope: Scope, branch: str, seq: int, session: str) -> str:
        """A branch with the past of another one up to an event, under a name of its own."""
        self._turns.guard(scope).expect_names(session=session)
        new = named_branch(self._turns.digests(scope), session)
        await self.store.write(scope, Batch(new, seq + 1, (), True, Fork(branch, seq), session))
        return new


def body(view: View, format: str | None = None, model: str | None = None) -> dict[str, Any]:
    """The request body that sends a view: in the format the client spoke, or in that of another provider's model."""
    sent = encode(view.frame, anchored(view))
    return convert(sent, format or view.frame.format, view.frame.format, model) if format or model else sent
