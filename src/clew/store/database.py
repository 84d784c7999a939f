"""What the log needs of a database, whichever it is: our statements by name, and transactions of three kinds."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from clew.core.items import Scope
from clew.text.words import is_lone_sign

REPAIR = "`clew doctor --repair`"
INDEX_DAMAGE = "damage in the search index"

BEGINNING = 4  # letters that are enough to look for what begins with them


def may_go_on(word: str) -> bool:
    """Whether what begins with a word is looked for, too."""
    return len(word) >= BEGINNING or is_lone_sign(word)


class Rows(Protocol):
    """What came of a statement."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


LaterRows = Callable[[], Sequence[Any]]  # rows, once they are asked for


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a database takes on disk, in bytes."""

    file: int
    wal: int
    free: int
    bodies: int
    index: int
    exact: bool


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that should not be so."""

    what: str
    count: int
    remedy: str


class Database(Protocol):
    """One connection. Its statements are those of `queries.sql` and of its own dialect."""

    errors: type[Exception]  # that it raises where it is damaged or away
    restoring: str  # how a backup is put back
    readonly: bool

    def ask(self, name: str, /, **given: Any) -> Rows:
        """Run the statement of that name."""

    def later(self, name: str, /, **given: Any) -> LaterRows:
        """Run it; what this returns has the rows. Until they are read, a server need not have been waited for."""

    def many(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run it for each of these."""

    def add(self, name: str, /, **given: Any) -> int:
        """Insert one row; the number it got."""

    def words(self, text: str) -> Sequence[Mapping[str, Any]]:
        """A text as `add_text` takes it, in one part or more."""

    def is_found(self, body: int, word: str) -> bool:
        """Whether the search index has this word of a body."""

    def holding(self, owner: int, words: Sequence[str]) -> Rows:
        """The bodies of a scope in which all of these words are said: content, kind, role, how it is packed, data."""

    def forget_words(self, bodies: Sequence[int]) -> None:
        """Take bodies, by number, out of the search index."""

    def search(self, scope: Scope, words: Sequence[str], among: str | None, limit: int) -> list[str]:
        """The contents, of those listed or of all, in which one of these words is said; best first."""

    def transaction(self) -> AbstractContextManager[None]:
        """All of it or none; what is read in it is what is written on."""

    def writing(self) -> AbstractContextManager[None]:
        """A short one, all of it or none. It may be a part of one that others share: it is there when that ends.

        Statements may be sent together; whoever reads rows waits for all of them.
        """

    def trial(self) -> AbstractContextManager[None]:
        """A transaction that is always taken back: what it would do is known, and nothing was done."""

    def snapshot(self) -> AbstractContextManager[None]:
        """What is read in it is of one moment, whatever others write or purge meanwhile."""

    def is_busy(self, error: Exception) -> bool:
        """Whether it says that somebody else has a lock that is needed."""

    def damage(self) -> list[Problem]:
        """Damage below the rows."""

    def sizes(self, stored: int) -> Sizes:
        """What it takes on disk, if its bodies are so many bytes."""
