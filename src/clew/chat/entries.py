"""What a conversation is on the screen: entries, each of which is text and nothing but text."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from clew.agent.tools import shown
from clew.clients.voices import typed
from clew.core.items import Item, Node
from clew.core.view import View, originals
from clew.facts.coverage import STATES
from clew.screens.lines import label, words
from clew.sessions.composition import recall_id
from clew.sessions.diffs import Diff
from clew.steps.worklog.blocks import Block, blocks
from clew.tokens.media import is_image

EntryKind = Literal["you", "agent", "thought", "call", "result", "failed", "note", "problem", "stand-in", "page"]

ENTRY_MARKS: Mapping[EntryKind, str] = {
    "you": ">",
    "agent": " ",
    "thought": "·",
    "call": "▸",
    "result": " ",
    "failed": "✗",
    "note": "◇",
    "problem": "!",
    "stand-in": "▣",
    "page": " ",
}
BRIEF_LINES = 8  # lines of a result that are shown at first
WIDE = 1_200  # and characters
OPENED_CHARACTERS = 200_000  # characters of anything that is opened
ARGUMENTS = 300  # characters of a call
PICTURE = "\u2190-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
TONES = "\U0001f3fb-\U0001f3ff"
# What makes several pictures one, or one another: as wide as a terminal likes, so nobody can count on it.
JOINS = re.compile(f"(?<=[{PICTURE}])[\u200d\ufe0f{TONES}]+|\ufe0f")
ALONE = re.compile(f"[{TONES}]")


@dataclass(slots=True, eq=False)
class ScreenEntry:
    """Something on the screen; some have more to them, which is there once they are opened."""

    kind: EntryKind
    text: str
    opened_text: str = ""  # shown instead, once it is open
    id: str = ""  # of a stand-in, by which what it stands for is recalled
    open: bool = False

    @property
    def opens(self) -> bool:
        """Whether there is more to it."""
        return bool(self.opened_text or self.id)

    @property
    def visible(self) -> str:
        return self.opened_text if self.open else self.text


def plain(text: str) -> str:
    """Text that a terminal shows and does not obey, in which each character is as wide as we think."""
    return shown(ALONE.sub("�", JOINS.sub("", text)))


def brief(text: str, size: int) -> str:
    """As much of a text as goes into a line."""
    return words(plain(text), size)


def called(name: str, arguments: Mapping[str, Any] | str) -> ScreenEntry:
    """A call of a tool."""
    given = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    text = f"{name} {given}"
    return ScreenEntry("call", brief(text, ARGUMENTS), text[:OPENED_CHARACTERS] if len(text) > ARGUMENTS else "")


def came(text: str, failed: bool = False) -> ScreenEntry:
    """What a tool gave: its first lines, and the rest on demand."""
    kind: EntryKind = "failed" if failed else "result"
    lines = text.rstrip().split("\n")
    head = "\n".join(lines[:BRIEF_LINES])[:WIDE]
    if head == text.rstrip():
        return ScreenEntry(kind, head or "(nothing)")
    rest = f"… {len(lines):,} lines, {len(text):,} characters in all; /show opens it"
    return ScreenEntry(kind, f"{head}\n{rest}", bounded(text))


def bounded(text: str) -> str:
    """As much of a text as can be looked at."""
    if len(text) <= OPENED_CHARACTERS:
        return text
    return f"{text[:OPENED_CHARACTERS]}\n… {len(text) - OPENED_CHARACTERS:,} characters more: `clew recall` has all"


def history(view: View) -> Iterator[ScreenEntry]:
    """A conversation as its model sees it."""
    by_id, chapters = view.edits.made, blocks(view)
    for at, node in enumerate(view.nodes):
        edit = by_id.get(node.id)
        if edit is None:
            yield of(node.item)
        else:
            chapter = chapters[at][0] if at in chapters else None
            said = [view.behind.get(id) for id in originals(edit.sources, by_id)]
            yield standing(recall_id(edit, view.digests), chapter, [n for n in said if n is not None])


def of(item: Item) -> ScreenEntry:
    """Something that was said."""
    match item.kind:
        case "call":
            return called(item.name, item.text)
        case "result":
            return came(item.text)
        case "reasoning":
            return ScreenEntry("thought", item.text or "(a thought that only its provider can read)")
        case "summary":
            return ScreenEntry("stand-in", item.text)
        case "media" | "opaque":
            return ScreenEntry("note", "(a picture)" if is_image(item.wire or {}) else f"({item.kind})")
    return ScreenEntry("agent" if item.role == "assistant" else "you" if typed(item) else "note", item.text)


def standing(id: str, chapter: Block | None, said: Sequence[Node], sizes: str = "") -> ScreenEntry:
    """A stand-in, before it is opened: what became what, and the way to it."""
    if chapter is None:
        what = label(said[0].item) if len(said) == 1 else f"{len(said):,} items"
        became = f"{what} was shortened" if len(said) == 1 else f"{what} were shortened"
    else:
        by = f" by {chapter.name}" if chapter.author else ""
        became = f"{chapter.title} became a summary{by}"
    return ScreenEntry("stand-in", f"{became}{sizes}; /show {id}", id=id)


def opened(entry: ScreenEntry, nodes: Iterable[Node]) -> str:
    """What a stand-in stands for, in full."""
    said = [f"{ENTRY_MARKS[of(n.item).kind]} {of(n.item).opened_text or of(n.item).text}" for n in nodes]
    head = f"{entry.text.partition(';')[0]}; word for word:"
    return bounded("\n".join([head, *said, f"(end of {entry.id})"]))


def kept(found: Diff) -> str:
    """What became of the facts that a compaction took out of view."""
    return "facts: " + ", ".join(f"{found.coverage.count(state):,} {state}" for state in STATES)
