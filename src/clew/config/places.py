"""Where things are: the log, the user's file, the project's file."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from clew.core import folders

PROJECT = "clew.toml"


def this_user(platform: str = sys.platform) -> int:
    """The number of the user who runs this; on Windows users have none."""
    return 0 if platform == "win32" else os.geteuid()


class Places(NamedTuple):  # hooks of clients come here at each event, and a dataclass takes a fifth of their time
    """One user, in one folder, on one system."""

    env: Mapping[str, str]
    folder: Path
    platform: str = sys.platform
    user: int = this_user()

    @property
    def home(self) -> Path:
        return folders.home(self.env, self.platform)

    def store(self) -> Path:
        """Where the log is, unless somebody says otherwise."""
        return folders.store(self.env, self.platform)

    def user_files(self) -> list[Path]:
        """Where the user's file may be: the first that exists is read, the last is where a new one goes."""
        if self.env.get("CLEW_CONFIG"):
            return [self.path(self.env["CLEW_CONFIG"], self.folder)]
        if self.env.get("XDG_CONFIG_HOME"):
            folders = [Path(self.env["XDG_CONFIG_HOME"])]
        elif self.platform == "win32":
            folders = [Path(self.env.get("APPDATA") or self.home / "AppData" / "Roaming")]
        elif self.platform == "darwin":
            folders = [self.home / ".config", self.home / "Library" / "Application Support"]
        else:
            folders = [self.home / ".config"]
        return [folder / "clew" / "config.toml" for folder in folders]

    def user_file(self) -> Path:
        files = self.user_files()
        return next((file for file in files if is_file(file)), files[-1])

    def project_file(self) -> Path | None:
        """The nearest `clew.toml`: here or above, up to the home folder or the root, which are no projects."""
        folder = self.folder.absolute()
        for place in (folder, *folder.parents):
            if place != folder and place in (self.home, Path(place.anchor)):
                return None
            file = place / PROJECT
            if is_file(file):
                return None if _same(file, self.user_file()) else file
        return None

    def trusted(self, file: Path) -> bool:
        """Whether a project's file is the user's own, or root's: in a shared folder anybody can leave one."""
        return self.platform == "win32" or file.stat().st_uid in (self.user, 0)

    def path(self, text: str, near: Path) -> Path:
        """A path as somebody wrote it in a file of the folder `near`."""
        if text == "~" or text.startswith(("~/", "~\\")):
            return self.home / text[2:]
        return near / text

    def shown(self, path: Path) -> str:
        """A path for people."""
        if path.is_relative_to(self.home) and self.home != Path(self.home.anchor):
            return str(Path("~") / path.relative_to(self.home))
        return str(path)


def environment() -> Mapping[str, str]:
    """This process's environment, which nobody else reads for settings; the folder may not be asked for on a loop."""
    return os.environ


def here() -> Places:
    """This process's user, in its folder, with its environment."""
    return Places(environment(), Path.cwd())


def is_file(path: Path) -> bool:
    """Whether there is a file to read; a home that is closed to us has none."""
    try:
        return path.is_file()
    except OSError:
        return False


def _same(one: Path, other: Path) -> bool:
    return is_file(other) and one.samefile(other)
