"""Where words of what goes are told again: stand-ins and texts of clew that may quote it get a note in their place."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from clew.core import rawjson
from clew.core.items import ASKING, BESIDE, CLAIMS, LOG, PINS, SHORT, STANDS, Digests, Item, Scope
from clew.core.pointers import pointer
from clew.store import reading
from clew.store.database import Database
from clew.store.loading import contents
from clew.store.notes import pack_note, unpack_note
from clew.store.packing import SUMMARY, brief_opening, letter, listed, opening, pack_item, unpack, unpack_item
from clew.store.shapes import read_note

if TYPE_CHECKING:
    from clew.store.upkeep.purge import Purge

WORDS = (LOG, STANDS, CLAIMS)


def quoting(
    db: Database,
    digests: Digests,
    scope: Scope,
    given: Mapping[str, Any],
    gone: set[str],
    note: str,
    *,
    calls: Collection[str] = (),
    holders: Collection[str],
    telling: Collection[str],
    leaving: Collection[str] = (),
) -> dict[str, str]:
    """Stand-ins that may hold words of what goes, by content, and what to say there instead.

    They are those made of it, however often over; those of a result whose call it was, for they quote the call; and
    in branches that hold it those that say how things stood, or quote and do not say whom: they may quote anything that
    was said before. The branches in `telling` are looked at first; those in `leaving` go as a whole.
    """
    for branch, seq in db.ask("chapters", branches=listed({*holders, *telling}.difference(leaving))).fetchall():
        # A model read more than what it was to write of: code tells of that stretch, if nothing does yet.
        db.ask("blank_note", branch=branch, seq=seq, note=pack_note("chapter", {"texts": []}))
    made = [id for edit in _edits(db, telling) for id in edit.stand_ins] if calls else []
    answers = {id for id, node in reading.nodes(db, scope, made).items() if node.item.call_id in calls}
    found: dict[str, str] = {}
    lost = frozenset(gone)
    looked, coming = set(leaving), set(telling) - set(leaving)
    while coming:  # the same stand-in may stand in other branches, and be part of others there
        looked |= coming
        for edit in _edits(db, looked.difference(leaving)):
            if not (
                (edit.is_vague and edit.branch in holders) or edit.is_of(gone) or not answers.isdisjoint(edit.stand_ins)
            ):
                continue
            gone |= edit.stand_ins
            _blank_note(db, edit)
            more = len(edit.old) > 1 and not lost.issuperset(edit.old)
            way = f"; for the rest: {pointer(digests.handle(edit.old)[:SHORT])}" if more else ""
            found |= dict.fromkeys(contents(db, scope, edit.stand_ins).values(), note + way)
        coming = holding(db, given["owner"], gone) - looked
    return found


class StoredEdit(NamedTuple):
    """An edit as it is in the log."""

    branch: str
    seq: int
    old: Sequence[str]
    new: Sequence[str]
    note: dict[str, Any]

    @property
    def stand_ins(self) -> set[str]:
        return set(self.new) - set(self.old)

    @property
    def is_vague(self) -> bool:
        """Whether it may quote anything that was said before it."""
        kept = self.note["evidence"]
        by_model = isinstance(kept.get(LOG), dict) and bool(
            kept[LOG].get("author")
        )  # who read more than what it was to write of
        return by_model or STANDS in kept or (ASKING in kept and BESIDE not in kept)

    def is_of(self, gone: set[str]) -> bool:
        """Whether it was made of any of these, or quotes one."""
        kept = read_note("edit", self.note, self.old, self.new).note["evidence"]
        return not gone.isdisjoint({*self.old, *kept.get(PINS, ()), *kept.get(BESIDE, ())} - set(self.new))


def holding(db: Database, owner: int, ids: Collection[str]) -> set[str]:
    """The branches in which one of these ids stands, and all that forked from them."""
    return {branch for (branch,) in db.ask("holders", owner=owner, ids=listed(ids)).fetchall()}


def followers(db: Database, owner: int, branches: Collection[str]) -> set[str]:
    """These branches, and those that go on from one of them: what is told there tells of all sessions before it."""
    return {branch for (branch,) in db.ask("followers", owner=owner, branches=listed(branches)).fetchall()}


def _edits(db: Database, branches: Collection[str]) -> list[StoredEdit]:
    rows = db.ask("edits", branches=listed(branches)).fetchall()
    return [
        StoredEdit(branch, seq, unpack(old), unpack(new), unpack_note(note)) for branch, seq, old, new, note in rows
    ]


def _blank_note(db: Database, edit: StoredEdit) -> None:
    kept = edit.note["evidence"]
    if not kept.keys().isdisjoint(WORDS):
        bare = edit.note | {"evidence": {k: v for k, v in kept.items() if k not in WORDS}}
        db.ask("blank_note", branch=edit.branch, seq=edit.seq, note=pack_note("edit", bare))


def blank(db: Database, given: Mapping[str, Any], note: str, took: "Purge") -> None:
    """Put a note where the words of a body were. What pairs and wraps it stays: views must still fold."""
    row = db.ask("body", **given).fetchone()
    if row is None or row[-1] is not None:
        return
    body, kind, role, packed, data, _ = row
    item = unpack_item(None, kind, role, packed, data)
    db.forget_words([body])
    text = json.dumps({"purged": note}) if item.kind == "call" else f"[{note}]"
    kept = item.kind if item.kind in ("call", "result") else "text"
    left = Item(kept, item.role, text, item.name, item.call_id)
    packed, size, blank = pack_item(left)
    db.ask("blank_body", **given, body=body, kind=letter(left.kind), packed=packed, size=size, data=blank)
    took.bodies += 1
    took.bytes += len(data)
    for place, opens in places(db, given["owner"], given["content"]):
        took.nodes += 1
        if opens and opens != SUMMARY:
            keys, bare = rawjson.loads(opens)
            role_only = rawjson.dumps([{k: v for k, v in keys.items() if k in ("role", "type")}, bare]).decode()
            db.ask("blank_opening", **given, id=place, opens=brief_opening(role_only))


def places(db: Database, owner: int, content: str) -> list[tuple[str, str | None]]:
    return [(id, opening(opens)) for id, opens in db.ask("places", owner=owner, content=content)]
