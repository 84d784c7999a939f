"""Offload on arrival: new results that are too large for the window, alone or together, become previews."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clew.clients.voices import undecorated
from clew.core.items import Item
from clew.core.view import Swap, View
from clew.steps.calls import shrunk
from clew.steps.lines import calls_by_result, preview
from clew.steps.matches import matches, terms
from clew.steps.places import arrived, crowding, free_beside, long_calls, newest_turn, unread
from clew.steps.protocol import PureStep
from clew.steps.taking import take
from clew.tokens.target import Target

ASKED = 8_000  # characters of the newest turn in which names are looked for
TOKEN_CHARACTERS = 4  # that a token has, more or less: where a preview begins to be made shorter
SHORTEST = 80  # characters of a preview's two ends: it is no use to go on below


@dataclass(frozen=True)
class Offload(PureStep):
    """New results that do not fit beside frame and pins keep head, tail and what matches the question; largest first.
    Long arguments of the calls they answer keep their first words.

    Those do that are larger than `over` of the room, then, should that not do, all that are larger than their share.
    While they fit in a third of the room they stay as they are: the model just asked for them.
    Older ones are left to other steps: who has
    seen a result can tell of it in fewer words than its two ends take.
    """

    over: float = 1 / 3  # of the room; the preview of such a result takes half of that
    head: int | None = None  # characters at most; else two thirds of what it may take
    tail: int | None = None

    def apply(self, view: View, target: Target) -> View:
        if target.excess(view):
            view = take(view, target, _calls(view, target), by=self)
        # Some come out longer than their share: then the others have less of it.
        while target.excess(view):
            before, view = view, self._taken(view, target, self._room(view, target))
            if view is before:
                break
        return view

    def _room(self, view: View, target: Target) -> int:
        """Tokens that are left, below 0 those that are missing."""
        if any(unread(view, target)):
            return -crowding(view, target)
        return min(free_beside(view, target), -crowding(view, target))

    def _taken(self, view: View, target: Target, free: int) -> View:
        """The view with previews, until nothing is missing; `free` are the tokens left, below 0 those missing."""
        if free >= 0:
            return view
        made = view.stand_ins()
        new = (i for i in range(*arrived(view.nodes)) if view.nodes[i].item.kind == "result")
        free_to_go = (i for i in new if (id := view.nodes[i].id) not in view.pinned and id not in made)
        sizes = {i: target.meter.node(view.nodes[i]).tokens for i in free_to_go}
        calls, asked = calls_by_result(view.nodes), _asked(view)
        most = _shares(sizes, free, self.over * target.room)
        swaps = [
            Swap(i, i + 1, [self._preview(view, i, most[i], target, calls.get(i), asked)])
            for i in sorted(most, key=lambda i: -sizes[i])
        ]
        return take(view, target, swaps, by=self)

    def _preview(self, view: View, i: int, most: int, target: Target, call: Item | None, asked: str) -> Item:
        item, chars = view.nodes[i].item, max(SHORTEST, TOKEN_CHARACTERS * most)
        found = matches(item.text, terms(call.text if call else "", asked))
        while True:
            head, tail = chars - chars // 3, chars // 3
            head, tail = min(head, self.head or head), min(tail, self.tail or tail)
            short = preview(item, view.short(i, i + 1), head, tail, found)
            # A character can be several tokens: shrink until it takes no more than it may.
            if chars <= SHORTEST or target.meter.item(short).tokens <= most:
                return short
            chars = max(SHORTEST, chars * 3 // 4)


@dataclass(frozen=True)
class Arrivals(Offload):
    """As `Offload`, but until the whole is within the goal: what a model has read stays as it is."""

    def _room(self, view: View, target: Target) -> int:
        return target.goal.tokens - target.size(view).tokens


def _calls(view: View, target: Target) -> Iterator[Swap]:
    """Calls just made that are very long, in short."""
    made = view.stand_ins()
    for i in long_calls(view, target):
        if view.nodes[i].id not in made and (short := shrunk(view.nodes[i].item, view.short(i, i + 1))) is not None:
            yield Swap(i, i + 1, [short])


def _shares(sizes: Mapping[int, int], free: int, bound: float) -> dict[int, int]:
    """Tokens for the previews of those that become one: of the largest half of the bound, then of all alike."""
    most = dict[int, int]()
    for i in sorted(sizes, key=lambda i: -sizes[i]):
        if free >= 0 or sizes[i] <= bound:
            break
        most[i] = int(bound / 2)
        free += sizes[i] - most[i]
    if free >= 0:
        return most
    now = {i: most.get(i, size) for i, size in sizes.items()}
    cap, left = 0, sum(now.values()) + free
    for n, size in enumerate(sorted(now.values())):  # the small ones stay; what they leave is shared by the others
        cap = max(0, left) // (len(now) - n)
        if size > cap:
            break
        left -= size
    return {i: min(now[i], cap) for i in now if now[i] > cap or i in most}


def _asked(view: View) -> str:
    """What the user last said, or its two ends."""
    said = "\n".join(undecorated(n.item.text) for n in view.nodes[slice(*newest_turn(view.nodes))])
    return said if len(said) <= ASKED else said[: ASKED // 2] + "\n" + said[-ASKED // 2 :]
