"""Measures items by what a provider limits, once per content."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as with_
from itertools import accumulate

from clew.core import rawjson
from clew.core.caches import PerObject
from clew.core.items import SHORT, Frame, Item, Node
from clew.core.limits import Size
from clew.core.view import View
from clew.tokens.calibration import Traits, traits
from clew.tokens.counter import Counter

# An id in a stand-in is random, and so is how many tokens it takes: each is counted as one of the longest, or the same
# history would be folded otherwise in another store.
_ID = re.compile(rf"(?<![0-9a-zA-Z])[0-9a-f]{{{SHORT}}}(?![0-9a-zA-Z])")
_LONGEST = "0a1b2c3d4e5f"[:SHORT]
_NAMED = "recall "  # stands in every text that names an id

_CACHED = 49_152  # sizes after which those go that were not asked for meanwhile: a history has rarely twice as many


# A `Size` and `Traits` as plain tuples of numbers: the garbage collector does not look at those again and again.
_Sized = tuple[tuple[int, ...], tuple[float, ...]]


class Meter:
    """Measures items, once per content."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self._sizes: dict[tuple[str, bool, int], _Sized] = {}
        self._older: dict[tuple[str, bool, int], _Sized] = {}
        self._frame: tuple[Frame, Size, Traits] | None = None
        self._sums = PerObject(self._summed)

    def node(self, node: Node) -> Size:
        return Size(*self._measured(node)[0])

    def _measured(self, node: Node) -> _Sized:
        # Equal content may open a message here and continue one there, and be masked in one place only.
        key = node.content, node.item.opens is None, hash(node.item.text)
        found = self._sizes.get(key)
        if found is None:
            if len(self._sizes) >= _CACHED:
                self._older, self._sizes = self._sizes, {}
            found = self._sizes[key] = self._older.get(key) or self._measure(node.item)
        return found

    def _measure(self, item: Item) -> _Sized:
        size = self.item(item)
        return tuple(size), tuple(traits(item.name + _steady(item.text), size.tokens))

    def item(self, item: Item) -> Size:
        weight = len(rawjson.dumps(item.text if item.wire is None else item.wire)) + len(item.name) + 80
        if item.opens is not None and len(item.opens.keys) > 1:
            weight += len(rawjson.dumps(item.opens.keys))
        # A result is a message of its own in some formats; a stand-in may be: count both as if.
        message = int(item.opens is not None or item.kind in ("result", "summary"))
        if (text := _steady(item.text)) is not item.text:
            item = with_(item, text=text)
        return Size(self.counter.item(item), weight, self.counter.images(item), message)

    def items(self, items: Iterable[Item]) -> Size:
        return _sum(map(self.item, items))

    def nodes(self, nodes: Iterable[Node]) -> Size:
        return _sum(self._measured(node)[0] for node in nodes)

    def view(self, view: View) -> Size:
        """All that stands in a view beside its frame."""
        return Size(*self._sums(view)[-1])

    def span(self, view: View, start: int, stop: int) -> Size:
        """What stands in a view from one place to another: a fold asks that of every group, again and again."""
        sums = self._sums(view)
        (a, b, c, d), (w, x, y, z) = sums[stop], sums[start]
        return Size(a - w, b - x, c - y, d - z)

    def _summed(self, view: View) -> Sequence[tuple[int, ...]]:
        return list(accumulate((self._measured(node)[0] for node in view.nodes), _plus, initial=tuple(Size())))

    def frame(self, frame: Frame) -> Size:
        return self._framed(frame)[1]

    def as_sent(self, items: Mapping[str, Item]) -> "Meter":
        """One that measures these nodes by these items: what is sent of them is not what is kept."""
        return _MeterAsSent(self, items)

    def traits(self, nodes: Iterable[Node]) -> Traits:
        """What decides how many tokens these nodes are by another count."""
        return Traits(*map(sum, zip(Traits(), *(self._measured(n)[1] for n in nodes), strict=True)))

    def frame_traits(self, frame: Frame) -> Traits:
        return self._framed(frame)[2]

    def _framed(self, frame: Frame) -> tuple[Frame, Size, Traits]:
        known = self._frame  # threads of other conversations put theirs there
        if known is None or known[0] != frame:
            weight = len(rawjson.dumps([frame.lead, frame.body]))
            size = Size(self.counter.frame(frame), weight, 0, len(frame.lead))
            known = self._frame = frame, size, self._frame_traits(frame, size.tokens)
        return known

    def _frame_traits(self, frame: Frame, tokens: int) -> Traits:
        if last := self._frame:
            was, size, known = last
            if size.tokens == tokens and was.system == frame.system and was.tools == frame.tools:
                return known
        return traits(frame.system + rawjson.dumps(frame.tools).decode(), tokens)


class _MeterAsSent(Meter):
    """A meter by which some nodes are larger, or smaller; sizes are kept where they always are."""

    def __init__(self, meter: Meter, items: Mapping[str, Item]) -> None:
        super().__init__(meter.counter)
        self._meter, self._items = meter, items

    def _measured(self, node: Node) -> _Sized:
        item = self._items.get(node.id)
        return self._meter._measured(node if item is None else Node(node.id, node.content, item))

    def _framed(self, frame: Frame) -> tuple[Frame, Size, Traits]:
        return self._meter._framed(frame)


def _steady(text: str) -> str:
    return _ID.sub(_LONGEST, text) if _NAMED in text else text


def _plus(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    (a, b, c, d), (w, x, y, z) = one, other
    return a + w, b + x, c + y, d + z


def _sum(sizes: Iterable[tuple[int, ...]]) -> Size:
    return Size(*map(sum, zip(Size(), *sizes, strict=True)))
