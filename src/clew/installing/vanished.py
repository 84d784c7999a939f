"""Where clew was when clients were told, and is no longer: a cache that was cleared, an environment that was moved.

What counts is what a client's own files say now, whoever wrote it there: people add servers by a command of the client,
and edit what `clew install` wrote.
"""

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from clew.config import Key
from clew.installing.client_files import bytes_of, content, text_in, write
from clew.installing.formats import found, own_file
from clew.installing.plugs import ClewCommand, ClientProgram, Plug, shell_line
from clew.installing.programs import PROGRAMS
from clew.installing.wiring import Installer

CACHES = ("archive-v0", "builds-v0", "environments-v0", "environments-v1", "environments-v2")  # of uv, for uvx
AS_MODULE = ("-P", "-m", "clew")  # how clew is started by a Python
_STARTED = re.compile(r"(const COMMAND(?:: string\[\])? = )(\[.*\])")  # in a plugin


def is_passing(command: Path) -> bool:
    """Whether a command is in a place that is cleared now and then."""
    parts = command.parts
    return any(name in parts for name in CACHES) or ("pipx" in parts and ".cache" in parts)


def runs(program: str) -> bool:
    """Whether a program is there, and if it is a script, what it is run by."""
    try:
        with Path(program).open("rb") as file:
            mark, _, rest = file.readline(1_000).partition(b"#!")
    except OSError:
        return False
    return bool(mark) or not rest.strip() or Path(os.fsdecode(rest.split()[0])).exists()


class Vanished(NamedTuple):
    """A program that a client is told to run and that is not there, and where it is told so."""

    client: ClientProgram
    file: Path
    plug: Plug
    at: Key  # the table with the command, or the text of a plugin
    program: str


def vanished(installer: Installer) -> list[Vanished]:
    """All of them, in all clients' files."""
    found = dict[tuple[Path, Key], Vanished]()
    for client in PROGRAMS.values():
        for plug, file in _plugged(installer, client):
            for one in _in(client, plug, file):
                found.setdefault((file, one.at), one)
    return list(found.values())


def mend(installer: Installer, gone: Vanished, command: ClewCommand) -> bool:
    """Tell a client how clew is started now, and change nothing else: whether that was done. Raises `BadRequest`."""
    before = content(gone.file)
    text, format = text_in(before), gone.plug.format
    told = found(format.read(text), gone.at)
    if isinstance(told, str):
        text = _plugin(told, gone, command)
    elif isinstance(told, dict):
        for name, value in _repaired(told, gone.program, command).items():
            text = format.put(text, (*gone.at, name), value)
    after = bytes_of(text, before)
    if after == before:
        return False
    write(gone.file, after)
    installer.retold(gone.client.name, gone.file, format, before or b"", after)
    return True


def _plugged(installer: Installer, client: ClientProgram) -> Iterator[tuple[Plug, Path]]:
    """What may be in a client's files, in those that it reads now and those that clew once wrote to."""
    wired = [Path(record.file) for record in installer.records() if record.client == client.name]
    plugs = [*(client.plugs(("clew",)) if client.plugs else ())]
    plugs += client.starting(("clew",), "") if client.starting else ()
    for plug in plugs:
        names = {Path(name).name for name in plug.files}
        for file in dict.fromkeys([plug.file(installer.places), *(file for file in wired if file.name in names)]):
            yield plug, file


def _in(client: ClientProgram, plug: Plug, file: Path) -> Iterator[Vanished]:
    data: Any = {}
    with suppress(OSError, ValueError):  # whoever writes to it says what is wrong
        data = plug.format.read(text_in(file.read_bytes()))
    for at, told in _tables(data, ()):
        words = _words(told)
        if not words or not Path(words[0]).is_absolute() or runs(words[0]):
            continue
        if "clew" in at or isinstance(told, str) or _is_hook(words, client):
            yield Vanished(client, file, plug, at, words[0])


def _tables(value: Any, at: Key) -> Iterator[tuple[Key, Any]]:
    """Tables that name a command, and plugins, with their keys."""
    match value:
        case str() if _STARTED.search(value):
            yield at, value
        case {"command": str() | list()}:
            yield at, value
        case dict():
            for name, inner in value.items():
                yield from _tables(inner, (*at, name))
        case list():
            for n, inner in enumerate(value):
                yield from _tables(inner, (*at, str(n)))


def _words(told: Any) -> list[str]:
    """A command and what it is given."""
    match told:
        case str():
            words = _listed(told)
        case {"command": list() as words}:
            pass
        case {"command": command, "args": list() as args}:
            words = [command, *args]
        case {"command": command}:
            try:
                words = shlex.split(command)
            except ValueError:
                words = []
    return words if all(isinstance(word, str) for word in words) else []


def _listed(plugin: str) -> list[Any]:
    found = _STARTED.search(plugin)
    with suppress(ValueError):
        words = json.loads(found[2]) if found else []
        return words if isinstance(words, list) else []
    return []


def _is_hook(words: list[str], client: ClientProgram) -> bool:
    """Whether it is clew's, among those of others."""
    return any(a == "hook" and b.startswith(client.name) for a, b in pairwise(words))


def _rest(words: list[str]) -> list[str]:
    """What clew is given, without how it is started."""
    return words[1:][len(AS_MODULE) :] if tuple(words[1:4]) == AS_MODULE else words[1:]


def _repaired(table: dict[str, Any], program: str, command: ClewCommand) -> dict[str, Any]:
    """What has to be in a table instead."""
    words = _words(table)
    rest = _rest(words)
    if isinstance(table["command"], list):
        return {"command": [*command, *rest]}
    if "args" in table:
        return {"command": command[0], "args": [*command[1:], *rest]}
    line, start = table["command"], shell_line(*words[: len(words) - len(rest)], platform=sys.platform)
    if not line.startswith(start):  # quoted by somebody in their own way
        return {}
    return {"command": shell_line(*command, platform=sys.platform) + line[len(start) :].replace(program, command[0])}


def _plugin(text: str, gone: Vanished, command: ClewCommand) -> str:
    """A plugin as this clew has it; one that starts a gateway stays at its address."""
    for plug in gone.client.plugs(command) if gone.client.plugs else ():
        if plug.files == gone.plug.files:
            return str(plug.values[own_file.OWN_TEXT])
    known = json.dumps([*command, *_rest(_words(text))])
    return _STARTED.sub(lambda found: found[1] + known, text, count=1).replace(gone.program, command[0])
