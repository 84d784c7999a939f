"""What one item says, in lines short enough to quote, each with its facts: computed once per item."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from clew.clients.voices import ACCOUNTS, TOOL, kind_of, passed_on, typed
from clew.core.bounds import ends
from clew.core.caches import per_object
from clew.core.items import Item
from clew.facts.finding import FACT_CHUNK, classify

Voice = Literal["user", "said", "call", "result"]

QUOTED_LINE = 200  # characters of a line that is quoted whole
CLAUSE = 140  # about as much is quoted of a longer one
QUOTED_COMMAND = 160  # characters of a command that is a fact itself
NUMBERED = re.compile(r"\s*\d+(?:→|\t|: |\|)\s*")  # line numbers of a file viewer
# In a line of 200 characters: no more than those are looked at.
BREAK = re.compile(r"(?<=[.;!?])\s+|(?<=[,})\]])\s+|\s{1,200}(?=[({\[-])")
SHELL = ("command", "cmd", "script")
COMMAND_TAIL = re.compile(r"(?<!\s)\s+(?:2>&1|2>/dev/null|\|\s*(?:head|tail)\b).*", re.DOTALL)
MOVE = re.compile(r"cd\s+\S+\s*&&\s*")


class Mention(NamedTuple):
    """A fact in a line, under the key by which it is known everywhere."""

    key: str
    kind: str
    start: int
    stop: int


class FactLine(NamedTuple):
    """A line, or a clause of a long one, and its facts."""

    text: str
    mentions: tuple[Mention, ...]
    keys: tuple[str, ...]  # of the mentions, each once
    words: tuple[str, ...]  # those that are no facts, of a line with facts; each once


@dataclass(frozen=True, slots=True)
class Sheet:
    """One item, read: who speaks, what was done, the lines."""

    voice: Voice
    heading: str  # what a call does, in few words
    call_id: str
    size: int
    lines: tuple[FactLine, ...]
    facts: dict[str, str]  # key -> kind, each once
    folders: tuple[str, ...]  # of its absolute paths, one for each mention


@per_object
def sheet(item: Item) -> Sheet:
    """Read an item, or the two ends of a very long one; what a client says of its own has nothing to keep."""
    voice, said = voice_of(item), ends(typed(item) or passed_on(item))
    heading, texts = _call(item.name, said) if voice == "call" else ("", _texts(said, voice))
    # At every line end there is: none must hide inside a quotation.
    parts = (part.strip() for text in texts for part in text.splitlines())
    lines = tuple(line for part in parts if part for line in _clauses(part))
    if heading.startswith("$ ") and lines:
        lines = (_with_command(lines[0]), *lines[1:])
    facts = {m.key: m.kind for line in lines for m in line.mentions}
    folders = tuple(_folders(lines)) if "path" in facts.values() else ()
    return Sheet(voice, heading, item.call_id, len(item.text) + 1, lines, facts, folders)


def _folders(lines: Sequence[FactLine]) -> Iterator[str]:
    for line in lines:
        for m in line.mentions:
            if m.kind == "path" and line.text[m.start] == "/":
                yield line.text[m.start : m.stop].rpartition("/")[0]


def _with_command(line: FactLine) -> FactLine:
    """The heading of a shell call, with the command itself as a fact."""
    moved = MOVE.match(line.text, 2)
    start = moved.end() if moved else 2
    cut = COMMAND_TAIL.search(line.text, start)
    stop = cut.start() if cut else len(line.text)
    command = line.text[start:stop]
    if not (8 < len(command) <= QUOTED_COMMAND and " " in command):
        return line
    mentions = (Mention(command, "command", start, stop), *line.mentions)
    return line._replace(mentions=mentions, keys=_keys(mentions))


def voice_of(item: Item) -> Voice:
    """Who speaks."""
    if item.kind == "call":
        return "call"
    if typed(item):
        return "user"
    # What a provider's own tools return, or a picture shows, is nobody's wish, whatever role it comes under.
    kind = kind_of(item)
    is_told = item.role in ("assistant", "system") or kind in ACCOUNTS
    return "said" if is_told and kind not in TOOL else "result"


def key_of(kind: str, text: str) -> str:
    """A path is known by its last two names: the same file is written in many ways."""
    if kind != "path":
        return text
    cut = text.rfind("/", 0, text.rfind("/"))
    return text[cut + 1 :] if cut > 0 else text.lstrip("./")


def _texts(text: str, voice: Voice) -> Iterator[str]:
    if voice == "result" and text[:1] in "{[" and (value := _parsed(text)) is not None:
        yield from _leaves(value, "")
        return
    for raw in text.splitlines():  # at every line end there is: none must hide inside a quotation
        numbered = NUMBERED.match(raw) if voice == "result" else None
        if line := (raw[numbered.end() :] if numbered else raw).strip():
            yield line


def _call(name: str, said: str) -> tuple[str, list[str]]:
    """The heading of a call, and its arguments as lines."""
    value = _parsed(said)
    words = name.replace("__", " ").replace("_", " ")
    if not isinstance(value, dict):
        texts = list(_texts(said, "call"))
        return words, texts
    command = next((str(value[k]) for k in SHELL if isinstance(value.get(k), str | list)), "")
    short = [
        str(v) for k, v in value.items() if k not in SHELL and isinstance(v, str | int) and len(str(v)) <= QUOTED_LINE
    ]
    inline = [v for v in short if "\n" not in v]
    first = f"$ {command}" if command else " ".join([words, *inline])
    rest = [
        line
        for v in value.values()
        if not isinstance(v, str) or "\n" in v or len(v) > QUOTED_LINE
        for line in _leaves(v, "")
    ]
    notes = inline if command else []
    head, *more = [line for line in first.splitlines() if line.strip()] or [words]
    return head, [head, *notes, *more, *([] if command else rest)]


def _leaves(value: Any, name: str) -> Iterator[str]:
    """A JSON value as lines of `name: value`; the scalars of one object share a line."""
    if isinstance(value, str):
        yield from (f"{name} {part}".strip() for part in value.splitlines() if part.strip())
    elif isinstance(value, list):
        if all(not isinstance(v, dict | list) for v in value):
            yield f"{name}: {', '.join(map(str, value))}"
        else:
            for v in value:
                yield from _leaves(v, name)
    elif isinstance(value, dict):
        flat = [f"{_words(k)}: {v}" for k, v in value.items() if not isinstance(v, dict | list) and "\n" not in str(v)]
        if flat:
            yield f"{name} {', '.join(flat)}".strip()
        for k, v in value.items():
            if isinstance(v, dict | list) or "\n" in str(v):
                yield from _leaves(v, _words(k))
    elif not isinstance(value, bool):
        yield f"{name} {value}".strip()


def _words(key: str) -> str:
    return key.replace("_", " ")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _clauses(text: str) -> Iterator[FactLine]:
    """A line with its facts; a long one in pieces that break between words."""
    if len(text) <= QUOTED_LINE:
        yield _line(text)
        return
    start = 0
    while start < len(text):
        stop = _stop(text, start)
        if piece := text[start:stop].strip():
            yield _line(piece)
        start = stop


def _stop(text: str, start: int) -> int:
    if len(text) - start <= QUOTED_LINE:
        return len(text)
    best = 0
    for match in BREAK.finditer(text, start + CLAUSE // 2, start + QUOTED_LINE):
        best = match.end()
        if best >= start + CLAUSE:
            break
    if not best:
        best = text.rfind(" ", start + CLAUSE // 2, start + QUOTED_LINE) + 1
    return best or start + QUOTED_LINE


def _line(text: str) -> FactLine:
    found = []
    for match in FACT_CHUNK.finditer(text):
        if parts := classify(match.group()):
            at = match.start()
            for kind, start, stop in parts:
                found.append(Mention(key_of(kind, text[at + start : at + stop]), kind, at + start, at + stop))
    return (
        FactLine(text, tuple(found), _keys(found), _words_beside(text, found)) if found else FactLine(text, (), (), ())
    )


def _keys(mentions: Sequence[Mention]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([m.key for m in mentions])) if len(mentions) > 1 else (mentions[0].key,)


def _words_beside(text: str, mentions: Sequence[Mention]) -> tuple[str, ...]:
    """The words of a line that are no part of a fact."""
    parts, end = [], 0
    for m in mentions:
        parts.append(text[end : m.start])
        end = max(end, m.stop)
    return tuple(dict.fromkeys(LOWER_WORD.findall(" ".join((*parts, text[end:])).lower())))


LOWER_WORD = re.compile(r"[a-z]{4,}")
