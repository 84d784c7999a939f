"""What clew told of others, and was logged as said: answers of its own tools, summaries that it gave to clients."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from clew.clients.voices import FRAMED
from clew.core.items import SHORT, Item, Node, Scope
from clew.core.own_tools import SUMMARY_LINE
from clew.store import reading
from clew.store.database import Database
from clew.store.packing import unpack_item
from clew.text.search import ALSO, wording
from clew.text.words import NAME_PATTERN, is_name

IN_A_ROW = 4  # words that two texts have in common, one after the other: one may quote the other
FRAME_REACH = 500  # characters in which an answer is framed: clients write a line of their own before it
# What these have that clew wrote, and words of it by which the index finds them.
MARKS: Mapping[str, tuple[str, Sequence[str]]] = {
    "result": (FRAMED, ("data", "orders", "end")),
    "text": (SUMMARY_LINE, ("clew", "log", "all", "kept")),
}
_ID = re.compile(rf"(?<![0-9a-z])[0-9a-f]{{{SHORT},32}}(?![0-9a-z])")
_WORD = re.compile(r"\w+")


def copies(db: Database, scope: Scope, owner: int, said: Sequence[Node], places: Collection[str]) -> list[str]:
    """The contents of what clew told that may hold words of these nodes, which stand at these places.

    All that it told in the scope is read: whose past a conversation could search is not written down.
    """
    told = dict(_told(db, owner))
    quoting = _Quoting(db, scope, said, places) if told else None
    return [content for content, item in told.items() if quoting and quoting.may(item.text)]


def _told(db: Database, owner: int) -> Iterator[tuple[str, Item]]:
    for kind, (mark, words) in MARKS.items():
        for content, *stored in db.holding(owner, words).fetchall():
            item = unpack_item(None, *stored)
            if item.kind == kind and mark in (item.text[:FRAME_REACH] if kind == "result" else item.text):
                yield content, item


class _Quoting:
    """Tells whether a text may quote some nodes: by an id, by words in a row, by a name."""

    def __init__(self, db: Database, scope: Scope, said: Sequence[Node], places: Collection[str]) -> None:
        self._db, self._scope, self._places = db, scope, set(places)
        texts = [text for node in said for text in {node.item.text, wording(node.item)}]
        said_words = [_WORD.findall(text.lower()) for text in texts]
        self._rows = {row for words in said_words if words for row in _rows(words, min(IN_A_ROW, len(words)))}
        self._names = {name for text in texts for name in NAME_PATTERN.findall(text) if is_name(name)}
        self._known: dict[str, bool] = {}

    def may(self, text: str) -> bool:
        words = _WORD.findall(text.lower())
        if any(not self._rows.isdisjoint(_rows(words, many)) for many in {len(row) for row in self._rows}):
            return True
        if any(map(self._leads, _ID.findall(text))):
            return True
        return ALSO in text and not self._names.isdisjoint(text.rpartition(ALSO)[2].split())

    def _leads(self, short: str) -> bool:
        """Whether one of them stands behind an id."""
        if short not in self._known:
            found = reading.resolve(self._db, self._scope, short)
            behind = (reading.behind_id(self._db, self._scope, id) for id in found)
            self._known[short] = any(not self._places.isdisjoint(ids) for ids in behind)
        return self._known[short]


def _rows(words: Sequence[str], many: int) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + many]) for at in range(len(words) - many + 1)}
