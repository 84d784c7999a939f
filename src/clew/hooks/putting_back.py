"""What a client's own compaction dropped, from the session file that each hook names: rules first, then facts.

Where the file has the summary, what it tells is left out. Claude Code asks before it has written that down: there, all
that is most likely needed is told, as far as it fits.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from clew.audit.hiding import Masking
from clew.audit.kinds import FactKind, NamedFact, facts_in
from clew.audit.survival import Part, ShownText, shown
from clew.clients.voices import is_program_made, typed
from clew.core.items import Item
from clew.errors import NotFound
from clew.hooks.pending import DONE, UNCHANGED, lines_of, note
from clew.mcp.telling import data
from clew.screens.lines import words
from clew.sessions.transcripts import Transcript, read_all
from clew.text.quoting import ASSISTANT, quoted

BACK_CHARACTERS = 7_000  # of all that is put back: clients cut what is longer than 10,000
REQUESTS, REQUEST_LENGTH = 8, 300  # the newest requests, and characters of each
# Of each kind at most so many, the newest; rules are all told, from the first. No numbers: without what they are
# of they tell nothing.
TOLD_KINDS: Mapping[FactKind, tuple[str, int]] = {
    "rules": ("rules that the user gave", 60),
    "decisions": ("decided", 15),
    "paths": ("files", 40),
    "commands": ("commands that were run", 15),
    "errors": ("errors", 15),
    "links": ("links", 15),
    "names": ("names", 40),
}
BULLETED: tuple[FactKind, ...] = ("rules", "decisions", "commands")
MORE = "The tools %s and %s show everything that was said, word for word."


def dropped_in(event: Mapping[str, Any], *tools: str) -> str:
    """What to put back in the session of an event; nothing where nothing is known to be missing.

    `tools` are the names under which its model may recall and search.
    """
    path = Path(str(event.get("transcript_path") or ""))
    if not path.is_file():
        raise NotFound(f"{path}: the session file that the client names is not there")
    session = next(iter(read_all(path.read_bytes(), path.name)), None)
    is_told = event.get("hook_event_name") == "SessionStart"  # others only said that they might compact
    if session is None or not (is_told or len(session.compactions) > lines_of(event).count(DONE)):
        note(event, UNCHANGED)
        return ""
    told = dropped(session, is_told, tools=tools)
    note(event, DONE)
    return told


def dropped(session: Transcript, just_now: bool = True, size: int = BACK_CHARACTERS, tools: Sequence[str] = ()) -> str:
    """What the newest compaction of a session dropped, in a bounded number of characters.

    One that was made just now may not be in the file yet.
    """
    items = session.items()
    stop, view = _seen(session, items, just_now)
    said = [item for one in items[:stop] for item in one]
    mask = Masking(said, [])
    users = {fact.text for item in said if typed(item) for fact in facts_in(item)}
    lines: list[str] = []
    for kind, (title, most) in TOLD_KINDS.items():
        found = [(mask(fact), fact in users) for fact in _lost(kind, said, view)[-most:]]
        lost = [fact if is_theirs else quoted(fact, ASSISTANT) for fact, is_theirs in found]
        if lost and kind in BULLETED:
            lines += [f"{title}:", *(f"- {fact}" for fact in lost)]
        elif lost:
            lines.append(f"{title}: {', '.join(lost)}")
        if kind == "rules":
            lines += _requests(said, view, mask)
    if not lines:
        return ""
    about = "what was said before this conversation was compacted, and its summary may lack"
    return data("\n".join(lines), about, size, MORE % (tools[1], tools[0]) if tools else "")


def _seen(session: Transcript, items: Sequence[Sequence[Item]], just_now: bool) -> tuple[int, ShownText]:
    """How many messages are out of view, and the text that is in their place."""
    if not session.compactions:
        return len(items), ShownText([])
    place, why = session.compactions[-1]
    if just_now and any(not _is_made(item) for one in items[place:] for item in one):
        return len(items), ShownText([])  # it went on since: this is an earlier compaction
    stayed = [text for one in items[place - why.kept :] for item in one for text in shown(item)]
    return place - why.kept, ShownText([why.summary or "", *stayed])


def _is_made(item: Item) -> bool:
    return item.role in ("user", "system") and is_program_made(item)


def _lost(kind: FactKind, said: Iterable[Item], view: ShownText) -> list[str]:
    """The facts of a kind that are not in view, the one that was named last at the end."""
    found: dict[str, None] = {}
    for item in said:
        for fact in facts_in(item):
            if fact.kind == kind:
                found.pop(fact.text, None)
                found[fact.text] = None
    part = Part(NamedFact(kind, text) for text in found)
    kept = part.in_view(view)[kind]
    return [text for text in found if text in part.facts[kind] and text not in kept]


def _requests(said: Sequence[Item], view: ShownText, mask: Masking) -> Iterator[str]:
    asked = [text for item in said if (text := typed(item).strip())]
    newest = [words(mask(text), REQUEST_LENGTH) for text in asked[-REQUESTS:] if text not in view.text]
    if newest:
        yield "asked for, the newest last:"
        yield from (f"- {text}" for text in newest)
