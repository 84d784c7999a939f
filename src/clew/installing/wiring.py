"""What is changed in a client's file, what is kept to put it back, and how that is done."""

import difflib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from clew.agent.tools.files import save
from clew.config import Places
from clew.core.folders import data as data_folder
from clew.errors import BadRequest
from clew.installing.formats import ABSENT, depth, found, with_key, without_key
from clew.installing.programs import PROGRAMS, ClientProgram
from clew.secrets import masked

GATEWAY = "gateway"  # the one kind of wiring there is


@dataclass(frozen=True, slots=True)
class Wired:
    """What clew did to a file: its checksums before and after, and for each key what was there."""

    client: str
    kind: str
    file: str
    before: str | None  # None: there was no file
    after: str
    values: list[dict[str, Any]] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)  # that were not there, the innermost first


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A change of a file that nobody made yet."""

    file: Path
    before: bytes | None
    after: bytes | None
    notes: tuple[str, ...] = ()
    record: Wired | None = None
    original: bytes | None = None  # of a record

    def diff(self, shown: str) -> str:
        """What would change, without secrets."""
        old, new = ((data or b"").decode("utf-8", "replace").splitlines() for data in (self.before, self.after))
        return masked("\n".join(difflib.unified_diff(old, new, shown, shown, lineterm="", n=2)))


class Installer:
    """One user's clients on this machine."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.kept = data_folder(places.env, places.platform) / "installed"

    def is_wired(self, program: ClientProgram, url: str) -> bool:
        """Whether a client's file says what it should."""
        if not program.gateway:
            return False
        with suppress(BadRequest):
            return self._says(program, _content(program.file(self.places)), program.values(url))
        return False

    def planned(self, program: ClientProgram, url: str) -> FileEdit:
        """What has to change in a client's file. Raises `BadRequest`."""
        file, record = program.file(self.places), self.record(program.name)
        if record and record.file != str(file):
            raise BadRequest(
                f"{program.title} was wired in {record.file} and now reads {file}: clew uninstall {program.name} first"
            )
        now, values = _content(file), program.values(url)
        notes = tuple(self._notes(program, file, now, url))
        if self._says(program, now, values):
            return FileEdit(file, now, now, notes)
        clean = self._undone(record, now)[0] if record else now
        text, rows = _text(clean), []
        data = self._read(program, file, clean)
        for key, value in values.items():
            was = found(data, key)
            rows.append({"key": list(key), "value": value, "had": depth(data, key)})
            if was is not ABSENT:
                rows[-1]["was"] = was
            try:
                text = with_key(program.format, text, key, value)
            except ValueError as error:
                raise BadRequest(f"{self.places.shown(file)}: {error}; it is left as it is") from None
        after = _bytes(text, clean)
        missing = [str(folder) for folder in file.parents if not folder.exists()]
        folders = record.folders if record else missing
        kept = Wired(program.name, GATEWAY, str(file), _sum(clean), str(_sum(after)), rows, folders)
        return FileEdit(file, now, after, notes, kept, clean)

    def unplanned(self, record: Wired) -> FileEdit:
        """What has to change to undo what was done. Raises `BadRequest`."""
        file = Path(record.file)
        now = _content(file)
        after, notes = self._undone(record, now)
        return FileEdit(file, now, after, tuple(notes))

    def install(self, edit: FileEdit) -> None:
        """Make a change; what was there is safe before."""
        self._check(edit)
        assert edit.record is not None, "there is something to change"
        assert edit.after is not None, "a file is written"
        name = f"{edit.record.client}-{edit.record.kind}"
        self.kept.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.kept.chmod(0o700)  # files of others have keys in them
        _write(self.kept / f"{name}.original", edit.original or b"")
        _write(self.kept / f"{name}.json", json.dumps(asdict(edit.record), indent=2).encode())
        _write(edit.file, edit.after)

    def uninstall(self, record: Wired, edit: FileEdit) -> None:
        """Undo what was done."""
        self._check(edit)
        if edit.after is None:
            edit.file.unlink(missing_ok=True)
            with suppress(OSError):  # somebody put something there since
                for folder in record.folders:
                    Path(folder).rmdir()
        elif edit.after != edit.before:
            _write(edit.file, edit.after)
        name = f"{record.client}-{record.kind}"
        (self.kept / f"{name}.json").unlink()
        if edit.before is not None:  # a file that is gone may be wanted yet
            (self.kept / f"{name}.original").unlink(missing_ok=True)

    def record(self, client: str) -> Wired | None:
        """What was done to a client's file."""
        path = self.kept / f"{client}-{GATEWAY}.json"
        try:
            return Wired(**json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise BadRequest(f"{path}: cannot be read ({error}); the file before is beside it, .original") from None

    def records(self) -> list[Wired]:
        """All that was done."""
        return [record for name in PROGRAMS if (record := self.record(name))]

    def _undone(self, record: Wired, now: bytes | None) -> tuple[bytes | None, list[str]]:
        original = self.kept / f"{record.client}-{record.kind}.original"
        if now is None:
            return None, [f"the file is gone, and stays so; what it held before is in {self.places.shown(original)}"]
        if _sum(now) == record.before:
            return now, []
        kept = original.read_bytes() if original.is_file() else b""
        if _sum(now) == record.after and record.before is None:
            return None, []
        if _sum(now) == record.after and _sum(kept) == record.before:
            return kept, []
        notes = ["the file was changed since: only what clew put there is taken out, the rest stays as it is"]
        program = PROGRAMS[record.client]
        text = _text(now)
        data = self._read(program, Path(record.file), now)
        for row in record.values:
            key = tuple(row["key"])
            if found(data, key) != row["value"]:
                notes.append(f"{'.'.join(key)} is no longer what clew wrote, and stays")
                continue
            try:
                if "was" in row:
                    text = with_key(program.format, text, key, row["was"])
                else:
                    text = without_key(program.format, text, key, row["had"])
            except ValueError as error:
                raise BadRequest(f"{record.file}: {error}; it is left as it is") from None
        return _bytes(text, now), notes

    def _says(self, program: ClientProgram, data: bytes | None, values: Any) -> bool:
        read = self._read(program, program.file(self.places), data)
        return all(found(read, key) == value for key, value in values.items())

    def _read(self, program: ClientProgram, file: Path, data: bytes | None) -> Any:
        try:
            return program.format.read(_text(data))
        except ValueError as error:
            told = "is not UTF-8" if isinstance(error, UnicodeError) else error
            raise BadRequest(f"{self.places.shown(file)}: {told}; mend it first") from None

    def _notes(self, program: ClientProgram, file: Path, now: bytes | None, url: str) -> Iterator[str]:
        values, data = program.values(url), self._read(program, file, now)
        for key, value in values.items():
            was = found(data, key)
            if was not in (ABSENT, value) and not str(was).startswith(url):
                yield (
                    f"{'.'.join(key)} was {masked(str(was))}: if the gateway is to go on there, "
                    "clew config set gateway.upstreams.NAME.url"
                )
        for key in program.rivals:
            if found(data, key) is not ABSENT:
                yield f"{'.'.join(key)} in this file comes before what clew sets"
        for name in program.variables:
            if self.places.env.get(name) not in (None, "", *values.values()):
                yield f"the environment variable {name} comes before what clew sets"
        for other in program.project_files(self.places):
            with suppress(BadRequest):
                theirs = self._read(program, other, _content(other))
                if program.hides or any(found(theirs, key) not in (ABSENT, v) for key, v in values.items()):
                    yield f"in this folder {self.places.shown(other)} comes before what clew sets"
        if program.note:
            yield program.note.replace("@", url)

    def _check(self, edit: FileEdit) -> None:
        if _content(edit.file) != edit.before:
            raise BadRequest(f"{self.places.shown(edit.file)}: was changed meanwhile; nothing was done, try again")


def _sum(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8-sig")


def _bytes(text: str, like: bytes | None) -> bytes:
    return (b"\xef\xbb\xbf" if like and like.startswith(b"\xef\xbb\xbf") else b"") + text.encode()


def _content(file: Path) -> bytes | None:
    """What is in a file that may be changed; None: there is none. Raises `BadRequest`."""
    try:
        known = file.stat()
        if not stat.S_ISREG(known.st_mode):
            raise BadRequest(f"{file}: is not a regular file")
        if not stat.S_IMODE(known.st_mode) & 0o222 or not os.access(file, os.W_OK):
            raise BadRequest(f"{file}: is read-only; make it writable first (chmod u+w)")
        return file.read_bytes()
    except FileNotFoundError:
        if file.is_symlink():
            raise BadRequest(f"{file}: is a link to a file that is not there; make that file first") from None
        return None
    except OSError as error:
        raise BadRequest(f"{file}: cannot be read ({error.strerror})") from None


def _write(file: Path, data: bytes) -> None:
    """Write a file whole or not at all; a link stays one."""
    try:
        save(file.resolve(), data.decode("utf-8", "surrogateescape"))
    except OSError as error:
        raise BadRequest(f"{file}: cannot be written ({error.strerror})") from None
