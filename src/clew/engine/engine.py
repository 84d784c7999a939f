"""What a host and the faces ask of a log: views to send, what is recalled, and acts on a branch.

A host needs three calls: `prepare` before a model call, `observe` after it, `recall` on demand.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace as with_
from typing import TYPE_CHECKING, Any

from clew import events
from clew.catalog.usage import spent
from clew.core.items import Digests, Frame, Node, Scope
from clew.core.limits import Budget
from clew.core.threads import LONG, in_thread, in_thread_if
from clew.core.view import View
from clew.engine.append import Addition, Appender
from clew.engine.branch import Branch
from clew.engine.cache_marks import anchored
from clew.engine.chapters import StoredChapters
from clew.engine.compaction import Compactor
from clew.engine.due import part
from clew.engine.lineage import Lineage
from clew.engine.model_limits import Budgeting, ModelLimits
from clew.engine.pins import Back, back
from clew.engine.recall import candidates, resolve
from clew.engine.reopening import reopened
from clew.engine.replay import outlined, replay
from clew.engine.settings import FIXED, Settings
from clew.engine.turns import Request, Turns
from clew.engine.undo import Undone, undo
from clew.errors import BadRequest, NotFound
from clew.events import tell
from clew.facts.coverage import CoverageLedger, ledger, words_in
from clew.recognition.recognise import first_branch
from clew.steps.handoff import Handoff
from clew.steps.protocol import Step, off_loop
from clew.steps.summarize import briefed
from clew.steps.worklog.retelling import retold, without_rule
from clew.store.protocol import Store
from clew.store.records import Batch, Call, Fork, Pin, Usage
from clew.store.trace import Trace
from clew.text.excerpts import SIZE, excerpt, full_text
from clew.text.search import Found
from clew.tokens.provider_size import ProviderSize
from clew.tokens.target import Filled, Target
from clew.wire import encode
from clew.wire.convert import convert

if TYPE_CHECKING:
    from clew.wire.overflow import Overflow

__all__ = ["Engine", "Request", "body"]


class Engine:
    """Keeps every history in a store and makes, for each call, a view of it that fits.

    >>> engine = clew.Engine(clew.SQLite(":memory:"), clew.Budget(window=8_000))
    >>> request = clew.Request({"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]})
    >>> view = clew.run(engine.prepare(request))
    >>> clew.body(view)["messages"]
    [{'role': 'user', 'content': 'Hello'}]
    """

    def __init__(
        self, store: Store, budget: Budget | Budgeting | None = None, settings: Settings | None = None
    ) -> None:
        settings = settings or Settings()
        self.store = store
        self.budget = budget
        self.listeners = tuple(settings.listeners)
        self.limits = ModelLimits(store, budget, settings.counter, settings.models, settings.servers)
        self._chapters = StoredChapters(lambda: self._turns)
        self.keep_chapters = self._chapters.keep
        self._compactor = Compactor(store, settings, self._chapters)
        self._turns = Turns(store, self._compactor, self.limits, settings)
        self.unanswered = self._turns.unanswered
        self._additions = Appender(self._turns)
        self.lineage = Lineage(self._turns)

    @property
    def settings(self) -> Settings:
        """How it works; those that say how and when to compact may be changed between two turns."""
        return self._compactor.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        if fixed := [name for name in FIXED if getattr(settings, name) != getattr(self.settings, name)]:
            names = ", ".join(fixed)
            raise BadRequest(f"{names}: cannot be changed after the engine is created; use `variant` to create another")
        self._compactor.settings = settings

    def variant(self, budget: Budget | Budgeting | None = None, **changes: Any) -> "Engine":
        """An engine over the same store, with these settings changed, and with another budget if one is given."""
        return Engine(self.store, budget or self.budget, with_(self.settings, **changes))

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
        await (self._additions.append(said) if isinstance(said, Addition) else self.keep(said))

    async def keep(self, request: Request) -> View:
        """Write down what a request says, without sending anything: its conversation as it stands then."""
        return await self._turns.take(request, silent=True)

    async def reopen(self, scope: Scope, branch: str) -> View:
        """A conversation as it stands, to be compacted. Raises `Conflict` if a newer one goes on from it."""
        return await reopened(self._turns, scope, branch)

    async def observe(self, view: View, usage: Any) -> None:
        """Record what the provider reported for the call this view was made for: its own object or a mapping."""
        report = spent(usage)
        cost = self.limits.cost(view.frame.model, report)
        learned = await self.limits.took(view.scope, view.frame, report)
        if (branch := self._turns.branches.newest(view)) and len(branch.view.edits) != len(view.edits):
            branch = None  # compacted since: the report is of what is no longer shown
        if branch:
            learned += self.limits.observe(view.scope, branch.ledger.size, branch.view, report.input)
        await self._turns.report(view, Usage(view.seq, report.counts(), cost), tuple(learned))
        if self.listeners:
            tell(self.listeners, [events.Observed(view.scope, view.branch, view.seq, **report.counts(), cost=cost)])
        if branch and (worked := branch.ledger.verdict.judge(report.input)) is not None:
            paused = branch.ledger.verdict.paused
            tell(self.listeners, [events.Judged(view.scope, view.branch, view.seq, worked, paused)])

    async def refused(self, view: View, error: BaseException | Mapping[str, Any] | str | bytes) -> "Overflow | None":
        """Whether an error says that what this view sent was too long: if so, the next `prepare` sends less.

        The limit that the provider named is remembered for its model.
        """
        from clew.wire.overflow import overflow  # its many patterns are compiled only where there is an error

        found = overflow(error)
        if found is None:
            return None
        branch = self._turns.branches.newest(view)
        window = await self.limits.refuse(view.scope, branch.ledger.size if branch else None, view, found)
        if window is not None:
            learned = events.Learned(view.scope, view.branch, view.seq, view.frame.model, window)
            tell(self.listeners, [learned])
        return found

    async def recall(
        self, scope: Scope, id: str, branch: str | None = None, until: int | None = None
    ) -> Sequence[Node]:
        """The originals that an id stands for, byte for byte; with `branch`, only from its own past, until an event."""
        full = await self.resolve(scope, id, branch, until)
        nodes = await self.store.originals(scope, full)
        tell(self.listeners, [events.Recalled(scope, branch or "", 0, full, len(nodes))])
        return nodes

    async def resolve(self, scope: Scope, id: str, branch: str | None = None, until: int | None = None) -> str:
        """The whole of an id that somebody wrote the beginning of; with `branch`, only of its own past, until an event.

        Raises `NotFound`, `Purged` or `Ambiguous`.
        """
        return await resolve(self.store, scope, id, branch, self._turns.trace_of, until)

    async def excerpt(
        self, scope: Scope, id: str, branch: str | None = None, lines: str = "", pattern: str = "", size: int = SIZE
    ) -> str:
        """Some of what an id stands for, in about `size` characters: lines such as 10-40, or those around a match."""
        nodes = await self.recall(scope, id, branch)
        return excerpt(full_text(nodes), id.strip(), lines, pattern, size)

    async def find(self, scope: Scope, text: str, branch: str, limit: int = 20) -> list[Found]:
        """What was said on this branch that a question is about, best first, with the lines that say so."""
        return (await candidates(self.store, scope, text, branch, self._turns.trace_of)).find(text, limit)

    async def answer(self, scope: Scope, text: str, branch: str, size: int = SIZE, until: int | None = None) -> str:
        """What was said on this branch, until an event, that a question is about, in `size` characters."""
        return (await candidates(self.store, scope, text, branch, self._turns.trace_of, until)).answer(text, size)

    async def search(self, scope: Scope, text: str, branch: str, limit: int = 20) -> Sequence[Node]:
        """The whole of what `find` finds."""
        ids = [f.id for f in await self.find(scope, text, branch, limit)]
        nodes = await self.store.nodes(scope, ids)
        return [nodes[id] for id in ids]

    async def with_originals(self, view: View) -> View:
        """A view that also has what is behind its stand-ins (`View.originals`)."""
        return await self._compactor.with_originals(view.scope, view)

    async def covered(self, view: View) -> CoverageLedger:
        """What became of every fact that a view leaves out."""
        view = await self.with_originals(view)
        made = view.stand_ins()
        hidden = [n for i, node in enumerate(view.nodes) if node.id in made for n in view.originals(i, i + 1)]
        return await in_thread(lambda: ledger(hidden, words_in(view.nodes)))

    async def compact(self, view: View, focus: str = "", step: Step | None = None, method: str = "manual") -> View:
        """Compact the newest view of a branch now, whatever its size, with more of what stands near `focus`.

        With a `step`, as that one does it, and nothing else.
        """

        async def act(branch: Branch, target: Target) -> View:
            return await self._compactor.compacted(view.scope, branch, target, focus, step)

        if step is None and (branch := self._turns.branches.newest(view)):  # outside of its lock: a model may be asked
            target = await self.limits.target_as_called(view.scope, view.frame, branch.trace)
            await self._compactor.write(view.scope, branch, target, focus)
        return await self._turns.compact(view, act, method)

    async def preview(self, view: View, focus: str = "", step: Step | None = None) -> View:
        """What `compact` would make of a view now; nothing is written. The same view, if there is nothing to fold.

        No model is asked: what one has written already is used.
        """
        scope, target = view.scope, await self.target(view)
        branch = self._turns.branches.newest(view)
        logged = (
            self._compactor.chapters(scope, branch) if branch else await self._chapters.chapters(scope, view.branch)
        )
        size = branch.ledger.size if branch else await self._weighed(scope, view.frame, target)
        view = branch.view if branch else view
        own, rate = size.measure(view)
        step = briefed(step or self.settings.step, focus, logged)
        return await self._compactor.folded(scope, view, part(target.as_sent(size.unmasked).at(rate), own), step)

    async def _weighed(self, scope: Scope, frame: Frame, target: Target) -> ProviderSize:
        size = ProviderSize()
        await self.limits.weigh(scope, size, target, frame)
        return size

    async def begin(self, view: View, summary: str, method: str = "manual") -> View:
        """End the session of the newest view of a branch, and begin a child with this summary, as an agent would."""

        async def act(branch: Branch, target: Target) -> View:
            return await self._compactor.handed_over(view.scope, branch, branch.view, Handoff(summary), target)

        return await self._turns.compact(view, act, method, "handoff")

    async def rewrite(self, view: View, id: str, dry_run: bool = False) -> View:
        """Have code tell what a stand-in of the newest view of a branch tells in a model's words, in no more room.

        Raises `BadRequest` where it would take more. With `dry_run` nothing is written.
        """

        async def act(branch: Branch, target: Target) -> View:
            whole = await self._compactor.with_originals(view.scope, branch.view)
            after = await off_loop(whole, lambda: retold(whole, target, id))
            if after is None:
                raise BadRequest("code has no words for this that take less room")
            return after

        return await self._rewritten(view, act, dry_run)

    async def take_back(self, view: View, said: str, dry_run: bool = False) -> View:
        """Have one of the user's rules kept in mind no longer by the newest view of a branch.

        Raises `NotFound`. With `dry_run` nothing is written.
        """

        async def act(branch: Branch, target: Target) -> View:
            if (after := without_rule(branch.view, said)) is None:
                raise NotFound("no rule in these words is kept in mind")
            return after

        return await self._rewritten(view, act, dry_run)

    async def _rewritten(self, view: View, act: Callable[[Branch, Target], Awaitable[View]], dry_run: bool) -> View:
        branch = self._turns.branches.newest(view)
        if dry_run and branch:
            return await act(branch, await self.limits.target_as_called(view.scope, view.frame, branch.trace))
        return await self._turns.compact(view, act, "rewrite")

    async def close(self, store: bool = False) -> None:
        """End what goes on in the background; the store stays open, unless it is to be closed, too."""
        await self._compactor.asking.close()
        await self._compactor.take_down()
        if store:
            await self.store.close()

    def digests(self, scope: Scope) -> Digests:
        """The digests of one scope."""
        return self._turns.digests(scope)

    async def named(self, scope: Scope, session: str) -> str | None:
        """The newest branch of a session's name."""
        return await self.store.session(scope, session)

    async def history(self, scope: Scope, branch: str, until: int | None = None) -> list[Node]:
        """All that was said on a branch, until an event, in view or not."""
        places = (await self.store.load(scope, branch, until)).said
        nodes = await self.store.nodes(scope, [place.id for place in places])
        return [nodes[place.id] for place in places]

    async def expected(self, view: View) -> int:
        """How many tokens the provider will count in a view."""
        if branch := self._turns.branches.newest(view):
            return branch.ledger.size.expected(branch.view)
        target = await self.limits.target(view.scope, view.frame)
        weighed = await self._weighed(view.scope, view.frame, target)
        return await in_thread_if(len(view.nodes) > LONG, lambda: weighed.expected(view))

    async def filled(self, view: View, more: int = 0) -> Filled:
        """How full the window is with a view, and so many tokens beside it."""
        target, branch = await self.target(view), self._turns.branches.newest(view)
        own = target.size(branch.view if branch else view).tokens
        return target.filled(own + more, await self.expected(view) / max(1, own))

    async def target(self, view: View) -> Target:
        """What a view is to fit, as its branch's last call did."""
        if not view.branch:
            return await self.limits.target(view.scope, view.frame)
        branch = self._turns.branches.newest(view)
        trace = branch.trace if branch else await self.store.load(view.scope, view.branch, view.seq)
        return await self.limits.target_as_called(view.scope, view.frame, trace)

    async def window(self, view: View) -> int | None:
        """The tokens that the model of a view can read and write; None where nobody knows."""
        model = await self.limits.windows.model(view.scope, view.frame)
        window = (await self.target(view)).window
        guessed = model.source == "default" and window == model.window and not isinstance(self.budget, Budget)
        return None if guessed else window

    async def pin(self, view: View, *ids: str, off: bool = False, dry_run: bool = False) -> Back:
        """Keep these nodes verbatim in every later view of this branch, or no longer.

        What is out of view is quoted there from the next request on. Raises `NotFound` for what was not said here, and
        `OverBudget`, with the numbers, if more would come back than there is room for. `dry_run` writes nothing.
        """
        trace = await self.store.load(view.scope, view.branch)
        ids = tuple(trace.quoted.get(id, id) for id in ids)
        brought = Back()
        if not off:
            now = await replay(self.store, view.scope, trace, view.frame, {n.id: n.item for n in view.nodes})
            target = await self.limits.target_as_called(view.scope, view.frame, trace)
            brought = await back(self.store, with_(now, scope=view.scope), target, trace, ids)
        if not dry_run:
            await self._turns.record(view.scope, view.branch, [Pin(ids, off)])
        return brought

    async def until(self, view: View) -> int:
        """The last event of its branch, if nothing was said there since a view: then it may have been folded since."""
        then, now = [await self.store.load(view.scope, view.branch, until) for until in (view.seq, None)]
        return now.seq - 1 if now.said == then.said else view.seq

    async def resume(self, scope: Scope, call: Call) -> View:
        """The view that was sent in an earlier call, from the log alone."""
        return await self.view(scope, call.branch, call.seq)

    async def view(self, scope: Scope, branch: str, until: int | None = None, frame: Frame | None = None) -> View:
        """A branch as it stands now, or stood after an earlier event, in the frame of its last call or in this one."""
        trace = await self.store.load(scope, branch, until)
        if frame is None:
            if not trace.frame:
                raise NotFound(f"nothing has been sent on branch {branch} yet")
            frame = await self.store.frame(scope, trace.frame)
        view = await replay(self.store, scope, trace, frame, {})
        return with_(view, scope=scope, branch=branch, seq=trace.seq - 1)

    async def outline(self, scope: Scope, branch: str, until: int | None = None) -> tuple[View, Trace]:
        """The same without words, which is much faster where it is long: what is in view, and what made it so."""
        trace = await self.store.load(scope, branch, until)
        if not trace.frame:
            raise NotFound(f"nothing has been sent on branch {branch} yet")
        view = await outlined(self.store, scope, trace, await self.store.frame(scope, trace.frame), {})
        return with_(view, scope=scope, branch=branch, seq=trace.seq - 1), trace

    async def undo(self, scope: Scope, branch: str, count: int = 1, dry_run: bool = False) -> Undone:
        """Take back the newest compactions of a branch; what was said since stays. Raises `OverBudget`.

        What comes back into view is not folded again while there is room for it. With `dry_run`, only say what would.
        """
        return await undo(self._turns, scope, branch, count, dry_run)

    async def fork(self, scope: Scope, branch: str, seq: int, session: str) -> str:
        """A branch with the past of another one up to an event, under a name of its own."""
        self._turns.guard(scope).expect_names(session=session)
        new = await first_branch(self.store, scope, self._turns.digests(scope), session)
        await self.store.write(scope, Batch(new, seq + 1, (), True, Fork(branch, seq), session))
        return new


def body(view: View, format: str | None = None, model: str | None = None) -> dict[str, Any]:
    """The request body that sends a view: in the format the client spoke, or in that of another provider's model.

    >>> engine = clew.Engine(clew.SQLite(":memory:"), clew.Budget(window=8_000))
    >>> said = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}
    >>> clew.body(clew.run(engine.prepare(clew.Request(said)))) == said
    True
    """
    sent = encode(view.frame, anchored(view))
    return convert(sent, format or view.frame.format, view.frame.format, model) if format or model else sent
