"""Tests that others published, fetched from their repositories at a fixed commit: this one holds nothing of them."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

OUT = Path(__file__).parent.parent / "out"


class Unreachable(Exception):
    """Neither is the material on this machine nor can it be fetched."""


@dataclass(frozen=True)
class Source:
    """Where material lies: git compares all that it fetches with the commit, which so is the checksum."""

    name: str  # of its folder, in bench/out or in a folder of corpora
    repository: str
    commit: str
    within: str

    def place(self, data: Path | None, out: Path = OUT) -> Path:
        """Its folder: as somebody has it in a folder of corpora, else fetched once."""
        if data and (folder := data / self.name).is_dir():
            return folder
        try:
            return fetched(out / self.name, self.repository, self.commit, self.within)
        except (OSError, subprocess.CalledProcessError) as error:
            told = str(getattr(error, "stderr", None) or error).strip()
            raise Unreachable(
                f"{self.repository} could not be fetched: {told}. Put its {self.within} at commit {self.commit} into"
                f" DIR/{self.name} and give --data DIR"
            ) from error


def fetched(folder: Path, repository: str, commit: str, within: str) -> Path:
    """A folder of a public repository, fetched once."""
    if not (folder / within).exists():
        folder.mkdir(parents=True, exist_ok=True)
        for command in (
            ["init", "--quiet"],
            ["fetch", "--quiet", "--depth", "1", repository, commit],
            ["checkout", "--quiet", commit, "--", within],
        ):
            subprocess.run(["git", "-C", str(folder), *command], check=True, capture_output=True, text=True)
    return folder / within
