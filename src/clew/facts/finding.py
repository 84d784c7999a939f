"""Facts in text: the names, places, numbers and ids that cannot be guessed again once they are out of sight."""

import re
from itertools import pairwise
from typing import NamedTuple

from clew.core.caches import remembers


class Fact(NamedTuple):
    """Something to keep verbatim, and where it stands in its text."""

    kind: str
    text: str
    start: int
    stop: int


ChunkPart = tuple[str, int, int]  # kind, start and stop within a chunk

# One pass finds whatever is written without a space; what it is gets decided once per distinct chunk.
FACT_CHUNK = re.compile(
    r"\\[nrt]"  # a line break inside quoted JSON is no letter of the next word
    r"|https?://[^\s\"'<>`)\]}|\\]+"
    r"|[$€£]\d[\d,]*(?:\.\d+)?"
    r"|\b(?:\d{1,2}:\d\d(?::\d\d)?|[a-z]{2,4}:\d{4,}|[0-9a-f]{2}(?::[0-9a-f]{2}){3,})\b"  # a time, tx:622934, e9:0b:66
    r"|[#~.@/$-]{0,9}\w[\w./@+~-]*"  # bounded: a rule of dashes must not be tried from each of its places
)
PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z]*[.-]*")  # an ordinary word, perhaps at the end of a sentence
GREP = re.compile(r"(\.[a-z]\w{0,7})-\d+(?:-.*)?$")  # a line of context from grep: path-82-text
EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
FILE = re.compile(r"[\w.@+~-]*\w\.(?=[a-z])[a-z0-9]{1,8}|\.[a-z][\w.-]{3,}")
EXTENSION = re.compile(
    r"\.(?:py|pyi|js|jsx|ts|tsx|mjs|cjs|go|rs|rb|java|kt|swift|c|cc|cpp|h|hpp|cs|php|sh|bash|zsh|fish|sql|html?|css|scss|vue|"
    r"json|jsonl|ya?ml|toml|ini|cfg|conf|xml|csv|tsv|md|mdx|rst|txt|log|lock|env|png|jpe?g|svg|gif|pdf|zip|gz|tar|"
    r"ipynb|dcm|db|sqlite|proto|tf|mod|sum|diff|patch|bak|backup|orig|tmp|out|in)$"
)
FLAG = re.compile(r"--[a-zA-Z][\w-]*\w")
DATE = re.compile(r"\d{4}-\d\d(?:-\d\d)?(?:T[\d.]+)?")
VERSION_NUMBER = re.compile(r"v\d+\.\w+(?:[-+.]\w+)*|\d+\.\d+\.\d+(?:[-+.]\w+)*")
SHA = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}")
CONSTANT = re.compile(r"_*[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+_*")
CODE_WORD = re.compile(r"[A-Z0-9]*(?:[A-Z]\d|\d[A-Z])[A-Z0-9]*")  # HAT028, 4NQLHD
ERROR_NAME = re.compile(r"[A-Z]\w*(?:Error|Exception|Warning)")
HUMPED_NAME = re.compile(r"[a-z0-9][A-Z]|[A-Z]{2}[a-z]")
DOTTED_NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
TRAILING = ".-+~/@"


def find(text: str) -> list[Fact]:
    """The facts of a text, in order; a name inside a longer one (a file in a path) follows it."""
    found = []
    for match in FACT_CHUNK.finditer(text):
        if parts := classify(match.group()):
            at = match.start()
            for kind, start, stop in parts:
                found.append(Fact(kind, text[at + start : at + stop], at + start, at + stop))
    return found


@remembers(1 << 16)
def classify(chunk: str) -> tuple[ChunkPart, ...]:
    """What a chunk without spaces holds: nothing for an ordinary word."""
    if PLAIN_WORD.fullmatch(chunk) or len(chunk) > 400:
        return ()
    if chunk[0] in "$€£" and chunk[1:2].isdigit():
        return (("amount", 0, len(chunk)),)
    if ":" in chunk and "/" not in chunk:
        return (("id", 0, len(chunk)),)
    if chunk.startswith("http") and "://" in chunk:
        return (("url", 0, len(chunk.rstrip(".,;:!?*"))),)
    chunk = GREP.sub(r"\1", chunk.rstrip(TRAILING))
    start = len(chunk) - len(chunk.lstrip("$@-")) if chunk[:1] in "$@-" and "/" not in chunk else 0
    if FLAG.fullmatch(chunk):
        return (("flag", 0, len(chunk)),)
    return tuple((kind, a + start, b + start) for kind, a, b in _bare(chunk[start:]))


def _bare(chunk: str) -> list[ChunkPart]:
    """The parts of a chunk that is no URL, amount or flag."""
    if "/" in chunk:
        return _path(chunk)
    if "@" in chunk:
        return [("email", 0, len(chunk))] if EMAIL.fullmatch(chunk) else []
    if kind := _kind(chunk):
        whole = [(kind, 0, len(chunk))]
        return whole + _names(chunk) if kind == "dotted" else whole
    return _names(chunk) if "." in chunk else []


def _path(chunk: str) -> list[ChunkPart]:
    names = [n for n in chunk.split("/") if n.strip(".~")]
    if len(names) < 2 and not (names and EXTENSION.search(chunk)):
        return []
    plain = len(names) == 2 and chunk[0] not in "/.~" and not EXTENSION.search(chunk)
    found: list[ChunkPart] = [("pair" if plain else "path", 0, len(chunk))]
    last = chunk.rfind("/") + 1
    if kind := _kind(chunk[last:]):
        found.append((kind, last, len(chunk)))
    return found


def _names(chunk: str) -> list[ChunkPart]:
    """The names worth keeping of a dotted name."""
    found: list[ChunkPart] = []
    at = 0
    for name in chunk.split("."):
        if kind := _kind(name):
            found.append((kind, at, at + len(name)))
        at += len(name) + 1
    return found


def _kind(name: str) -> str:
    """The kind of a name without slashes; empty for a word."""
    if len(name) < 3 or (name.isalpha() and (name.islower() or name[1:].islower())):
        return ""
    if name[0].isdigit() or name[0] == "v":
        if DATE.fullmatch(name):
            return "date"
        if VERSION_NUMBER.fullmatch(name):
            return "version"
        if name.replace(".", "", 1).isdigit():
            return "" if len(name) < 4 else "number" if len(name) < 7 or "." in name else "id"
    if name[0] == "#":
        return "id" if name[1:].isalnum() else ""
    if SHA.fullmatch(name):
        return "sha"
    if "." in name:
        if FILE.fullmatch(name) and EXTENSION.search(name):
            return "file"
        return "dotted" if len(name) > 5 and DOTTED_NAME.fullmatch(name) else ""
    if "-" in name:
        return "id" if any(c.isdigit() for c in name) else "kebab"
    return _symbol(name)


def _is_mixed(name: str) -> bool:
    """Whether letters and digits take turns as in no word: r1da722e17d."""
    return len(name) > 5 and sum(a.isdigit() != b.isdigit() for a, b in pairwise(name)) >= 3


def _symbol(name: str) -> str:
    if CONSTANT.fullmatch(name):
        return "const"
    if CODE_WORD.fullmatch(name):
        return "id"
    if ERROR_NAME.fullmatch(name):
        return "error"
    if (name[-3:].isdigit() and len(name) > 6) or _is_mixed(name):
        return "id"
    if "_" in name.strip("_") or HUMPED_NAME.search(name):
        return "symbol"
    return "private" if name[0] == "_" and len(name) > 4 else ""
