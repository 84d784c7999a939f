"""Where clew was when clients were told, and is no longer: a cache that was cleared, an environment that was moved."""

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clew.installing.wiring import Wired

CACHES = ("archive-v0", "builds-v0", "environments-v0", "environments-v1", "environments-v2")  # of uv, for uvx


def is_passing(command: Path) -> bool:
    """Whether a command is in a place that is cleared now and then."""
    parts = command.parts
    return any(name in parts for name in CACHES) or ("pipx" in parts and ".cache" in parts)


def vanished(record: Wired, kind: str = "") -> list[str]:
    """The programs that a client was told to run and that are not there, each once; `kind`: for this alone."""
    rows = [row for row in record.values if kind in ("", row["kind"])]
    named = [program for row in rows for program in _programs(row["value"])]
    return [program for program in dict.fromkeys(named) if Path(program).is_absolute() and not runs(program)]


def runs(program: str) -> bool:
    """Whether a program is there, and if it is a script, what it is run by."""
    try:
        with Path(program).open("rb") as file:
            mark, _, rest = file.readline(1_000).partition(b"#!")
    except OSError:
        return False
    return bool(mark) or not rest.strip() or Path(os.fsdecode(rest.split()[0])).exists()


def _programs(value: Any) -> Iterator[str]:
    """The first word of each command in what was written."""
    match value:
        case {"command": str() | list() as command, **others}:
            yield command[0] if isinstance(command, list) else _first(command)
            yield from _programs(list(others.values()))
        case dict():
            yield from _programs(list(value.values()))
        case list():
            for one in value:
                yield from _programs(one)
        case str() if "const COMMAND: string[] = " in value:  # a plugin as a whole
            line = value.partition("const COMMAND: string[] = ")[2].partition(" //")[0]
            yield json.loads(line)[0]
        case str() if Path(value).is_absolute():
            yield value


def _first(command: str) -> str:
    try:
        return shlex.split(command)[0]
    except (ValueError, IndexError):
        return command
