"""What clients, and the gateway in the background, are told to run and is no longer there; and how that is mended."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from clew.cli import background as in_background
from clew.cli.app import printable

if TYPE_CHECKING:
    from clew.installing.wiring import Installer, Wired
    from clew.store.database import Problem

REMEDY = "clew doctor --repair, with the clew that you have now"


def gone() -> list["Problem"]:
    """Programs that are named and not there, by who is to run them."""
    from clew.installing.programs import PROGRAMS
    from clew.installing.vanished import runs, vanished
    from clew.store.database import Problem

    found = dict[str, None]()
    for record in _installer().records():
        for program in vanished(record):
            found[f"{PROGRAMS[record.client].title} is told to run {program}, which is gone"] = None
    plan = in_background.background().plan()
    if plan and not runs(plan.command[0]):
        found[f"the gateway in the background is started by {plan.command[0]}, which is gone"] = None
    return [Problem(printable(what), 1, REMEDY) for what in found]


def mend(as_json: bool = False) -> None:
    """Tell all of them where clew is now."""
    from clew.gateway.background import commanded
    from clew.installing.programs import PROGRAMS
    from clew.installing.vanished import runs, vanished

    installer = _installer()
    for client in dict.fromkeys(record.client for record in installer.records() if vanished(record)):
        for record in [record for record in installer.records() if record.client == client]:
            _rewire(installer, record)
        command = " ".join(in_background.own_command())
        typer.echo(f"{PROGRAMS[client].title} is told where clew is now: {printable(command)}", err=as_json)
    gateway = in_background.background()
    plan = gateway.plan()
    if plan and not runs(plan.command[0]):
        again = commanded(in_background.own_command(), plan.host, plan.port, in_background.options_of(plan.command))
        gateway.keep(plan._replace(command=again))
        typer.echo(f"the gateway in the background is started by {printable(again[0])} from now on", err=as_json)


def _rewire(installer: "Installer", record: "Wired") -> None:
    """Write anew what a client was given."""
    from clew.installing.programs import PROGRAMS
    from clew.installing.vanished import vanished
    from clew.installing.wiring import GATEWAY

    program, command = PROGRAMS[record.client], in_background.own_command()
    plan = in_background.background().plan()
    for kind in sorted(kind for kind in record.kinds if vanished(record, kind)):
        if kind == GATEWAY:
            plugs = program.gateway_plugs(plan.url, command) if plan else []
        else:
            plugs = list(program.plugs(command)) if program.plugs else []
        here = [plug for plug in plugs if str(plug.file(installer.places)) == record.file]
        if edits := installer.planned(program, kind, here):
            installer.install(edits)


def _installer() -> "Installer":
    from clew.config import Places
    from clew.installing.wiring import Installer

    return Installer(Places(os.environ, Path.cwd()))
