"""The rules held against a text."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from clew.secrets.kinds import PLACES, SHAPES, SecretKind
from clew.secrets.values import is_empty, proves

TELLING = frozenset(kind.name for kind in SHAPES) | {"private key"}  # kinds that say themselves what they are
_LONG = re.compile(r"[a-z0-9_.+/=~:$%|@{}-]{16,}")
_SHAPES, _PLACES = (
    {w: [k for k in table if w in k.words] for kind in table for w in kind.words} for table in (SHAPES, PLACES)
)


class Secret(NamedTuple):
    """Where a secret stands in a text, and of which kind it is."""

    kind: str
    start: int
    stop: int


def matched(text: str, lower: str) -> list[Secret]:
    """The secrets that the patterns of kinds find; they may overlap."""
    # A secret that is known by its shape has no spaces, and most text is short words.
    long = " ".join(_LONG.findall(lower))
    there = [(word, kind) for word in _SHAPES if word in long for kind in _SHAPES[word]] if long else []
    there += [(word, kind) for word in _PLACES if word in lower for kind in _PLACES[word]]
    return [secret for word, kind in there for secret in found_by(kind, word, text, lower)]


def found_by(kind: SecretKind, word: str, text: str, lower: str) -> Iterator[Secret]:
    """The secrets that one pattern finds where one of its words is in the text."""
    for match in _tried(kind, word, text, lower):
        start, stop = match.span(match.lastindex or 0)
        value = text[start:stop]
        if not is_empty(value, kind.proof) and (kind.proof is None or proves(kind.proof, value)):
            yield Secret(kind.name, start, stop)


def _tried(kind: SecretKind, word: str, text: str, lower: str) -> Iterator[re.Match[str]]:
    """Where the pattern of a kind fits; one that begins with its word is tried only there."""
    pattern = kind.pattern
    if not kind.begins:
        yield from pattern.finditer(text)
        return
    at = lower.find(word)
    while at >= 0:
        match = pattern.match(text, at)
        if match:
            yield match
        at = lower.find(word, max(at + 1, match.end() if match else 0))
