"""Events to rows and back: the one place that knows how an event lies in its columns."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from clew.core.items import Edit, Node, frozen
from clew.errors import BadRequest
from clew.facts.chapters import Chapter
from clew.store.notes import unpack_note
from clew.store.packing import unpack
from clew.store.records import Began, Call, ClientEdit, Event, EventRow, Pin, Revert, Said, Switch, Usage
from clew.store.shapes import read_note


def row_of(event: Event) -> EventRow:
    """The columns of an event."""
    match event:
        case Said(nodes):
            return EventRow("said", new=_ids(nodes))
        case ClientEdit(start, stop, nodes, alias, switch):
            note = {"alias": dict(alias)} if alias or switch else {}
            if switch:
                note["switch"] = asdict(switch)
            return EventRow("client", start, stop, new=_ids(nodes), note=note or None)
        case Edit(by, old, new, evidence, spent):
            return EventRow("edit", old=old, new=_ids(new), note={"by": by, "evidence": dict(evidence), "spent": spent})
        case Chapter(ids):
            return EventRow("chapter", old=ids, note={name: getattr(event, name) for name in _CHAPTER})
        case Pin(ids, off):
            return EventRow("unpin" if off else "pin", old=ids)
        case Began(session, cause, method):
            return EventRow("session", note={"session": session, "cause": cause, "method": method})
        case Revert(ids, held, sessions):
            return EventRow("revert", old=ids, new=held, note={"sessions": sessions} if sessions else None)
        case Usage(seq, usage, cost):
            return EventRow("usage", start=seq, note={"usage": dict(usage), "cost": cost})
        case Call():
            return EventRow("call", stop=event.said, note={name: getattr(event, name) for name in _CALL})


def event_of(row: EventRow, branch: str, seq: int, node: Callable[[str], Node]) -> Event:
    """The event that lies in these columns, whose note was read. Raises `BadRequest` where they are those of none."""
    note = row.note or {}
    new = tuple(map(node, row.new)) if row.kind in ("said", "client", "edit") else ()
    match row.kind:
        case "said":
            return Said(new)
        case "client":
            switch = Switch(**note["switch"]) if "switch" in note else None
            return ClientEdit(row.start or 0, row.stop or 0, new, note.get("alias", {}), switch)
        case "edit":
            if not row.old or not new or len({*row.new}) < len(new):
                raise BadRequest("an edit replaces nothing, or by nothing, or by the same twice")
            return Edit(note["by"], tuple(row.old), new, frozen(note["evidence"]), note["spent"])
        case "chapter":
            return Chapter(tuple(row.old), **{**note, **{name: tuple(note[name]) for name in ("texts", "findings")}})
        case "pin" | "unpin":
            return Pin(tuple(row.old), row.kind == "unpin")
        case "session":
            return Began(**note)
        case "revert":
            return Revert(tuple(row.old), tuple(row.new), tuple(note.get("sessions", ())))
        case "usage":
            return Usage(row.start or 0, note["usage"], note.get("cost"))
        case "call":
            return Call(branch=branch, seq=seq, said=row.stop or 0, **note)
    raise BadRequest(f"unknown event kind {row.kind!r}")


_CHAPTER = ("texts", "author", "findings", "asked", "answer", "spent", "cost")
_CALL = ("frame", "model", "format", "digest", "predicted", "limit", "exact", "cached", "shadow", "due", "window")


def call_of(branch: str, seq: int, said: int, note: bytes | str, at: float, usage: Any = None) -> Call:
    """A call, read back."""
    return Call(branch=branch, seq=seq, said=said, at=at, usage=usage, **note_of("call", note))


def note_of(kind: str, stored: bytes | str | None) -> dict[str, Any]:
    """What an event that is no edit notes, as its column has it. Raises `BadRequest` where it is no event."""
    return read_note(kind, unpack_note(stored)).note


def read_row(
    kind: str, start: int | None, stop: int | None, old: bytes, new: bytes, note: bytes | str | None
) -> EventRow:
    """An event as its columns have it. Raises `BadRequest` where it is none."""
    was, now = unpack(old), unpack(new)
    return EventRow(kind, start, stop, was, now, read_note(kind, unpack_note(note), was, now).note or None)


def _ids(nodes: Sequence[Node]) -> list[str]:
    return [n.id for n in nodes]
