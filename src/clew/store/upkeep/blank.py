"""Taking the words of one item out of the log, wherever they were said: a note stands in their place."""

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from clew.core import rawjson
from clew.core.items import CLAIMS, LOG, SHORT, STANDS, Digests, Item, Scope
from clew.store import reading
from clew.store.database import Database
from clew.store.loading import contents
from clew.store.notes import pack_note, unpack_note
from clew.store.packing import SUMMARY, brief_opening, letter, opening, pack_item, unpack, unpack_item
from clew.store.trace import PINS
from clew.store.upkeep.purge import Purge, begin, end, lines_of, merge, parents_first, split
from clew.store.writing import owner_of

WORDS = (LOG, STANDS, CLAIMS)


def purge_item(db: Database, digests: Digests, scope: Scope, id: str, reason: str, dry_run: bool) -> Purge:
    """Take the words behind an id away wherever they were said; a line that says so stands in their place.

    Stand-ins made of them may quote them, and go the same way.
    """
    took = Purge()
    with db.trial() if dry_run else db.transaction():
        owner = owner_of(db, scope)
        db.ask("begin_purge", owner=owner)
        said = reading.originals(db, scope, id)
        now = time.time()
        given = {"owner": owner, "at": now, "purge": begin(db, owner, f"item {id}", reason)}
        note = f"purged {datetime.fromtimestamp(now):%Y-%m-%d}: {reason}"
        notes = {node.content: note for node in said}
        places = [place for content in notes for place, _ in _places(db, given, content)]
        for place in places:
            db.ask("bury", **given, id=place)
        calls = {node.item.call_id for node in said if node.item.kind == "call"}
        notes = _quoting(db, digests, scope, given, set(places), calls, note) | notes
        for content, told in notes.items():
            _blank(db, {**given, "content": content}, told, took)
        if not dry_run:
            merge(db)
        end(db, given, took)
    return took


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
    those that say how things stood, for that may quote anything that was said before.
    """
    edits = [(*place, unpack(old), unpack(new), more) for *place, old, new, more in db.ask("edits", **given)]
    holders = _holders(db, scope, given, gone)
    made = [id for branch, _, old, new, _ in edits if branch in holders for id in new if id not in old] if calls else []
    answers = {id for id, node in reading.nodes(db, scope, made).items() if node.item.call_id in calls}
    found: dict[str, str] = {}
    for branch, seq, old, new, more in edits:
        stand_ins, told = set(new) - set(old), unpack_note(more)
        kept, quoted = told["evidence"], told["evidence"].get(PINS, ())
        tells = STANDS in kept and branch in holders
        if tells or not gone.isdisjoint({*old, *quoted} - set(new)) or not answers.isdisjoint(stand_ins):
            gone |= stand_ins
            if not kept.keys().isdisjoint(WORDS):
                bare = told | {"evidence": {k: v for k, v in kept.items() if k not in WORDS}}
                db.ask("blank_note", branch=branch, seq=seq, note=pack_note("edit", bare))
            way = f"; for the rest: recall {digests.handle(old)[:SHORT]}" if len(old) > 1 else ""
            found |= dict.fromkeys(contents(db, scope, stand_ins).values(), note + way)
    return found


def _holders(db: Database, scope: Scope, given: Mapping[str, Any], ids: set[str]) -> set[str]:
    """The branches in which one of these ids stands, and all that forked from them."""
    rows = db.ask("references", **given)
    found = {branch for branch, *lists in rows if not ids.isdisjoint(id.hex() for id in split(lists))}
    lines = lines_of(db, scope)
    for id in parents_first(lines):
        if lines[id].parent in found:
            found.add(id)
    return found


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
    for place, opens in _places(db, given, given["content"]):
        took.nodes += 1
        if opens and opens != SUMMARY:
            keys, bare = rawjson.loads(opens)
            role_only = rawjson.dumps([{k: v for k, v in keys.items() if k in ("role", "type")}, bare]).decode()
            db.ask("blank_opening", **given, id=place, opens=brief_opening(role_only))


def _places(db: Database, given: Mapping[str, Any], content: str) -> list[tuple[str, str | None]]:
    return [(id, opening(opens)) for id, opens in db.ask("places", owner=given["owner"], content=content)]
