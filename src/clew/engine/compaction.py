"""Making a view fit: compact if it is time to, then put beside it what must be there."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace as with_
from typing import Any, NamedTuple

from clew import events
from clew.core.items import Scope
from clew.core.threads import in_thread
from clew.core.view import View, originals
from clew.engine.branch import Branch
from clew.engine.cue import Cue
from clew.engine.due import HELD, Due, due, part, settled
from clew.engine.net import before_client, likely, margin, net, previewed, was_asked_to_act
from clew.engine.pins import hidden, lacks_room, quoted, quotes
from clew.engine.recall import beside_newest
from clew.engine.settings import Settings
from clew.events import tell
from clew.facts.chapters import Chapter
from clew.steps import over_budget, repair
from clew.steps.bound import unbound
from clew.steps.chapters.asking import Asking, ChapterLog, Wanted, wanted, written_of
from clew.steps.chapters.author import Author
from clew.steps.handoff import Handoff
from clew.steps.protocol import Step
from clew.steps.sealed import asks_to_compact
from clew.steps.summarize import aims, briefed, reads
from clew.store.protocol import Store
from clew.store.records import Cause, Method
from clew.tokens.target import Target
from clew.wire.convert.demands import may_be_followed
from clew.wire.rules.binding import is_refused

DECLINED = "declined"  # under which the store keeps what models did not write
ASK_SHARE = 0.4  # of the room: so much is new before a model is asked again
FITS = 4  # compactions in one turn, should the first leave what is dearer than it seemed


class Fitted(NamedTuple):
    """A view that may be sent, or the reason why there is none; `shadow` is what was only tried."""

    view: View
    error: Exception | None = None
    shadow: Mapping[str, Any] | None = None
    folded: int | None = None  # the first edit of a compaction, if there was one
    cause: Cause = "compaction"
    due: Due = Due("fits")


class Drafting(Exception):
    """A model writes a chapter that this turn is to wait for, where it keeps nobody else from the conversation."""


class Compactor:
    """Makes views fit, by the settings of its engine."""

    def __init__(self, store: Store, settings: Settings, log: ChapterLog) -> None:
        self.settings = settings
        self.asking = Asking(log, settings.listeners)
        self._store = store

    async def fit(
        self,
        scope: Scope,
        branch: Branch,
        shown: View,
        target: Target,
        method: Method | None = None,
        cue: Cue | None = None,
        waited: bool = False,
    ) -> Fitted:
        """The view mended and compacted as needed, and the error if nothing helps.

        Raises `Drafting` if it has not `waited` for a chapter that is being written.
        """
        target = (self.settings.threshold.apply(target) if self.settings.threshold else target).as_sent(branch.unmasked)
        view = mended = repair(shown, branch.unrepaired(shown))
        told, shadow, found = None, None, Due("off")
        cause: Cause = "compaction"
        if (method or self.settings.method) == "llm":
            told = was_asked_to_act(branch, view, target, cue or Cue())
            target = net(target, view.frame.format if cue and cue.is_clients else "")
            view = await self.handed_over(scope, branch, view, Handoff(), target)
            if view is not mended:
                cause = "handoff"
            elif self.settings.compaction == "on" and not told:
                view = mended = await previewed(branch, view, target)
        else:
            target = before_client(branch, view, target)
        if self.settings.compaction == "on":
            view, found = await self._compacted(scope, branch, view, target, told, waited)
        folded = len(mended.edits) if len(view.edits) > len(mended.edits) else None
        if self.settings.compaction == "shadow":
            shadow = await self._shadow(scope, branch, view, target)
        else:
            before, view = view, await self._with_pins(scope, branch, view, target)
            if folded is None and any("coverage" in e.evidence for e in view.edits[len(before.edits) :]):
                folded = len(before.edits)  # room was made for them
        if self.settings.compaction == "on" and self.settings.expand and not asks_to_compact(view):
            rate = branch.ledger.size.measure(view)[1]
            view = await beside_newest(self._store, scope, branch.trace, view, target.at(rate))
        await self.take_down()
        view = accepted(branch, view, shown)
        branch.settle(view)
        error = None
        if self.settings.compaction == "on" and not _may_fit(branch, view, target):
            error = over_budget(view, target, branch.ledger.size.measure(view)[0])
        return Fitted(view, error, shadow, folded, cause, found)

    async def handed_over(self, scope: Scope, branch: Branch, view: View, handoff: Handoff, target: Target) -> View:
        """The view that begins a new session, if one was asked for."""
        if not handoff.is_due(view):
            return view
        view = await self.with_originals(scope, view)
        return handoff(view, likely(branch, view, target)[1])

    def author(self, branch: Branch) -> Author | None:
        """Who writes the chapters of a branch; code, if nobody."""
        return branch.own if self.settings.author == "own" else self.settings.author

    def is_drafting(self, scope: Scope, branch: Branch) -> bool:
        """Whether a model is writing a chapter of a branch."""
        return self.asking.is_running(_key(scope, branch))

    async def drafted(self, scope: Scope, branch: Branch) -> None:
        """Wait for such a chapter, but not for long."""
        await self.asking.settle(_key(scope, branch), self.settings.patience)

    def ask(self, scope: Scope, branch: Branch) -> None:
        """Have a model write what is wanted of a branch: its last answer has come, or nobody will say that it has."""
        want, branch.ledger.wanted = branch.ledger.wanted, None
        if want and (author := self.author(branch)):
            branch.ledger.asked = len(branch.trace.said)
            self.asking.begin(_key(scope, branch), author, want, want.view)

    def chapters(self, scope: Scope, branch: Branch) -> Sequence[Chapter]:
        """What models have written of a branch."""
        return [*branch.trace.chapters, *self.asking.unwritten(_key(scope, branch))]

    async def _compacted(
        self, scope: Scope, branch: Branch, view: View, target: Target, told: bool | None, waited: bool
    ) -> tuple[View, Due]:
        """The view compacted, if it is time for that and worth it, and what decided."""
        found = due(branch, view, target, told)
        why, aimed, _ = found
        reading = Due("being read") if aimed else found
        if why == "limit":
            if self.settings.patience and not waited and self.is_drafting(scope, branch):
                raise Drafting
        elif why not in HELD and (author := self.author(branch)) and not author.refusal():
            if self.is_drafting(scope, branch):
                return view, reading  # while there is room, nobody waits for a model
            want = branch.ledger.wanted = await self._wanted(scope, branch, view, target, aimed, author)
            if want or (why == "threshold" and self._is_early(scope, branch, view, target)):
                return view, reading
        if aimed is None:
            return view, found
        view = await self.with_originals(scope, view, aimed)
        expected = branch.ledger.size.expected(view)
        after = await self._spared(scope, branch, view, target, aimed)
        if after is view:
            return view, found
        found = settled(found, branch, view, after)
        if found.target is None:
            return view, found
        branch.ledger.verdict.await_report(expected)
        return after, found

    async def _wanted(
        self, scope: Scope, branch: Branch, view: View, target: Target, aimed: Target | None, author: Author
    ) -> Wanted | None:
        """What a model shall write some time before the next fold; nothing if none may be asked, or one is at it."""
        size, rate = branch.ledger.size.measure(view)
        bounds = target.at(rate)
        later = size._replace(tokens=size.tokens + int(margin(branch, view, target) / rate))
        ends = bounds.is_clients_next(later) or not later.within(bounds.limit)
        # Where words count more than what is paid, nearly all that will be folded is to be read.
        is_time = aimed is not None or ends or (bounds.exceeded(size) and not bounds.budget.is_small)
        if not is_time or not self._has_much_new(branch, view, bounds):
            return None
        if author is branch.own and not may_be_followed(view.frame):
            return None
        near = aimed or bounds
        view, want = await self._stretches(scope, branch, view, near, author)
        if want is None:
            return None
        chapters, reached = self.chapters(scope, branch), list[tuple[View, Target]]()
        would = await briefed(self.settings.step, chapters=chapters, reached=reached.append)(view, near)
        if not reached or not any("coverage" in edit.evidence for edit in would.edits[len(view.edits) :]):
            return None  # it will fit without a fold
        folded = await in_thread(lambda: wanted(*reached[0], chapters, author.size, would))
        return folded and want._replace(asked=folded.asked)

    async def _stretches(
        self, scope: Scope, branch: Branch, view: View, target: Target, author: Author, anew: bool = False
    ) -> tuple[View, Wanted | None]:
        """A view with what its fold reads, and what a model shall write of it."""
        chapters = () if anew else self.chapters(scope, branch)

        def found() -> Wanted | None:
            return wanted(*aims(self.settings.step, view, target), chapters, author.size)

        view = await self.with_originals(scope, with_(view, scope=scope, branch=branch.trace.branch), target)
        want = await in_thread(found)
        if want and any(one.blocks for one in want.asked):  # a model's words are held against all that was said
            view = await self.with_originals(scope, view)
            want = await in_thread(found)
        # An agent's own model has the view in its cache.
        window, sent = target.window if author is branch.own else None, target.size(view).tokens
        return view, want and want._replace(view=view, window=window, sent=sent)

    def _has_much_new(self, branch: Branch, view: View, bounds: Target) -> bool:
        """Whether enough was said for a model to be asked again: few questions about much cost less than many."""
        told = {chapter.ids[-1] for chapter in branch.trace.chapters if chapter.ids}
        said = branch.trace.said
        last = next((n for n in range(len(said), 0, -1) if said[n - 1].id in told), 0) if told else 0
        new = {place.id for place in said[max(last, branch.ledger.asked) :]}
        return bounds.meter.nodes(n for n in view.nodes if n.id in new).tokens >= ASK_SHARE * bounds.room

    def _is_early(self, scope: Scope, branch: Branch, view: View, target: Target) -> bool:
        """Whether a fold can wait until there is enough for a model to write of: no chapter is there to be used."""
        told = {id for chapter in self.chapters(scope, branch) for id in chapter.ids}
        bounds = target.at(branch.ledger.size.measure(view)[1])
        return not any(n.id in told for n in view.nodes) and not self._has_much_new(branch, view, bounds)

    async def _spared(self, scope: Scope, branch: Branch, view: View, target: Target, aimed: Target) -> View:
        """The view reduced, without touching what somebody brought back by an undo, as long as it fits so."""
        for pinned in dict.fromkeys((view.pinned | branch.trace.held, view.pinned)):
            holding = with_(view, pinned=pinned)
            after = await self._reduced(scope, branch, holding, target, aimed)
            size, rate = branch.ledger.size.measure(after)
            if size.within(target.at(rate).limit):
                break
        return view if after is holding else with_(after, pinned=view.pinned)

    async def _reduced(self, scope: Scope, branch: Branch, view: View, target: Target, aimed: Target) -> View:
        """The view after the step, tried again where what is left is dearer by the token than what went."""
        step = briefed(self.settings.step, chapters=self.chapters(scope, branch))
        for _ in range(FITS):
            before, view = view, await step(view, aimed)
            size, rate = branch.ledger.size.measure(view)
            if view is before or size.within(target.at(rate).limit):
                break
            aimed = target.at(rate).aim(size)
        return view

    async def _shadow(self, scope: Scope, branch: Branch, view: View, target: Target) -> Mapping[str, Any] | None:
        """What a compaction would have done, had it been allowed; no draft is made for it."""
        aimed = due(branch, view, target).target
        if aimed is None:
            return None
        view = await self.with_originals(scope, view, aimed)
        would = await self._reduced(scope, branch, view, target, aimed)
        before, after = (branch.ledger.size.measure(v)[0].tokens for v in (view, would))
        edits = would.edits[len(view.edits) :]
        at = scope, branch.trace.branch, branch.trace.seq
        tell(self.settings.listeners, [events.Shadowed(*at, before, after, len(edits))])
        by = Counter(edit.by.partition("(")[0] for edit in edits)
        return {"tokens_before": before, "tokens_after": after, "edits": dict(by)}

    async def _with_pins(self, scope: Scope, branch: Branch, view: View, target: Target) -> View:
        """The view with the words of what is pinned and out of view, as far as there is room."""
        if not (ids := hidden(view, branch.trace)):
            return view
        _, bounds = likely(branch, view, target)
        said = await quotes(self._store, view, scope, branch.trace, ids)
        if self.settings.compaction == "on" and lacks_room(view, bounds, branch.trace, said):
            view = await self.with_originals(scope, view, bounds.aim(bounds.limit))
            view = await self._spared(scope, branch, view, target, bounds.aim(bounds.limit))
        return quoted(view, bounds, branch.trace, said)

    async def compacted(
        self, scope: Scope, branch: Branch, target: Target, focus: str, step: Step | None = None
    ) -> View:
        """The view of a branch compacted now, because somebody asks for it, with more of what they care for."""
        target, (size, rate) = target.as_sent(branch.unmasked), branch.ledger.size.measure(branch.view)
        view = branch.view if step is None else await self.with_originals(scope, branch.view)
        step = briefed(step or self.settings.step, focus, self.chapters(scope, branch))
        return await self.folded(scope, view, part(target.at(rate), size), step)

    async def write(self, scope: Scope, branch: Branch, target: Target, focus: str) -> None:
        """Have a model write of what `compacted` will fold, if there is one that does."""
        author = self.author(branch)
        if author is None:
            return
        await self.drafted(scope, branch)
        target, (size, rate) = target.as_sent(branch.unmasked), branch.ledger.size.measure(branch.view)
        aimed = part(target.at(rate), size)
        view, want = await self._stretches(scope, branch, branch.view, aimed, author, anew=bool(focus))
        if want:
            written = await written_of(author, want, focus, view)
            await self.asking.keep(_key(scope, branch), written)
            self.asking.tell(_key(scope, branch), view.seq, written)

    async def folded(self, scope: Scope, view: View, aimed: Target, step: Step) -> View:
        """The view after a step that reads what is out of view; no model is asked, nothing is written."""
        return await step(await self.with_originals(scope, view, aimed), aimed)

    async def take_down(self) -> None:
        """Write down which summaries no model wrote, and why: `clew doctor` tells of them."""
        if not self.asking.declined:
            return
        declined = dict(self.asking.declined)
        self.asking.declined.clear()
        for (scope, model, fault), count in declined.items():
            known = (await self._store.learned(scope, DECLINED)).get(model, {})
            await self._store.learn(scope, DECLINED, model, {**known, fault: known.get(fault, 0) + count})

    async def with_originals(self, scope: Scope, view: View, target: Target | None = None) -> View:
        """The view with what is behind its stand-ins, for steps that tell of it; or with what one fold reads of it."""
        by_id = view.edits.made
        wanted = await in_thread(lambda: reads(view, target)) if target else [n.id for n in view.nodes if n.id in by_id]
        missing = [id for id in originals(wanted, by_id) if id not in view.behind]
        if not missing:
            return view
        return with_(view, behind={**view.behind, **await self._store.nodes(scope, missing)})


def accepted(branch: Branch, view: View, shown: View) -> View:
    """The view without thinking that its provider would refuse; `shown` is what it was made of, if nothing was sent."""
    return unbound(view, branch.sent.view or shown) if is_refused(view.frame) else view


def _may_fit(branch: Branch, view: View, target: Target) -> bool:
    """Whether a view fits; where only the learned rate says that it does not, the provider shall judge."""
    size, bounds = likely(branch, view, target)
    return size.within(target.limit) or size.within(bounds.limit)


def _key(scope: Scope, branch: Branch) -> tuple[Scope, str]:
    return scope, branch.trace.branch
