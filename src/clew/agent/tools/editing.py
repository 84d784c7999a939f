"""Changing files: a whole one, or a piece of one."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from threading import Lock

from clew.agent.tools.bounds import bounded
from clew.agent.tools.changes import difference, replaced
from clew.agent.tools.files import encodable, load, save
from clew.agent.tools.root import Root, displayed
from clew.agent.tools.selfrunning import runs_itself
from clew.agent.tools.tool import Plan, Tool
from clew.core.arguments import takes
from clew.errors import ToolError

_ONE = Lock()  # calls that a model makes together take turns from reading a file to writing it


def write_file(root: Root, size: int) -> Tool:
    """A tool that writes whole files."""

    async def plan(path: str, content: str) -> Plan:
        where, text = root.find(path), encodable("content", content)
        before = await asyncio.to_thread(_load, root, where)
        diff = displayed(await asyncio.to_thread(difference, root.name(where), before, text))
        write = partial(asyncio.to_thread, _write, root, where, before, text, bounded(diff, size))
        return _planned(where, diff, write)

    return Tool(
        "write_file",
        "Write a whole text file, also a new one in folders that do not exist yet. Shows the difference.",
        takes(
            "path",
            "content",
            path={"type": "string", "description": "The file."},
            content={"type": "string", "description": "All that it shall hold."},
        ),
        "write",
        plan,
    )


def edit_file(root: Root, size: int) -> Tool:
    """A tool that replaces text in a file."""

    async def plan(path: str, old: str, new: str, all: bool = False) -> Plan:
        where = root.find(path)
        edit = partial(_edit, root, where, encodable("old", old), encodable("new", new), all)

        async def work() -> str:
            # What is in the file is read again: it may have changed elsewhere while somebody was asked.
            return bounded(await asyncio.to_thread(edit, saving=True), size)

        return _planned(where, await asyncio.to_thread(edit, saving=False), work)

    return Tool(
        "edit_file",
        "Replace a piece of a text file. It must be in the file exactly as given and only once. Shows the difference.",
        takes(
            "path",
            "old",
            "new",
            path={"type": "string", "description": "The file."},
            old={"type": "string", "description": "What is there now, with every space."},
            new={"type": "string", "description": "What shall be there instead."},
            all={"type": "boolean", "description": "Replace it wherever it is; false if left out."},
        ),
        "write",
        plan,
    )


def _planned(path: Path, diff: str, work: Callable[[], Awaitable[str]]) -> Plan:
    """The plan of a change; of a file that is run unasked it is one to run something, and says so."""
    if not runs_itself(path):
        return Plan(diff, work)
    return Plan(f"This file is run by other programs, unasked.\n{diff}", work, "run")


def _load(root: Root, path: Path) -> str | None:
    return load(root, path) if path.exists() else None


def _write(root: Root, path: Path, before: str | None, text: str, diff: str) -> str:
    """Write what was planned, unless the file is not what it was then."""
    with _ONE:
        if _load(root, path) != before:
            raise ToolError(f"{root.name(path)} has changed since this call began and was not written: read it again")
        save(path, text)
    return diff


def _edit(root: Root, path: Path, old: str, new: str, all: bool, saving: bool) -> str:
    """The difference that an edit makes to the file as it is now."""
    name = root.name(path)
    with _ONE:
        before = load(root, path)
        after = replaced(name, before, old, new, all)
        if saving:
            save(path, after)
    return displayed(difference(name, before, after))
