"""What is changed in a client's files, what is kept to put them back, and how that is done."""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from clew.config import Key, Places
from clew.core.folders import data as data_folder
from clew.errors import BadRequest
from clew.installing.client_files import bytes_of, checksum, content, text_in, write
from clew.installing.formats import ABSENT, EACH, TextFormat, depth, found, place, says, with_key, without_key
from clew.installing.plugs import ClientProgram, Plug
from clew.installing.programs import PROGRAMS
from clew.secrets.masking import masked

GATEWAY, PLUGS = "gateway", "plugs"  # the kinds of wiring: through clew serve; clew's tools and hooks


@dataclass(frozen=True, slots=True)
class Wired:
    """What clew did to a file: its checksums before and after, and for each key what for, and what was there."""

    client: str
    file: str
    before: str | None  # None: there was no file
    after: str
    values: list[dict[str, Any]] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)  # that were not there, the innermost first

    @property
    def name(self) -> str:
        """Under which it is kept."""
        return f"{self.client}-{Path(self.file).name}"

    @property
    def kinds(self) -> set[str]:
        """What it was done for."""
        return {row["kind"] for row in self.values}


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A change of a file that nobody made yet."""

    file: Path
    before: bytes | None
    after: bytes | None
    notes: tuple[str, ...] = ()
    record: Wired | None = None  # None: nothing is to be kept
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

    def is_wired(self, plugs: Sequence[Plug]) -> bool:
        """Whether a client's files say what they should."""
        with suppress(BadRequest):
            return bool(plugs) and all(self._says(plug, content(plug.file(self.places))) for plug in plugs)
        return False

    def planned(self, program: ClientProgram, kind: str, plugs: Sequence[Plug]) -> list[FileEdit]:
        """What has to change in a client's files; nothing where they say it already. Raises `BadRequest`."""
        edits = [self._planned(program, kind, plug) for plug in plugs]
        return [edit for edit in edits if edit.before != edit.after]

    def _planned(self, program: ClientProgram, kind: str, plug: Plug) -> FileEdit:
        file = plug.file(self.places)
        record = self.record(f"{program.name}-{file.name}")
        if record and record.file != str(file):
            raise BadRequest(
                f"{program.title} was wired in {record.file} and now reads {file}: "
                f"`clew install {program.name} --remove` first"
            )
        now = content(file)
        if self._says(plug, now):
            return FileEdit(file, now, now)
        clean = self._undone(record, now)[0] if record else now
        text, data, rows = text_in(clean), self._read(plug.format, file, clean), list[dict[str, Any]]()
        for key, value, why in [*_others(record, kind), *((key, value, kind) for key, value in plug.values.items())]:
            if (key[-1] == EACH and says(data, key, value)) or (key in plug.gentle and found(data, key) is not ABSENT):
                continue  # somebody else put it there
            rows.append({"kind": why, "key": list(key), "value": value, "had": depth(data, key)})
            if key[-1] != EACH and (was := found(data, key)) is not ABSENT:
                rows[-1]["was"] = was
            try:
                text = with_key(plug.format, text, key, value)
            except ValueError as error:
                raise BadRequest(f"{self.places.shown(file)}: {error}; it is left as it is") from None
        after = bytes_of(text, clean)
        missing = [str(folder) for folder in file.parents if not folder.exists()]
        folders = record.folders if record else missing
        kept = Wired(program.name, str(file), checksum(clean), str(checksum(after)), rows, folders)
        return FileEdit(file, now, after, (), kept, clean)

    def unplanned(self, record: Wired) -> FileEdit:
        """What has to change to undo what was done. Raises `BadRequest`."""
        file = Path(record.file)
        now = content(file)
        after, notes = self._undone(record, now)
        return FileEdit(file, now, after, tuple(notes))

    def install(self, edits: Sequence[FileEdit]) -> None:
        """Make all of these changes or none; what was there is safe before."""
        for edit in edits:
            self._check(edit)
        self.kept.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.kept.chmod(0o700)  # files of others have keys in them
        done: list[FileEdit] = []
        try:
            for edit in edits:
                assert edit.record is not None, "there is something to change"
                assert edit.after is not None, "a file is written"
                write(self.kept / f"{edit.record.name}.original", edit.original or b"")
                write(self.kept / f"{edit.record.name}.json", _packed(edit.record))
                done.append(edit)
                write(edit.file, edit.after)
        except BadRequest:
            for edit in done:
                assert edit.record is not None, "it was written"
                self.uninstall(edit.record, self.unplanned(edit.record))
            raise

    def uninstall(self, record: Wired, edit: FileEdit) -> None:
        """Undo what was done."""
        self._check(edit)
        if edit.after is None:
            edit.file.unlink(missing_ok=True)
            with suppress(OSError):  # somebody put something there since
                for folder in record.folders:
                    Path(folder).rmdir()
        elif edit.after != edit.before:
            write(edit.file, edit.after)
        (self.kept / f"{record.name}.json").unlink()
        if edit.before is not None:  # a file that is gone may be wanted yet
            (self.kept / f"{record.name}.original").unlink(missing_ok=True)

    def tidy(self) -> None:
        """Leave no empty folder behind."""
        with suppress(OSError):
            self.kept.rmdir()
            self.kept.parent.rmdir()

    def record(self, name: str) -> Wired | None:
        """What was done to a file."""
        path = self.kept / f"{name}.json"
        try:
            return Wired(**json.loads(path.read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise BadRequest(f"{path}: cannot be read ({error}); the file before is beside it, .original") from None

    def records(self) -> list[Wired]:
        """All that was done."""
        names = sorted(path.stem for path in self.kept.glob("*.json"))
        every = [record for name in names if (record := self.record(name))]
        return [record for record in every if record.client in PROGRAMS]

    def retold(self, client: str, file: Path, format: TextFormat, before: bytes, after: bytes) -> None:
        """Note that clew changed in place what it once wrote to a file, whoever edited it since."""
        record = self.record(f"{client}-{file.name}")
        if record is None or record.file != str(file):
            return
        old, new = (format.read(text_in(data)) for data in (before, after))
        for row in record.values:
            row["value"] = _changed(old, new, tuple(row["key"]), row["value"])
        mark = str(checksum(after)) if record.after == checksum(before) else record.after
        write(self.kept / f"{record.name}.json", _packed(replace(record, after=mark)))

    def _undone(self, record: Wired, now: bytes | None) -> tuple[bytes | None, list[str]]:
        original = self.kept / f"{record.name}.original"
        if now is None:
            return None, [f"the file is gone, and stays so; what it held before is in {self.places.shown(original)}"]
        if checksum(now) == record.before:
            return now, []
        kept = original.read_bytes() if original.is_file() else b""
        if checksum(now) == record.after and record.before is None:
            return None, []
        if checksum(now) == record.after and checksum(kept) == record.before:
            return kept, []
        text, notes = self._without(record, now)
        if record.before is None and not text.strip(" \t\r\n{}"):
            return None, notes  # the client, too, left nothing in it
        return bytes_of(text, now), notes

    def _without(self, record: Wired, now: bytes) -> tuple[str, list[str]]:
        """A file that somebody changed since, without what clew put there."""
        notes = ["the file was changed since: only what clew put there is taken out, the rest stays as it is"]
        format, text = _format(record), text_in(now)
        self._read(format, Path(record.file), now)
        for row in reversed(record.values):
            key, data = tuple(row["key"]), format.read(text)
            if not says(data, key, row["value"]):
                notes.append(f"{'.'.join(key)} is no longer what clew wrote, and stays")
                continue
            try:
                if "was" in row:
                    text = with_key(format, text, key, row["was"])
                else:
                    text = without_key(format, text, place(data, key, row["value"]), row["had"])
            except ValueError as error:
                raise BadRequest(f"{record.file}: {error}; it is left as it is") from None
        return text, notes

    def _says(self, plug: Plug, data: bytes | None) -> bool:
        read = self._read(plug.format, plug.file(self.places), data)
        wanted = {k: v for k, v in plug.values.items() if k not in plug.gentle or found(read, k) is ABSENT}
        return all(says(read, key, value) for key, value in wanted.items())

    def _read(self, format: TextFormat, file: Path, data: bytes | None) -> Mapping[str, Any]:
        try:
            return format.read(text_in(data))
        except ValueError as error:
            told = "is not UTF-8" if isinstance(error, UnicodeError) else error
            raise BadRequest(f"{self.places.shown(file)}: {told}; mend it first") from None

    def notes(self, program: ClientProgram, url: str) -> Iterator[str]:
        """What a user should know of a client that is to talk through a gateway."""
        file, values = program.file(self.places), program.values(url)
        data = self._read(program.format, file, content(file))
        for key, value in values.items():
            was = found(data, key)
            if was not in (ABSENT, value) and not str(was).startswith(url):
                yield (
                    f"{'.'.join(key)} was {masked(str(was))}: if the gateway is to go on there, "
                    "`clew config set gateway.upstreams.NAME.url URL`"
                )
        for key in program.rivals:
            if found(data, key) is not ABSENT:
                yield f"{'.'.join(key)} in this file comes before what clew sets"
        for name in program.variables:
            if self.places.env.get(name) not in (None, "", *values.values()):
                yield f"the environment variable {name} comes before what clew sets"
        for other in program.project_files(self.places):
            with suppress(BadRequest):
                theirs = self._read(program.format, other, content(other))
                if program.hides or any(found(theirs, key) not in (ABSENT, v) for key, v in values.items()):
                    yield f"in this folder {self.places.shown(other)} comes before what clew sets"
        if program.note:
            yield program.note.replace("@", url)

    def _check(self, edit: FileEdit) -> None:
        if content(edit.file) != edit.before:
            raise BadRequest(f"{self.places.shown(edit.file)}: was changed meanwhile; nothing was done, try again")


def _packed(record: Wired) -> bytes:
    return json.dumps(asdict(record), indent=2).encode()


def _changed(old: Any, new: Any, key: Key, value: Any) -> Any:
    """What stands now where a file had this value, or somebody's edit of it, before it was changed in place."""
    if key[-1] != EACH:
        return value if found(old, key) == found(new, key) else found(new, key)
    was, now = found(old, key[:-1]), found(new, key[:-1])
    if not isinstance(was, list) or not isinstance(now, list) or was == now:
        return value
    return now[was.index(value)] if value in was else next(n for w, n in zip(was, now, strict=True) if w != n)


def _others(record: Wired | None, kind: str) -> list[tuple[Key, Any, str]]:
    """What a file was changed for beside this."""
    rows = record.values if record else []
    return [(tuple(row["key"]), row["value"], row["kind"]) for row in rows if row["kind"] != kind]


def _format(record: Wired) -> TextFormat:
    """How a file is written that was changed."""
    program, name = PROGRAMS[record.client], Path(record.file).name
    plugs = [*program.gateway_plugs("", ("clew",)), *(program.plugs(("clew",)) if program.plugs else ())]
    return next((plug.format for plug in plugs if any(Path(f).name == name for f in plug.files)), program.format)
