"""Commands that only look: those of `looking.toml`, as a shell reads them, inside one folder."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

# What a shell takes as it is: printable ASCII without what it reads as syntax, be it bare or in quotes. A tilde stands
# for a folder at the beginning of a word, and behind = and :, but not in HEAD~2. Blanks are two: it knows no others.
_BARE = r"(?:[\w@%+=:,./^-]|(?<=[\w~^])~)"
_SINGLE = r"'[\t !-&(-~]*'"
_DOUBLE = r'"[\t #%-\[\]^_a-~]*"'
_WORD = re.compile(f"(?:{_BARE}|{_SINGLE}|{_DOUBLE})+", re.ASCII)
_BLANKS = re.compile("[ \t]*")
_QUOTED = re.compile(r"""'([^']*)'|"([^"]*)\"""")

_TABLE: dict[str, Any] = tomllib.loads(files("clew.chat").joinpath("looking.toml").read_text(encoding="utf-8"))
_SKIPPED: dict[str, list[str]] = _TABLE["skipped"]


class LookingCommand(NamedTuple):
    """A row: how a command begins, and all that may follow."""

    name: str
    takes: str
    flags: str
    letters: str
    options: frozenset[str]
    valued: frozenset[str]
    instead: frozenset[str]
    ends: bool
    pattern: re.Pattern[str]
    never: re.Pattern[str]
    example: str


def _row(given: dict[str, Any]) -> LookingCommand:
    return LookingCommand(
        given["name"],
        given["takes"],
        given.get("flags", ""),
        given.get("letters", ""),
        frozenset(given.get("options", ())),
        frozenset(given.get("valued", ())),
        frozenset(given.get("instead", ())),
        given.get("ends", False),
        re.compile(given.get("pattern", ".*")),
        re.compile(given.get("never", "(?!)")),  # without one, nothing
        given["example"],
    )


LOOKING = {row.name: row for row in map(_row, _TABLE["command"])}


def looking(command: str, folder: Path) -> str | None:
    """The name of the row that a command fits, in a folder; None where it may do more than look."""
    words = _words(command)
    if not words:
        return None
    skipped = _SKIPPED.get(words[0], ())
    while len(words) > 1 and words[1] in skipped:
        del words[1]
    for length in (3, 2, 1):
        row = LOOKING.get(" ".join(words[:length])) if len(words) >= length else None
        if row and not any(" " in word for word in words[:length]):
            return row.name if _fits(row, words[length:], folder) else None
    return None


def _words(command: str) -> list[str] | None:
    """The words that a shell makes of a command; None where it would do more than that."""
    words, at = list[str](), 0
    while (at := _end(_BLANKS, command, at)) < len(command):
        begun, at = at, _end(_WORD, command, at)
        if at == begun or (at < len(command) and command[at] not in " \t"):
            return None
        words.append(_QUOTED.sub(lambda quoted: quoted[1] or quoted[2] or "", command[begun:at]))
    return words


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _fits(row: LookingCommand, words: Sequence[str], folder: Path) -> bool:
    if any(map(row.never.search, words)):
        return False
    others, used = list[str](), set[str]()
    left = iter(words)
    for word in left:
        if word == "--" and row.ends:
            others += left
        elif word == "-" or not word.startswith("-"):
            others.append(word)
        elif not _is_option(row, word, left, used):
            return False
    texts = 0
    match row.takes:
        case "nothing" if others:
            return False
        case "one path" if len(others) > 1:
            return False
        case "text":
            texts = len(others)
        case "text, paths":
            texts = 0 if used & row.instead else 1
    whole = row.takes != "files"
    return all(map(row.pattern.fullmatch, others[:texts])) and all(_is_inside(folder, p, whole) for p in others[texts:])


def _is_option(row: LookingCommand, word: str, left: Iterator[str], used: set[str]) -> bool:
    """Whether a row knows an option, whose value may be the next of the words that are left."""
    name, equals, _ = word.partition("=")
    if word in row.valued:
        used.add(word)
        return next(left, None) is not None
    if word in row.options or (equals and name.startswith("--") and name in row.options | row.valued):
        used.add(name)
        return True
    if word.startswith("--"):
        return False
    for at, letter in enumerate(word[1:], 2):
        used.add(f"-{letter}")
        if letter in row.letters:
            return at < len(word) or next(left, None) is not None
        if letter not in row.flags:
            return False
    return True


def _is_inside(folder: Path, path: str, may_be_folder: bool) -> bool:
    """Whether a path stays in a folder, links and all; and what git reads as one, behind a revision."""
    try:
        top = folder.resolve()
        meant = [(top / part).resolve() for part in (path, *path.split(":"))]
        return all(found.is_relative_to(top) for found in meant) and (may_be_folder or not meant[0].is_dir())
    except (OSError, RuntimeError, ValueError):  # it cannot be told
        return False
