"""Pins of what is out of view: its words stand beside the newest message, and stay there until they are let go.

What stands before that message is sent as it was: a pin costs no cached prefix.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import NamedTuple

from clew.core.items import PINS, SHORT, Item, Scope
from clew.core.limits import Size
from clew.core.pointers import pointer
from clew.core.view import Swap, View
from clew.errors import NotFound, OverBudget
from clew.steps.lines import preview
from clew.steps.places import newest_turn
from clew.store.protocol import Store
from clew.store.trace import Trace
from clew.text.excerpts import framed
from clew.text.search import is_made
from clew.tokens.target import Target

PIN_SHARE = 0.25  # of what the frame leaves: what comes back by pins takes no more
LEAST_PREVIEW = 200  # characters of a preview: less says nothing
CALL_DISTANCE = 50  # items before a result among which its call is looked for


@dataclass(frozen=True)
class Quote:
    """Who put it there."""


QUOTE = Quote()


class Back(NamedTuple):
    """What a pin brings back into view, and the tokens that it takes there."""

    ids: tuple[str, ...] = ()
    tokens: int = 0


def hidden(view: View, trace: Trace) -> list[str]:
    """The pinned nodes that stand behind a stand-in and are quoted nowhere, in the order in which they were said."""
    if not trace.pinned:
        return []
    alias = trace.alias
    shown = {alias.get(n.id, n.id) for n in view.nodes}
    quoted = {held for id, held in trace.quoted.items() if id in shown}
    away = {id for id in trace.pinned - quoted if alias.get(id, id) not in shown}
    behind = _behind(view) if away else set()
    away = {id for id in away if {id, alias.get(id, id)} & behind}
    order = {p.id: at for at, p in enumerate(trace.said)} if away else {}
    return sorted(away, key=lambda one: (order.get(one, len(order)), one))


def _behind(view: View) -> set[str]:
    """All that stand-ins in view stand for: what was said, and stand-ins of before."""
    by_id = view.edits.made
    stack, found = [n.id for n in view.nodes if n.id in by_id], set[str]()
    while stack:
        for id in by_id[stack.pop()].sources:
            if id not in found:
                found.add(id)
                stack += [id] if id in by_id else []
    return found


async def quotes(
    store: Store, view: View, scope: Scope, trace: Trace, ids: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """For each of these nodes who said it, and its words; those without words are left out."""
    at = {p.id: n for n, p in enumerate(trace.said)}
    near = [trace.said[n].id for id in ids if id in at for n in range(max(0, at[id] - CALL_DISTANCE), at[id])]
    shown = {n.id: n for n in view.nodes}
    wanted = dict.fromkeys([*ids, *near])
    # What is said in this very turn is not in the log yet.
    nodes = {id: node for id in wanted if (node := shown.get(id) or view.behind.get(id))}
    nodes |= await store.nodes(scope, [id for id in wanted if id not in nodes])
    calls = {n.item.call_id: n.item for n in nodes.values() if n.item.kind == "call"}
    found = {id: nodes[id].item for id in ids if id in nodes}
    return {id: (_who(item, calls), item.text) for id, item in found.items() if item.text.strip()}


def _who(item: Item, calls: Mapping[str, Item]) -> str:
    match item.kind:
        case "call":
            return f"the assistant, calling {item.name}"
        case "result":
            call = calls.get(item.call_id)
            return f"{call.name if call else item.name or 'a tool'}, a tool"
        case "summary":
            return "clew, as a summary"
    return "a program" if is_made(item) else f"the {item.role}"


async def back(store: Store, view: View, target: Target, trace: Trace, ids: Sequence[str]) -> Back:
    """What comes back into view if these nodes are pinned.

    Raises `NotFound` for what was not said here, `OverBudget`, with the numbers, where it is more than pins may take.
    """
    own = {p.id for p in trace.said} | {n.id for e in trace.edits for n in e.stand_ins}
    if strange := [id for id in ids if id not in own]:
        raise NotFound(f"{strange[0][:SHORT]} is not an item of this conversation")
    away = hidden(view, with_(trace, pinned=trace.pinned | set(ids)))
    said = await quotes(store, view, view.scope, trace, away)
    needed = sum(target.meter.item(_quote(id, *words)).tokens for id, words in said.items())
    room = max(0, _room(view, target, trace))
    if said and needed > room:
        raise OverBudget(
            f"not pinned: it is out of view, and quoting it would take {needed:,} tokens where {room:,} are left for "
            f"quoted pins (a quarter of the room beside system prompt and tools); pin less, or recall it when needed",
            needed=needed,
            limit=room,
        )
    return Back(tuple(said), needed)


def _room(view: View, target: Target, trace: Trace) -> int:
    """The tokens that quotes may still take."""
    taken = target.meter.nodes(n for n in view.nodes if n.id in trace.quoted).tokens
    return int(PIN_SHARE * (target.limit.tokens - target.meter.frame(view.frame).tokens)) - taken


def lacks_room(view: View, target: Target, trace: Trace, said: Mapping[str, tuple[str, str]]) -> bool:
    """Whether the window is too full for these words, though pins may take as much."""
    needed = sum(target.meter.item(_quote(id, *words)).tokens for id, words in said.items())
    return target.limit.tokens - target.size(view).tokens < needed <= _room(view, target, trace)


def quoted(view: View, target: Target, trace: Trace, said: Mapping[str, tuple[str, str]]) -> View:
    """The view with these words beside its newest message: whole, or a preview where there is less room by now."""
    found = _place(view)
    if found is None:
        return view
    at, before = found
    free = target.limit.less(target.size(view))
    free = free._replace(tokens=min(free.tokens, _room(view, target, trace)))
    items: dict[str, Item] = {}
    for id, (who, text) in said.items():
        if item := _fitted(id, who, text, target, free):
            items[id] = item
            free = free.less(target.meter.item(item))
    if not items:
        return view
    node, new = view.nodes[at], list(items.values())
    swap = Swap(at, at + 1, [*new, node] if before else [node, *new], {PINS: list(items)})
    return view.replace_all([swap], by=QUOTE)


def _place(view: View) -> tuple[int, bool] | None:
    """The node beside which quotes are put, and whether before it: what the user wants stays the last word."""
    nodes = view.nodes
    start, stop = newest_turn(nodes)
    if stop == len(nodes) and start < stop and nodes[start].item.opens is not None and start in view.cuts():
        return start, True
    if nodes and nodes[-1].item.role != "assistant":
        return len(nodes) - 1, False
    return None  # the assistant's own words are to be gone on with: a later request will do


def _fitted(id: str, who: str, text: str, target: Target, free: Size) -> Item | None:
    whole = _quote(id, who, text)
    if target.meter.item(whole).within(free):
        return whole
    chars = min(len(text), max(0, free.tokens) * 4)
    while chars >= LEAST_PREVIEW:
        short = preview(Item("text", "user", text), id[:SHORT], chars - chars // 3, chars // 3)
        item = _quote(id, who, short.text)
        if target.meter.item(item).within(free):
            return item
        chars = chars * 3 // 4
    return None


def _quote(id: str, who: str, text: str) -> Item:
    return Item("summary", "user", framed(text, f"pinned, from earlier, said by {who}; {pointer(id[:SHORT])}"))
