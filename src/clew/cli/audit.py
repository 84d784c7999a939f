"""The command that tells what the compactions of other agents lost."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import AsJson, app, echo_json, printable
from clew.config.places import here
from clew.errors import BadRequest

if TYPE_CHECKING:
    from clew.audit import AuditReport
    from clew.audit.reading import FileProgress

DAY = 86_400  # seconds
SHOWN = 20


@app.command(epilog="Example: clew audit · clew audit talk.jsonl --json")
def audit(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[PATH]...", help="Session files or folders, if not those of the agents on this machine."
        ),
    ] = None,
    content: Annotated[
        bool, typer.Option("--content", help="In JSON, also list what was lost; secrets are masked.")
    ] = False,
    as_json: AsJson = False,
    limit: Annotated[int, typer.Option(metavar="N", min=0, help="Compactions to list, the newest; 0 is all.")] = SHOWN,
    since: Annotated[
        float | None, typer.Option(metavar="DAYS", min=0, help="Only files that changed in the last DAYS.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes to read with, if not one for each core.")
    ] = None,
) -> None:
    """Show what other agents lost when they compacted: paths, commands, numbers, decisions, rules.

    Reads the sessions of Claude Code, Codex, pi, opencode, Gemini CLI, Qwen Code and Copilot CLI on this machine.
    9/13 is 9 kept of 13 named before.

    "again" counts what the agent then looked up once more. No model, no key, no network; nothing there is changed.
    """
    from rich.console import Console

    from clew.screens.audit import audit as show
    from clew.screens.audit import skipped

    report = _report(paths or [], since, processes or os.cpu_count() or 1, content)
    if as_json:
        echo_json(report.as_json())
        return
    if not report.sessions:
        for told in skipped(report):
            typer.echo(printable(told), err=True)
        where = ", ".join(report.looked)
        raise BadRequest(f"no sessions in {where}; give the paths of session files or folders: `clew audit PATH`")
    show(Console(highlight=False), report, limit)
    for told in skipped(report):
        typer.echo(printable(told), err=True)


def _report(paths: list[Path], since: float | None, processes: int, content: bool) -> "AuditReport":
    from clew.audit import AuditReport, read_files, session_files, usual_folders

    places = here()
    usual = [folder for folders in usual_folders(places).values() for folder in folders]
    files, faults = session_files(paths or [folder for folder in usual if folder.is_dir()])
    if since is not None:
        files = [file for file in files if file.path.stat().st_mtime >= time.time() - since * DAY]
    looked = [places.shown(path) for path in paths or usual]
    with _bar(sum(file.bytes for file in files)) as progress:
        return AuditReport.of(looked, [*faults, *read_files(files, processes, content, progress)])


@contextmanager
def _bar(total: int) -> Iterator["FileProgress | None"]:
    """A bar on a terminal, with bytes and the time that is left."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading sessions"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=total)
        yield lambda done: shown.advance(task, done)
