"""What is wrong with a store file, in SQLite's own words: which check fails, in which table, on which page."""

import sqlite3
from contextlib import closing
from pathlib import Path

from clew.store.database import INDEX_DAMAGE, REPAIR, Problem
from clew.store.sqlite.opening import APPLICATION, BESIDE, MAGIC, connect_readonly
from clew.store.sqlite.watching import MARK, is_busy

LINES = 100  # of what SQLite finds damaged
SEARCH_INDEX = "body_text"  # begins the names of the tables that full-text search keeps
RESTORE = "restore a backup: `clew backup --restore FILE`; the damaged log is moved aside, not deleted"
SAVE = "without a backup, save what can still be read: `clew export NAME -o FILE`"
MOVE = (
    "if it was clew's log, move it away and restore a backup: `clew backup --restore FILE`; "
    "else name another file with --store"
)


def damage(db: sqlite3.Connection) -> list[Problem]:
    """The damage below the rows, table by table, of a store that can be opened."""
    found = _checked(db, str(LINES))
    if not found:
        return []
    problems = list[Problem]()
    for name in _tables(db):
        if told := _checked(db, "'{}'".format(name.replace("'", "''"))):
            problems.append(_problem(name, told))
    # What no table has: the list of free pages, or pages that nobody uses. Older ones do not check a table alone.
    whole = Problem(f"damage in the file: {found[0]}", len(found), f"{RESTORE}; {SAVE}")
    return _once(problems) or [whole]


def damage_at(path: Path) -> list[Problem]:
    """What is wrong with a file that cannot be opened as a store; nothing where that is not its own fault."""
    with path.open("rb") as file:
        head = file.read(100)
    if found := _header(head):
        return [found]
    problems = _cut(path, head) or _tables_at(path)
    wal = Path(f"{path.resolve()}{BESIDE[0]}")
    if problems and Path(f"{path.resolve()}{MARK}").exists() and not wal.exists():
        told = "the write-ahead log is missing, and who wrote last did not end well"
        problems.append(Problem(told, 1, f"put {wal.name} back beside the file, if you have it"))
    return problems


def _tables_at(path: Path) -> list[Problem]:
    """Damage that can be told table by table, though the whole cannot be opened."""
    try:
        with closing(connect_readonly(path)) as db:
            db.execute("select count(*) from sqlite_master").fetchone()
            return [Problem(p.what, p.count, RESTORE) for p in damage(db)]
    except sqlite3.Error as error:
        if is_busy(error):
            return []
        return [Problem(f"the list of tables, which begins on page 1, cannot be read: {error}", 1, RESTORE)]


def _header(head: bytes) -> Problem | None:
    if not head.strip(b"\0"):
        return Problem("the file begins with zeros where a database says what it is", 1, MOVE)
    if head[:16] != MAGIC:
        return Problem(f"not a database: the file begins with {head[:16]!r}, not with {MAGIC!r}", 1, MOVE)
    if (owner := int.from_bytes(head[68:72])) != APPLICATION:
        return Problem(
            f"a database of another program: its application id is {owner:#x}, not {APPLICATION:#x}", 1, MOVE
        )
    return None


def _cut(path: Path, head: bytes) -> list[Problem]:
    """Whether a file has fewer pages than it says; what is in a write-ahead log is not counted."""
    page = int.from_bytes(head[16:18])
    page, pages = 65_536 if page == 1 else page, int.from_bytes(head[28:32])
    there = path.stat().st_size // page if page else 0
    if not page or head[24:28] != head[92:96] or there >= pages or Path(f"{path.resolve()}{BESIDE[0]}").exists():
        return []
    return [Problem(f"the file was cut off: it has {there:,} of {pages:,} pages", pages - there, RESTORE)]


def _tables(db: sqlite3.Connection) -> list[str]:
    if sqlite3.sqlite_version_info < (3, 33):
        return []
    try:
        return [row[0] for row in db.execute("select name from sqlite_master where type = 'table'")]
    except sqlite3.Error:
        return []


def _checked(db: sqlite3.Connection, what: str) -> list[str]:
    try:
        rows = db.execute(f"pragma integrity_check({what})").fetchall()
    except sqlite3.Error as error:
        if is_busy(error):
            raise
        return [str(error)]
    lines = [line for row in rows for line in str(row[0]).splitlines() if not line.startswith("***")]
    return [] if lines == ["ok"] else lines


def _problem(table: str, told: list[str]) -> Problem:
    if table == SEARCH_INDEX:  # its words, not its pages
        return Problem(INDEX_DAMAGE, 1, REPAIR)
    if table.startswith(SEARCH_INDEX):
        return Problem(INDEX_DAMAGE, 1, f"{REPAIR}; if that fails, {RESTORE}; {SAVE}")
    return Problem(f"damage in the table {table}: {told[0]}", len(told), f"{RESTORE}; {SAVE}")


def _once(problems: list[Problem]) -> list[Problem]:
    return list(dict.fromkeys(problems))
