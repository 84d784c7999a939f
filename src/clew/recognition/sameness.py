"""Whether a history that was changed on the way is still the same conversation. Pure functions.

Equal words are evidence, an id alone is none: ids count up, collide, or are places in a list. When in doubt it is
another conversation: a wrong match would mix two people's words, a missed one costs some tokens once.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from clew.clients.voices import is_moving, is_passing, lasting
from clew.core.align import Match
from clew.core.items import Item, canonical
from clew.core.pointers import POINTER
from clew.recognition.shortening import is_shortened

SOFT = ("reasoning", "opaque")  # what one provider makes for itself: clients drop it and bring it back
_MEDIA = frozenset({"source", "inlineData", "inline_data", "fileData", "file_data", "image_url", "bytes"})


def alike(was: Item, now: Item) -> bool:
    """Whether both say the same: a call with the same name and arguments, or words under another known decoration.

    Whose call a result answers is for `likeness` to know.
    """
    if was.kind != now.kind or was.role != now.role:
        return False
    match was.kind:
        case "call":
            return was.name == now.name and arguments(was.text) == arguments(now.text)
        case "result":
            same = is_shortened(lasting(was.text), lasting(now.text)) or lasting(was.text) == lasting(now.text)
            return _beside(was.wire) == _beside(now.wire) and same
        case "text":  # what somebody took out of his words is out
            return lasting(was.text) == lasting(now.text)
    return False


def arguments(text: str) -> str:
    """What a call is called with, however it is spelled; 1, 1.0 and true are three things."""
    try:
        return json.dumps(json.loads(text or "{}"), sort_keys=True)
    except (ValueError, RecursionError):
        return text


def likeness(old: Mapping[int, Item], new: Mapping[int, Item], near: int) -> list[Match]:
    """Within one gap, items that say the same, in order; a result is the same only if its call is."""
    found: list[Match] = []
    waiting = list(new.items())
    renamed: dict[str, str] = {}  # calls of this gap that are the same, by the ids they had and have
    changed = {i.call_id for i in old.values() if i.kind == "call"} | {
        i.call_id for i in new.values() if i.kind == "call"
    }
    at = 0
    for i, was in old.items():
        for k in range(at, min(at + near, len(waiting))):
            j, now = waiting[k]
            if not alike(was, now) or (was.kind == "result" and not _answers(was, now, renamed, changed)):
                continue
            if was.kind == "call":
                renamed[was.call_id] = now.call_id
            found.append(Match(i, j))
            at = k + 1
            break
    return found


def with_their_calls(found: list[Match], new: Sequence[Item | None]) -> list[Match]:
    """Those matches that hold: equal results of calls that are not equal are two results."""
    known = {m.new for m in found} | {-1}  # -1: its call stands before all of this
    calls: dict[str, int] = {}  # the newest call of each id
    apart: set[int] = set()
    for j, item in enumerate(new):
        if item is not None and item.kind == "call":
            calls[item.call_id] = j
        elif item is not None and item.kind == "result" and calls.get(item.call_id, -1) not in known:
            apart.add(j)
    return [m for m in found if m.new not in apart] if apart else found


def without_trailing(found: list[Match], new: Sequence[Item | None], said: int) -> list[Match]:
    """Without notes at the end of the log that now stand after something new: some clients put them last each time."""
    kept = list(found)
    last = said
    while kept and kept[-1].old == last - 1 and trails(new[kept[-1].new]):
        last = kept.pop().old
    first = found[len(kept)].new if len(kept) < len(found) else 0
    return kept if first > (kept[-1].new + 1 if kept else 0) else found


def _answers(was: Item, now: Item, renamed: Mapping[str, str], changed: Collection[str]) -> bool:
    """Whether two results answer the same call: one that was found to be, or one that stands outside the gap."""
    if was.call_id in renamed:
        return renamed[was.call_id] == now.call_id
    return was.call_id == now.call_id and was.call_id not in changed


def _beside(wire: Mapping[str, Any] | None) -> list[str]:
    """What a result holds beside its words: pictures, and whether it failed."""
    found: list[str] = []

    def look(value: Any) -> None:
        if isinstance(value, Mapping):
            if _MEDIA & value.keys():
                found.append(canonical(value))
                return
            if value.get("is_error") is True or value.get("status") == "error":
                found.append("failed")
            for inner in value.values():
                look(inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                look(inner)

    look(wire)
    return found


_STANDS = re.compile(rf"\[[^\[\]\n]{{0,400}}{POINTER}")


def is_aside(item: Item) -> bool:
    return item.kind in SOFT or is_moved(item) or (is_told(item) and is_passing(item.text))


def is_told(item: Item) -> bool:
    return item.kind == "text" and item.role != "assistant"


def is_moved(item: Item) -> bool:
    """Whether a client writes it anew before each question."""
    return item.kind == "text" and is_moving(item.text)


def trails(item: Item | None) -> bool:
    """Whether it may be what a client puts last each time: a note, or instructions once more."""
    return item is not None and (is_aside(item) or (is_told(item) and item.role == "system"))


def is_stand_in(item: Item) -> bool:
    """Whether it says that it stands for something, and by which id that is recalled."""
    return item.kind == "text" and item.role == "user" and _STANDS.match(item.text) is not None
