"""Steps that leave Strands' pinned messages as they are."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_

from clew.core.cuts import Stretch, groups
from clew.core.items import Item, Node
from clew.core.view import Swap, View
from clew.steps.lines import omitted, tallies
from clew.steps.places import arrived
from clew.steps.protocol import Step
from clew.tokens.target import Target

JOINED = "clew_joined"  # marks a pinned message that others went into: the log knows which part is pinned
LEAST_ROOM_SHARE = 0.1  # of the limit: with less room beside what is held, nothing is held but pins


@dataclass(frozen=True)
class Protecting:
    """A step that leaves pinned messages as they are, and where there is room beside them, what no model has read yet
    and the `recent` last ones.

    Where it has something to do, at least `share` of the tokens go.
    """

    step: Step
    recent: int = 0
    share: float = 0
    firm: bool = False  # what no model has read yet stays, room or no room

    def map(self, change: Callable[[Step], Step]) -> Step:
        """The same around a changed step."""
        return with_(self, step=change(self.step))

    async def __call__(self, view: View, target: Target) -> View:
        if target.size(view).within(target.goal):
            return view
        holding, aimed = self.aims(view, target)
        if holding is view:
            return view
        after = await self.step(holding, aimed)
        return view if after is holding else with_(after, pinned=view.pinned)

    def aims(self, view: View, target: Target) -> tuple[View, Target]:
        """The view with all that stays pinned, and how far it is to be shortened; the same view, if that is no use."""
        size = target.size(view)
        goal, most = min(target.goal.tokens, int((1 - self.share) * size.tokens)), target.limit.tokens
        pins = view.pinned | pinned(view.nodes)
        unread = pins | _last(view.nodes, 0)
        for ids in (pins | _last(view.nodes, self.recent), unread, unread if self.firm else pins):
            held = target.meter.frame(view.frame).plus(target.meter.nodes(n for n in view.nodes if n.id in ids)).tokens
            if most - held >= LEAST_ROOM_SHARE * most:
                # What is held takes most of the goal, perhaps; the rest must not become nothing for that.
                goal = max(goal, (held + min(most, size.tokens)) // 2) if ids != pins else goal
                break
        if self.firm and held > most:
            return view, target  # whatever else may leave, it would not help
        return with_(view, pinned=ids), with_(target, aimed=target.goal._replace(tokens=goal))


@dataclass(frozen=True)
class Leaving:
    """One line for each stretch before the last `kept` messages that Strands has not pinned, however short it was."""

    kept: int

    async def __call__(self, view: View, target: Target) -> View:
        opening = [i for i, n in enumerate(view.nodes) if _opens(n, view.nodes[i - 1] if i else None)]
        first, pins = opening[-self.kept], view.pinned | pinned(view.nodes)
        leaving, earlier = list[Stretch](), tallies(view)
        for start, stop in view.groups():
            if stop > first or not pins.isdisjoint(n.id for n in view.nodes[start:stop]):
                continue
            joined = bool(leaving) and leaving[-1][1] == start
            leaving[-1:] = [(leaving[-1][0], stop)] if joined else [*leaving[-1:], (start, stop)]
        swaps = []
        for start, stop in leaving:
            text, tally = omitted(view.nodes[start:stop], earlier, view.short(start, stop))
            swaps.append(Swap(start, stop, [Item("summary", "user", text)], {"tally": tally}))
        return view.replace_all(swaps, by=self)


def _opens(node: Node, before: Node | None) -> bool:
    """Whether a message begins with it: a stand-in and what the user says after it are one, for roles alternate."""
    joined = before is not None and before.item.kind == "summary" and node.item.role != "assistant"
    return not joined and (node.item.kind == "summary" or node.item.opens is not None)


def _last(nodes: Sequence[Node], count: int) -> frozenset[str]:
    """The nodes of the last messages, and of what came since the model last spoke, with the calls it answers."""
    opening = [i for i, n in enumerate(nodes) if n.item.opens is not None or n.item.kind == "summary"]
    start = 0 if count > len(opening) else opening[-count] if count else len(nodes)
    since = arrived(nodes)[0]
    unread = next(first for first, stop in groups(nodes) if stop > since) if since < len(nodes) else since
    return frozenset(n.id for n in nodes[min(start, unread) :])


def pinned(nodes: Sequence[Node]) -> frozenset[str]:
    """The nodes of messages that Strands has pinned, and what the calls in them are paired with."""
    ids, calls, marked = set(), set(), False
    for node in nodes:
        if node.item.kind == "summary":
            marked = False
        elif node.item.opens is not None:
            custom = (node.item.opens.keys.get("metadata") or {}).get("custom") or {}
            marked = custom.get("pinned") is True and JOINED not in custom
        if marked:
            ids.add(node.id)
            calls.add(node.item.call_id)
    return frozenset(ids) | {n.id for n in nodes if n.item.call_id and n.item.call_id in calls}
