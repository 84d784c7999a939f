"""A conversation that goes on with another provider: the same history, written down in another format."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace as with_
from typing import NamedTuple

from clew.align import Match, Patch, alike, matches, patches
from clew.items import Item, Node, Scope
from clew.store.protocol import Store
from clew.store.trace import Trace
from clew.view import originals
from clew.wire.convert import convert_item

SOFT = ("reasoning", "opaque")  # what one provider makes for itself: another one never sees it


class Rewriting(NamedTuple):
    """How a history that was written anew relates to the one we have."""

    found: list[Match]
    gone: list[int]  # old places that were not written again
    loose: list[int]  # new places that nothing old is behind
    news: int  # items from here on are new
    same: bool  # whether it is this conversation at all
    past: int  # old places up to which it is


def rewriting(old: Sequence[Item], new: Sequence[Item]) -> Rewriting:
    """Align two histories by what is said in them, not by how."""
    equal = matches([_said(i) for i in old], [_said(i) for i in new])
    found = list(equal)
    replaced = False
    for gap in patches(equal, len(old), len(new)):
        gap = gap if gap.stop < len(old) else gap._replace(end=len(new))
        pairs = _paired(gap, old, new)
        found += pairs
        lost = _spoke(old, set(range(gap.start, gap.stop)) - {m.old for m in pairs})
        put = _spoke(new, set(range(gap.begin, gap.end)) - {m.new for m in pairs})
        replaced |= lost and put and gap.stop < len(old)
    found.sort()
    news = found[-1].new + 1 if found else 0
    was, now = {m.old for m in found}, {m.new for m in found}
    gone = [i for i in range(len(old)) if i not in was]
    loose = [j for j in range(news) if j not in now]
    hard = [i for i in range(len(old)) if old[i].kind not in SOFT]
    exact = {m.old for m in equal}
    kept = sum(i in exact for i in hard)
    past = equal[-1].old + 1 if equal else 0
    # Words of the assistant that are missing at the end: the client went back to an earlier point.
    rewound = any(i >= past and i not in was and old[i].role == "assistant" for i in hard)
    return Rewriting(
        found, gone, loose, news, kept * 2 >= len(hard) and kept > 0 and not rewound and not replaced, past
    )


def _spoke(items: Sequence[Item], places: set[int]) -> bool:
    """Whether the assistant says something at one of these places."""
    return any(items[i].role == "assistant" and items[i].kind not in SOFT for i in places)


async def native(
    store: Store, scope: Scope, trace: Trace, format: str, nodes: Sequence[Node], sent: Mapping[str, Item]
) -> tuple[Node, ...]:
    """These nodes with the stand-ins that were made in another format written in this one."""
    foreign = {n.id: was for n in nodes if (was := trace.made_in.get(n.id, format)) != format}
    if not foreign:
        return tuple(nodes)
    by_id = {node.id: edit for edit in trace.edits for node in edit.stand_ins}
    now = {trace.alias.get(p.id, p.id): p.id for p in trace.said}
    behind: dict[str, str] = {}  # a stand-in, and the one node it stands for, as it is written now
    for id in foreign:
        sources = [now[s] for o in originals((id,), by_id) if (s := trace.alias.get(o, o)) in now]
        behind |= {id: sources[0]} if len(sources) == 1 else {}
    stored = await store.nodes(scope, [id for id in behind.values() if id not in sent])
    items = {id: sent[at] if at in sent else stored[at].item for id, at in behind.items()}
    return tuple(_rewritten(n, foreign[n.id], format, items.get(n.id)) if n.id in foreign else n for n in nodes)


def _rewritten(node: Node, was: str, format: str, source: Item | None) -> Node:
    item = convert_item(node.item, was, format) or Item("text", node.item.role, node.item.text)
    # Clients may give a call another id for another provider: a result goes with its call.
    if item.call_id and source is not None and source.kind == item.kind:
        item = with_(item, call_id=source.call_id, name=source.name)
    return Node(node.id, node.content, item)


def _said(item: Item) -> str:
    """What is said, the same in every format."""
    match item.kind:
        case "call":
            return f"call {item.name} {_arguments(item.text)}"
        case "result":
            return f"result {item.text.strip()}"
        case "media":
            return f"media {item.role}"
        case kind:
            who = item.role if item.role == "assistant" else "user"
            return f"{'text' if kind == 'summary' else kind} {who} {item.text.strip()}"


def _arguments(text: str) -> str:
    try:
        return json.dumps(json.loads(text or "{}"), sort_keys=True)
    except ValueError:
        return text


def _like(was: Item, now: Item) -> bool:
    """Whether one may be the other: words must be the same words, under another coat."""
    same = was.kind == now.kind and was.role == now.role
    return same and (was.kind != "text" or alike(was, now))


def _paired(gap: Patch, old: Sequence[Item], new: Sequence[Item]) -> list[Match]:
    """What stands between two places that match is the same under another coat, as far as kinds agree."""
    found, at = [], gap.begin
    for i in range(gap.start, gap.stop):
        if old[i].kind in SOFT:
            continue
        like = (j for j in range(at, gap.end) if _like(old[i], new[j]))
        if (j := next(like, None)) is not None:
            found.append(Match(i, j))
            at = j + 1
    return found
