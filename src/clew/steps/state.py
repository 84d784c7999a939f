"""Where the work stands, told from a history by code alone: what was asked, decided, done to files, run, and broken."""

import re
from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.decorations import is_program_made, undecorated
from clew.facts.sheets import FENCED
from clew.items import Item
from clew.steps.dedupe import COMMANDS, PATHS, WHOLE_TEXTS
from clew.steps.lines import clip
from clew.steps.outcome import cause, failed, outcome
from clew.steps.shorten import parsed

LONG = 240  # characters of a quotation
MANY = 40  # entries a section keeps, the newest

NEEDED = ("the user asked", "and said of how", "tasks")  # the sections without which nobody can go on
DONE = ("done", "completed", "cancelled")

_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_BINDS = re.compile(
    r"(?i)\b(?:must|never|always|do not|don't|dont|only|avoid|without|make sure|ensure|prefer|required?|instead"
    r"|not allowed|should(?:n't| not)?|no more|keep|please use|at most|at least|by default)\b"
)
_STRICT = re.compile(r"(?i)\b(?:must|never|always|do not|don't|dont|only|at most|at least|not allowed|required?)\b")
_APPROVES = re.compile(
    r"(?i)\b(?:approved?|go ahead|you may|permission granted|lgtm|looks good to me|ship it|merge it|proceed"
    r"|yes,? (?:please|do|go|you can))\b"
)
_DECIDES = re.compile(
    r"(?i)\b(?:decided|decision|chose|chosen|going with|go with|we'll use|i'll use|will use|opted|settled on|instead of"
    r"|root cause|turns out|the fix|agreed|from now on|now (?:use|run|live)s?|fixed (?:at|to)|becomes|will name"
    r"|is called)\b"
)
_BOX = re.compile(r"^\s*[-*]\s*\[([ xX~-])\]\s+(.+)$", re.MULTILINE)
_CHANGES = re.compile(r"(?i)edit|patch|replace|update|insert")
_REMOVES = re.compile(r"(?i)delete|remove")
_STATES = {"x": "done", "X": "done", " ": "open", "~": "in progress", "-": "in progress"}


@dataclass(frozen=True, slots=True)
class File:
    """What was last done to a file, and how often something was."""

    path: str
    last: str
    times: int


@dataclass(slots=True)
class State:
    """All of it; quotations are verbatim, cut to size."""

    asked: list[str] = field(default_factory=list)
    binding: list[str] = field(default_factory=list)
    approved: list[str] = field(default_factory=list)
    decided: list[str] = field(default_factory=list)
    tasks: list[tuple[str, str]] = field(default_factory=list)  # (state, what)
    files: dict[str, File] = field(default_factory=dict)  # in the order of their last use
    commands: dict[str, str] = field(default_factory=dict)  # the last outcome of each
    errors: dict[str, str] = field(default_factory=dict)  # what failed and how, until it went well
    fixed: list[tuple[str, str]] = field(default_factory=list)  # (what failed, what was changed before it went well)
    running: dict[str, str] = field(default_factory=dict)
    tools: Tally[str] = field(default_factory=Tally)
    said: Tally[str] = field(default_factory=Tally)


def state_of(items: Sequence[Item]) -> State:
    """Read a history from its beginning."""
    state = State()
    calls: dict[str, Item] = {}
    changed: list[str] = []  # files since the last failure
    for item in items:
        state.said[_who(item)] += 1
        if item.kind == "call":
            calls[item.call_id] = item
            state.tools[item.name] += 1
            _take_call(state, item, changed)
        elif item.kind == "result" and item.call_id in calls:
            _take_result(state, calls[item.call_id], item, changed)
        elif item.kind == "text" and item.role in ("user", "assistant"):
            _take_text(state, item)
    return state


def _who(item: Item) -> str:
    return {"call": "tool calls", "result": "tool results"}.get(item.kind) or f"{item.role} {item.kind}s"


def _take_text(state: State, item: Item) -> None:
    text = undecorated(item.text)
    if boxes := _BOX.findall(text):
        state.tasks = [(_STATES[box], clip(what, LONG)) for box, what in boxes]
    if item.role == "user":
        if text.startswith(FENCED) or is_program_made(text):
            return
        if text:
            state.asked.append(text)
        for said in sentences(text):
            if _BINDS.search(said):
                state.binding.append(said)
            elif _APPROVES.search(said):
                state.approved.append(said)
    else:
        state.decided += [s for s in sentences(text) if _DECIDES.search(s)]


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text that are short enough to quote."""
    for part in _SENTENCE.split(text):
        if 12 <= len(part := part.strip(" -*#>\t")) <= LONG:
            yield part


def _take_call(state: State, call: Item, changed: list[str]) -> None:
    given = parsed(call.text)
    if not isinstance(given, Mapping):
        return
    if path := _first(given, PATHS):
        last = _act(call.name, given)
        if last != "read":
            changed.append(path)
        before = state.files.pop(path, None)
        # What was changed and then only read is still best known for the change.
        kept = before.last if before and last == "read" else last
        state.files[path] = File(path, kept, (before.times if before else 0) + 1)
    for key in ("todos", "plan", "tasks"):
        if isinstance(given.get(key), list) and (tasks := list(_tasks(given[key]))):
            state.tasks = tasks
    command = _first(given, COMMANDS)
    if command and (given.get("run_in_background") is True or command.rstrip().endswith("&")):
        state.running[call.call_id] = command


def _take_result(state: State, call: Item, result: Item, changed: list[str]) -> None:
    given = parsed(call.text)
    what = _first(given, COMMANDS) if isinstance(given, Mapping) else ""
    what = what or f"{call.name} {_first(given, PATHS) if isinstance(given, Mapping) else ''}".strip()
    how = clip(outcome(result), LONG // 2)
    if _first(given, COMMANDS) if isinstance(given, Mapping) else "":
        state.commands.pop(what, None)
        state.commands[what] = how
    if failed(result):
        state.errors.pop(what, None)
        why = clip(cause(result), LONG // 2)
        state.errors[what] = how if not why or why in how else f"{how}; {why}"
        changed.clear()
    elif what in state.errors:
        how = state.errors.pop(what)
        by = ", ".join(dict.fromkeys(changed)) or "itself"
        state.fixed.append((f"{clip(what, LONG // 2)}: {how}", by))


def _first(given: Any, keys: Sequence[str]) -> str:
    for key in keys:
        value = given.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
            return " ".join(value)
    return ""


def _act(tool: str, given: Mapping[str, Any]) -> str:
    """What a call does to the file it names."""
    name = " ".join((tool, str(given.get("command", ""))[:20]))
    if _REMOVES.search(name):
        return "deleted"
    if _CHANGES.search(name) or "old_string" in given or "old_str" in given:
        return "edited"
    return "written" if any(key in given for key in WHOLE_TEXTS) else "read"


def _tasks(entries: list[Any]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        if isinstance(entry, Mapping):
            what = _first(entry, ("content", "step", "title", "task", "description"))
            if what:
                yield str(entry.get("status") or "open").replace("_", " "), clip(what, LONG)


# --- in words -------------------------------------------------------------------------------------------------------


def sections(state: State) -> Iterator[tuple[str, list[str]]]:
    """(heading, lines) in order of weight; the newest lines of each come first."""
    asked = [clip(text, 2 * LONG) for text in state.asked]
    yield "the user asked", [f'"{a}"' for a in dict.fromkeys([*asked[:1], *asked[:0:-1]])]
    strict_first = sorted(dict.fromkeys(reversed(state.binding)), key=lambda said: not _STRICT.search(said))
    yield "and said of how", [f'"{said}"' for said in strict_first[:MANY]]
    yield "and approved", [f'"{said}"' for said in _newest(state.approved)]
    yield "tasks", [f"{how}: {what}" for how, what in sorted(state.tasks, key=lambda task: task[0] in DONE)]
    yield "still running", _newest([clip(c, LONG) for c in state.running.values()])
    yield "still failing", [f"{clip(what, LONG // 2)}: {how}" for what, how in _last(state.errors)]
    yield "fixed", [f"{what} (after changes to {clip(by, LONG // 2)})" for what, by in reversed(state.fixed)]
    yield "decided", _newest(state.decided)
    yield (
        "files",
        [
            f"{clip(f.path, LONG)} {f.last}" + (f", {f.times} times" if f.times > 1 else "")
            for _, f in _last(state.files)
        ],
    )
    yield "ran", [f"$ {clip(what, LONG // 2)} -> {how}" for what, how in _last(state.commands)]


def counts(state: State) -> str:
    """How much was said by whom, and which tools were called how often."""
    said = ", ".join(f"{n:,} {who}" for who, n in sorted(state.said.items()))
    tools = ", ".join(f"{clip(name, 60)} {n:,}" for name, n in state.tools.most_common(12))
    return said + (f"; tools: {tools}" if tools else "")


def _newest(lines: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(reversed(lines)))[:MANY]


def _last(entries: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list(entries.items())[: -MANY - 1 : -1]
