"""The files below a folder, without what no one wants to look through; and patterns for their names."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path

from clew.errors import ToolError

SKIPPED = ".git .hg .svn node_modules .venv __pycache__ .mypy_cache .pytest_cache .ruff_cache .tox".split()
IGNORE_CHARACTERS = 100_000  # characters of a .gitignore that are read
ALTERNATIVES = 100  # that the braces of one pattern may stand for


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern such as `*.py`, `src/**/*.{ts,tsx}` or `!*.md`; without a slash it fits names at any depth."""

    pattern: str

    def fits(self, path: str) -> bool:
        """Whether a relative path fits."""
        wanted = self.pattern.removeprefix("!")
        found = any(_fits(path.split("/"), one) for one in _alternatives(wanted))
        return found != self.pattern.startswith("!")


@lru_cache
def _alternatives(pattern: str) -> list[list[str]]:
    """The patterns that one with braces stands for, each as the pieces between its slashes."""
    done, left = [], [pattern]
    while left:
        one = left.pop()
        start, brace, rest = one.rpartition("{")
        inner, end, rest = rest.partition("}")
        if not brace or not end:
            done.append(one)
        else:
            left += [f"{start}{choice}{rest}" for choice in inner.split(",")]
        if len(done) + len(left) > ALTERNATIVES:
            raise ToolError(f"the braces of {pattern} stand for more than {ALTERNATIVES} patterns")
    return [_pieces(one) for one in done]


def _pieces(pattern: str) -> list[str]:
    return pattern.removeprefix("/").split("/") if "/" in pattern else ["**", pattern]


def _fits(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether names fit a pattern piece by piece, `**` standing for any number of them."""
    at = _past_any({0}, pattern)
    for name in names:
        on = {n + 1 for n in at if n < len(pattern) and pattern[n] != "**" and fnmatchcase(name, pattern[n])}
        at = _past_any(on | {n for n in at if n < len(pattern) and pattern[n] == "**"}, pattern)
    return len(pattern) in at


def _past_any(at: set[int], pattern: Sequence[str]) -> set[int]:
    """These places in a pattern, and those behind each `**` they stand before."""
    reached = set(at)
    for n in sorted(at):
        while n < len(pattern) and pattern[n] == "**":
            n += 1
            reached.add(n)
    return reached


@dataclass(frozen=True, slots=True)
class _Ignored:
    """The rules of one .gitignore: the last one that fits a path decides."""

    folder: Path
    rules: Sequence[str]

    def decides(self, path: Path, is_folder: bool) -> bool | None:
        within = path.relative_to(self.folder).as_posix().split("/")
        for rule in reversed(self.rules):
            wanted = rule.removeprefix("!")
            if wanted.endswith("/") and not is_folder:
                continue
            if _fits(within, _pieces(wanted.removesuffix("/"))):
                return not rule.startswith("!")
        return None


def _ignored(folder: Path) -> list[_Ignored]:
    file = folder / ".gitignore"
    try:
        if not file.is_file():  # a pipe of that name would keep us for ever
            return []
        with file.open(encoding="utf-8", errors="replace") as text:
            lines = text.read(IGNORE_CHARACTERS).splitlines()
    except OSError:
        return []
    return [_Ignored(folder, [line.strip() for line in lines if line.strip() and not line.startswith("#")])]


def walk(top: Path, root: Path) -> Iterator[os.DirEntry[str]]:
    """Every file below, in order of names; links are named and not followed."""
    above = [f for f in (top, *top.parents) if f != top and f.is_relative_to(root)]
    start = [rules for folder in reversed(above) for rules in _ignored(folder)]
    waiting: list[tuple[os.DirEntry[str] | Path, list[_Ignored]]] = [(top, start)]
    while waiting:
        entry, rules = waiting.pop()
        if isinstance(entry, os.DirEntry) and not entry.is_dir(follow_symlinks=False):
            yield entry
            continue
        rules = [*rules, *_ignored(Path(entry))]
        inside = [e for e in _entries(Path(entry), top) if not _hidden(e, rules)]
        waiting += ((e, rules) for e in reversed(inside))


def _entries(folder: Path, top: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        if folder == top:
            raise
        return []  # a folder that may not be read, or is gone since


def _hidden(entry: os.DirEntry[str], rules: Sequence[_Ignored]) -> bool:
    if entry.name in SKIPPED:
        return True
    is_folder = entry.is_dir(follow_symlinks=False)
    for rule in reversed(rules):
        if (decided := rule.decides(Path(entry), is_folder)) is not None:
            return decided
    return False
