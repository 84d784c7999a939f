"""A short name for a conversation, made of what was typed first."""

import re
from collections.abc import Iterable, Iterator

from clew.clients.voices import typed
from clew.core.bounds import clip
from clew.core.items import Item

TITLE_LENGTH = 60  # characters: a line of a list on a telephone holds about as many
FEW = 3  # words: of fewer a greeting is made, or a bare command
FENCED = re.compile(r"(?ms)^[ \t]{0,3}(```|~~~).*?(?:^[ \t]{0,3}\1|\Z)")
_TAGS = re.compile(r"</?[A-Za-z][^<>\n]{0,80}>")
_LEAD = re.compile(r"^(?:[#>*\-•\s]+|\[[^\]\n]{1,40}\]\s+|\d{1,3}[.)]\s+)+")
_ENDS = re.compile(r"(?<=[.!?。！？])\s+|(?<=[。！？])|\n+")
_CLAUSE = re.compile(r"[,;:—–](?=\s)|\s[-–—(]\s?|[、，；：]")
READ = 4_000  # characters of what was typed


def title_of(asked: Iterable[Item]) -> str:
    """The first clause of the first request that says something; nothing where nobody has typed anything."""
    first = ""
    for item in asked:
        for said in _sentences(typed(item)[:READ]):
            if len(said.split()) >= FEW or len(said) > TITLE_LENGTH or not said.isascii():
                return _clause(said)
            first = first or said
    return clip(first, TITLE_LENGTH)


def _sentences(text: str) -> Iterator[str]:
    """What stands there as a sentence; blocks, and what only leads to the next line, left out."""
    lines = [_LEAD.sub("", one).strip() for one in _ENDS.split(_TAGS.sub("\n", FENCED.sub("\n", text)))]
    found = [" ".join(line.split()) for line in lines if line]
    for n, one in enumerate(found):
        if not (one.endswith(":") and n + 1 < len(found)):
            yield one


def _clause(said: str) -> str:
    """As many of its clauses as there is room for, at least the first."""
    if len(said) > TITLE_LENGTH:
        ends = [found.start() for found in _CLAUSE.finditer(said) if TITLE_LENGTH // 3 <= found.start() < TITLE_LENGTH]
        said = said[: ends[-1]] if ends else clip(said, TITLE_LENGTH)
    return said.rstrip(" .。:,;")
