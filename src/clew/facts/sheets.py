"""What one item says, in lines short enough to quote, each with its facts: computed once per item."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from clew.clients.voices import ACCOUNTS, TOOL, kind_of, passed_on, typed
from clew.core.bounds import ends
from clew.core.caches import per_object, remembers
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
RUNS = "$ "  # before a command
COMMAND_TAIL = re.compile(r"(?<!\s)\s+(?:2>&1|2>/dev/null|\|\s*(?:head|tail)\b).*", re.DOTALL)
MOVE = re.compile(r"cd\s+\S+\s*&&\s*")


class FactLine(NamedTuple):
    """A line, or a clause of a long one, and its facts under the keys by which they are known everywhere."""

    text: str
    facts: Mapping[str, str]  # key -> kind


@dataclass(frozen=True, slots=True)
class Sheet:
    """One item, read: who speaks, and the lines."""

    voice: Voice
    size: int
    lines: tuple[FactLine, ...]
    facts: dict[str, str]  # key -> kind, each once


@per_object
def sheet(item: Item) -> Sheet:
    """Read an item, or the two ends of a very long one; what a client says of its own has nothing to keep."""
    voice, said = voice_of(item), ends(typed(item) or passed_on(item))
    texts = _call(item.name, said) if voice == "call" else _texts(said, voice)
    # At every line end there is: none must hide inside a quotation.
    parts = (part.strip() for text in texts for part in text.splitlines())
    lines = tuple(line for part in parts if part for line in _clauses(part))
    if voice == "call" and lines and lines[0].text.startswith(RUNS):
        lines = (_with_command(lines[0]), *lines[1:])
    facts = {key: kind for line in lines for key, kind in line.facts.items()}
    return Sheet(voice, len(item.text) + 1, lines, facts)


def _with_command(line: FactLine) -> FactLine:
    """The first line of a shell call, with the command itself as a fact."""
    moved = MOVE.match(line.text, len(RUNS))
    start = moved.end() if moved else len(RUNS)
    cut = COMMAND_TAIL.search(line.text, start)
    command = line.text[start : cut.start() if cut else len(line.text)]
    if not (8 < len(command) <= QUOTED_COMMAND and " " in command):
        return line
    return line._replace(facts={command: "command", **line.facts})


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


def _call(name: str, said: str) -> list[str]:
    """A call as lines: its command, or its name with its short arguments, then the others."""
    value = _parsed(said)
    words = name.replace("__", " ").replace("_", " ")
    if not isinstance(value, dict):
        return list(_texts(said, "call"))
    command = next((str(value[k]) for k in SHELL if isinstance(value.get(k), str | list)), "")
    short = [
        str(v) for k, v in value.items() if k not in SHELL and isinstance(v, str | int) and len(str(v)) <= QUOTED_LINE
    ]
    inline = [v for v in short if "\n" not in v]
    first = f"{RUNS}{command}" if command else " ".join([words, *inline])
    head, *more = [line for line in first.splitlines() if line.strip()] or [words]
    if command:
        return [head, *inline, *more]
    rest = (v for v in value.values() if not isinstance(v, str) or "\n" in v or len(v) > QUOTED_LINE)
    return [head, *more, *(line for v in rest for line in _leaves(v, ""))]


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
    return FactLine(text, {key: kind for chunk in FACT_CHUNK.findall(text) for key, kind in _keyed(chunk)})


@remembers(1 << 16)
def _keyed(chunk: str) -> Sequence[tuple[str, str]]:
    """The facts in a chunk without spaces: key and kind."""
    return [(key_of(kind, chunk[start:stop]), kind) for kind, start, stop in classify(chunk)]
