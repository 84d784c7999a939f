"""The clients that are known, as their files tell of them."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any, Literal, NamedTuple

from clew.core.own_tools import RECALL

# How a summary is to be written: as text, at length or briefly, in a tag of this name, or as an item that only its
# provider reads.
SummaryForm = Literal["text", "brief", "summary", "state_snapshot", "item"]


class KnownClient(NamedTuple):
    """A program that talks to models."""

    name: str
    prompt: re.Pattern[str]  # its system prompt has this near its beginning
    compacts: Mapping[str, float]  # by itself: see `threshold`
    command: str  # that starts it, by which `clew install` names it
    tools: str  # how it begins the names of tools of an MCP server that is called clew
    replaces: str  # what an answer to a hook has in place of a tool's result

    def threshold(self, window: int, answer: int = 0) -> int | None:
        """Above how many tokens of a request it compacts by itself, unless somebody set it otherwise.

        At a `share` of its window, or where so many are `left` beside the `answer` that it asks for, at most so long:
        whichever comes first.
        """
        if not self.compacts:
            return None
        share, most = int(self.compacts.get("share", 1.0) * window), int(self.compacts.get("answer", 0))
        free = window - int(self.compacts.get("left", 0)) - min(answer or most, most)
        return min(share, free) if free > 0 else share


class Wrap(NamedTuple):
    """Marks around words of a client; those `around` what a person typed are no more than that."""

    kind: str
    opening: str
    closing: str
    passing: bool  # put beside a message in one turn, taken away in another
    around: bool
    endless: bool  # without its closing it goes to the end of the message
    leads: int  # so many texts after it in the same message are of its kind, where the message's text begins with it
    example: str


class MessageMark(NamedTuple):
    """A whole message of a client, by how it begins."""

    kind: str
    begins: str
    pattern: re.Pattern[str] | None
    after: re.Pattern[str] | None  # what the answer before it has: without that, somebody typed it
    moving: bool  # said anew before each question
    leads: int  # so many texts after it in the same message are of its kind
    ends: str  # how what was typed begins behind it, with what the pattern found in place of {}
    example: str

    def typed_at(self, text: str) -> int:
        """Where what was typed begins behind it; its end if nothing was."""
        found = self.pattern.match(text) if self.ends and self.pattern else None
        at = text.rfind(self.ends.format(found[1])) if found else -1
        return at if at >= 0 else len(text)

    def begins_in(self, text: str) -> bool:
        """Whether a text begins so."""
        return text.startswith(self.begins) and (self.pattern is None or self.pattern.match(text) is not None)


class Sentence(NamedTuple):
    """A message that anybody could type: it is the client's in its own conversations alone."""

    kind: str
    role: str
    first: bool  # only where the history begins with it
    everywhere: bool  # in any client's
    before: str  # only where this is said next
    answers: str  # what it answers is of this kind, where a history begins with that
    client: str


class ResultFrame(NamedTuple):
    """What a client puts around what a tool printed."""

    before: re.Pattern[str]
    after: re.Pattern[str]
    example: str


class Side(NamedTuple):
    """A request beside the conversation, by how its newest message or its system prompt begins."""

    begins: str
    system: str
    form: SummaryForm | None  # of the summary that it asks for; None: it asks for a name
    example: str


FILES: list[dict[str, Any]] = [
    tomllib.loads(file.read_text(encoding="utf-8"))
    for file in sorted(files("clew.clients").iterdir(), key=lambda file: file.name)
    if file.name.endswith(".toml")
]


def slug(name: str) -> str:
    """The name of a client as files and commands have it."""
    return name.lower().replace(" ", "-")


def name_in(command: str, tool: str = RECALL) -> str:
    """The name of a tool of `clew mcp` in a client; its own where nobody knows how the client names it."""
    return (BY_COMMAND[command].tools if command in BY_COMMAND else "") + tool


def _rows(table: str) -> Iterator[dict[str, Any]]:
    return (row | {"client": held.get("name", "")} for held in FILES for row in held.get(table, ()))


def _wrap(row: dict[str, Any]) -> Wrap:
    tag = row.get("tag")
    opening, closing = (f"<{tag}>", f"</{tag}>") if tag else (row["open"], row.get("close", ""))
    passing, around, endless = (row.get(trait, False) for trait in ("passing", "around", "endless"))
    leads, example = row.get("leads", 0), row["example"]
    return Wrap(row["kind"], opening, closing, passing, around, endless, leads, example)


def _message(row: dict[str, Any]) -> MessageMark:
    pattern, after = (re.compile(row[key]) if key in row else None for key in ("pattern", "after"))
    moving, leads = row.get("moving", False), row.get("leads", 0)
    return MessageMark(row["kind"], row["begins"], pattern, after, moving, leads, row.get("ends", ""), row["example"])


CLIENTS = [
    KnownClient(
        held["name"],
        re.compile(held["prompt"]),
        held.get("compacts", {}),
        *(held.get(key, "") for key in ("command", "tools", "replaces")),
    )
    for held in sorted(FILES, key=lambda held: held.get("order", 0))
    if "prompt" in held
]
BY_COMMAND = {client.command: client for client in CLIENTS if client.command}
# Clients that go on well with tools which they did not send: docs/gateway.md has what was measured, and when.
AGENTS = tuple(prefix for held in FILES for prefix in held.get("agents", ()))  # by what they call themselves in headers
PROMPTS = tuple(held["offers"].encode() for held in FILES if "offers" in held)
RUNNING = frozenset(place for held in FILES for place in held.get("runs", ()))  # files by which they run commands
WRAPS = [_wrap(row) for row in _rows("wrap")]
RESULT_FRAMES = [
    ResultFrame(re.compile(row.get("before", "")), re.compile(rf"{row['after']}\s*\Z"), row["example"])
    for row in _rows("result")
]
SIDES = [Side(r.get("begins", ""), r.get("system", ""), r.get("form"), r["example"]) for r in _rows("side")]
# What asks for a summary or a name is no person's either.
MESSAGES = [
    *sorted(map(_message, _rows("message")), key=lambda row: not row.ends),
    *(
        _message(row | {"kind": "summary-request" if "form" in row else "title-request"})
        for row in _rows("side")
        if "begins" in row
    ),
]
BEHIND_SUMMARIES = [row["begins"] for row in _rows("behind")]
SENTENCES: dict[str, list[Sentence]] = {}
for _row in _rows("sentence"):
    SENTENCES.setdefault(_row["says"], []).append(
        Sentence(
            _row["kind"],
            _row.get("role", "user"),
            _row.get("first", False),
            _row.get("everywhere", False),
            _row.get("before", ""),
            _row.get("answers", ""),
            slug(_row["client"]),
        )
    )
