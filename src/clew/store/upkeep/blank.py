"""Taking the words of one item out of the log, wherever they were said: a note stands in their place."""

import time
from collections.abc import Sequence

from clew.clients.voices import undecorated
from clew.core.items import Digests, Node, Scope
from clew.store import reading
from clew.store.database import Database
from clew.store.loading import contents
from clew.store.notes import unpack_note
from clew.store.packing import listed
from clew.store.shapes import read_note
from clew.store.upkeep.copies import copies
from clew.store.upkeep.purge import Purge, begin, end, merge, purge_note
from clew.store.upkeep.quoting import blank, followers, holding, places, quoting
from clew.store.writing import owner_of


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
        note = purge_note(now, reason)
        notes = {node.content: note for node in said}
        gone = [place for content in notes for place, _ in places(db, owner, content)]
        for place in gone:
            db.ask("bury", **given, id=place)
        for content in copies(db, scope, owner, said, gone):
            notes.setdefault(content, note)
            gone += [place for place, _ in places(db, owner, content)]
        calls = {node.item.call_id for node in said if node.item.kind == "call"}
        holders = holding(db, owner, gone)
        whose = {"holders": holders, "telling": followers(db, owner, holders)}
        notes = quoting(db, digests, scope, given, set(gone), note, calls=calls, **whose) | notes
        for content, told in notes.items():
            blank(db, {**given, "content": content}, told, took)
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
    given, stands, coming = set(found), set[str](), list(said)
    while coming:
        stands |= {place for node in coming for place, _ in places(db, owner, node.content)}
        ties = [
            tie
            for (note,) in db.ask("client_edits", branches=listed(holding(db, owner, stands))).fetchall()
            for tie in read_note("client", unpack_note(note)).note.get("alias", {}).items()
            if not stands.isdisjoint(tie)
        ]
        firsts = given | {old for new, old in ties if new in given}
        own = firsts | {new for new, old in ties if old in firsts}
        near = contents(db, scope, {id for tie in ties for id in tie} - found.keys())
        nodes = reading.nodes(db, scope, list(near))
        alike = {undecorated(node.item.text) for node in (found | nodes).values() if node.id in own} - {""}
        coming = [node for node in nodes.values() if node.id in own or undecorated(node.item.text) in alike]
        found |= {node.id: node for node in coming}
    return list(found.values())
