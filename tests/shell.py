"""The command line as a user has it."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner, Result

from clew import Engine, Request, SQLite, counter_for, run
from clew import body as sent
from clew.cli import app
from clew.compression import bounds
from clew.tokens.meter import Meter
from clew.wire import decode

COMMANDS = get_command(app)


def invoke(
    args: Sequence[str], input: str | bytes | None = None, env: Mapping[str, str | None] | None = None
) -> Result:
    """What `CliRunner.invoke` gives, which makes all commands anew for each that is typed."""
    runner, code = CliRunner(), 0
    failed: BaseException | None = None
    with runner.isolation(input, env) as (out, err, both):
        try:
            COMMANDS.main(args=list(args), prog_name="root")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            failed = end if code else None
        except Exception as error:
            code, failed = 1, error
        sys.stdout.flush()
        sys.stderr.flush()
        return Result(runner, out.getvalue(), err.getvalue(), both.getvalue(), None, code, failed)


class Shell:
    """One user's machine: a folder and a store."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.store = home / "clew.db"

    def __call__(self, *args: object, input: str | bytes | None = None) -> Result:
        env = {"CLEW_STORE": str(self.store), "XDG_CONFIG_HOME": str(self.home / "config"), "COLUMNS": "80"}
        env["HOME"] = str(self.home)  # not what lies in the home of who runs the tests
        plain = {"FORCE_COLOR": None, "TTY_COMPATIBLE": None}
        return invoke([str(a) for a in args], input, {**env, **plain})

    def talked(self, messages: Sequence[Mapping[str, Any]], target: int, name: str = "talk") -> str:
        """A conversation in the store, in so many tokens; what is sent of it, as JSON."""
        body = {"model": "gpt-4o", "messages": messages}
        frame, items = decode(body)
        budget = bounds(target, frame, items, Meter(counter_for("gpt-4o", frame.format)))
        engine = Engine(SQLite(self.store), budget)
        view = run(engine.prepare(Request(body, session=name)))
        run(engine.close())
        return json.dumps(sent(view))

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
        done = invoke(args, env={**dict.fromkeys(os.environ), **env})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Typed(done.exit_code, done.stdout, done.stderr)
