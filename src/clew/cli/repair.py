"""What clients, and the gateway in the background, are told to run and is no longer there; and how that is mended."""

from typing import TYPE_CHECKING

import typer

from clew.cli import background as in_background
from clew.cli.app import printable
from clew.config.places import here

if TYPE_CHECKING:
    from clew.installing.wiring import Installer
    from clew.store.database import Problem

REMEDY = "`clew doctor --repair`, with the clew that you have now"


def gone() -> list["Problem"]:
    """Programs that are named and not there, by who is to run them."""
    from clew.installing.vanished import runs, vanished
    from clew.store.database import Problem

    found = dict[str, None]()
    for one in vanished(_installer()):
        found[f"{one.client.title} is told to run {one.program}, which is gone"] = None
    plan = in_background.background().plan()
    if plan and not runs(plan.command[0]):
        found[f"the gateway in the background is started by {plan.command[0]}, which is gone"] = None
    return [Problem(printable(what), 1, REMEDY) for what in found]


def mend(as_json: bool = False) -> None:
    """Tell all of them where clew is now."""
    from clew.gateway.background import commanded
    from clew.installing.vanished import mend as mend_client
    from clew.installing.vanished import runs, vanished

    installer, command = _installer(), in_background.own_command()
    told = [one.client.title for one in vanished(installer) if mend_client(installer, one, command)]
    for title in dict.fromkeys(told):
        typer.echo(f"{title} is told where clew is now: {printable(' '.join(command))}", err=as_json)
    gateway = in_background.background()
    plan = gateway.plan()
    if plan and not runs(plan.command[0]):
        again = commanded(command, plan.host, plan.port, in_background.options_of(plan.command))
        gateway.keep(plan._replace(command=again))
        typer.echo(f"the gateway in the background is started by {printable(again[0])} from now on", err=as_json)


def _installer() -> "Installer":
    from clew.installing.wiring import Installer

    return Installer(here())
