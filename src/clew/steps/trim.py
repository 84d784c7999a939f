"""Trim: whatever else happened, this fits. Old spans become one line; in need, the newest exchange becomes previews."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clew.core.cuts import Stretch
from clew.core.items import Item
from clew.core.limits import Size
from clew.core.pointers import pointer
from clew.core.view import Swap, View
from clew.errors import OverBudget
from clew.steps.calls import shrunk
from clew.steps.lines import LONGEST_LINE, OUT_OF_VIEW, calls_by_result, cleared, omitted, preview, tallies
from clew.steps.offload import Offload
from clew.steps.places import (
    LINE_TOKENS,
    USER_SHARE,
    beside,
    first_exchange,
    fixed,
    free_beside,
    newest,
    newest_turn,
    room_beside,
    unread,
)
from clew.steps.protocol import PureStep
from clew.steps.sealed import instructed, sealed, served
from clew.steps.shares import FIRST, history
from clew.tokens.target import Target


@dataclass(frozen=True)
class Trim(PureStep):
    """Keeps, in this order, pins and what only the provider reads, the newest exchange, system messages and what the
    provider ran, the first exchange, the newest groups; lines for the rest.

    Of a newest exchange that does not fit, results become previews, and then what the user said does.
    """

    def apply(self, view: View, target: Target) -> View:
        if not target.excess(view):
            return view
        view = _shrunk(Offload().apply(view, target), target, self)
        return _cut(_squeezed(view, beside(view, target), self), target, self)


@dataclass(frozen=True)
class Cut(PureStep):
    """As `Trim`, but no result is shortened: calls and their results stay or leave whole, should it never fit."""

    def apply(self, view: View, target: Target) -> View:
        return _cut(view, target, self)


def _cut(view: View, target: Target, by: object) -> View:
    # What stands first after a cut is not always what stood first before it: until nothing more is found.
    while (bounds := beside(view, target)).excess(view):
        before, view = view, view.replace_all(_Plan(view, bounds).swaps(), by=by)
        if view is before:
            break
    return view


def _shrunk(view: View, target: Target, by: object) -> View:
    """Where the newest exchange does not fit with previews either, its calls keep the beginning of their arguments."""
    new, made = newest(view), view.stand_ins()
    if any(unread(view, target)) or free_beside(view, target) >= 0:
        return view
    swaps = []
    for i, node in enumerate(view.nodes):
        stays = node.item.kind != "call" or node.id in view.pinned or node.id in made
        short = None if stays else shrunk(node.item, view.short(i, i + 1))
        if new[i] and short is not None and target.meter.item(short).within(target.meter.node(node)):
            swaps.append(Swap(i, i + 1, [short]))
    return view.replace_all(swaps, by=by)


def _squeezed(view: View, target: Target, by: object) -> View:
    """Where one group alone leaves no room, its results become lines: calls made together cannot be parted."""
    room = target.goal.less(target.meter.frame(view.frame))
    calls, made = calls_by_result(view.nodes), view.stand_ins()
    new = newest(view)
    swaps = []
    for start, stop in view.groups():
        if target.meter.span(view, start, stop).within(room) or stop - start < 2 or new[start]:
            continue
        for i in range(start, stop):
            node = view.nodes[i]
            if node.item.kind != "result" or node.id in view.pinned or node.id in made:
                continue
            line = cleared(node.item, calls.get(i), view.short(i, i + 1))
            if target.meter.item(line).tokens < target.meter.node(node).tokens:
                swaps.append(Swap(i, i + 1, [line]))
    return view.replace_all(swaps, by=by)


class _Plan:
    """What stays, chosen in order of precedence; everything between gets one line."""

    def __init__(self, view: View, target: Target) -> None:
        self.view = view
        self.target = target
        self.meter = target.meter
        self.groups = list(view.groups())
        self.sizes = [self.meter.span(view, a, b) for a, b in self.groups]
        self.earlier = tallies(view)
        held = fixed(view, target)
        self.kept = [not held.isdisjoint(range(a, b)) for a, b in self.groups]
        self.new = newest(view)
        self.shrunk: list[Swap] = []
        self.line = _LONGEST  # the longest that there is room for in every gap
        self._choose()

    def swaps(self) -> list[Swap]:
        return [*self.shrunk, *self._lines()]

    def _choose(self) -> None:
        new = [g for g, (a, b) in enumerate(self.groups) if any(self.new[a:b])]
        shorter = Size()
        if any(unread(self.view, self.target)):
            for g in new:
                self.kept[g] = True
        else:
            shorter = self._shorten(new)
        used = self.meter.frame(self.view.frame).plus(shorter)
        for size in (size for size, kept in zip(self.sizes, self.kept, strict=True) if kept):
            used = used.plus(size)
        gaps = len(list(self._gaps())) + 1
        for self.line in (_LONGEST, _BRIEF, _BARE):
            if (lined := used.plus(_times(self.meter.item(self.line), gaps))).within(self.target.limit):
                break
        used = self._keep_served(lined)
        used = self._keep(used, _inside(self.groups, first_exchange(self.view.nodes)), self._head_room(used))
        self._keep(used, range(len(self.groups) - 1, -1, -1), self.target.goal)

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
        return self._keep(used, order, self.target.limit if whole.within(self.target.limit) else self.target.goal)

    def _shorten(self, new: Sequence[int]) -> Size:
        """Of a newest exchange that does not fit, what the user said as a preview, and what does of the rest.

        The size is what has to be added to that of the groups that stay.
        """
        start, stop = newest_turn(self.view.nodes)
        turn = [g for g in _inside(self.groups, (start, stop)) if not self.kept[g]]
        others = [g for g in new if g not in turn and not self.kept[g]]
        room, whole, rest = self._free(), Size(), Size()
        for g in turn:
            whole = whole.plus(self.sizes[g])
        for g in others:
            rest = rest.plus(self.sizes[g])
        most = room._replace(tokens=max(room.tokens - rest.tokens, int(USER_SHARE * room.tokens)))
        shorter = Size()
        if whole.within(most):
            self._stay(turn)
            room = room.less(whole)
        elif (
            turn
            and stop - start == sum(b - a for a, b in (self.groups[g] for g in turn))
            and (short := self._preview(start, stop, most))
        ):  # where a part of it is pinned, the pins stay, and the rest becomes a line
            self._stay(turn)
            self.shrunk.append(Swap(start, stop, [short]))
            shorter = self.meter.item(short).less(whole)
            room = room.less(self.meter.item(short))
        self._keep(Size(), others[::-1], room)
        return shorter

    def _stay(self, chosen: Sequence[int]) -> None:
        for g in chosen:
            self.kept[g] = True

    def _free(self) -> Size:
        """What the newest exchange may take, with the briefest of lines for what came before."""
        room = room_beside(self.view, self.target)
        return room if all(self.new) else room._replace(tokens=room.tokens + LINE_TOKENS)

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
        goal, limit = self.target.goal, self.target.limit
        room = min(goal.tokens, used.tokens + int(FIRST * history(self.target)))
        if used.tokens > goal.tokens:  # it is missed anyway: a task no longer than the line in its place may stay
            room = min(limit.tokens, used.tokens + self.meter.item(_LONGEST).tokens)
        return goal._replace(tokens=room)

    def _lines(self) -> Iterator[Swap]:
        for start, stop in self._gaps():
            have = self.meter.span(self.view, start, stop)
            if all(self._is_line(i) for i in range(start, stop)):
                continue  # a line for a line says nothing new
            text, tally = omitted(self.view.nodes[start:stop], self.earlier, self.view.short(start, stop))
            brief = f"[out of view; {pointer(self.view.short(start, stop))}]"
            bare = f"[{pointer(self.view.short(start, stop))}]"
            words = [text, brief, bare][(_LONGEST, _BRIEF, _BARE).index(self.line) :]
            if self.new[start]:  # which nobody shall take for something old
                words = [text.replace(OUT_OF_VIEW, "what just came does not fit"), brief, bare]
            for item in (Item("summary", "user", said) for said in words):
                size = self.meter.item(item)
                if have.within(size):
                    break  # no smaller in any way: it stays as it is
                if size.tokens < have.tokens:
                    yield Swap(start, stop, [item], {"tally": tally})
                    break

    def _is_line(self, i: int) -> bool:
        node = self.view.nodes[i]
        return node.item.kind == "summary" and self.meter.node(node).tokens <= self.meter.item(self.line).tokens

    def _gaps(self) -> Iterator[Stretch]:
        """Maximal runs of groups that do not stay, old ones apart from those of the newest exchange."""
        start: int | None = None
        end = 0
        for (a, b), kept in zip(self.groups, self.kept, strict=True):
            if start is not None and (kept or self.new[a] != self.new[start]):
                yield start, a
                start = None
            if not kept and start is None:
                start = a
            end = b
        if start is not None:
            yield start, end


_BARE = Item("summary", "user", "[recall 0123456789]")
_BRIEF = Item("summary", "user", "[out of view; recall 0123456789]")
_LONGEST = Item("summary", "user", LONGEST_LINE)


def _times(size: Size, n: int) -> Size:
    return Size(*(n * part for part in size))


def _inside(stretches: Sequence[Stretch], span: Stretch) -> list[int]:
    return [g for g, (a, b) in enumerate(stretches) if span[0] <= a and b <= span[1]]


def over_budget(view: View, target: Target, have: Size) -> OverBudget:
    """The error for what cannot be made to fit, with the numbers; it may be larger than the view, as secrets are."""
    frame = target.meter.frame(view.frame)
    pinned = target.meter.nodes(n for n in view.nodes if n.id in view.pinned)
    fixed = target.meter.nodes(view.nodes[i] for i in sealed(view))
    beside = f", what only the provider can read {fixed.tokens:,}" if fixed.tokens else ""
    words = ("tokens", "bytes", "images", "messages")
    over = [f"{h:,} {w} of {m:,}" for h, m, w in zip(have, target.limit, words, strict=True) if h > m]
    return OverBudget(
        f"does not fit: {', '.join(over)} (window {target.window:,} less reserve {target.kept_free:,}); "
        f"the frame takes {frame.tokens:,} tokens and pins {pinned.tokens:,}{beside}: shorten the system prompt or the "
        f"tools, unpin some, or lower `reserve`",
        needed=have.tokens,
        limit=target.limit.tokens,
    )
