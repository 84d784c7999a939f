"""The command line as a user has it."""

import os
from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner, Result

from clew.cli import app


class Shell:
    """One user's machine: a folder and a store."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.store = home / "clew.db"

    def __call__(self, *args: object, input: str | bytes | None = None) -> Result:
        env = {"CLEW_STORE": str(self.store), "XDG_CONFIG_HOME": str(self.home / "config"), "COLUMNS": "80"}
        plain = {"FORCE_COLOR": None, "TTY_COMPATIBLE": None}
        return CliRunner().invoke(app, [str(a) for a in args], input=input, env={**env, **plain})

    def configure(self, text: str) -> None:
        folder = self.home / "config" / "clew"
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text(text, encoding="utf-8")

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.home / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


@dataclass(frozen=True)
class Typed:
    """What came of a command, as `subprocess` tells it."""

    returncode: int
    stdout: str
    stderr: str


def typed(folder: Path, env: Mapping[str, str], *args: str) -> Typed:
    """A command in this process, with this environment and no other: to start one takes a second."""
    with chdir(folder):
        done = CliRunner().invoke(app, args, env={**dict.fromkeys(os.environ), **env})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Typed(done.exit_code, done.stdout, done.stderr)
