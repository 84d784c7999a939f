"""Our statements over sqlite3."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clew.core.items import Scope
from clew.store.database import LaterRows, Problem, Rows, Sizes, may_go_on
from clew.store.packing import indexable, unpack_item
from clew.store.queries import statements
from clew.store.signs import asked, first_pair, indexed
from clew.store.sqlite.damage import damage
from clew.store.sqlite.opening import refuse_newer
from clew.store.sqlite.watching import Watch, is_busy
from clew.store.waiting import PATIENCE
from clew.text.words import parts

MANY = 4_000  # texts that have a word which tells little
RANKED = 8_000  # texts that are ranked, more or less: those with the rarest words
NEWEST = 20_000  # texts that are looked at where all words do

SQL = statements("sqlite")
GLANCE = 0.1  # seconds that one try takes: whoever waits longer tries again


class SQLiteDatabase:
    """A connection to a file, or to memory."""

    errors: type[Exception] = sqlite3.DatabaseError
    restoring = "restore a backup: `clew backup --restore FILE`"

    def __init__(self, connection: sqlite3.Connection, path: str, readonly: bool = False) -> None:
        self.connection = connection
        self.path = path
        self.readonly = readonly
        self.watch: Watch | None = None  # over its file
        self.patience = PATIENCE
        self.crowded = False  # somebody else was writing to the file once
        self._parts = 0  # that a transaction has so far, each a turn

    def ask(self, name: str, /, **given: Any) -> sqlite3.Cursor:
        return self.connection.execute(SQL[name], given)

    def later(self, name: str, /, **given: Any) -> LaterRows:
        rows = self.ask(name, **given).fetchall()  # one half read would keep the file as it was then
        return lambda: rows

    def many(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        if rows := list(rows):
            self.connection.executemany(SQL[name], rows)

    def add(self, name: str, /, **given: Any) -> int:
        return int(self.ask(name, **given).lastrowid or 0)

    def words(self, text: str) -> Sequence[Mapping[str, Any]]:
        return [{"text": indexed(text)}]

    def is_found(self, body: int, word: str) -> bool:
        return self.ask("is_found", body=body, word=_quoted_word(word)).fetchone() is not None

    def holding(self, owner: int, words: Sequence[str]) -> Rows:
        return self.ask("holding", owner=owner, words=" AND ".join(f'"{word}"' for word in words))

    def forget_words(self, bodies: Sequence[int]) -> None:
        for body in bodies:  # the index does not keep the text, and must be told what to delete
            *stored, purged = self.ask("body_by_number", body=body).fetchone()
            text = unpack_item(None, *stored).text
            if text and purged is None:
                pair = first_pair(text)
                older = pair and not self.is_found(body, pair)
                self.ask("purge_text", body=body, text=indexable(text) if older else indexed(text))

    def search(self, scope: Scope, words: Sequence[str], among: str | None, limit: int) -> list[str]:
        # Each word is quoted: what a person or a model looks for is text, never query syntax.
        # The index has names with their underscores in one piece: a part of one is found as its beginning.
        if among is not None:
            queries = " OR ".join(map(_any, words))
            return [row[0] for row in self.ask("search", among=among, scope=scope, words=queries, limit=limit)]
        # Ranking is dear, and a word that thousands of texts have tells little: only where there is no other.
        if rare := self._rarest(scope, words):
            given = {"scope": scope, "words": " OR ".join(rare), "limit": limit}
            if found := [row[0] for row in self.ask("search_all", after=0, **given)]:
                return found
        given = {"scope": scope, "words": " OR ".join(map(_any, words)), "limit": limit}
        recent = max(0, self._one("last_body") - NEWEST)
        found = [row[0] for row in self.ask("search_all", after=recent, **given)]
        return found or ([row[0] for row in self.ask("search_all", after=0, **given)] if recent else [])

    def _rarest(self, scope: Scope, words: Sequence[str]) -> list[str]:
        """How to look for those words that fewest texts have; of a name that some have, no parts."""
        found, known = list[tuple[int, str]](), set[str]()
        count = "count_some_of" if self._one("count_scopes") > 1 else "count_some"  # reading whose each is takes longer
        for word in words:  # the longest first
            if word in known:
                continue
            many, query = self._rare(word, lambda words: self._one(count, words=words, most=MANY, scope=scope))
            if many:
                found.append((many, query))
                known.update(parts(word))
        kept, all = list[str](), 0
        for many, query in sorted(found):
            if kept and all + many > RANKED:
                break
            kept.append(query)
            all += many
        return kept

    def _rare(self, word: str, count: Callable[[str], int]) -> tuple[int, str]:
        """How many texts have a word, 0 if many; how to look for it, as the beginning of others if those are few."""
        exact = count(_quoted_word(word))
        if exact >= MANY:
            return 0, ""
        if may_go_on(word):
            begun = count(_beginning(word))
            if begun < MANY:
                return begun, _beginning(word)
        return exact, _quoted_word(word)

    def _one(self, query: str, **given: Any) -> int:
        return int(self.ask(query, **given).fetchone()[0])

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """The lock is taken at once, so that what is read in it is what is written on."""
        with self.together():
            yield
            self._parts = 1

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction, which may be a part of one that others have begun."""
        if not self.connection.in_transaction:
            with self.transaction():
                yield
            return
        self.connection.execute("savepoint part")
        try:
            yield
        except BaseException:
            if self.connection.in_transaction:  # SQLite ends it by itself where the disk is full
                self.connection.execute("rollback to part")
                self.connection.execute("release part")
            raise
        self.connection.execute("release part")
        self._parts += 1

    @contextmanager
    def together(self) -> Iterator[None]:
        """All that is written in this is there when it ends, or nothing."""
        self._begin()
        self._parts = turns = 0
        try:
            # A newer clew may have opened the file since, and brought it to a form in which this one cannot write.
            refuse_newer(self.path, self.connection.execute("pragma user_version").fetchone()[0])
            yield
            if self.watch and self._parts:
                [(turns,)] = self.ask("count_turns", more=self._parts).fetchall()
            self.connection.execute("commit")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("rollback")
            raise
        if self.watch and turns:
            self.watch.commit(turns)

    def _begin(self) -> None:
        try:
            self._begin_within(0)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            self.crowded = True
            self._begin_within(GLANCE)

    def _begin_within(self, seconds: float) -> None:
        self.connection.execute(f"pragma busy_timeout = {round(1000 * seconds)}")
        try:
            self.connection.execute("begin immediate")
        finally:
            self.connection.execute(f"pragma busy_timeout = {round(1000 * self.patience)}")

    def turns(self) -> int:
        """How many were written, ever."""
        return int(self.ask("turns").fetchone()[0])

    def note_lost(self, marked: Callable[[], int]) -> None:
        """Remember that turns are missing, if there were more than there are."""
        if marked() <= self.turns():
            return
        with self.transaction():
            more = marked() - self.turns()  # looked at again where nobody writes
            if more > 0:
                self.ask("lose_turns", more=more)

    @contextmanager
    def trial(self) -> Iterator[None]:
        self._begin()
        try:
            yield
        finally:
            self.connection.execute("rollback")

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        if self.connection.in_transaction:
            yield
            return
        self.connection.execute("begin")
        try:
            yield
        finally:
            self.connection.execute("rollback")

    def is_busy(self, error: Exception) -> bool:
        return is_busy(error)

    def damage(self) -> list[Problem]:
        return damage(self.connection)

    def sizes(self, stored: int) -> Sizes:
        page, pages, free = (
            self.connection.execute(f"pragma {name}").fetchone()[0]
            for name in ("page_size", "page_count", "freelist_count")
        )
        try:
            bodies, index = self.ask("survey_pages").fetchone()
            exact = True
        except sqlite3.OperationalError:  # this SQLite was built without dbstat
            bodies, index, exact = stored, self.ask("survey_index").fetchone()[0], False
        file = _size(Path(self.path)) or page * pages
        return Sizes(file, _size(Path(f"{self.path}-wal")), page * free, bodies, index, exact)

    def wipe(self) -> bool:
        """Write the file anew without what was deleted; False if somebody who reads it keeps the old pages alive."""
        self.connection.execute("pragma secure_delete = on")
        try:
            self.connection.execute("vacuum")
            busy = self.connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            return False
        if not busy:
            self.ask("wiped")
        return not busy

    def close(self) -> None:
        self.connection.close()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _any(word: str) -> str:
    return _beginning(word) if may_go_on(word) else _quoted_word(word)


def _quoted_word(word: str) -> str:
    return f'"{asked(word)}"'


def _beginning(word: str) -> str:
    return f'"{asked(word).rstrip()}"*'
