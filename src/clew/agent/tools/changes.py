"""Changes of a text: finding what is to be replaced, exactly, and showing the difference."""

import re
from collections.abc import Sequence
from difflib import get_close_matches, unified_diff
from itertools import islice

from clew.agent.tools.bounds import clipped
from clew.agent.tools.root import displayed
from clew.errors import ToolError

CONTEXT = 3  # lines around a change
LARGE = 5_000  # lines that are compared one by one; of more, the old ones are shown, then the new ones
PLACES_NAMED = 20  # that are named where a text is found too often
NEAR_PLACES = 3  # places that are shown where it is not found
PLACE_LINES = 20  # lines of each
COMPARED = 20_000  # different lines among which one that is alike is looked for
COMPARED_LINE = 300  # characters of a line that is shown or compared

_HUNK = re.compile(r"@@ -(\d+)(.*?) \+(\d+)(.*)", re.DOTALL)
_NUMBERED = re.compile(r"\d+\t.*(?:\n\d+\t.*)*\n?")


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
