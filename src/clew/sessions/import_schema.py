"""What the lines of an export must be like: a file is anybody's, and what is in the log once stays there."""

from collections.abc import Mapping
from typing import get_args

from clew.core.items import Kind, Role
from clew.core.shapes import (
    Fields,
    Fits,
    anything,
    count,
    flag,
    list_of,
    name,
    node_id,
    number,
    one_of,
    perhaps,
    shaped,
    string,
    text,
    whole,
)
from clew.store.records import Cause
from clew.store.shapes import ITEM_FIELDS, NOTES, NoteShape

BRANCH: Fields = {
    "branch": name,
    "name": perhaps(text),
    "cause": one_of(*get_args(Cause)),
    "at": number,
    "parent": perhaps(name),
    "parent_seq": perhaps(whole),
    "after": perhaps(name),
    "tags": list_of(string),
    "archived": flag,
}
ITEM_LINE: Fields = {"kind": one_of(*get_args(Kind)), "role": one_of(*get_args(Role)), **ITEM_FIELDS}
NODE: Fields = {"node": node_id, "item": count, "opens": perhaps(string)}
_IDS = perhaps(list_of(node_id))
EVENT: Fields = {"at": number, "start": perhaps(count), "stop": perhaps(count), "old": _IDS, "new": _IDS}


def _strict(shape: NoteShape, **more: Fits) -> Fits:
    """All of what an event notes must be there and fit; `more` says more of some keys."""
    fits = shaped({**shape.needed, **{key: fits for key, (fits, _) in shape.beside.items()}, **more})
    return perhaps(fits) if shape.bare else fits


_EVIDENCE = shaped({"handle": perhaps(node_id), "call": perhaps(string), "cost": perhaps(number)})
NOTE_FIELDS: Mapping[str, Fits] = {
    **{kind: _strict(shape) for kind, shape in NOTES.items()},
    "said": perhaps(anything),
    "pin": perhaps(anything),
    "unpin": perhaps(anything),
    "edit": _strict(NOTES["edit"], evidence=_EVIDENCE),
    "session": _strict(NOTES["session"], session=name, method=text),
    "revert": _strict(NOTES["revert"], sessions=list_of(name)),
    "call": _strict(NOTES["call"], frame=count, model=text),  # the number of the frame in the file
}
