"""The commands that write clients' own configuration, and put it back."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import AsJson, UsageError, app, configured, echo_json, printable
from clew.errors import BadRequest

if TYPE_CHECKING:
    from clew.installing.programs import ClientProgram
    from clew.installing.wiring import FileEdit, Installer

ClientName = Annotated[str, typer.Argument(metavar="[CLIENT]", help="A client; without one, all are meant.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
DryRun = Annotated[bool, typer.Option("--print", help="Show what would change, and change nothing.")]


@app.command(epilog="Example: clew install claude --gateway")
def install(
    client: ClientName = "",
    gateway: Annotated[bool, typer.Option("--gateway", help="Make it talk through clew serve.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Write a client's own configuration so that it talks through clew; without a client, list them.

    The change is shown first. What was there is kept, and clew uninstall puts it back.
    """
    installer = _installer()
    if not client:
        _list(installer, _url(), as_json)
        return
    program = _program(client)
    if not gateway:
        raise UsageError(f"say what to install: --gateway makes {program.title} talk through clew serve")
    url = _url()
    if not program.gateway:
        first, second = program.lines(url, installer.places)
        typer.echo(f"{program.title} reads this only from the environment; no file was changed. Paste:")
        typer.echo(f"  {first}\n  {second}")
        return
    if not program.is_here(installer.places):
        shown = installer.places.shown(program.file(installer.places))
        raise BadRequest(f"{program.title} is not on this machine: no command {program.name}, no {shown}")
    edit = installer.planned(program, url)
    if edit.before == edit.after:
        typer.echo(f"{program.title} talks through {url} already; nothing to change.")
        _say_notes(edit)
        return
    if _agreed(installer, edit, yes, dry_run):
        installer.install(edit)
        typer.echo(f"{program.title} now talks through {url}: keep clew serve running, it needs it from now on.")
        typer.echo(f"clew uninstall {program.name} puts the file back.")
        if configured().gateway.clients:
            typer.echo("note: this gateway wants a key of gateway.clients: give it to the client as its API key")


@app.command(epilog="Example: clew uninstall claude")
def uninstall(client: ClientName = "", yes: Yes = False, dry_run: DryRun = False) -> None:
    """Put a client's configuration back byte for byte; without a client, all of them."""
    installer = _installer()
    names = [_program(client).name] if client else None
    records = [r for r in installer.records() if names is None or r.client in names]
    if not records:
        typer.echo("clew has changed nothing here: nothing to undo.")
    failed = False
    for record in records:
        try:
            edit = installer.unplanned(record)
            if _agreed(installer, edit, yes, dry_run):
                installer.uninstall(record, edit)
                typer.echo(f"{_program(record.client).title} is as it was before clew.")
        except BadRequest as error:  # the others can be undone all the same
            typer.echo(f"clew: {printable(str(error))}", err=True)
            failed = True
    if failed:
        raise typer.Exit(1)


def _installer() -> "Installer":
    from clew.config import Places
    from clew.installing.wiring import Installer

    return Installer(Places(os.environ, Path.cwd()))


def _program(name: str) -> "ClientProgram":
    from clew.installing.programs import PROGRAMS

    if name not in PROGRAMS:
        raise UsageError(f"{name} is not a client that clew knows: {', '.join(PROGRAMS)}")
    return PROGRAMS[name]


def _url() -> str:
    own = configured().gateway
    if not own.port:
        raise BadRequest("gateway.port is 0, any that is free: clients need one, clew config set gateway.port N")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(own.host, own.host)  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{own.port}"


def _list(installer: "Installer", url: str, as_json: bool) -> None:
    from clew.installing.programs import PROGRAMS

    rows = []
    for program in PROGRAMS.values():
        file = installer.places.shown(program.file(installer.places)) if program.gateway else None
        here, wired = program.is_here(installer.places), installer.is_wired(program, url)
        rows.append({"client": program.name, "title": program.title, "found": here, "gateway": wired, "file": file})
    if as_json:
        echo_json(rows)
        return
    for row in rows:
        state = "wired" if row["gateway"] else "found" if row["found"] else "not found"
        typer.echo(f"{row['client']!s:<9} {row['title']!s:<12} {state:<10} {row['file'] or 'environment only'}")


def _agreed(installer: "Installer", edit: "FileEdit", yes: bool, dry_run: bool) -> bool:
    if told := edit.diff(installer.places.shown(edit.file)):
        typer.echo(told)
    _say_notes(edit)
    return not dry_run and (yes or typer.confirm("Change it?"))


def _say_notes(edit: "FileEdit") -> None:
    for note in edit.notes:
        typer.echo(f"note: {printable(note)}")
