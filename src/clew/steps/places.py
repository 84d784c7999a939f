"""Which parts of a history steps leave alone: the first exchange, the newest user turn, the tail."""

from collections.abc import Callable, Sequence, Set
from dataclasses import replace as with_

from clew.clients.voices import FRAMED, is_program_made
from clew.core.caches import per_object
from clew.core.cuts import Stretch, groups
from clew.core.items import Node
from clew.core.limits import Size
from clew.core.view import View
from clew.steps.sealed import instructed, sealed, served
from clew.steps.shares import BESIDE_NEWEST, FIRST, history, verbatim
from clew.tokens.target import Target
from clew.wire.rules.binding import binds

USER_SHARE = 0.5  # of what there is for a newest exchange that does not fit: what the user said has so much, at least
CAME = 1 / 3  # of the room, for results that just came: larger ones become previews
WRITTEN = 1 / 8  # of the room: a call that was just made is no longer
STANDING = 0.25  # of the room: system messages in the middle, and what the provider ran, come before what is newest
LINE_TOKENS = 130  # tokens that one line about what is out of view takes at most
BRIEF_TOKENS = 24  # and the shortest one that names an id


def first_exchange(nodes: Sequence[Node]) -> Stretch:
    """The first thing the user said and the first thing that was answered in words."""
    start, stop = first_asked(nodes)
    for first, end in groups(nodes[stop : stop + 50]) if stop > start else ():
        said = nodes[stop + first : stop + end]
        if said and all(n.item.role == "assistant" and n.item.kind == "text" for n in said):
            return start, stop + end
        break
    return start, stop


def first_asked(nodes: Sequence[Node]) -> Stretch:
    """The first thing the user said."""
    start = stop = _compacted(nodes)
    while stop < len(nodes) and _asked(nodes[stop]):
        stop += 1
    return (start, stop) if stop > start else (0, 0)


def newest_turn(nodes: Sequence[Node]) -> Stretch:
    """The last thing the user said; what the assistant did about it since is not part of it.

    What a program said in the user's place counts only if the user never said anything.
    """
    return _last_run(nodes, _typed) or _last_run(nodes, _asked) or (0, 0)


def _last_run(nodes: Sequence[Node], wanted: Callable[[Node], bool]) -> Stretch | None:
    stop = len(nodes)
    while stop and not wanted(nodes[stop - 1]):
        stop -= 1
    start = stop
    while start and wanted(nodes[start - 1]):
        start -= 1
    return (start, stop) if stop else None


def arrived(nodes: Sequence[Node]) -> Stretch:
    """What came since the assistant last spoke: the model has not seen it yet."""
    start = len(nodes)
    while start and nodes[start - 1].item.role != "assistant" and nodes[start - 1].item.kind != "summary":
        start -= 1
    return start, len(nodes)


@per_object
def newest(view: View) -> Sequence[bool]:
    """For each node, whether it is of the newest exchange: the newest user turn, what came since the assistant last
    spoke, and the calls which that answers."""
    since, turn = arrived(view.nodes)[0], newest_turn(view.nodes)
    start = next((first for first, stop in view.groups() if stop > since), len(view.nodes))
    return tuple(i >= start or turn[0] <= i < turn[1] for i in range(len(view.nodes)))


def unread(view: View, target: Target) -> Sequence[bool]:
    """For each node, whether it is of the newest exchange and stays, since frame, pins and all of that fit together.

    What no model has read yet is what it just asked for: where it does not see that, it asks again.
    """
    new, room = newest(view), room_beside(view, target)
    return new if target.meter.nodes(_of(view, new)).within(room) else [False] * len(new)


def turn_to_fold(view: View, target: Target) -> range:
    """Where the newest user turn stands if a log may tell of it: it was read, and takes more than half of the goal.

    A long paste or task must not take the room of all the work that was done about it.
    """
    start, stop = newest_turn(view.nodes)
    read = any(n.item.role == "assistant" for n in view.nodes[stop:])
    long = target.meter.span(view, start, stop).tokens > USER_SHARE * max(0, target.goal.tokens - target.frame)
    return range(start, stop) if read and long else range(0)


def crowding(view: View, target: Target) -> int:
    """Tokens that results which nobody has read yet take beyond a third of the room, where that is all there is.

    Below the limit a goal may be missed for them; at the limit they must leave the rest some.
    """
    if not _is_tight(target):
        return 0
    came = (view.nodes[i] for i in range(*arrived(view.nodes)) if view.nodes[i].item.kind == "result")
    return max(0, target.meter.nodes(came).tokens - int(CAME * target.room))


def _is_tight(target: Target) -> bool:
    return target.goal.tokens >= target.limit.tokens


def long_calls(view: View, target: Target) -> list[int]:
    """The calls of the newest exchange that alone take more than an eighth of the room.

    Who made them knows what they say; where its thinking is bound to them they stay as they are.
    """
    if not _is_tight(target) or binds(view.frame.format, view.frame.model):
        return []
    new, most = newest(view), WRITTEN * target.room
    calls = (i for i, n in enumerate(view.nodes) if new[i] and n.item.kind == "call" and n.id not in view.pinned)
    return [i for i in calls if target.meter.node(view.nodes[i]).tokens > most]


def room_beside(view: View, target: Target) -> Size:
    """What the newest exchange may take: the limit less frame and what is fixed, and less a line for all before it."""
    new, stays = newest(view), _with_their_groups(view, fixed(view, target))
    older = [i in stays and not is_new for i, is_new in enumerate(new)]
    taken = target.meter.frame(view.frame).plus(target.meter.nodes(_of(view, older)))
    if not all(new):
        gaps = 2 + sum(older)
        taken = taken.plus(Size(LINE_TOKENS + BRIEF_TOKENS * gaps, 100 * gaps, 0, gaps))
    return target.limit.less(taken)


def fixed(view: View, target: Target) -> Set[int]:
    """Where pins stand and what only the provider reads; system messages and what the provider ran, if little."""
    held = sealed(view) | {i for i, n in enumerate(view.nodes if view.pinned else ()) if n.id in view.pinned}
    more = (served(view) | instructed(view)) - held
    if not more:
        return held

    def tokens(places: Set[int]) -> int:
        return target.meter.nodes(view.nodes[i] for i in places).tokens

    whole, new = _with_their_groups(view, held), {i for i, is_new in enumerate(newest(view)) if is_new}
    left = max(0, target.limit.tokens - target.meter.frame(view.frame).tokens - tokens(whole))
    beside = _with_their_groups(view, more) - whole - new  # what is newest is there anyway
    return held | more if tokens(more) <= STANDING * left and tokens(beside) <= USER_SHARE * left else held


def _with_their_groups(view: View, held: Set[int]) -> set[int]:
    """These positions and those that cannot be parted from them: calls made together, with their results."""
    found = set[int]()
    for start, stop in view.groups() if held else ():
        if not held.isdisjoint(span := range(start, stop)):
            found.update(span)
    return found


def free_beside(view: View, target: Target) -> int:
    """Tokens that the newest exchange leaves of that, below 0 those that it lacks; what the user said may be shortened,
    and counts up to a half."""
    room, (start, stop) = room_beside(view, target).tokens, newest_turn(view.nodes)
    asked = target.meter.span(view, start, stop).tokens
    whole = target.meter.nodes(_of(view, newest(view))).tokens
    return room - (whole - asked) - min(asked, int(USER_SHARE * max(0, room)))


def _of(view: View, chosen: Sequence[bool]) -> list[Node]:
    return [n for n, is_chosen in zip(view.nodes, chosen, strict=True) if is_chosen]


def beside(view: View, target: Target) -> Target:
    """The target with a goal that leaves some room beside a large newest exchange that fits.

    Else a result that takes all of the goal would leave a line of what can be told in a summary.
    """
    least = target.frame + _arriving(view, target) + int(BESIDE_NEWEST * history(target))
    return with_(target, aimed=target.goal._replace(tokens=min(target.limit.tokens, max(target.goal.tokens, least))))


def _arriving(view: View, target: Target) -> int:
    """Tokens of the newest exchange; what will be shorter gives no more room."""
    shorter = {*turn_to_fold(view, target), *long_calls(view, target)}
    if crowding(view, target):
        shorter |= {i for i in range(*arrived(view.nodes)) if view.nodes[i].item.kind == "result"}
    kept = [is_new and i not in shorter for i, is_new in enumerate(unread(view, target))]
    return target.meter.nodes(_of(view, kept)).tokens


def beside_log(view: View, target: Target) -> Target:
    """The same for a log, which keeps its own share, as long as the next compaction does not begin there."""
    aimed = beside(view, target)
    goal, share = aimed.goal.tokens, history(target) - verbatim(target)
    if target.budget.is_small:  # there one result is a large part of it: half of the way to the next compaction
        least = target.frame + _arriving(view, target) + share
        more = min(least, (goal + max(goal, target.threshold)) // 2)
    else:
        more = min(goal + share - int(BESIDE_NEWEST * history(target)), target.threshold)
        more = more if goal > target.goal.tokens else goal
    return with_(aimed, aimed=aimed.goal._replace(tokens=more)) if more > goal else aimed


def tail_start(view: View, target: Target) -> int:
    """Where the newest tokens begin that stay as they are, or what share of them a small goal leaves, at a cut."""
    room = min(target.budget.tail, verbatim(target))
    at = len(view.nodes)
    while at and not _is_log(view.nodes[at - 1]) and (room := room - target.meter.node(view.nodes[at - 1]).tokens) >= 0:
        at -= 1
    return min((c for c in view.cuts() if c >= at), default=len(view.nodes))


def protected(view: View, target: Target) -> list[bool]:
    """For each node, whether a step must leave it byte for byte: head, newest exchange, tail, pins, and what only the
    provider reads.

    Where the newest exchange does not fit, previews of it are left to `Offload` and `Trim`.
    """
    held, told = fixed(view, target) | served(view) | instructed(view), turn_to_fold(view, target)
    keep = [(kept and i not in told) or i in held for i, kept in enumerate(newest(view))]
    most, heads = FIRST * history(target), (first_exchange(view.nodes), first_asked(view.nodes))
    head = next((one for one in heads if target.meter.span(view, *one).tokens <= most), (0, 0))
    for start, stop in (head, (tail_start(view, target), len(view.nodes))):
        keep[start:stop] = [True] * (stop - start)
    return keep


def _compacted(nodes: Sequence[Node]) -> int:
    """Where a history begins: after what a provider made of a part of it, if it wants that in the first place."""
    start = 0
    if nodes and nodes[0].item.kind == "opaque":
        while start < len(nodes) and nodes[start].item.kind in ("opaque", "summary"):
            start += 1
    return start


def _is_log(node: Node) -> bool:
    """Whether it stands for what was said: what is only quoted beside a message is part of the end."""
    return node.item.kind == "summary" and not node.item.text.startswith(FRAMED)


def _asked(node: Node) -> bool:
    return node.item.role == "user" and node.item.kind != "summary"


def _typed(node: Node) -> bool:
    return _asked(node) and not (node.item.kind == "text" and is_program_made(node.item))
