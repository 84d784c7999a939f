"""Trim: whatever else happened, this fits. Old spans become one line; in need, the newest turn becomes a preview."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clew.budget import Budget, Size
from clew.errors import OverBudget
from clew.items import Item
from clew.steps.lines import LONGEST, calls_by_result, cleared, omitted, preview
from clew.steps.places import HEAD, first_exchange, newest_turn, unread
from clew.steps.sealed import instructed, sealed, served
from clew.view import Stretch, Swap, View, groups


@dataclass(frozen=True)
class Trim:
    """Keeps, in this order, pins and what only the provider reads, the newest user turn, system messages and what the
    provider ran, what no model has read yet, the first exchange, the newest groups; lines for the rest."""

    async def __call__(self, view: View, budget: Budget) -> View:
        return _cut(_squeezed(view, budget, self), budget, self) if budget.excess(view) else view


@dataclass(frozen=True)
class Cut:
    """As `Trim`, but no result is shortened: calls and their results stay or leave whole, should it never fit."""

    async def __call__(self, view: View, budget: Budget) -> View:
        return _cut(view, budget, self)


def _cut(view: View, budget: Budget, by: object) -> View:
    # What stands first after a cut is not always what stood first before it: until nothing more is found.
    while budget.excess(view):
        before, view = view, view.replace_all(_Plan(view, budget).swaps(), by=by)
        if view is before:
            break
    return view


def _squeezed(view: View, budget: Budget, by: object) -> View:
    """Where one group alone leaves no room, its results become lines: calls made together cannot be parted."""
    room = budget.goal.less(budget.meter.frame(view.frame))
    calls, made = calls_by_result(view.nodes), view.stand_ins()
    new = range(*unread(view, budget))
    swaps = []
    for start, stop in groups(view.nodes):
        if budget.meter.nodes(view.nodes[start:stop]).within(room) or stop - start < 2 or start in new:
            continue
        for i in range(start, stop):
            node = view.nodes[i]
            if node.item.kind != "result" or node.id in view.pinned or node.id in made:
                continue
            line = cleared(node.item, calls.get(i), view.short(i, i + 1))
            if budget.meter.item(line).tokens < budget.meter.node(node).tokens:
                swaps.append(Swap(i, i + 1, [line]))
    return view.replace_all(swaps, by=by)


class _Plan:
    """What stays, chosen in order of precedence; everything between gets one line."""

    def __init__(self, view: View, budget: Budget) -> None:
        self.view = view
        self.budget = budget
        self.meter = budget.meter
        self.groups = groups(view.nodes)
        self.sizes = [self.meter.nodes(view.nodes[a:b]) for a, b in self.groups]
        self.earlier = {n.id: e.evidence["tally"] for e in view.edits if "tally" in e.evidence for n in e.new}
        fixed = sealed(view) | {i for i, n in enumerate(view.nodes) if n.id in view.pinned}
        self.kept = [not fixed.isdisjoint(range(a, b)) for a, b in self.groups]
        self.shrunk: list[Swap] = []
        self.terse = False
        self._choose()

    def swaps(self) -> list[Swap]:
        return [*self.shrunk, *self._lines()]

    def _choose(self) -> None:
        floor = self.meter.frame(self.view.frame)
        for size, kept in zip(self.sizes, self.kept, strict=True):
            floor = floor.plus(size) if kept else floor
        # Room for a line in every gap there can be; if pins leave too little, for the shortest stand-in there is.
        gaps = sum(self.kept) + 3
        used = floor.plus(_times(self.meter.item(_LONGEST), gaps))
        self.terse = not used.within(self.budget.limit)
        if self.terse:
            used = floor.plus(_times(self.meter.item(_DOTS), gaps))
        used = self._keep_served(self._keep_turn(used))
        used = self._keep(used, _inside(self.groups, unread(self.view, self.budget))[::-1], self.budget.limit)
        used = self._keep(used, _inside(self.groups, first_exchange(self.view.nodes)), self._head_room(used))
        self._keep(used, range(len(self.groups) - 1, -1, -1), self.budget.goal)

    def _keep(self, used: Size, order: Sequence[int], room: Size) -> Size:
        """Keep groups in this order while they fit; the first that does not ends it, so that gaps stay few."""
        for g in order:
            if self.kept[g]:
                continue
            if not used.plus(self.sizes[g]).within(room):
                break
            used = used.plus(self.sizes[g])
            self.kept[g] = True
        return used

    def _keep_served(self, used: Size) -> Size:
        """System messages and what the provider ran stay if the limit allows; else the newest of them do, up to the
        goal: who gives up one at a time breaks the cache each time."""
        held = served(self.view) | instructed(self.view)
        order = [g for g, (a, b) in enumerate(self.groups) if not held.isdisjoint(range(a, b))][::-1]
        whole = used
        for g in order:
            whole = whole if self.kept[g] else whole.plus(self.sizes[g])
        return self._keep(used, order, self.budget.limit if whole.within(self.budget.limit) else self.budget.goal)

    def _keep_turn(self, used: Size) -> Size:
        """The newest user turn stays whole if the limit allows, else as a preview of what fits."""
        start, stop = newest_turn(self.view.nodes)
        turn = [g for g in _inside(self.groups, (start, stop)) if not self.kept[g]]
        if not turn:
            return used
        whole = used
        for g in turn:
            whole = whole.plus(self.sizes[g])
        if whole.within(self.budget.limit):
            for g in turn:
                self.kept[g] = True
            return whole
        if any(self.kept[g] for g in _inside(self.groups, (start, stop))):
            return used  # partly pinned: the pins stay, the rest becomes a line
        short = self._preview(start, stop, self.budget.limit.less(used))
        if short is None:
            return used
        for g in turn:
            self.kept[g] = True
        self.shrunk.append(Swap(start, stop, [short]))
        return used.plus(self.meter.item(short))

    def _preview(self, start: int, stop: int, room: Size) -> Item | None:
        nodes = self.view.nodes[start:stop]
        text = "\n".join(n.item.text for n in nodes if n.item.text)
        whole = Item("text", "user", text, opens=nodes[0].item.opens)
        # Never more than it was: a short text beside a large image has no use for a long note.
        room = room._replace(tokens=min(room.tokens, self.meter.nodes(nodes).tokens - 1))
        chars = max(0, min(len(text), room.tokens * 4))
        while True:
            short = preview(whole, self.view.short(start, stop), chars - chars // 3, chars // 3)
            if self.meter.item(short).within(room):
                return short
            if chars < 40:
                return None
            chars = chars * 3 // 4

    def _head_room(self, used: Size) -> Size:
        goal, limit = self.budget.goal, self.budget.limit
        room = min(goal.tokens, used.tokens + int(HEAD * goal.tokens))
        if used.tokens > goal.tokens:  # it is missed anyway: a task no longer than the line in its place may stay
            room = min(limit.tokens, used.tokens + self.meter.item(_LONGEST).tokens)
        return goal._replace(tokens=room)

    def _lines(self) -> Iterator[Swap]:
        for start, stop in self._gaps():
            have = self.meter.nodes(self.view.nodes[start:stop])
            alone = stop - start == 1 and self.view.nodes[start].item.kind == "summary"
            if alone and have.tokens <= self.meter.item(_LONGEST).tokens:
                continue  # a line for a line says nothing new
            line, tally = self._line(start, stop)
            for item in (line, _DOTS):
                size = self.meter.item(item)
                if have.within(size):
                    break  # no smaller in any way: it stays as it is
                if size.tokens < have.tokens:
                    yield Swap(start, stop, [item], {"tally": tally})
                    break

    def _line(self, start: int, stop: int) -> tuple[Item, dict[str, int]]:
        nodes = self.view.nodes[start:stop]
        text, tally = omitted(nodes, self.earlier, self.view.short(start, stop))
        return (_DOTS if self.terse else Item("summary", "user", text)), tally

    def _gaps(self) -> Iterator[Stretch]:
        """Maximal runs of groups that do not stay."""
        start: int | None = None
        for (a, b), kept in zip(self.groups, self.kept, strict=True):
            if kept and start is not None:
                yield start, a
                start = None
            elif not kept and start is None:
                start = a
            end = b
        if start is not None:
            yield start, end


_DOTS = Item("summary", "user", "…")
_LONGEST = Item("summary", "user", LONGEST)


def _times(size: Size, n: int) -> Size:
    return Size(*(n * part for part in size))


def _inside(stretches: Sequence[Stretch], span: Stretch) -> list[int]:
    return [g for g, (a, b) in enumerate(stretches) if span[0] <= a and b <= span[1]]


def over_budget(view: View, budget: Budget) -> OverBudget:
    """The error for what cannot be made to fit, with the numbers."""
    frame = budget.meter.frame(view.frame)
    pinned = budget.meter.nodes(n for n in view.nodes if n.id in view.pinned)
    fixed = budget.meter.nodes(view.nodes[i] for i in sealed(view))
    beside = f", what only the provider can read {fixed.tokens:,}" if fixed.tokens else ""
    have = budget.size(view)
    words = ("tokens", "bytes", "images", "messages")
    over = [f"{h:,} {w} of {m:,}" for h, m, w in zip(have, budget.limit, words, strict=True) if h > m]
    return OverBudget(
        f"does not fit: {', '.join(over)} (window {budget.window:,} less reserve {budget.kept_free:,}); "
        f"the frame takes {frame.tokens:,} tokens and pins {pinned.tokens:,}{beside}: shorten the system prompt or the "
        f"tools, unpin some, or lower `reserve`",
        needed=have.tokens,
        limit=budget.limit.tokens,
    )
