"""Changing files: a whole one, or a piece of one."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from difflib import get_close_matches, unified_diff
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Lock

from clew.agent.tools.bounds import bounded, clipped
from clew.agent.tools.files import encodable, load, save
from clew.agent.tools.root import Root, displayed
from clew.agent.tools.tool import Plan, Tool
from clew.clients.known import RUNNING
from clew.core.arguments import takes
from clew.errors import ToolError

_FOLDERS = frozenset({".git", "git~1", ".husky", ".githooks", ".ssh"})
_FILES = frozenset(
    """.gitconfig .envrc .mcp.json .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile
    .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc config.fish .vimrc .exrc .nvimrc .gdbinit .lldbinit
    .pdbrc .inputrc .xprofile .xinitrc sitecustomize.py usercustomize.py""".split()
)
_PLACES = frozenset(
    """.vscode/tasks.json .vscode/settings.json .vscode/mcp.json .devcontainer/devcontainer.json .devcontainer.json
    .cursor/mcp.json .cursor/hooks.json""".split()
).union(RUNNING)


CONTEXT = 3  # lines around a change
LARGE = 5_000  # lines that are compared one by one; of more, the old ones are shown, then the new ones
PLACES_NAMED = 20  # that are named where a text is found too often
NEAR_PLACES = 3  # places that are shown where it is not found
PLACE_LINES = 20  # lines of each
COMPARED = 20_000  # different lines among which one that is alike is looked for
COMPARED_LINE = 300  # characters of a line that is shown or compared

_HUNK = re.compile(r"@@ -(\d+)(.*?) \+(\d+)(.*)", re.DOTALL)
_NUMBERED = re.compile(r"\d+\t.*(?:\n\d+\t.*)*\n?")


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


def replaced(name: str, text: str, old: str, new: str, all: bool) -> str:
    """The text with `new` for `old`, which must be there once unless all are meant; line ends stay as they are."""
    if not old:
        raise ToolError("old is empty: say which text to replace, or write the whole file with write_file")
    windows = "\r\n" in text
    wanted = (
        re.compile(r"\r?\n".join(map(re.escape, re.split("\r?\n", old)))) if windows else re.compile(re.escape(old))
    )
    count = sum(1 for _ in wanted.finditer(text))
    if not count:
        raise ToolError(f"{name}: old is not in it.{_near(text, old)}")
    if count > 1 and not all:
        at = ", ".join(str(text.count("\n", 0, m.start()) + 1) for m in islice(wanted.finditer(text), PLACES_NAMED))
        raise ToolError(f"{name}: old is in it {count:,} times, at lines {at}: add lines around it, or set all")
    usual = "\r\n" if 2 * text.count("\r\n") >= text.count("\n") else "\n"
    result = wanted.sub(lambda m: _ended(new, m[0], usual) if windows else new, text, count=0 if all else 1)
    if result == text:
        raise ToolError(f"{name}: old and new are the same, nothing would change")
    return result


def _ended(new: str, old: str, usual: str) -> str:
    """The new text with the line ends of what it stands for."""
    end = re.search("\r?\n", old)
    return re.sub("\r?\n", end[0] if end else usual, new)


# --- what comes near ------------------------------------------------------------------------------------------------


def _near(text: str, old: str) -> str:
    """Where a text that is not found may have been meant, with line numbers."""
    if _NUMBERED.fullmatch(old):
        return " Leave out the line numbers and tabs that read_file puts before lines"
    lines, wanted = displayed(text).split("\n"), old.strip("\n").split("\n")
    anchor = max(wanted, key=lambda line: len(line.strip()))
    places = _alike(lines, anchor.strip()[:COMPARED_LINE])
    if not places:
        return " Nothing in it comes near; read the file again"
    shown = [_block(lines, at - wanted.index(anchor), len(wanted)) for at in places]
    return " These come near; mind every space:\n" + "\n…\n".join(shown)


def _alike(lines: Sequence[str], anchor: str) -> list[int]:
    if not anchor:
        return []
    where: dict[str, list[int]] = {}
    for n, line in enumerate(lines):
        where.setdefault(line.strip()[:COMPARED_LINE], []).append(n)
    near = [anchor] if anchor in where else get_close_matches(anchor, list(where)[:COMPARED], n=NEAR_PLACES)
    return [n for line in near for n in where[line]][:NEAR_PLACES]


def _block(lines: Sequence[str], start: int, length: int) -> str:
    first = max(start, 0)
    shown = lines[first : first + min(length, PLACE_LINES)]
    return "\n".join(f"{n}\t{clipped(line, COMPARED_LINE)}" for n, line in enumerate(shown, first + 1))


# --- the difference -------------------------------------------------------------------------------------------------


def difference(name: str, before: str | None, after: str) -> str:
    """A unified diff; what was None is a new file."""
    old, new = _lines(before or ""), _lines(after)
    same = _common(old, new)
    tail = _common(old[same:][::-1], new[same:][::-1])
    start = max(same - CONTEXT, 0)
    old, new = (lines[start : len(lines) - max(tail - CONTEXT, 0)] for lines in (old, new))
    if len(old) + len(new) <= LARGE:
        hunks = list(unified_diff(old, new, n=CONTEXT))[2:]
    else:
        hunks = [f"@@ -1,{len(old)} +1,{len(new)} @@\n", *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    heading = f"--- {'/dev/null' if before is None else name}\n+++ {name}\n"
    return heading + ("".join(_moved(line, start) for line in hunks) or "[no line differs]\n")


def _lines(text: str) -> list[str]:
    """The lines with their ends; only a line feed ends one."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + parts[-1:] * bool(parts[-1])


def _common(some: Sequence[str], others: Sequence[str]) -> int:
    """How many lines are the same from the beginning on."""
    pairs = enumerate(zip(some, others, strict=False))
    return next((n for n, (one, other) in pairs if one != other), min(len(some), len(others)))


def _moved(line: str, by: int) -> str:
    """A line of a diff of which so many lines before it were left out."""
    if hunk := _HUNK.fullmatch(line):
        return f"@@ -{int(hunk[1]) + by}{hunk[2]} +{int(hunk[3]) + by}{hunk[4]}"
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def runs_itself(path: Path) -> bool:
    """Whether a file, all links followed, is one that others run unasked; on some disks capitals are the same file."""
    parts = [part.casefold().rstrip(". ") for part in path.parts]
    name = parts[-1]
    return (
        not _FOLDERS.isdisjoint(parts)
        or name in _FILES
        or name.endswith(".pth")
        or "/".join(parts[-2:]) in _PLACES
        or name in _PLACES
    )
