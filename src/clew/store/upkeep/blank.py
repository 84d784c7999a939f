"""Taking the words of one item out of the log, wherever they were said: a note stands in their place."""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from clew.clients.voices import undecorated
from clew.core import rawjson
from clew.core.items import ASKING, BESIDE, CLAIMS, LOG, PINS, SHORT, STANDS, Digests, Item, Node, Scope
from clew.core.pointers import pointer
from clew.store import reading
from clew.store.database import Database
from clew.store.loading import contents
from clew.store.notes import pack_note, unpack_note
from clew.store.packing import SUMMARY, brief_opening, letter, listed, opening, pack_item, unpack, unpack_item
from clew.store.shapes import read_note
from clew.store.upkeep.copies import copies
from clew.store.upkeep.purge import Purge, begin, end, merge
from clew.store.writing import owner_of

WORDS = (LOG, STANDS, CLAIMS)


def purge_item(db: Database, digests: Digests, scope: Scope, id: str, reason: str, dry_run: bool) -> Purge:
    """Take the words behind an id away wherever they were said; a line that says so stands in their place.

    Stand-ins made of them may quote them, and so may what clew told of them; both go the same way, and so does what a
    client wrote instead of them, or they instead of it.
    """
    took = Purge()
    with db.trial() if dry_run else db.transaction():
        owner = owner_of(db, scope)
        db.ask("begin_purge", owner=owner)
        said = _rewritten(db, scope, owner, reading.originals(db, scope, id))
        now = time.time()
        given = {"owner": owner, "at": now, "purge": begin(db, owner, f"item {id}", reason)}
        note = f"purged {datetime.fromtimestamp(now):%Y-%m-%d}: {reason}"
        notes = {node.content: note for node in said}
        places = [place for content in notes for place, _ in _places(db, owner, content)]
        for place in places:
            db.ask("bury", **given, id=place)
        for content in copies(db, scope, owner, said, places):
            notes.setdefault(content, note)
            places += [place for place, _ in _places(db, owner, content)]
        calls = {node.item.call_id for node in said if node.item.kind == "call"}
        notes = _quoting(db, digests, scope, given, set(places), calls, note) | notes
        for content, told in notes.items():
            _blank(db, {**given, "content": content}, told, took)
        if not dry_run:
            merge(db)
        end(db, given, took)
    return took


def _rewritten(db: Database, scope: Scope, owner: int, said: Sequence[Node]) -> list[Node]:
    """These, and what they were before a client wrote them anew, and after it, in whichever branch.

    Where the same was said elsewhere, only what differs in its decoration belongs to it: two results that were cleared
    alike had other words before.
    """
    found = {node.id: node for node in said}
    given, places, coming = set(found), set[str](), list(said)
    while coming:
        places |= {place for node in coming for place, _ in _places(db, owner, node.content)}
        ties = [
            tie
            for (note,) in db.ask("client_edits", branches=listed(_holders(db, owner, places))).fetchall()
            for tie in read_note("client", unpack_note(note)).note.get("alias", {}).items()
            if not places.isdisjoint(tie)
        ]
        firsts = given | {old for new, old in ties if new in given}
        own = firsts | {new for new, old in ties if old in firsts}
        near = contents(db, scope, {id for tie in ties for id in tie} - found.keys())
        nodes = reading.nodes(db, scope, list(near))
        alike = {undecorated(node.item.text) for node in (found | nodes).values() if node.id in own} - {""}
        coming = [node for node in nodes.values() if node.id in own or undecorated(node.item.text) in alike]
        found |= {node.id: node for node in coming}
    return list(found.values())


def _quoting(
    db: Database,
    digests: Digests,
    scope: Scope,
    given: Mapping[str, Any],
    gone: set[str],
    calls: set[str],
    note: str,
) -> dict[str, str]:
    """Stand-ins that may hold words of what goes, by content, and what to say there instead.

    They are those made of it, however often over; those of a result whose call it was, for they quote the call; and
    those that say how things stood, or quote and do not say whom: they may quote anything that was said before.
    """
    holders = _holders(db, given["owner"], gone)
    for branch, seq in db.ask("chapters", branches=listed(holders)).fetchall():
        # A model read more than what it was to write of: code tells of that stretch, if nothing does yet.
        db.ask("blank_note", branch=branch, seq=seq, note=pack_note("chapter", {"texts": []}))
    after = db.ask("followers", owner=given["owner"], branches=listed(holders)).fetchall()
    telling = {branch for (branch,) in after}  # an answered compaction tells of all sessions before it
    made = [id for edit in _edits(db, telling) for id in edit.stand_ins] if calls else []
    answers = {id for id, node in reading.nodes(db, scope, made).items() if node.item.call_id in calls}
    found: dict[str, str] = {}
    looked, coming = set[str](), telling
    while coming:  # the same stand-in may stand in other branches, and be part of others there
        looked |= coming
        for edit in _edits(db, looked):
            if not (
                (edit.is_vague and edit.branch in holders) or edit.is_of(gone) or not answers.isdisjoint(edit.stand_ins)
            ):
                continue
            gone |= edit.stand_ins
            _blank_note(db, edit)
            way = f"; for the rest: {pointer(digests.handle(edit.old)[:SHORT])}" if len(edit.old) > 1 else ""
            found |= dict.fromkeys(contents(db, scope, edit.stand_ins).values(), note + way)
        coming = _holders(db, given["owner"], gone) - looked
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
        return STANDS in kept or (ASKING in kept and BESIDE not in kept) or bool((kept.get(LOG) or {}).get("author"))

    def is_of(self, gone: set[str]) -> bool:
        """Whether it was made of any of these, or quotes one."""
        kept = read_note("edit", self.note, self.old, self.new).note["evidence"]
        return not gone.isdisjoint({*self.old, *kept.get(PINS, ()), *kept.get(BESIDE, ())} - set(self.new))


def _holders(db: Database, owner: int, ids: Collection[str]) -> set[str]:
    """The branches in which one of these ids stands, and all that forked from them."""
    return {branch for (branch,) in db.ask("holders", owner=owner, ids=listed(ids)).fetchall()}


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


def _blank(db: Database, given: Mapping[str, Any], note: str, took: Purge) -> None:
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
    for place, opens in _places(db, given["owner"], given["content"]):
        took.nodes += 1
        if opens and opens != SUMMARY:
            keys, bare = rawjson.loads(opens)
            role_only = rawjson.dumps([{k: v for k, v in keys.items() if k in ("role", "type")}, bare]).decode()
            db.ask("blank_opening", **given, id=place, opens=brief_opening(role_only))


def _places(db: Database, owner: int, content: str) -> list[tuple[str, str | None]]:
    return [(id, opening(opens)) for id, opens in db.ask("places", owner=owner, content=content)]
