"""The commands that write clients' own configuration, and put it back."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli import background as in_background
from clew.cli.app import AsJson, UsageError, app, configured, echo_json, printable
from clew.cli.serve import check_extra
from clew.config.places import here
from clew.errors import BadRequest

if TYPE_CHECKING:
    from clew.installing.plugs import ClientProgram
    from clew.installing.wiring import FileEdit, Installer

ClientNames = Annotated[
    list[str] | None, typer.Argument(metavar="[CLIENT]...", help="Clients; without one, all that are found here.")
]


@app.command(epilog="Example: clew install claude")
def install(
    clients: ClientNames = None,
    gateway: Annotated[
        bool, typer.Option("--gateway", help="Make it talk through clew's gateway, and see to it that this runs.")
    ] = False,
    start: Annotated[
        bool, typer.Option("--start/--no-start", help="With --gateway: start it, now and whenever the client needs it.")
    ] = True,
    remove: Annotated[
        bool, typer.Option("--remove", help="Put its configuration back byte for byte; without CLIENT, everyone's.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "--print", help="Show what would change, and change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Give coding agents clew's tools and hooks, or with --gateway make them talk through `clew serve`.

    With --gateway, the gateway runs in the background from now on: `clew serve --status` shows it and its log, and
    `clew serve --stop` ends it. Where the client can, it starts it again by itself, as after a reboot.

    The change of their configuration is shown first. What was there is kept, and --remove puts it back. Without a
    client, lists all, and goes on with those that are found here.
    """
    installer = _installer()
    programs = [_program(name) for name in clients or ()]
    if remove:
        if gateway:
            raise UsageError("--remove takes all of clew out: give it without --gateway")
        _removed(installer, programs, yes, dry_run, as_json)
        return
    if not programs:
        _list(installer, as_json)
        if as_json:
            return
        programs = [p for p in _known() if p.is_here(installer.places) and (p.gateway if gateway else p.plugs)]
    failed, runs = False, ""
    for program in programs:
        try:
            if gateway:
                runs = _through_gateway(installer, program, yes, dry_run, start) or runs
            else:
                _plugged(installer, program, yes, dry_run)
        except BadRequest as error:  # the others can be wired all the same
            typer.echo(f"clew: {printable(str(error))}", err=True)
            failed = True
    if runs:
        in_background.say_started(runs)
    if failed:
        _end_gateway(installer, as_json)  # if no client needs it now
        raise typer.Exit(1)


def _through_gateway(installer: "Installer", program: "ClientProgram", yes: bool, dry_run: bool, start: bool) -> str:
    """Wire a client; the address of the gateway that was started for it, if one was."""
    from clew.installing.wiring import GATEWAY

    own, url = configured().gateway, _url()
    start = start and own.host in ("127.0.0.1", "::1", "localhost")  # else it is a service that somebody runs
    if not program.gateway:
        first, second = program.lines(url, installer.places)
        typer.echo(f"{program.title} reads this only from the environment; no file was changed. Paste:")
        typer.echo(f"  {first}\n  {second}\n`clew serve --background` starts the gateway.")
        return ""
    _expect(installer, program, dry_run)
    if start:
        check_extra("clew serve")
    command = in_background.own_command()
    edits = installer.planned(program, GATEWAY, program.gateway_plugs(url, command if start else None))
    notes = [*installer.notes(program, url), *(_passing(command) if start else ())]
    if start:
        again = "after a reboot, start it yourself" if program.starting is None else f"{program.title} starts it again"
        notes.append(f"clew's gateway is started in the background, on this machine only; {again}")
    if not edits:
        typer.echo(f"{program.title} talks through {url} already; nothing to change.")
        _say_notes(notes)
    elif not _agreed(installer, edits, notes, yes, dry_run):
        return ""
    if start and not dry_run and not yes:
        _ask_for_consent()
    # First: a client is never sent to where nobody answers.
    runs = in_background.started(own.host, own.port, installed=True) if start and not dry_run else ""
    if not edits:
        return runs
    installer.install(edits)
    ready = "" if start else ": keep `clew serve` running, it needs it from now on"
    typer.echo(f"{program.title} now talks through {url}{ready}.")
    typer.echo(f"`clew install {program.name} --remove` puts everything back.")
    if own.clients:
        typer.echo("note: this gateway wants a key of gateway.clients: give it to the client as its API key")
    return runs


def _ask_for_consent() -> None:
    """Ask once whether clew may ask the models of conversations, and write the answer into the user's settings."""
    from clew.cli.config import written
    from clew.steps.chapters.allowance import CallLimits

    config = configured()
    if config.sources.get("gateway.summary", "default") != "default" or config.summary.model != "own":
        return
    typer.echo(
        "Where a client uses an API key, clew can have the conversation's own model write what stands in for old "
        f"messages: one question for about half a window of new text, at most {CallLimits().hourly_calls} an hour, "
        "paid with that key. With a login, clew asks nothing, ever. Without this, code writes."
    )
    try:
        agreed = typer.confirm("May clew ask with your API keys?", default=False)
    except typer.Abort:  # nobody is there to answer
        typer.echo("Nothing is asked.")
        return
    written("gateway.summary", "own" if agreed else "none", project=False)
    typer.echo("`clew config set gateway.summary none` turns it off." if agreed else "Nothing is asked.")


def _plugged(installer: "Installer", program: "ClientProgram", yes: bool, dry_run: bool) -> None:
    from clew.installing.wiring import PLUGS
    from clew.screens.lines import count

    if program.plugs is None:
        way = f"`clew install {program.name} --gateway` makes it talk through `clew serve`"
        raise UsageError(f"{program.title} takes neither tools nor hooks of clew: {way}")
    _expect(installer, program, dry_run)
    command = in_background.own_command()
    edits = installer.planned(program, PLUGS, program.plugs(command))
    if not edits:
        typer.echo(f"{program.title} has clew's tools and hooks already; nothing to change.")
        return
    new = sum(edit.before is None for edit in edits)
    files = [f"{count(len(edits) - new, 'file')} changed"] * (new < len(edits)) + [f"{count(new, 'file')} added"] * (
        new > 0
    )
    notes = [f"{program.title} gets {program.gets}: {' and '.join(files)}, which --remove puts back byte for byte"]
    notes += [*([program.plug_note] if program.plug_note else []), *_passing(command)]
    if _agreed(installer, edits, notes, yes, dry_run):
        installer.install(edits)
        typer.echo(f"{program.title} has clew's tools and hooks from its next start on.")
        typer.echo(f"`clew install {program.name} --remove` puts everything back.")


def _expect(installer: "Installer", program: "ClientProgram", dry_run: bool) -> None:
    if not program.is_here(installer.places):
        shown = installer.places.shown(program.file(installer.places))
        if dry_run:
            typer.echo(f"note: {program.title} is not on this machine; this is what would change where it is")
            return
        raise BadRequest(f"{program.title} is not on this machine: no command {program.name}, no {shown}")


def _passing(command: Sequence[str]) -> list[str]:
    """What to know where clew runs from a place that somebody clears."""
    from clew.installing.vanished import is_passing

    if not is_passing(Path(command[0])):
        return []
    return [f"{command[0]} is in a cache, and goes when that is cleared: uv tool install clew, then install again"]


def _removed(
    installer: "Installer", programs: Sequence["ClientProgram"], yes: bool, dry_run: bool, as_json: bool
) -> None:
    names = [program.name for program in programs]
    records = [r for r in installer.records() if not names or r.client in names]
    if not records:
        typer.echo("clew has changed nothing here: nothing to undo.", err=as_json)
    failed = False
    rows = []
    for record in records:
        try:
            edit = installer.unplanned(record)
            undone = _agreed(installer, [edit], edit.notes, yes, dry_run, as_json)
            if undone:
                installer.uninstall(record, edit)
                shown = printable(installer.places.shown(edit.file))
                typer.echo(f"{_program(record.client).title} is as it was before clew: {shown}", err=as_json)
            rows.append({"client": record.client, "file": str(edit.file), "undone": undone})
        except BadRequest as error:  # the others can be undone all the same
            typer.echo(f"clew: {printable(str(error))}", err=True)
            failed = True
    if not dry_run:
        _end_gateway(installer, as_json)
    if as_json:
        echo_json(rows)
    if failed:
        raise typer.Exit(1)


def _end_gateway(installer: "Installer", as_json: bool) -> None:
    """The gateway ends that was started for clients, with the last of them."""
    from clew.installing.wiring import GATEWAY
    from clew.resident.serving import end_all

    gateway = in_background.background()
    plan = gateway.plan()
    if plan and plan.installed and not any(GATEWAY in record.kinds for record in installer.records()):
        if gateway.stop():
            typer.echo("clew's gateway has ended; what was said stays in the log.", err=as_json)
        gateway.forget()
    if not installer.records():
        end_all(here().env)
    installer.tidy()


def _installer() -> "Installer":
    from clew.installing.wiring import Installer

    return Installer(here())


def _known() -> list["ClientProgram"]:
    from clew.installing.programs import PROGRAMS

    return list(PROGRAMS.values())


def _program(name: str) -> "ClientProgram":
    from clew.installing.programs import PROGRAMS

    short = name.removesuffix("-code").removesuffix("-cli")  # claude-code, as export, audit and import call it
    if short not in PROGRAMS:
        raise UsageError(f"{name} is not a client that clew knows: {', '.join(PROGRAMS)}")
    return PROGRAMS[short]


def _url() -> str:
    own = configured().gateway
    if not own.port:
        raise BadRequest("gateway.port is 0, any that is free: clients need one, `clew config set gateway.port N`")
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(own.host, own.host)  # noqa: S104
    return f"http://{f'[{host}]' if ':' in host else host}:{own.port}"


def _list(installer: "Installer", as_json: bool) -> None:
    url, rows = _url(), []
    for program in _known():
        file = installer.places.shown(program.file(installer.places)) if program.gateway else None
        here = program.is_here(installer.places)
        command = in_background.own_command()
        either = [program.gateway_plugs(url, how) for how in (command, None)] if program.gateway else []
        wired = any(map(installer.is_wired, either))
        plugged = program.plugs is not None and installer.is_wired(program.plugs(command))
        told = {"client": program.name, "title": program.title, "found": here, "gateway": wired, "tools": plugged}
        rows.append(told | {"file": file})
    if as_json:
        echo_json(rows)
        return
    for row in rows:
        ways = [name for name in ("tools", "gateway") if row[name]]
        state = " and ".join(ways) or ("found" if row["found"] else "not found")
        typer.echo(f"{row['client']!s:<9} {row['title']!s:<12} {state:<17} {row['file'] or 'environment only'}")


def _agreed(
    installer: "Installer",
    edits: Sequence["FileEdit"],
    notes: Sequence[str],
    yes: bool,
    dry_run: bool,
    as_json: bool = False,
) -> bool:
    for edit in edits:
        if told := edit.diff(installer.places.shown(edit.file)):
            typer.echo(told, err=as_json)
    _say_notes(notes, as_json)
    asked = "Change it?" if len(edits) == 1 else "Change these?"
    return not dry_run and (yes or typer.confirm(asked, err=as_json))


def _say_notes(notes: Sequence[str], as_json: bool = False) -> None:
    for note in notes:
        typer.echo(f"note: {printable(note)}", err=as_json)
