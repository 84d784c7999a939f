"""What an edit means, by names: what was added, removed and changed, told from the text before and after."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from clew.core.bounds import TEXT_READ, ends, unread
from clew.steps.worklog.wording import listed, on_one_line, words
from clew.text.quoting import enclosed

CHANGED_LINE = 140  # characters of a line that is quoted
NAMES_CHARACTERS = 100  # characters of names

_NAME = r"[A-Za-z_$][\w$]*[?!]?"
_DEFINED = re.compile(
    rf"""^\s*(?:[-*+]\s+)?(?:@\w+\s+)?
    (?:(?:export|default|public|private|protected|internal|static|async|abstract|final|pub(?:\(\w+\))?|unsafe|override|
        virtual|inline|extern|declare|readonly|open|data|sealed|suspend|local)\s+)*
    (?:
        (?:def|class|fn|struct|enum|trait|interface|type|module|mod|impl|protocol|extension|namespace|macro_rules!|fun|
           function\*?|object|record|create\s+(?:table|index|view)(?:\s+if\s+not\s+exists)?)\s+(?P<a>{_NAME})
      | func\s+(?:\([^)]*\)\s*)?(?P<b>{_NAME})
      | (?<!\s)(?:const|let|var|val)\s+(?P<c>{_NAME})
      | (?P<d>[A-Z_][A-Z0-9_]{{2,}})\s*(?::\s*\w+\s*)?=(?!=)
      | (?P<e>{_NAME})\s*[:=]\s*(?:async\s+)?(?:function\b|\([^)]*\)\s*=>)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_HEADING = re.compile(r"^#{1,4}\s+(.+)")
_WORTHY = re.compile(r"\w")
_IMPORT = re.compile(
    r"""^\s*(?:import\b|from\s+\S+\s+import\b|use\s+[\w:]+|#include\b|require\b|(?:\w+\s+)?"[\w./@-]+"$)"""
)
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.*\S)")
_MOVED = re.compile(r"^\*\*\* Move to: (.*\S)")
_DIFFED = re.compile(r"^\+\+\+ (?:b/)?(.*\S)")
_CODE = re.compile(r"^```")


class FileChange(NamedTuple):
    """What became of one file."""

    path: str
    verb: str  # edited, wrote, deleted, moved
    words: str  # in words; nothing if there is nothing to say


def names(text: str) -> dict[str, str]:
    """What a text defines, or for a document its sections, each with its line."""
    found: dict[str, str] = {}
    inside = False
    for line in ends(text).splitlines():
        inside = inside != bool(_CODE.match(line))
        if not inside and (heading := _HEADING.match(line)):
            title = heading[1].rstrip("#").rstrip() or heading[1]
            found[enclosed(on_one_line(title))] = line
        elif defined := _DEFINED.match(line):
            name = next(part for part in defined.groups() if part)
            found.setdefault(f"`{name}`", line)
    return found


def change(old: str, new: str) -> str:
    """What replacing a text by another did, in a line; of long ones, their two ends."""
    if not old.strip():
        return written(new)
    if not new.strip():
        lost = names(old)
        return f"removed {listed(lost, NAMES_CHARACTERS) if lost else _quoted(_first(old))}"
    left = unread(max(TEXT_READ, len(old)) + max(TEXT_READ, len(new)), 2 * TEXT_READ)
    told = _changed(ends(old), ends(new))
    return f"{told} ({left})" if left else told


def _changed(old: str, new: str) -> str:
    before, after = names(old), names(new)
    added = [n for n in after if n not in before]
    removed = [n for n in before if n not in after]
    gone, come = _lines(old, new)
    told = []
    if len(added) == len(removed) == 1:
        told.append(f"renamed {removed[0]} to {added[0]}")
    else:
        told += [f"added {listed(added, NAMES_CHARACTERS)}"] if added else []
        told += [f"removed {listed(removed, NAMES_CHARACTERS)}"] if removed else []
    changed = [n for n, line in after.items() if n in before and before[n].strip() != line.strip()]
    told += [f"changed {_quoted(after[changed[0]])}"] if changed else []
    if not told or (len(gone) <= 2 and len(come) <= 2 and not added):
        told += _value(gone, come) if not changed else []
    if not told and after:
        told.append(f"in {listed(list(after)[-2:], NAMES_CHARACTERS)}")
    return "; ".join(told)


def _value(gone: Sequence[str], come: Sequence[str]) -> list[str]:
    """The lines themselves, if they are few; else the first that came."""
    if len(gone) == len(come) == 1 and len(gone[0]) + len(come[0]) <= 2 * CHANGED_LINE:
        return [f"{_quoted(gone[0])} became {_quoted(come[0])}"]
    for verb, some in (("now", come), ("without", gone)):
        if telling := [line for line in some if not _IMPORT.match(line)]:
            return [f"{verb} {_quoted(max(telling[:6], key=_telling))}"]
    return [f"now {_quoted(come[0])}"] if come else []


def _telling(line: str) -> int:
    """How much a line says: its names and numbers; a comment in words is best, since it says what for."""
    return len(set(re.findall(r"\w{3,}", line))) if len(line) <= 2 * CHANGED_LINE else 0


def written(text: str) -> str:
    """What a whole new text has."""
    found, count = list(names(text)), len(text.splitlines())
    size = f"{count:,} line{'' if count == 1 else 's'}"
    left = f" ({unread(len(text))})" if unread(len(text)) else ""
    if found:
        return f"{size} with {listed(found, NAMES_CHARACTERS)}{left}"
    return f"{size}: {_quoted(_first(text))}{left}" if _first(text) else size


def _lines(old: str, new: str) -> tuple[list[str], list[str]]:
    """The lines that went and those that came; one that is said twice counts twice."""
    before, after = ([line.strip() for line in text.splitlines() if _WORTHY.search(line)] for text in (old, new))
    return list((Counter(before) - Counter(after)).elements()), list((Counter(after) - Counter(before)).elements())


def _first(text: str) -> str:
    return next((s.strip() for s in text.splitlines() if _WORTHY.search(s)), "")


def _quoted(line: str) -> str:
    return f"`{words(line.strip().replace('`', ''), CHANGED_LINE)}`"


def patched(patch: str) -> Iterator[FileChange]:
    """What a patch does to each of its files, in either of the usual forms."""
    path, verb, moved = "", "", ""
    old, new = list[str](), list[str]()

    def done() -> Iterator[FileChange]:
        if path and verb == "deleted":
            yield FileChange(path, verb, "")
        elif path and moved:
            yield FileChange(path, "moved", f"to {moved}")
        elif path:
            body = "\n".join(new)
            yield FileChange(path, verb, written(body) if verb == "wrote" else change("\n".join(old), body))

    for line in patch[:TEXT_READ].splitlines():
        if (begun := _PATCHED.match(line)) or (begun := _DIFFED.match(line)):
            yield from done()
            named = begun.re is _PATCHED
            path = begun[2] if named else begun[1]
            verb = {"Add": "wrote", "Update": "edited", "Delete": "deleted"}[begun[1]] if named else "edited"
            moved, old, new = "", [], []
        elif to := _MOVED.match(line):
            moved = to[1]
        elif line.startswith("+"):
            new.append(line[1:])
        elif line.startswith("-") and not line.startswith("--- "):
            old.append(line[1:])
        elif line.startswith(" "):
            old.append(line[1:])
            new.append(line[1:])
    left = unread(len(patch))  # of this file, or of others after it
    yield from (c._replace(words=f"{c.words} ({left})".strip()) if left else c for c in done())
