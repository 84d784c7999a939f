"""Looking at a folder: what is in it, or which files below it fit a pattern."""

import asyncio
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from clew.agent.tools.root import Root, displayed
from clew.agent.tools.tool import Plan, Tool
from clew.agent.tools.walking import Glob, walk
from clew.core.arguments import takes
from clew.errors import ToolError

VISITED = 200_000  # files that are looked at for one list


def list_files(root: Root, size: int) -> Tool:
    """A tool that lists files."""

    async def plan(path: str = ".", pattern: str = "") -> Plan:
        where = root.find(path)
        if not where.is_dir():
            raise ToolError(f"{root.name(where)} is not a folder")
        return Plan(
            f"{root.name(where)} {pattern}".rstrip(), partial(asyncio.to_thread, _list, root, where, pattern, size)
        )

    return Tool(
        "list_files",
        "List what is in a folder; with a pattern, all files below it that fit, except what .gitignore names.",
        takes(
            path={"type": "string", "description": "The folder; the root if left out."},
            pattern={"type": "string", "description": "Such as *.py or src/**/*.{ts,tsx}, from that folder on."},
        ),
        "read",
        plan,
    )


def _list(root: Root, top: Path, pattern: str, size: int) -> str:
    """The names, while they fit."""
    shown: list[str] = []
    for name in _below(root, top, pattern) if pattern else _inside(top):
        size -= len(name) + 1
        if size < 0 and shown:
            shown.append(f"[… more than these {len(shown):,}: ask for a folder below, or a narrower pattern]")
            break
        shown.append(name)
    nothing = f"[no file below {root.name(top)} fits {pattern}]" if pattern else f"[{root.name(top)} is empty]"
    return "\n".join(shown) or nothing


def _inside(top: Path) -> Iterator[str]:
    with os.scandir(top) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            yield _entry_line(entry)


def _entry_line(entry: os.DirEntry[str]) -> str:
    name = displayed(entry.name)
    if entry.is_symlink():
        return f"{name} -> {displayed(str(Path(entry).readlink()))}"
    return f"{name}/" if entry.is_dir() else name


def _below(root: Root, top: Path, pattern: str) -> Iterator[str]:
    glob = Glob(pattern)
    for count, entry in enumerate(walk(top, root.folder)):
        if count == VISITED:
            yield f"[stopped after {VISITED:,} files: ask for a folder below]"
            return
        if glob.fits(Path(entry).relative_to(top).as_posix()):
            yield root.name(Path(entry))
