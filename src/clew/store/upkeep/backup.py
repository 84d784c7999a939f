"""A store file copied while others write to it, and put back without losing the one that is there."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from secrets import token_hex

from clew.errors import StoreError
from clew.store.sqlite.opening import BESIDE, connect_readonly, prepare_file
from clew.store.sqlite.watching import MARK, is_busy
from clew.store.upkeep import Progress

try:
    import fcntl
except ImportError:  # Windows, where a file that is open cannot be deleted
    fcntl = None  # type: ignore[assignment]

STEP = 1_000  # pages copied between two reports
UNFINISHED = ".clew-part"  # ends the hidden name of a copy that is being made
ASIDE = "[0-9]" * 4 + "-[0-9][0-9]-[0-9][0-9]-" + "[0-9]" * 6  # ends that of a store that a restore moved


def backup(source: sqlite3.Connection, target: Path, force: bool = False, progress: Progress | None = None) -> int:
    """Copy a store, as it is at this moment, to a private file; how many bytes it has. Whole or not at all."""
    target = target.expanduser()
    own = source.execute("pragma database_list").fetchone()[2]
    _refuse_taken(own, target, force)
    with _named_beside(own, target), _part(target) as part:
        _copy(source, part, progress)
        _verify(part)
        size = part.stat().st_size
        part.replace(target)
    return size


def restore(source: Path, target: Path, progress: Progress | None = None) -> Path | None:
    """Put a backup where the store is; where the store that was there is now, if one was."""
    source, target = source.expanduser(), target.expanduser()
    if not source.is_file() or not source.stat().st_size:
        raise StoreError(f"{source}: no backup found; give a file that `clew backup` wrote")
    prepare_file(source)  # only checks whose it is: the file is there, and is not empty
    if target.exists() and source.samefile(target):
        raise StoreError(f"{source}: is the store itself; give a file that `clew backup` wrote")
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _part(target) as part:
        try:
            with closing(connect_readonly(source)) as db:
                _copy(db, part, progress)
        except sqlite3.Error as error:
            raise StoreError(f"{source}: {error}; try another backup") from error
        _verify(part)
        prepare_file(part)  # the version in the header may have been in the source's write-ahead log
        aside = _set_aside(target)
        part.replace(target)
    return aside


def leftovers(folder: Path) -> list[Path]:
    """Copies that nobody makes any more, in a folder or named there, and second names of a store: who began them was
    killed."""
    parts = [path for path in sorted(folder.glob(f".*{UNFINISHED}")) if not _is_being_made(path)]
    return [*parts, *(path for path in sorted(folder.glob(f"*.{ASIDE}*")) if _is_second_name(path))]


def copied_to(part: Path) -> Path:
    """Where a copy is that is named in this folder."""
    there = part.readlink() if part.is_symlink() else part
    return there if there.name.endswith(UNFINISHED) else part


def sweep(folder: Path) -> None:
    """Delete them, and what SQLite had beside them."""
    for path in leftovers(folder):
        if not path.name.endswith(UNFINISHED):
            # Only while no restore is at work there: what it has just put in place would make this the only name.
            with suppress(OSError, StoreError), _claimed(_first_name(path)):
                if _is_second_name(path):
                    path.unlink()
            continue
        copy = copied_to(path)
        for beside in (copy, *copy.parent.glob(f"{copy.name}-*"), path):
            with suppress(OSError):
                beside.unlink()


def _is_second_name(aside: Path) -> bool:
    """Whether a store was to be moved aside and is still where it was."""
    with suppress(OSError):
        return aside.samefile(_first_name(aside))
    return False


def _first_name(aside: Path) -> Path:
    return aside.with_name(aside.name.rpartition(".")[0])


def asides(path: Path) -> list[Path]:
    """Stores that were moved aside when another one was put in their place."""
    return sorted(path.parent.glob(f"{path.name}.{ASIDE}"))


def _is_being_made(part: Path) -> bool:
    if fcntl is None or not part.exists():  # or it is a link to what is no more
        return False
    with suppress(OSError):
        file = os.open(part, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        finally:
            os.close(file)
        return False
    return True


def _refuse_taken(own: str, target: Path, force: bool) -> None:
    if own and target.exists() and target.samefile(own):
        raise StoreError(f"{target}: is the store itself; choose another place")
    if any(Path(f"{target}{end}").exists() for end in BESIDE):
        raise StoreError(f"{target}: is a database in use; choose another place")
    if target.exists() and not force:
        raise StoreError(f"{target}: already exists; choose another name, or overwrite it with --force")


def _part_of(target: Path) -> Path:
    return target.with_name(f".{target.name}{UNFINISHED}")


@contextmanager
def _part(target: Path) -> Iterator[Path]:
    """The file that is to become the target, once what others left there is gone."""
    sweep(target.parent)
    with _claimed(target) as part:
        yield part


@contextmanager
def _claimed(target: Path) -> Iterator[Path]:
    """A private file beside the target, locked while we live, and gone again if it does not become it."""
    part = _part_of(target)
    try:
        file = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    except FileExistsError:
        raise StoreError(f"{target}: another process is writing to it; wait, or choose another place") from None
    except OSError as error:
        raise StoreError(f"{target}: cannot be written ({error.strerror}); choose another place") from None
    try:
        if fcntl is None:
            os.close(file)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield part
    finally:
        part.unlink(missing_ok=True)
        if fcntl is not None:
            os.close(file)


@contextmanager
def _named_beside(own: str, target: Path) -> Iterator[None]:
    """While a copy is made in another folder, a link beside the store says where: should we be killed, it is found."""
    store, part = Path(own), _part_of(target).absolute()
    if not own or part.parent.resolve() == store.parent.resolve():
        yield
        return
    link = store.with_name(f".{store.name}-{token_hex(4)}{UNFINISHED}")
    with suppress(OSError):  # read-only, or a system without links: then the next backup there removes it
        link.symlink_to(part)
    try:
        yield
    finally:
        with suppress(OSError):
            link.unlink()


def _copy(source: sqlite3.Connection, part: Path, progress: Progress | None) -> None:
    def report(_: int, left: int, pages: int) -> None:
        if progress:
            progress(pages - left, pages)

    with closing(sqlite3.connect(part)) as copy:
        # One snapshot throughout: without it, each write of somebody else would start the copy anew.
        source.execute("begin")
        try:
            source.execute("select count(*) from sqlite_master").fetchone()
            source.backup(copy, pages=STEP, progress=report, sleep=0)
        finally:
            source.execute("rollback")
        copy.execute("pragma journal_mode = delete")  # one file, with nothing beside it
    with part.open("rb+") as file:
        os.fsync(file.fileno())


def _verify(part: Path) -> None:
    with closing(sqlite3.connect(part)) as db:
        try:
            found = db.execute("pragma integrity_check(1)").fetchone()[0]
        except sqlite3.DatabaseError as error:
            found = str(error)
    if found != "ok":
        raise StoreError(f"the copy is damaged and was deleted: {found}; run `clew doctor`")


def _set_aside(path: Path) -> Path | None:
    """Give the store that is there a dated name, too, until another takes its place; what is beside it is moved.

    Its log, too, where that alone is left. There is a store at its path at every moment, whoever is killed in between.
    """
    there = path.exists() and path.stat().st_size > 0
    if there:
        prepare_file(path)  # somebody else's file is not ours to move
        _settle(path)
    ends = ("", *BESIDE, MARK)
    dated = f"{path}.{datetime.now():%Y-%m-%d-%H%M%S}"
    names = (f"{dated}-{n}" if n > 1 else dated for n in count(1))  # two may fall into one second
    aside = Path(next(name for name in names if not any(Path(f"{name}{end}").exists() for end in ends)))
    if there:
        try:
            aside.hardlink_to(path)
        except OSError:  # a file system without second names
            path.rename(aside)
    for end in ends[1:]:
        beside = Path(f"{path}{end}")
        if beside.exists():
            beside.rename(f"{aside}{end}")
    return aside if there else None


def _settle(path: Path) -> None:
    """Bring the write-ahead log home, which needs the file to ourselves; a damaged one is moved as it is."""
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as db:
        try:
            db.execute("pragma journal_mode = delete")
        except sqlite3.DatabaseError as error:
            if is_busy(error):
                raise StoreError(f"{path}: another process has it open; stop that process first") from None
