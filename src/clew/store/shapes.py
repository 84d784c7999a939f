"""What rows must be like before anybody builds on them: a file, another version or damage may have put anything there.

An item, a frame or an event that does not fit cannot be read, and that is an error. What an event notes beside is worth
less: what of it does not fit is as if it were not there, and what an edit stands for is told anew from originals.
"""

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, get_args

from clew.core.items import CLAIMS, LOG, STANDS
from clew.core.shapes import (
    Fields,
    Fits,
    anything,
    count,
    flag,
    list_of,
    node_id,
    number,
    one_of,
    perhaps,
    row,
    shaped,
    string,
    table_of,
    whole,
)
from clew.store.records import Cause
from clew.store.trace import PINS
from clew.wire.formats import FORMATS

_FORMAT = one_of(*FORMATS)
_IDS = list_of(node_id)
_SHORT = re.compile("[0-9a-f]{1,32}")
NOBODY = ""  # the id of no node

# --- items and frames -------------------------------------------------------------------------------------------------

ITEM_FIELDS: Fields = {
    "text": string,
    "name": perhaps(string),
    "call_id": perhaps(string),
    "wire": perhaps(anything),
}
OPENING_FIELDS = row(anything, flag, least=1)
FRAME_FIELDS: Fields = {
    "format": _FORMAT,
    "model": string,
    "lead": list_of(anything),
    "tools": list_of(anything),
    "body": anything,
    "system": string,
}


# --- what events note -------------------------------------------------------------------------------------------------


class NoteShape(NamedTuple):
    """What an event of some kind notes."""

    needed: Fields  # without which it is no event
    beside: Mapping[str, tuple[Fits, Any]]  # what else there is, and what stands in for what lacks or does not fit
    bare: bool = False  # it may note nothing


def _aliases(value: Any) -> bool:
    return isinstance(value, dict) and all(map(node_id, [*value, *value.values()]))


_SWITCH = shaped({"format": _FORMAT, "gone": perhaps(_IDS), "loose": perhaps(_IDS)}, closed=True)
_SPENT = shaped(dict.fromkeys(("input", "output", "cache_read", "cache_write"), perhaps(count)))
NOTES: Mapping[str, NoteShape] = {
    "said": NoteShape({}, {}, bare=True),
    "client": NoteShape({"switch": perhaps(_SWITCH)}, {"alias": (_aliases, {})}, bare=True),
    "edit": NoteShape({"evidence": anything}, {"by": (string, ""), "spent": (whole, 0)}),
    "pin": NoteShape({}, {}, bare=True),
    "unpin": NoteShape({}, {}, bare=True),
    "session": NoteShape(
        {"session": string}, {"cause": (one_of(*get_args(Cause)), "compaction"), "method": (string, "")}
    ),
    "revert": NoteShape({}, {"sessions": (list_of(string), [])}, bare=True),
    "usage": NoteShape({}, {"usage": (_SPENT, {}), "cost": (perhaps(number), None)}),
    "call": NoteShape(
        {"frame": node_id, "model": string, "format": _FORMAT, "digest": string},
        {
            "predicted": (whole, 0),
            "limit": (whole, 0),
            "exact": (flag, False),
            "cached": (whole, 0),
            "shadow": (perhaps(anything), None),
        },
    ),
}


class ReadNote(NamedTuple):
    """What an event notes, and the keys under which there was something else than clew writes."""

    note: dict[str, Any] | None
    wrong: AbstractSet[str]


def read_note(kind: str, note: Any, old: Sequence[str] = (), new: Sequence[str] = ()) -> ReadNote:
    """What an event notes, as far as it fits. Raises `ValueError` where it is no event without what does not."""
    shape = NOTES.get(kind)
    if shape is None:
        raise ValueError(f"unknown event kind {kind!r:.40}")
    if note is None and shape.bare:
        return ReadNote(None, frozenset())
    if not shaped(shape.needed)(note):
        raise ValueError(f"an event of kind {kind!r} notes what clew never does")
    wrong = {key for key, (fits, _) in shape.beside.items() if key in note and not fits(note[key])}
    kept = {key: value for key, value in note.items() if key in shape.needed or key in shape.beside}
    kept |= {key: usual for key, (_, usual) in shape.beside.items() if key in wrong or key not in note}
    if kind == "edit" and (odd := misfits(note["evidence"], old, new)):
        wrong |= odd
        kept["evidence"] = _fitting(note["evidence"], odd)
    return ReadNote(kept, wrong)


# --- what an edit notes -----------------------------------------------------------------------------------------------


def _log(value: Any) -> bool:
    shape = {"first": count, "last": count, "recall": _short, "level": perhaps(count), "continued": perhaps(flag)}
    fits = shaped({**shape, "texts": list_of(string)})(value)
    return fits and (value.get("level") or 0) < len(value["texts"])


def _short(value: Any) -> bool:
    return isinstance(value, str) and bool(_SHORT.fullmatch(value))


_STANDS = shaped(
    {
        "rules": list_of(row(string, whole, string, whole, string, string, whole, least=4)),
        "refusals": list_of(row(string, string)),
        "tasks": list_of(row(string, string, string)),
        "files": list_of(row(string, string, whole, list_of(string))),
        "errors": list_of(row(string, string, whole)),
        "commands": list_of(row(string, whole, string)),
        "running": list_of(row(string, string)),
        "ask": string,
        "asked": list_of(string),
        "count": whole,
        "runs": whole,
        "root": string,
    }
)
_CLAIM = shaped({"text": string, "cites": list_of(string), "under": perhaps(string), "goes_on": perhaps(flag)})
EVIDENCE: Fields = {
    LOG: _log,
    STANDS: _STANDS,
    CLAIMS: list_of(_CLAIM),
    PINS: _IDS,
    "beside": list_of(lambda one: one == NOBODY or node_id(one)),  # what it quotes without standing for it
    "handle": node_id,  # by which it was recalled in the store that it comes from
    "call": string,  # that was never answered
    "cost": perhaps(number),
    "tally": table_of(count),
    "coverage": anything,
    "unread": _IDS,
    "trust": number,
    "draft": string,
    "asked": node_id,
    "until": node_id,
    "sizes": row(whole, whole),
    "cleared_tokens": whole,
}


def misfits(evidence: Mapping[str, Any], old: Sequence[str], new: Sequence[str]) -> set[str]:
    """The keys of an edit's evidence under which there is something else than clew writes there."""
    wrong = {key for key, value in evidence.items() if key in EVIDENCE and not EVIDENCE[key](value)}
    if PINS in evidence and PINS not in wrong and len(evidence[PINS]) != sum(id not in old for id in new):
        wrong.add(PINS)  # it has one for each stand-in
    return wrong


def _fitting(evidence: Mapping[str, Any], wrong: AbstractSet[str]) -> dict[str, Any]:
    kept = {key: value for key, value in evidence.items() if key not in wrong}
    # Whether what it quotes still stands cannot be told: then it does not hold.
    return {**kept, "beside": [NOBODY]} if "beside" in wrong else kept
