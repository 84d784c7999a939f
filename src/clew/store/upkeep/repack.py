"""Rows of older versions packed as new ones are, a few in each transaction: whoever writes meanwhile waits for no more.

What is packed already is passed over, so it can be stopped at any time and begun again.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from clew.store.database import Database
from clew.store.frames import inflated_frame, is_packed, squeeze_frame
from clew.store.notes import pack_note, unpack_note
from clew.store.packing import ZSTD, brief_opening, inflated, letter, squeeze

Renew = Callable[[Sequence[Any]], dict[str, Any] | None]  # what of a row is other now, if anything is

SOME = 500  # rows in one transaction
FIRST_EVENT = {"branch": "", "seq": -1}  # the key that is before those of all events


def repack(db: Database, damage: tuple[type[Exception], ...], progress: Callable[[int, int], None] | None) -> None:
    """Pack what is packed in an old way anew; rows that are damaged stay as they are."""
    tables: dict[str, tuple[Renew, dict[str, Any]]] = {
        "body": (_body, {"id": 0}),
        "frame": (_frame, {"scope": 0, "digest": ""}),
        "event": (_event, FIRST_EVENT),
        "node": (_node, {"scope": 0, "id": ""}),
    }
    done, all = 0, int(db.ask("count_rows").fetchone()[0])
    for table, (renew, first) in tables.items():
        for rows in batches(db, table, first):
            new = []
            for row in rows:
                try:
                    if changes := renew(row[len(first) :]):
                        new.append(changes | dict(zip(first, row, strict=False)))
                except damage:
                    continue
            if new:
                with db.transaction():
                    # Only where it is what it was: it may have been purged meanwhile.
                    db.many(f"renew_{table}", new)
            done += len(rows)
            if progress:
                progress(min(done, all), all)


def batches(db: Database, table: str, first: dict[str, Any]) -> Iterator[list[Any]]:
    """All rows of a table by their keys, which are their first columns."""
    after = first
    while rows := db.ask(f"some_of_{table}", **after, limit=SOME).fetchall():
        yield rows
        after = dict(zip(first, rows[-1], strict=False))


def _body(row: Sequence[Any]) -> dict[str, Any] | None:
    kind, role, packed, data = row
    now, stored = (packed, data) if packed == ZSTD else squeeze(inflated(packed, data))
    if len(stored) >= len(data):
        now, stored = packed, data
    new = {"kind": letter(kind), "role": letter(role), "packed": now, "data": stored}
    return new | {"was": data} if tuple(new.values()) != tuple(row) else None


def _frame(row: Sequence[Any]) -> dict[str, Any] | None:
    [data] = row
    return None if is_packed(data) else {"data": squeeze_frame(inflated_frame(data)), "was": data}


def _event(row: Sequence[Any]) -> dict[str, Any] | None:
    kind, *_, note = row
    if note is None or not (isinstance(note, str) or note[:1] == b"{"):
        return None
    stored = pack_note(kind, unpack_note(note))
    return {"note": stored, "was": note} if stored and len(stored) < len(note) else None


def _node(row: Sequence[Any]) -> dict[str, Any] | None:
    [opens] = row
    brief = brief_opening(opens)
    return {"opens": brief, "was": opens} if brief != opens else None
