"""What clew told of others, and was logged as said: answers of its own tools, summaries and previews for clients."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from clew.clients.voices import FRAMED
from clew.core.items import SHORT, Item, Node, Scope
from clew.core.own_tools import SUMMARY_LINE
from clew.core.pointers import PREVIEWED
from clew.store import reading
from clew.store.database import Database
from clew.store.packing import listed, unpack, unpack_item
from clew.store.upkeep.quoting import holding
from clew.text.search import ALSO, wording
from clew.text.words import NAME_PATTERN, is_name

IN_A_ROW = 4  # words that two texts have in common, one after the other: one may quote the other
ROWS = range(1, IN_A_ROW + 1)
READ_AT_ONCE = 500  # nodes
FRAME_REACH = 500  # characters in which an answer is framed: clients write a line of their own before it
# What these have that clew wrote, in how many characters from the first, and words of it by which the index finds them.
MARKS = (
    ("result", FRAMED, FRAME_REACH, ("data", "orders", "end")),
    ("result", PREVIEWED, None, ("characters", "out", "view")),
    ("text", SUMMARY_LINE, None, ("clew", "log", "all", "kept")),
)
_ID = re.compile(rf"(?<![0-9a-z])[0-9a-f]{{{SHORT},32}}(?![0-9a-z])")
_WORD = re.compile(r"\w+")


def copies(db: Database, scope: Scope, owner: int, said: Sequence[Node], places: Collection[str]) -> list[str]:
    """The contents of what clew told that may hold words of these nodes, which stand at these places.

    All that it told in the scope is read: whose past a conversation could search is not written down.
    """
    told = dict(_marked_items(db, owner))
    quoting = _Quoting(db, scope, owner, said, places) if told else None
    return [content for content, item in told.items() if quoting and quoting.may(item.text)]


def copies_on(
    db: Database, scope: Scope, branches: Collection[str], going: Collection[str], staying: Collection[str]
) -> list[str]:
    """The contents of what clew told on these branches that may hold words of nodes that go, and that nobody else said.

    Others are these branches themselves, and the nodes that stay: a whole conversation has many words in common with
    the one that goes on from it. Of what goes and stays, no more is held at a time than of some nodes.
    """
    told, own = dict[str, str](), list(staying)
    events = db.ask("said_on", branches=listed(branches)).fetchall()
    for node in _nodes(db, scope, {id for (new,) in events for id in unpack(new)}):
        if _is_told(node.item):
            told[node.content] = node.item.text
        else:
            own.append(node.id)
    words = {content: _words(text) for content, text in told.items()}
    rows = {content: {row for many in ROWS for row in _rows(said, many)} for content, said in words.items()}
    listings = {content: _listed_names(text) for content, text in told.items()}
    every, named = set[tuple[str, ...]]().union(*rows.values()), set[str]().union(*listings.values())
    said_rows, said_names = set[tuple[str, ...]](), set[str]()
    for node in _nodes(db, scope, going if told else ()):
        for text in _texts(node):
            said_rows |= every & _row_set(text)
            said_names |= named & _names(text)
    lengths = {len(row) for row in said_rows}
    for node in _nodes(db, scope, own if said_rows or said_names else ()):
        for text in _texts(node):
            words_here = _words(text)
            said_rows.difference_update(*(_rows(words_here, many) for many in lengths))
            said_names -= _names(text)
    leads = _Leads(db, scope, going)
    return [
        content
        for content, text in told.items()
        if not (said_rows.isdisjoint(rows[content]) and said_names.isdisjoint(listings[content])) or leads.any(text)
    ]


def _nodes(db: Database, scope: Scope, ids: Iterable[str]) -> Iterator[Node]:
    every = sorted(ids)
    for at in range(0, len(every), READ_AT_ONCE):
        yield from reading.nodes(db, scope, every[at : at + READ_AT_ONCE]).values()


def _marked_items(db: Database, owner: int) -> Iterator[tuple[str, Item]]:
    for kind, _, _, words in MARKS:
        for content, *stored in db.holding(owner, words).fetchall():
            item = unpack_item(None, *stored)
            if item.kind == kind and _is_told(item):
                yield content, item


def _is_told(item: Item) -> bool:
    return any(item.kind == kind and mark in item.text[:reach] for kind, mark, reach, _ in MARKS)


class _Quoting:
    """Tells whether a text may quote some nodes: by an id, by words in a row, by a name."""

    def __init__(self, db: Database, scope: Scope, owner: int, said: Sequence[Node], places: Collection[str]) -> None:
        texts = [text for node in said for text in _texts(node)]
        self._rows = {row for text in texts for row in _row_set(text)}
        self._common = _common(db, scope, owner, self._rows, places)
        self._rows -= self._common
        self._names = {name for text in texts for name in _names(text)}
        self._leads = _Leads(db, scope, places)

    def may(self, text: str) -> bool:
        words = _words(text)
        if any(not self._rows.isdisjoint(_rows(words, many)) for many in {len(row) for row in self._rows}):
            return True
        if self._common and any(not self._common.isdisjoint(_alone(line)) for line in text.splitlines()):
            return True
        return self._leads.any(text) or not self._names.isdisjoint(_listed_names(text))


def _common(
    db: Database, scope: Scope, owner: int, rows: set[tuple[str, ...]], places: Collection[str]
) -> set[tuple[str, ...]]:
    """Short messages whose words stand in others, too, that stay beside them: "yes" in a text quotes nobody.

    Such a one is quoted where a line says it and no more.
    """
    short, found = {row for row in rows if len(row) < IN_A_ROW}, set[tuple[str, ...]]()
    events = db.ask("said_on", branches=listed(holding(db, owner, places))).fetchall() if short else ()
    for node in _nodes(db, scope, {id for (new,) in events for id in unpack(new)}.difference(places)):
        if not _is_told(node.item):
            words = _words(node.item.text)
            found |= {row for row in short - found if row in _rows(words, len(row))}
    return found


def _alone(line: str) -> set[tuple[str, ...]]:
    """What a line says, as a whole and after whoever says it."""
    return {tuple(_words(line)), tuple(_words(line.partition(": ")[2])), tuple(_words(line.rpartition(": ")[2]))}


class _Leads:
    """Tells whether one of some nodes stands behind an id that a text names."""

    def __init__(self, db: Database, scope: Scope, places: Collection[str]) -> None:
        self._db, self._scope, self._places = db, scope, set(places)
        self._known: dict[str, bool] = {}

    def any(self, text: str) -> bool:
        return any(map(self._leads, _ID.findall(text)))

    def _leads(self, short: str) -> bool:
        if short not in self._known:
            found = reading.resolve(self._db, self._scope, short)
            behind = (reading.behind_id(self._db, self._scope, id) for id in found)
            self._known[short] = any(not self._places.isdisjoint(ids) for ids in behind)
        return self._known[short]


def _texts(node: Node) -> set[str]:
    return {node.item.text, wording(node.item)}


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _names(text: str) -> set[str]:
    return {name for name in NAME_PATTERN.findall(text) if is_name(name)}


def _listed_names(text: str) -> set[str]:
    return set(text.rpartition(ALSO)[2].split()) if ALSO in text else set()


def _row_set(text: str) -> set[tuple[str, ...]]:
    """The rows by which a text is known where it is quoted; a short one is a row itself."""
    words = _words(text)
    return _rows(words, min(IN_A_ROW, len(words))) if words else set()


def _rows(words: Sequence[str], many: int) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + many]) for at in range(len(words) - many + 1)}
