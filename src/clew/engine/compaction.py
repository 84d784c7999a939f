"""Making a view fit: when to compact, what with, and whether it helped."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace as with_
from typing import Any, Literal, NamedTuple

from clew import events
from clew.catalog import Prices
from clew.core.items import Scope
from clew.core.step import Step
from clew.core.view import View, cuts, originals
from clew.engine.cue import Cue
from clew.engine.growth import grown
from clew.engine.net import is_over, likely, net, previewed, was_told
from clew.engine.pins import hidden, lacks_room, quoted, quotes
from clew.engine.recall import among
from clew.engine.verdict import is_worth
from clew.errors import Conflict
from clew.events import Listener, tell
from clew.recognition.branch import Live
from clew.secrets.guard import as_sent
from clew.steps import over_budget, repair
from clew.steps.bound import is_thinking, unbound
from clew.steps.expand import question, recalled, room
from clew.steps.handoff import Handoff
from clew.steps.notes.drafts import EARLY, Drafts, drafted, middle, unread
from clew.steps.notes.writer import Writer
from clew.steps.sealed import asks_to_compact
from clew.steps.summarize import reads
from clew.steps.threshold import Proactive
from clew.steps.worklog.tasks import is_done
from clew.store.protocol import Store
from clew.store.records import Cause, Method
from clew.tokens.budget import Budget, Size
from clew.tokens.provider_size import Scale
from clew.wire.rules.binding import binds, is_refused

Compaction = Literal["on", "shadow", "off"]

DECLINED = "declined"  # under which the store keeps what models did not write
FITS = 4  # compactions in one turn, should the first leave what is dearer than it seemed
LEAST = 100  # tokens: with less room nothing is recalled for a message
BODIES = 40  # that may answer it
CHARACTERS = 200_000  # of them that are looked at
PATIENCE = 15.0  # seconds that a full window waits for a draft that is nearly there


class Fitted(NamedTuple):
    """A view that may be sent, or the reason why there is none; `shadow` is what was only tried."""

    view: View
    error: Exception | None = None
    shadow: Mapping[str, Any] | None = None
    folded: int | None = None  # the first edit of a compaction, if there was one
    cause: Cause = "compaction"


class Fitting:
    """How views are made to fit; its settings may change between two turns, and the next one obeys."""

    def __init__(
        self,
        store: Store,
        step: Step,
        listeners: Sequence[Listener],
        writer: Writer | None = None,
        expand: bool = True,
        compaction: Compaction = "on",
        patience: float = PATIENCE,
        method: Method = "auto",
    ) -> None:
        self.step = step
        self.compaction: Compaction = compaction
        self.method: Method = method
        self.proactive: Proactive | None = None  # instead of the budget's own threshold
        self.drafts = Drafts(writer, listeners) if writer else None
        self._store = store
        self._listeners = listeners
        self._expand = expand
        self._patience = patience

    async def fit(
        self,
        scope: Scope,
        live: Live,
        shown: View,
        budget: Budget,
        prices: Prices | None,
        method: Method | None = None,
        cue: Cue | None = None,
        whole: bool = False,
    ) -> Fitted:
        """The view mended and compacted as needed, `whole` while it fits, and the error if nothing helps."""
        budget = self.proactive.apply(budget) if self.proactive else budget
        if live.unmasked:  # counted as they are sent, once and for all
            budget.meter.nodes(as_sent([n for n in shown.nodes if n.id in live.unmasked], live.unmasked))
        view = repair(shown, live.settled)
        if view is not shown:
            live.scale.edit()
        live.pace.grow(live.scale.measure(view)[0].tokens)
        shadow, mended, due = None, view, self.compaction == "on"
        cause: Cause = "compaction"
        if (method or self.method) == "llm":
            told, budget = was_told(live, view, budget, cue or Cue()), net(budget)
            view = await self.handed_over(scope, live, view, Handoff(), budget)
            if view is not mended:
                cause = "handoff"
            elif due and not told:
                view = mended = await previewed(live, view, budget)
            due = due and is_over(live, view, budget, told)
        if whole:
            size, bounds = likely(live, view, budget)
            due = due and not size.within(bounds.limit)
        if due:
            view = await self._compacted(scope, live, view, budget, prices)
        folded = None if view is mended else len(mended.edits)
        if self.compaction != "shadow":
            before, view = view, await self._with_pins(scope, live, view, budget)
            if folded is None and any("coverage" in e.evidence for e in view.edits[len(before.edits) :]):
                folded = len(before.edits)  # room was made for them
        if self.compaction == "on" and self._expand:
            view = await self._expanded(scope, live, view, budget)
        elif self.compaction == "shadow":
            shadow = await self._shadow(scope, live, view, budget, prices)
        await self.take_down()
        view = accepted(live, view, shown)
        live.settled = _last_group(view, live.settled if view is shown else 0)
        live.pace.call()
        size, bounds = likely(live, view, budget)
        # Where only the learned rate says that it does not fit, or nobody may compact, the provider shall judge.
        fits = self.compaction != "on" or size.within(bounds.limit) or size.within(budget.limit)
        return Fitted(view, None if fits else over_budget(view, budget), shadow, folded, cause)

    async def handed_over(self, scope: Scope, live: Live, view: View, handoff: Handoff, budget: Budget) -> View:
        """The view that begins a new session, if one was asked for."""
        if not handoff.is_due(view):
            return view
        await self.remember(scope, view)
        after = handoff(view, likely(live, view, budget)[1])
        live.scale.edit()
        live.pace.shrink(live.scale.measure(after)[0].tokens)
        return after

    async def _compacted(self, scope: Scope, live: Live, view: View, budget: Budget, prices: Prices | None) -> View:
        size, rate = live.scale.measure(view)
        aimed = _aimed(live, view, budget.at(rate), size, prices)
        if not await self._is_time(scope, live, view, budget.at(rate), size, aimed):
            return view
        await self.remember(scope, view, aimed or budget.at(rate).aim(size))
        expected = live.scale.expected(view)
        after = await self._spared(live, view, budget, aimed or budget.at(rate).aim(size))
        if after is not view:
            new, _ = live.scale.measure(after)
            gain = size.tokens - budget.frame, new.tokens - budget.frame
            if size.within(budget.at(rate).limit) and not is_worth(*gain):
                live.scale.edit()
                return view
            live.verdict.await_report(expected)
            live.pace.shrink(new.tokens)
        return after

    async def _is_time(
        self, scope: Scope, live: Live, view: View, budget: Budget, size: Size, aimed: Budget | None
    ) -> bool:
        """Whether to compact now: while there is room, nobody waits for a model."""
        if not size.within(budget.limit):
            if self.drafts:
                await self.drafts.settle(_key(scope, live), self._patience)
            return True
        if asks_to_compact(view) or (binds(view.frame.format, view.frame.model) and is_thinking(view)):
            return False  # what is thought in an open turn would be lost with the first change before it
        if live.verdict.paused:
            return False
        said = int((size.tokens - budget.frame) / EARLY)
        soon = aimed is not None or budget.exceeded(size._replace(tokens=budget.frame + said))
        if self.drafts and soon and await self._is_read(scope, live, view, aimed or budget):
            return False
        return aimed is not None

    async def _is_read(self, scope: Scope, live: Live, view: View, budget: Budget) -> bool:
        """Whether a model is at work on what the next summary will stand for; it begins here."""
        if self.drafts is None or self.drafts.is_running(_key(scope, live)):
            return self.drafts is not None
        await self.remember(scope, view, budget)
        nodes = self.drafts.wanted(view, budget)
        if not nodes:
            return False
        would = await self.step(view, budget)
        if not any("coverage" in edit.evidence for edit in would.edits[len(view.edits) :]):
            return False  # it will fit without a summary
        self.drafts.begin(_key(scope, live), with_(view, scope=scope, branch=live.trace.branch), nodes)
        return True

    async def _spared(self, live: Live, view: View, budget: Budget, aimed: Budget) -> View:
        """The view reduced, without touching what somebody brought back by an undo, as long as it fits so."""
        if not live.trace.held:
            return await self._reduced(live, view, budget, aimed)
        holding = with_(view, pinned=view.pinned | live.trace.held)
        after = await self._reduced(live, holding, budget, aimed)
        size, rate = live.scale.measure(after)
        if not size.within(budget.at(rate).limit):
            return await self._reduced(live, view, budget, aimed)
        return view if after is holding else with_(after, pinned=view.pinned)

    async def _reduced(self, live: Live, view: View, budget: Budget, aimed: Budget) -> View:
        """The view after the step, tried again where what is left is dearer by the token than what went."""
        for _ in range(FITS):
            before, view = view, await self.step(view, aimed)
            if view is not before:
                live.scale.edit()
            size, rate = live.scale.measure(view)
            if view is before or size.within(budget.at(rate).limit):
                break
            aimed = budget.at(rate).aim(size)
        return view

    async def _shadow(
        self, scope: Scope, live: Live, view: View, budget: Budget, prices: Prices | None
    ) -> Mapping[str, Any] | None:
        """What a compaction would have done, had it been allowed; no draft is made for it."""
        size, rate = live.scale.measure(view)
        aimed = _aimed(live, view, budget.at(rate), size, prices)
        if aimed is None:
            return None
        await self.remember(scope, view, aimed)
        would = await self._reduced(live, view, budget, aimed)
        after, _ = live.scale.measure(would)
        live.scale.edit()
        edits = would.edits[len(view.edits) :]
        at = scope, live.trace.branch, live.trace.seq
        tell(self._listeners, [events.Shadowed(*at, size.tokens, after.tokens, len(edits))])
        by = Counter(edit.by.partition("(")[0] for edit in edits)
        return {"tokens_before": size.tokens, "tokens_after": after.tokens, "edits": dict(by)}

    async def _expanded(self, scope: Scope, live: Live, view: View, budget: Budget) -> View:
        """The view with what was said about the newest message, and is out of view, beside it."""
        asked = None if asks_to_compact(view) else question(view)
        budget = budget.at(live.scale.measure(view)[1])
        if asked is None or (most := room(view, budget)) < LEAST:
            return view
        shown = {n.id for n in view.nodes} | {*live.trace.alias.values()}
        stored = live.trace.calls[-1][1] if live.trace.calls else 0  # what is said in this very turn is not there yet
        away = [place for place in live.trace.said[:stored] if place.id not in shown]
        if not away:
            return view
        try:
            index = await among(self._store, scope, asked.text, away, BODIES, 0, CHARACTERS)
        except Conflict:  # it is not all there, or no longer: nobody asked for it
            return view
        after = await asyncio.to_thread(recalled, view, budget, asked, index, most)
        if after is not view:
            live.scale.edit()
        return after

    async def _with_pins(self, scope: Scope, live: Live, view: View, budget: Budget) -> View:
        """The view with the words of what is pinned and out of view, as far as there is room."""
        if not (ids := hidden(view, live.trace)):
            return view
        _, bounds = likely(live, view, budget)
        said = await quotes(self._store, view, scope, live.trace, ids)
        if self.compaction == "on" and lacks_room(view, bounds, live.trace, said):
            await self.remember(scope, view, bounds.aim(bounds.limit))
            view = await self._spared(live, view, budget, bounds.aim(bounds.limit))
        after = quoted(view, bounds, live.trace, said)
        if after is not view:
            live.scale.edit()
        return after

    async def compacted(
        self, scope: Scope, live: Live, view: View, budget: Budget, focus: str, step: Step | None = None
    ) -> View:
        """The view compacted now, because somebody asks for it, with more of what they care for."""
        aimed = at_once(live.scale, view, budget)
        if self.drafts and step is None:
            await self.remember(scope, view, aimed)
            await self.drafts.settle(_key(scope, live), self._patience)
            if nodes := middle(view, aimed) if focus else unread(view, aimed):
                # The agent's own model has the view in its cache.
                self.drafts.tell(view, await drafted(self.drafts.writer, view, nodes, focus, after=view))
        after = await self.folded(scope, view, aimed, focus, step)
        if after is not view:
            live.scale.edit()
        return after

    async def folded(self, scope: Scope, view: View, aimed: Budget, focus: str = "", step: Step | None = None) -> View:
        """The view after the steps, with more of what stands near `focus`; no model is asked, nothing is written."""
        await self.remember(scope, view, aimed if step is None else None)
        view.past.focus = focus
        try:
            return await (step or self.step)(view, aimed)
        finally:
            view.past.focus = ""

    async def take_down(self) -> None:
        """Write down which summaries no model wrote, and why: `clew doctor` tells of them."""
        if self.drafts is None or not self.drafts.declined:
            return
        declined = dict(self.drafts.declined)
        self.drafts.declined.clear()
        for (scope, model, fault), count in declined.items():
            known = (await self._store.learned(scope, DECLINED)).get(model, {})
            await self._store.learn(scope, DECLINED, model, {**known, fault: known.get(fault, 0) + count})

    async def remember(self, scope: Scope, view: View, budget: Budget | None = None) -> None:
        """Load what is out of view, for steps that tell of it; with the `budget` of a fold, what that one reads."""
        by_id = {n.id: e for e in view.edits for n in e.stand_ins}
        wanted = reads(view, budget) if budget else [n.id for n in view.nodes if n.id in by_id]
        hidden = originals(wanted, by_id)
        if missing := [id for id in hidden if view.past.node(id) is None]:
            view.past.keep((await self._store.nodes(scope, missing)).values())


def at_once(scale: Scale, view: View, budget: Budget) -> Budget:
    """The budget of a compaction that somebody asks for: it leaves a part of what was said, however much that is."""
    size, rate = scale.measure(view)
    budget = budget.at(rate)
    framed = budget.meter.frame(view.frame).tokens  # what nobody can compact
    return _part(budget, size, framed)


def _part(budget: Budget, size: Size, framed: int) -> Budget:
    said = min(size.tokens, budget.limit.tokens) - framed
    return with_(budget, goal=budget.goal._replace(tokens=framed + int(budget.low * said)))


def accepted(live: Live, view: View, shown: View) -> View:
    """The view without thinking that its provider would refuse; `shown` is what it was made of, if nothing was sent."""
    after = unbound(view, live.last or shown) if is_refused(view.frame) else view
    if after is not view:
        live.scale.edit()
    return after


def _aimed(live: Live, view: View, budget: Budget, size: Size, prices: Prices | None) -> Budget | None:
    """The budget to compact to, if it is time for that: too much is there, or less would be cheaper.

    While all of it fits, nothing is due before it has grown a little since the last time, as the log has it.
    """
    if not size.within(budget.limit):
        return budget.aim(size)
    if budget.exceeded(size):
        return budget.aim(size) if grown(live.trace, view, budget.meter) >= budget.least else None
    if budget.done and size.tokens > budget.frame + budget.done * budget.room and is_done(view):
        # A piece of work is over, and the next has not begun: as if somebody asked for it now.
        enough = grown(live.trace, view, budget.meter) >= budget.least
        return _part(budget, size, budget.frame) if enough else None
    goal = live.pace.goal(live.trace, view, budget, prices)
    return None if goal is None else with_(budget, goal=budget.limit._replace(tokens=goal))


def _key(scope: Scope, live: Live) -> tuple[Scope, str]:
    return scope, live.trace.branch


def _last_group(view: View, since: int) -> int:
    """Where the last stretch begins that stays whole: whatever comes next can only concern it."""
    free = cuts(view.nodes[since:])
    return since + (free[-2] if len(free) > 1 else 0)
