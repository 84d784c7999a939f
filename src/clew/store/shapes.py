"""What events note, and what must be like that before anybody builds on it: a file, another version or damage may have
put anything there.

What an event cannot be without must fit, or the event cannot be read, which is an error. What it only notes beside is
left out where it does not fit: what an edit stands for is then told anew from the originals.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from clew.core.items import ASKING, BESIDE, LOG, PINS, STANDS
from clew.core.shapes import (
    Fields,
    anything,
    count,
    expect,
    flag,
    is_integer,
    list_of,
    misfits,
    node_id,
    number,
    one_of,
    perhaps,
    plain,
    row,
    shaped,
    string,
    strings,
    table_of,
    text,
)
from clew.errors import BadRequest
from clew.store.records import Cause

CAUSE = one_of(*get_args(Cause))
NOBODY = ""  # the id of no node
_IDS = list_of(node_id)
_SHORT = re.compile("[0-9a-f]{1,32}")


@dataclass(frozen=True, slots=True)
class NoteShape:
    """What an event of some kind notes."""

    needed: Fields = field(default_factory=dict)  # without which it is no event
    maybe: Fields = field(default_factory=dict)
    usual: Mapping[str, Any] = field(default_factory=dict)  # what stands in for what lacks or does not fit


def _aliases(value: Any) -> bool:
    return isinstance(value, dict) and _IDS([*value, *value.values()])


_SWITCH = shaped({"format": text}, {"gone": _IDS, "loose": _IDS}, closed=True)
NOTES: Mapping[str, NoteShape] = {
    "said": NoteShape(),
    "client": NoteShape({}, {"alias": _aliases, "switch": _SWITCH}),
    "edit": NoteShape({"evidence": anything}, {"by": string, "spent": is_integer}, {"by": "", "spent": 0}),
    "chapter": NoteShape(
        {},
        {
            "texts": strings,
            "author": string,
            "findings": strings,
            "asked": string,
            "answer": string,
            "spent": is_integer,
            "cost": perhaps(number),
        },
        {"texts": [], "author": "", "findings": [], "asked": "", "answer": "", "spent": 0, "cost": None},
    ),
    "pin": NoteShape(),
    "unpin": NoteShape(),
    "session": NoteShape({"session": text}, {"cause": CAUSE, "method": text}, {"cause": "compaction", "method": ""}),
    "revert": NoteShape({}, {"sessions": list_of(text)}),
    "usage": NoteShape({}, {"usage": table_of(perhaps(count)), "cost": perhaps(number)}, {"usage": {}}),
    "call": NoteShape(
        # A format may be one that a package brought: it is looked for when it is used.
        {"frame": node_id, "model": text, "format": text, "digest": string},
        {
            "predicted": is_integer,
            "limit": is_integer,
            "exact": flag,
            "cached": is_integer,
            "shadow": perhaps(table_of(plain)),
            "due": perhaps(table_of(plain)),
            "window": is_integer,
        },
        {"predicted": 0, "limit": 0, "exact": False},
    ),
}


# --- what an edit notes -----------------------------------------------------------------------------------------------


def _log(value: Any) -> bool:
    return _BLOCK(value) and value.get("level", 0) < len(value["texts"])


def _short(value: Any) -> bool:
    return isinstance(value, str) and bool(_SHORT.fullmatch(value))


_BLOCK = shaped(
    {"first": count, "last": count, "recall": _short, "texts": strings},
    {
        "level": count,
        "continued": flag,
        "author": string,
        "findings": strings,
        "lines": list_of(row(float, str, int, str, str)),
        "stands_for": count,
        "extended": count,
    },
    closed=True,
)
_FILE = row(str, str, int, list)


def _file(value: Any) -> bool:
    return _FILE(value) and strings(value[3])


_STANDS = shaped(
    {
        "rules": list_of(row(str, int, str, int, str, str, int, least=4)),
        "refusals": list_of(row(str, str)),
        "tasks": list_of(row(str, str, str)),
        "files": list_of(_file),
        "errors": list_of(row(str, str, int)),
        "commands": list_of(row(str, int, str)),
        "running": list_of(row(str, str)),
        "ask": string,
        "asked": strings,
        "count": is_integer,
        "runs": is_integer,
        "root": string,
    },
    {"origins": table_of(list_of(strings))},  # earlier versions do not tell
)
EVIDENCE: Fields = {
    LOG: _log,
    STANDS: _STANDS,
    PINS: _IDS,
    BESIDE: strings,  # what it quotes without standing for it
    "handle": node_id,  # by which it was recalled in the store that it comes from
    "call": string,  # that was never answered
    "cost": perhaps(number),
    "tally": table_of(count),
    "coverage": plain,
    ASKING: node_id,
    "until": node_id,
    "sizes": row(int, int),
    "cleared_tokens": is_integer,
}


def odd_keys(evidence: Mapping[str, Any], old: Sequence[str], new: Sequence[str]) -> list[str]:
    """The keys of an edit's evidence under which there is something else than clew writes there."""
    wrong = misfits(evidence, {}, {key: EVIDENCE.get(key, plain) for key in evidence})
    if PINS in evidence and PINS not in wrong and len(evidence[PINS]) != sum(id not in old for id in new):
        wrong.append(PINS)  # it has one for each stand-in
    return wrong


# --- the decoder ------------------------------------------------------------------------------------------------------


class ReadNote(NamedTuple):
    """What an event notes, as far as it fits."""

    note: dict[str, Any]
    wrong: Sequence[str]  # keys under which there was something else than clew writes
    odd: Sequence[str]  # the same, of an edit's evidence


def read_note(kind: str, note: Any, old: Sequence[str] = (), new: Sequence[str] = ()) -> ReadNote:
    """What an event notes, as far as it fits. Raises `BadRequest` where it is no event without what does not."""
    shape = NOTES.get(kind)
    if shape is None:
        raise BadRequest(f"unknown event kind {kind[:20]!r}")
    expect(note, f"an event of kind {kind!r}", shape.needed)
    wrong = misfits(note, {}, shape.maybe)
    known = [key for key in (*shape.needed, *shape.maybe) if key in note and key not in wrong]
    kept = {**shape.usual, **{key: note[key] for key in known}}
    odd = odd_keys(note["evidence"], old, new) if kind == "edit" else []
    if odd:
        kept["evidence"] = {key: value for key, value in note["evidence"].items() if key not in odd}
    # Whether what it quotes still stands cannot be told: then it does not hold.
    if BESIDE in odd or PINS in odd or (ASKING in odd and BESIDE not in note["evidence"]):
        kept["evidence"][BESIDE] = [NOBODY]
    return ReadNote(kept, wrong, odd)
