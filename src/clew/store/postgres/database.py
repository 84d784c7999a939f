"""Our statements over psycopg."""

import re
import unicodedata
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import log
from selectors import EVENT_READ, DefaultSelector
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from clew.core.items import Scope
from clew.store.database import LaterRows, Problem, Rows, Sizes, may_go_on
from clew.store.packing import listed
from clew.store.postgres.opening import StoreConnection
from clew.store.queries import statements
from clew.store.signs import asked, indexed
from clew.store.sqlite.opening import APPLICATION, refuse_newer
from clew.store.waiting import Wait

LONGEST_WORD = 500  # characters of a word; PostgreSQL takes some 2,000 bytes
MOST_BYTES = 400_000  # bytes of words together; it takes a million

_WORD = re.compile(r"\w+")
_ACCENT = re.compile("[\u0300-\u036f]")


BEGIN = "begin isolation level read committed read write"
MOST = 2_000  # bodies looked at for each word, where the whole scope is searched
WIPING = 5.0  # seconds that a wipe waits for a table: whoever comes after it waits as long


def translate(statement: str) -> str:
    """A statement as psycopg takes it, without what is only for SQLite's planner."""
    plain = re.sub(r"--.*", "", statement).strip().rstrip(";").replace("%", "%%")
    plain = re.sub(r" indexed by \w+", "", plain.replace("cross join", "join"))
    return re.sub(r"(?<!:):(\w+)", r"%(\1)s", plain)


SQL = {name: translate(statement) for name, statement in statements("postgres").items()}


class PostgresDatabase:
    """A connection to a server, whose transactions are ours to begin and end."""

    errors: type[Exception] = psycopg.Error
    restoring = "restore a backup with pg_restore"
    readonly = False

    def __init__(self, connection: StoreConnection) -> None:
        self.connection = connection

    def ask(self, name: str, /, **given: Any) -> psycopg.Cursor[Any]:
        return self.connection.execute(SQL[name], given, binary=True)

    def later(self, name: str, /, **given: Any) -> LaterRows:
        return self.ask(name, **given).fetchall

    def many(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        if rows := list(rows):
            self.connection.cursor().executemany(SQL[name], rows)  # sent together, with what else is

    def add(self, name: str, /, **given: Any) -> int:
        row = self.connection.execute(SQL[name] + " returning id", given).fetchone()
        return int(row[0]) if row else 0

    def words(self, text: str) -> Sequence[Mapping[str, Any]]:
        return [{"part": n, "words": part} for n, part in enumerate(in_parts(text))]

    def is_found(self, body: int, word: str) -> bool:
        return self.ask("is_found", body=body, word=_query(word)).fetchone() is not None

    def holding(self, owner: int, words: Sequence[str]) -> Rows:
        return self.ask("holding", owner=owner, words=" & ".join(f"'{word}'" for word in (*words, f"#{owner}")))

    def forget_words(self, bodies: Sequence[int]) -> None:
        self.ask("purge_texts", bodies=listed(bodies))

    def search(self, scope: Scope, words: Sequence[str], among: str | None, limit: int) -> list[str]:
        queries = list(dict.fromkeys(query for word in words if (query := _query(word))))
        if not queries:
            return []
        if among is None:
            return rank(self.ask("search_all", scope=scope, words=queries, most=MOST), limit)
        either = " | ".join(f"({query})" for query in queries)
        return rank(self.ask("search", scope=scope, words=queries, any=either, among=among), limit)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Each statement sees what was committed before it: whoever waited for a lock sees what it waited for."""
        with self._begun(BEGIN):
            with self._known_form():
                yield
            self.connection.execute("commit")

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Statements are not waited for but where an answer is read: one trip decides, one writes and commits."""
        try:
            with self.connection.pipeline():
                self.connection.execute(BEGIN)
                with self._known_form():
                    yield
                self.connection.execute("commit")
        finally:
            self._roll_back()

    @contextmanager
    def _known_form(self) -> Iterator[None]:
        """A newer clew may have brought the tables to a form in which this one cannot write: not now, nor meanwhile.

        The version comes with the first answer that is read, so nobody waits for it.
        """
        self.ask("hold_version", application=APPLICATION)
        found = self.later("version")
        yield
        [(version,)] = found()
        refuse_newer(self.connection.place, int(version), "postgres")

    @contextmanager
    def trial(self) -> Iterator[None]:
        with self._begun(BEGIN):
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        if self._open():
            yield
            return
        with self._begun("begin isolation level repeatable read read only"):
            yield

    @contextmanager
    def _begun(self, how: str) -> Iterator[None]:
        try:
            self.connection.execute(how)
            yield
        finally:
            self._roll_back()

    def _roll_back(self) -> None:
        if self._open():
            self.connection.execute("rollback")

    def _open(self) -> bool:
        idle = (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)  # unknown: the connection is gone
        return self.connection.info.transaction_status not in idle

    def is_busy(self, error: Exception) -> bool:
        return isinstance(error, psycopg.errors.LockNotAvailable)

    def be_patient(self, seconds: float) -> None:
        """From here on wait no longer than this for a lock."""
        if seconds != self.connection.patience:
            self.connection.execute(f"set lock_timeout = {max(1, round(1000 * seconds))}")
            self.connection.patience = seconds

    @contextmanager
    def hurried(self, wait: Wait) -> Iterator[None]:
        """As long as a caller would wait."""
        self.be_patient(wait.most)
        try:
            yield
        except psycopg.errors.LockNotAvailable:
            wait.end()
            raise

    def damage(self) -> list[Problem]:
        return []  # the server looks after its files itself

    def sizes(self, stored: int) -> Sizes:
        file, bodies, index = self.ask("survey_pages").fetchone() or (0, 0, 0)
        return Sizes(file=file, wal=0, free=0, bodies=bodies, index=index, exact=True)

    def wipe(self) -> bool:
        """Write the tables anew without what was deleted; False if somebody else keeps the old rows alive."""
        kept: list[int] = []

        def hear(told: psycopg.errors.Diagnostic) -> None:
            # "3 dead row versions cannot be removed yet", in whatever language; a warning says that a table is not ours
            kept.extend(int(number) for number in re.findall(r"^\d+", told.message_detail or ""))
            kept.append(told.severity_nonlocalized == "WARNING")

        self.connection.add_notice_handler(hear)
        try:
            self.be_patient(WIPING)
            self.connection.execute(SQL["wipe"])
        except psycopg.errors.LockNotAvailable:
            return False
        finally:
            self.connection.remove_notice_handler(hear)
        if not any(kept):
            self.ask("wiped")
        return not any(kept)

    def leave_to_vacuum(self, above: int) -> bool:
        """Where the tables are larger than this, note that deleted bytes are there until the server uses their room."""
        [(size,)] = self.ask("size").fetchall()
        if size > above:
            self.ask("left_to_vacuum")
        return bool(size > above)

    def usable(self) -> bool:
        """Whether the connection can be used again."""
        return not self.connection.closed and self.connection.info.transaction_status == TransactionStatus.IDLE

    def silent(self) -> bool:
        """Whether the server said nothing while the connection lay idle: if it did, that was its farewell."""
        with DefaultSelector() as selector:
            selector.register(self.connection.fileno(), EVENT_READ)
            return not selector.select(0)

    def close(self) -> None:
        self.connection.close()


def rank(rows: Iterable[tuple[str, int, list[int]]], limit: int) -> list[str]:
    """Contents by the words that are said in them, best first; a word counts the more, the fewer of them say it."""
    said: dict[str, set[int]] = {}
    sizes: dict[str, int] = {}
    for content, size, found in rows:  # a long text has several rows
        said.setdefault(content, set()).update(found)
        sizes[content] = size
    spread = Tally(word for found in said.values() for word in found)
    worth = {word: log(1 + len(said) / count) for word, count in spread.items()}
    scores = {content: sum(worth[word] for word in found) for content, found in said.items()}
    return sorted(said, key=lambda content: (-scores[content], sizes[content], content))[:limit]


def _query(word: str) -> str:
    """All parts of a name; the last of them may go on, if the name is long enough to tell."""
    *parts, last = split(asked(word)) or [""]
    if not last:
        return ""
    return " & ".join([*(f"'{part}'" for part in parts), f"'{last}'" + ":*" * may_go_on(word)])


def split(text: str) -> list[str]:
    """The words of a text, in order."""
    plain = _ACCENT.sub("", unicodedata.normalize("NFD", text.lower()))
    return [word[:LONGEST_WORD] for word in _WORD.findall(unicodedata.normalize("NFC", plain))]


def in_parts(text: str) -> Iterator[list[str]]:
    """The words of a text, each once, in parts that an index can take; an empty one if there are none."""
    part: list[str] = []
    room = MOST_BYTES
    for word in sorted(set(split(indexed(text)))):
        size = len(word.encode())
        if size > room:
            yield part
            part, room = [], MOST_BYTES
        part.append(word)
        room -= size
    yield part
