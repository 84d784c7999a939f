"""A conversation that goes on with another provider: the same history, written down in another format."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace as with_
from typing import NamedTuple

from clew.core.align import Match, Patch, matches, patches
from clew.core.items import Item, Node, Scope
from clew.core.view import originals
from clew.recognition.client_edits import Change, contradicts, has_same_words, is_all_there, is_edit
from clew.recognition.reading import LOOK_AHEAD
from clew.recognition.sameness import SOFT, alike, arguments, with_their_calls
from clew.store.protocol import Store
from clew.store.trace import Trace
from clew.wire.convert import convert_item


class Rewriting(NamedTuple):
    """How a history that was written anew relates to the one we have."""

    found: list[Match]
    gone: list[int]  # old places that another provider does not see
    loose: list[int]  # new places that only this provider sees
    news: int  # items from here on are new
    same: bool  # whether it is this conversation at all
    lossy: bool  # some of what was said is not there
    past: int  # old places up to which it is


def rewriting(old: Sequence[Item], new: Sequence[Item], named: bool = False) -> Rewriting:
    """Align two histories by what is said in them, not by how; `named`: the host says that they are one."""
    equal = with_their_calls(matches([_plain_words(i) for i in old], [_plain_words(i) for i in new]), new)
    gaps = patches(equal, len(old), len(new))
    pairs = [pair for gap in gaps for pair in _paired(gap, old, new)]
    found = sorted([*equal, *pairs])
    news = found[-1].new + 1 if found else 0
    was, now = {m.old for m in found}, {m.new for m in found}
    gone = [i for i, item in enumerate(old) if i not in was and _is_soft(item)]
    loose = [j for j, item in enumerate(new[:news]) if j not in now and _is_soft(item)]
    past = equal[-1].old + 1 if equal else 0
    kept = all(i in was for i, item in enumerate(old) if not _is_soft(item))
    change = Change(gaps, dict(enumerate(old)), new, equal, pairs, len(old), named)
    whole = kept and all(has_same_words(old[m.old], new[m.new]) for m in pairs)
    same = not gaps or (not contradicts(change) and (whole or is_all_there(change) or is_edit(change)))
    return Rewriting(found, gone, loose, news, bool(found) and same, not whole, past)


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


def _plain_words(item: Item) -> str:
    """What is said, the same in every format."""
    match item.kind:
        case "call":
            return f"call {item.name} {arguments(item.text)}"
        case "result":
            return f"result {item.text.strip()}"
        case "media":
            return f"media {_payload(item.wire)}"
        case kind:
            who = item.role if item.role == "assistant" else "user"
            return f"{'text' if kind == 'summary' else kind} {who} {item.text.strip()}"


def _is_soft(item: Item) -> bool:
    """Whether nobody said it: what a provider notes for itself, and empty text, which some formats need."""
    return item.kind in SOFT or (item.kind == "text" and not item.text.strip())


def _payload(value: object) -> str:
    """The data of a picture or a file, or where it lies: the longest string, whatever is written around it."""
    if isinstance(value, Mapping):
        return max(map(_payload, value.values()), key=len, default="")
    if isinstance(value, list | tuple):
        return max(map(_payload, value), key=len, default="")
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()
    return value.rpartition("base64,")[2] if isinstance(value, str) else ""


def _paired(gap: Patch, old: Sequence[Item], new: Sequence[Item]) -> list[Match]:
    """What stands between two places that match, and says the same under another decoration."""
    gap = gap if gap.stop < len(old) else gap._replace(end=len(new))
    found, at = [], gap.begin
    for i in range(gap.start, gap.stop):
        if _is_soft(old[i]):
            continue
        like = (j for j in range(at, min(at + LOOK_AHEAD, gap.end)) if alike(old[i], new[j]))
        if (j := next(like, None)) is not None:
            found.append(Match(i, j))
            at = j + 1
    return found
