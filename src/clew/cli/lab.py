"""The command that lives sessions again, to tell what other settings would have cost."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.app import AsJson, app, configured, echo_json, printable
from clew.cli.audit import DAY
from clew.cli.batch import bar
from clew.config.places import here
from clew.errors import BadRequest

if TYPE_CHECKING:
    from clew.lab import LabReport, LabWay

TRIED = (0.5, 0.2), (0.8, 0.2), (0.9, 0.2), (0.7, 0.1)  # of the room: high and low, beside what is set


@app.command(epilog="Example: clew lab · clew lab --client claude --html lab.html · clew lab ~/archive --try 0.6,0.2")
def lab(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[PATH]...", help="Session files, folders or archives, if not those on this machine."),
    ] = None,
    client: Annotated[
        str, typer.Option(metavar="NAME", help="Only the sessions of this agent: claude, codex, pi, opencode …")
    ] = "",
    tries: Annotated[
        list[str] | None,
        typer.Option("--try", metavar="HIGH,LOW", help="Settings to try beside yours; give it several times."),
    ] = None,
    window: Annotated[int, typer.Option(metavar="TOKENS", min=0, help="Window, if not that of each model.")] = 0,
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="Model whose prices and window count.")] = "",
    since: Annotated[
        float | None, typer.Option(metavar="DAYS", min=0, help="Only files that changed in the last DAYS.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one HTML page, figures only.")] = None,
    processes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes to work with, if not one for each core.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send your sessions again in several ways: what each would have cost, and missed.

    As they were, with all of it sent, with the client's own compaction, and with clew in your settings and in others.
    It ends with the settings that would have been best. Reads session files only, asks no model, changes nothing.
    """
    from rich.console import Console

    from clew.screens.lab import lab as show
    from clew.screens.lab_page import page

    report = _report(_places(paths or [], client, since), _ways(tries or []), window, model, processes)
    if html is not None:
        html.write_text(page(report), encoding="utf-8")
    if as_json:
        echo_json(report.as_json())
        return
    show(Console(highlight=False), report)
    if html is not None:
        typer.echo(printable(f"page: {html}"), err=True)


def _ways(tries: Sequence[str]) -> "tuple[LabWay, ...]":
    """Your settings, and those to try."""
    from clew.lab.act import bounds_of, ways

    config = configured()
    return ways(bounds_of(config.budget_for(config.model(""))), [_read(one) for one in tries] or TRIED)


def _read(given: str) -> tuple[float, float]:
    try:
        high, low = map(float, given.split(","))
    except ValueError:
        raise typer.BadParameter(f"--try: expected HIGH,LOW such as 0.8,0.2, got {given!r}") from None
    if not 0 < low <= high <= 1:
        raise typer.BadParameter(f"--try: 0 < low <= high <= 1 must hold, got {given!r}")
    return high, low


def _places(paths: list[Path], client: str, since: float | None) -> list[Path]:
    """What is read: files, if only some of a folder are wanted."""
    from clew.audit import session_files, usual_folders

    folders = usual_folders(here())
    if client:
        names = [name for name in folders if name.startswith(client)]
        if not names:
            raise typer.BadParameter(f"--client: unknown {client!r}; use one of {', '.join(folders)}")
        paths = [folder for name in names for folder in folders[name]]
    usual = [folder for some in folders.values() for folder in some]
    found = [path for path in paths or usual if path.exists() or not (client or not paths)]
    if since is not None:
        files, _ = session_files(found)
        found = [file.path for file in files if file.path.stat().st_mtime >= time.time() - since * DAY]
    if not found:
        raise BadRequest(f"no sessions in {', '.join(map(str, paths or usual))}; give the paths of session files")
    return found


def _report(
    paths: list[Path], ways: "tuple[LabWay, ...]", window: int, model: str, processes: int | None
) -> "LabReport":
    from clew.batch import begin, finish
    from clew.core import rawjson
    from clew.lab import Lab, LabReport

    config = configured()
    with TemporaryDirectory(prefix="clew-lab-") as folder:
        run = begin(Lab(ways, window, model, config.preset), paths, Path(folder, "out"))
        with bar(run) as progress:
            finish(run, processes or os.cpu_count() or 1, progress=progress)
        records, failures = list[Any](), list[Any]()
        for part in sorted(Path(folder, "out", "parts").glob("*.jsonl")):
            records += [rawjson.loads(line) for line in part.read_bytes().splitlines()]
        failures += [rawjson.loads(line) for line in Path(folder, "out", "failures.jsonl").read_bytes().splitlines()]
    return LabReport([here().shown(path) for path in paths], records, ways, failures)
