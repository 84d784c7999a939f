"""Dedupe: of what was shown twice, the older copy points to the newer one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from clew.core.items import Item, canonical
from clew.core.view import Swap, View
from clew.steps.lines import calls_by_result, repeated, superseded
from clew.steps.outcome import failed
from clew.steps.protocol import PureStep
from clew.steps.shorten import parsed
from clew.steps.taking import replaceable, take
from clew.tokens.target import Target

LEAST_CHARACTERS = 200  # characters that are worth a pointer

# How agents name things differs; what a call is, its arguments tell. These are all the names there are.
PATH_KEYS = ("path", "file_path", "filePath", "filename", "file", "target_file", "absolute_path")
WHOLE_TEXTS = ("content", "contents", "file_text")
COMMAND_KEYS = ("command", "cmd")
# What the command of a tool with several may be, to read a file and to write a whole one.
VIEWING = ("view", "read")
CREATING = ("create", "write")
# About the call, not about what it reads.
REMARK_KEYS = frozenset({"description", "explanation", "timeout", "yield_time_ms"})
FILE_PART = re.compile(r"[\d\s:,-]*")  # an argument that names a part of a file, where it is no number
# One command that only prints a file, perhaps into a pipe, perhaps after a change of directory.
PRINTS = re.compile(r"(?:cd [^;&|<>]+&& *)?(?:cat|head|nl|sed -n|tail)\b[^;&<>]*")


@dataclass(frozen=True)
class Dedupe(PureStep):
    """Older copies of a result, then older reads of what was since read or written anew, become one line each."""

    def apply(self, view: View, target: Target) -> View:
        return take(view, target, _found(view, target), by=self) if target.excess(view) else view


def _found(view: View, target: Target) -> Iterator[Swap]:
    calls = calls_by_result(view.nodes)
    newer, outdated = _newer_copies(view), _outdated(view, calls)
    free = replaceable(view, target)
    for i in free:
        if i in newer:
            yield Swap(i, i + 1, [repeated(view.nodes[i].item, calls.get(newer[i]), view.short(i, i + 1))])
    for i in free:
        if i in outdated and i not in newer:
            line = superseded(view.nodes[i].item, calls.get(i), view.short(i, i + 1), outdated[i])
            yield Swap(i, i + 1, [line])


def _newer_copies(view: View) -> dict[int, int]:
    """For each result that is said again later, where it is said last."""
    last: dict[str, int] = {}
    found: dict[int, int] = {}
    for i in range(len(view.nodes) - 1, -1, -1):
        item = view.nodes[i].item
        if item.kind == "result" and len(said := _said(item)) >= LEAST_CHARACTERS:
            newest = last.setdefault(said, i)
            if newest != i:
                found[i] = newest
    return found


def _said(result: Item) -> str:
    """What a result says, whichever call it answers."""
    return result.text if result.wire is None else canonical(result.wire).replace(result.call_id, "")


def _outdated(view: View, calls: dict[int, Item]) -> dict[int, str]:
    """The reads that a later one, or a whole new text, makes old; and which of the two it was."""
    made = view.stand_ins()
    standing = {n.item.call_id for n in view.nodes if n.item.kind == "call" and n.id not in made}
    read: set[str] = set()
    written: set[str] = set()
    found: dict[int, str] = {}
    for i in sorted(calls, reverse=True):
        use, result = _use(calls[i]), view.nodes[i].item
        if use.read and len(result.text) >= LEAST_CHARACTERS and (use.read in read or use.path in written):
            found[i] = "a newer read" if use.read in read else "the text written later"
        elif use.read and view.nodes[i].id not in made and not failed(result):
            read.add(use.read)
        elif use.writes and calls[i].call_id in standing and not failed(result):
            written.add(use.path)
    return found


class Use(NamedTuple):
    """What a call does to a file."""

    path: str = ""
    read: str = ""  # equal for equal reads; empty: it is none
    writes: bool = False  # the whole text


def _use(call: Item) -> Use:
    given = parsed(call.text)
    if not isinstance(given, dict):
        return Use()
    what = {k: v for k, v in given.items() if k not in REMARK_KEYS}
    path = next((v for k in PATH_KEYS if isinstance(v := what.get(k), str) and v), "")
    if path and _is_full_text(call.name, what):
        return Use(path, writes=True)
    if _prints(what) or (path and _is_read(what)):
        return Use(path, read=f"{call.name} {canonical(what)}")
    return Use()


def _is_read(given: dict[str, Any]) -> bool:
    """Nothing but a path and which part of it: no text to look for or to put there."""
    rest = {k: v for k, v in given.items() if k not in PATH_KEYS and not (k == "command" and v in VIEWING)}
    return all(FILE_PART.fullmatch(v) if isinstance(v, str) else not isinstance(v, dict) for v in rest.values())


def _is_full_text(name: str, given: dict[str, Any]) -> bool:
    """Nothing but a path and a text: no place in the file, no text to look for, no mode."""
    texts = [k for k in WHOLE_TEXTS if isinstance(given.get(k), str)]
    rest = given.keys() - {*PATH_KEYS, *texts}
    creates = not rest or (rest == {"command"} and given["command"] in CREATING)
    return len(texts) == 1 and creates and "append" not in name.lower()


def _prints(given: dict[str, Any]) -> bool:
    command = next((given[k] for k in COMMAND_KEYS if k in given), "")
    line = command[-1] if isinstance(command, list) and command else command
    return isinstance(line, str) and PRINTS.fullmatch(line.strip()) is not None
