"""The window of a very long conversation: what is on the screen is read, and all of it only to be counted, once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_
from functools import partial

from clew.core.caches import Recent
from clew.core.items import Node, Scope
from clew.core.threads import LONG, in_thread, in_thread_if
from clew.core.view import View
from clew.engine.engine import Engine
from clew.sessions.chapters import ToldChapter, chapters_in
from clew.sessions.composition import CompositionPart, Shown, adding_up, parts_of, shown
from clew.sessions.window import Window
from clew.store.trace import Trace
from clew.tokens.meter import Meter
from clew.tokens.target import Target

VERY_LONG = 2_000  # nodes: reading and counting them takes longer than a glance
AT_ONCE = 1_000  # nodes that are read and counted before others have their turn
COUNTED = 4  # conversations whose sizes are remembered


@dataclass(frozen=True)
class LongWindow:
    """What a model sees, as far as it takes no reading of it all; tokens as its provider counts them."""

    view: View  # words stand only in what was read
    sent: int
    target: Target
    parts: Sequence[CompositionPart] = ()  # none: nobody has counted yet

    @property
    def limit(self) -> int:
        """Tokens that may be sent."""
        return self.target.limit.tokens

    @property
    def share(self) -> float:
        """Of what may be sent."""
        return self.sent / self.limit if self.limit else 0.0


NodeSize = tuple[str, int]  # which kind something is of, and its tokens


class LongWindows:
    """The windows of very long conversations; what something takes is counted once, whatever calls it stands in."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._sizes: Recent[tuple[Scope, str, str], dict[str, NodeSize]] = Recent(COUNTED)

    async def of(
        self, scope: Scope, branch: str, until: int | None, call: int | None, predicted: int | None
    ) -> tuple[Window | LongWindow, list[ToldChapter]]:
        """The window after an event, which a call may have `predicted`, and the chapters in it: from one look at the
        log."""
        engine = self._engine
        view, trace = await engine.outline(scope, branch, until)
        target = await engine.limits.target_as_called(scope, view.frame, trace)
        # What was said in another format is written anew as a whole.
        is_long = len(view.nodes) > VERY_LONG and not trace.made_in
        if trace.made_in:
            view = await engine.view(scope, branch, until)
        else:
            made = view.edits.made
            wanted = [node.id for node in view.nodes if not is_long or node.id in made]
            found = await engine.store.nodes(scope, wanted) if wanted else {}
            view = with_(view, nodes=tuple([found.get(node.id, node) for node in view.nodes]))
        chapters = await in_thread_if(len(trace.said) > LONG, lambda: chapters_in(view, trace.chapters, target.meter))
        if is_long:
            return LongWindow(view, trace.predicted if predicted is None else predicted, target), chapters
        sent = await engine.expected(view) if predicted is None else predicted
        return Window(view, call, sent, target), chapters

    async def some(self, scope: Scope, window: LongWindow, start: int, stop: int) -> list[Shown]:
        """What stands at these places, with its words."""
        nodes = window.view.nodes[start:stop]
        found = await self._engine.store.nodes(scope, [node.id for node in nodes])
        return shown([found[node.id] for node in nodes], window.view.edits, window.target.meter)

    async def every(self, scope: Scope, window: LongWindow) -> list[Shown]:
        """All that stands in it, counted; words only where they were read."""
        view, meter = window.view, window.target.meter
        known = await self._known(scope, view, meter)
        framed = meter.frame(view.frame).tokens if view.frame.system or view.frame.tools else 0

        def listed() -> list[Shown]:
            made, (_, *sizes) = view.edits.made, adding_up([framed, *(known[n.id][1] for n in view.nodes)], window.sent)
            pairs = zip(view.nodes, sizes, strict=True)
            return [Shown(node, size, made[node.id].by if node.id in made else "") for node, size in pairs]

        return await in_thread(listed)

    async def counted(self, scope: Scope, window: LongWindow, as_sent: bool) -> LongWindow:
        """The same with what fills it, by kind."""
        view, meter = window.view, window.target.meter
        known = await self._known(scope, view, meter)
        framed = meter.frame(view.frame).tokens if view.frame.system or view.frame.tools else 0
        sent = window.sent
        if not as_sent:
            # What came or went since the last call counts in proportion to what that one was thought to take.
            trace = await self._engine.store.load(scope, view.branch, view.seq)
            if trace.calls and _has_changed(trace):
                before, _ = await self._engine.outline(scope, view.branch, trace.calls[-1][0])
                was = await self._known(scope, before, meter)
                then = framed + sum(was[node.id][1] for node in before.nodes)
                sent = round(sent * (framed + sum(known[node.id][1] for node in view.nodes)) / max(1, then))

        def by_kind() -> list[CompositionPart]:
            first, *sizes = adding_up([framed, *(known[node.id][1] for node in view.nodes)], sent)
            return parts_of(zip((known[node.id][0] for node in view.nodes), sizes, strict=True), first)

        return LongWindow(view, sent, window.target, await in_thread(by_kind))

    async def _known(self, scope: Scope, view: View, meter: Meter) -> Mapping[str, NodeSize]:
        """The size of each node of a view; what is not known yet is read some at a time."""
        key = scope, view.branch, view.frame.model
        known = self._sizes.get(key)
        if known is None:
            known = self._sizes[key] = {}
        new = [node.id for node in view.nodes if node.id not in known]
        for at in range(0, len(new), AT_ONCE):
            nodes = await self._engine.store.nodes(scope, new[at : at + AT_ONCE])
            known |= await in_thread(partial(_measured, list(nodes.values()), view, meter))
        return known


def _measured(nodes: Sequence[Node], view: View, meter: Meter) -> dict[str, NodeSize]:
    made = view.edits.made
    every = (Shown(n, meter.node(n).tokens, made[n.id].by if n.id in made else "") for n in nodes)
    return {one.node.id: (one.kind, one.tokens) for one in every}


def _has_changed(trace: Trace) -> bool:
    """Whether anything happened to a branch since its last call that changes what is sent."""
    seq, said = trace.calls[-1]
    return said != len(trace.said) or (bool(trace.folds) and trace.folds[-1].last > seq)
