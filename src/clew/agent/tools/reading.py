"""Looking at a file: its lines, with their numbers."""

import asyncio
import sys
from functools import partial
from pathlib import Path

from clew.agent.tools.files import PROBE, lines_of, refuse_binary, regular
from clew.agent.tools.root import Root
from clew.agent.tools.tool import Plan, Tool
from clew.core.arguments import takes
from clew.errors import ToolError
from clew.text.excerpts import span

READ_LINE = 2_000  # characters shown of one line
READ_LINE_BYTES = 4 * READ_LINE + 4  # bytes kept of one line: enough for so many characters and a torn one


def read_file(root: Root, size: int) -> Tool:
    """A tool that shows lines of a file."""

    async def plan(path: str, lines: str = "") -> Plan:
        first, last = span(lines, sys.maxsize)
        if last < first:
            raise ToolError(f"lines {lines}: the last line comes before the first")
        where = root.find(path)
        read = partial(asyncio.to_thread, _read, root, where, first, last, size)
        return Plan(f"{root.name(where)} {lines}".rstrip(), read)

    return Tool(
        "read_file",
        "Read a text file. Each line comes with its number and a tab, which are not part of the file.",
        takes(
            "path",
            path={"type": "string", "description": "The file."},
            lines={"type": "string", "description": "Which lines, such as 10-40, 10- or 10; all if left out."},
        ),
        "read",
        plan,
    )


def _read(root: Root, path: Path, first: int, last: int, size: int) -> str:
    """The lines wanted while they fit; however large the file is, no more of it is held."""
    name = root.name(path)
    whole = regular(root, path).st_size
    shown: list[str] = []
    lone, number = False, 0
    with path.open("rb") as file:
        refuse_binary(name, file.peek(PROBE)[:PROBE])
        for number, (data, length) in enumerate(lines_of(file, READ_LINE_BYTES), 1):
            if number < first:
                continue
            line, wrong = _decoded(data, length)
            size -= len(line) + len(f"{number}\t\n")
            if number > last or (shown and size < 0):
                shown.append(_goes_on(number, file.tell() - length, whole))
                break
            shown.append(f"{number}\t{line}")
            lone = lone or wrong
    if not shown:
        return f"[{name} is empty]" if not number else f"[{name} has only {number:,} lines]"
    if lone:
        shown.append("[bytes that are not UTF-8 are shown as �]")
    return "\n".join(shown)


def _decoded(data: bytes, length: int) -> tuple[str, bool]:
    """A line without its end, and whether some of its bytes are no UTF-8."""
    text = data.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace")
    start = text[:READ_LINE].encode()
    more = f" [… {length - len(start):,} more bytes in this line]" if len(text) > READ_LINE else ""
    return text[:READ_LINE] + more, not data.startswith(start)


def _goes_on(number: int, before: int, whole: int) -> str:
    left = max(whole - before, 0)
    return f"[the file goes on: {left:,} of its {whole:,} bytes come after this; lines {number}- reads on]"
