"""The gateway in the background: started, looked at and ended, for `clew serve` and for `clew install`."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import typer

from clew.cli.app import printable
from clew.config.places import here
from clew.errors import BadRequest

if TYPE_CHECKING:
    from clew.gateway.background import BackgroundGateway

STATUS = "`clew serve --status` shows how it is, `clew serve --stop` ends it"


def own_command() -> tuple[str, ...]:
    """How others start clew: as a whole path, since they may have another search path than this shell."""
    here = Path(sys.executable).parent
    script = shutil.which("clew", path=str(here))
    if script and os.fsencode(here) in Path(script).read_bytes()[:1_000]:
        return (script,)
    return (sys.executable, "-P", "-m", "clew")  # an environment that was moved has scripts that run no more


def background() -> "BackgroundGateway":
    """This user's."""
    from clew.gateway.background import BackgroundGateway

    return BackgroundGateway(here().env)


def started(host: str, port: int, options: Sequence[str] = (), installed: bool = False) -> str:
    """See to it that a gateway runs, as it is to be started from now on; its address. Raises `BadRequest`."""
    from clew.gateway.background import StartPlan, answers, checked, commanded, own_settings

    gateway = background()
    before = gateway.plan()
    for_clients = installed or bool(before and before.installed)
    if before and installed:  # it stays as somebody wanted it; where clew is now may be new
        options = options_of(before.command)
    settings = before.settings if before and installed else own_settings(here().env)
    plan = checked(StartPlan(host, port, commanded(own_command(), host, port, options), for_clients, settings))
    if before and answers(before) and (before.url != plan.url or options_of(before.command) != tuple(options)):
        raise BadRequest(f"a gateway runs at {before.url} already, started otherwise: `clew serve --stop` ends it")
    gateway.keep(plan)
    if why := gateway.ensure():
        if before is None:
            gateway.forget()
        raise BadRequest(why)
    return plan.url


def check_free(host: str, port: int) -> None:
    """Raise `BadRequest` where the gateway in the background has this place."""
    plan = background().plan()
    if plan and (plan.host, plan.port) == (host, port) and background().process():
        raise BadRequest(f"clew's gateway runs at {plan.url} already, in the background: `clew serve --stop` ends it")


def ensured() -> None:
    """Start the gateway beside other work, where clients were told to talk through it."""
    gateway = background()
    plan = gateway.plan()
    if plan and plan.installed:
        Thread(target=gateway.ensure, name="clew-gateway-start", daemon=True).start()


def options_of(command: Sequence[str]) -> tuple[str, ...]:
    """What a command says beside address and port."""
    at = command.index("--port") + 2 if "--port" in command else len(command)
    return tuple(command[at:])


def say_started(url: str) -> None:
    """What runs, where its log is, and how it is ended."""
    gateway = background()
    process = gateway.process()
    runs = f"in the background (process {process})" if process else "already, in a terminal of yours"
    typer.echo(f"clew's gateway runs at {url}, {runs}; {STATUS}.")
    typer.echo(f"Its log: {printable(str(gateway.log))}")


def say_status() -> int:
    """Whether it runs, where, and since it last said what; 0 if it does."""
    from clew.gateway.background import answers
    from clew.installing.vanished import runs

    gateway = background()
    plan, process = gateway.plan(), gateway.process()
    if plan is None:
        typer.echo("no gateway runs in the background: `clew serve --background` starts one")
        return 1
    well = answers(plan)
    if process:
        state = f"runs at {plan.url} (process {process})" if well else f"does not answer at {plan.url} ({process})"
    else:
        state = f"runs at {plan.url}, in a terminal of yours" if well else "does not run"
    typer.echo(f"gateway  {state}")
    typer.echo(f"log      {printable(str(gateway.log))}")
    typer.echo(f"command  {printable(' '.join(plan.command))}")
    if not runs(plan.command[0]):
        typer.echo(f"clew: {printable(plan.command[0])} is gone: `clew doctor --repair`", err=True)
    if not well:
        typer.echo(f"it last said: {printable(gateway.last_line())}")
        again = "; so do clients that `clew install --gateway` wired, at their next prompt" if plan.installed else ""
        typer.echo(f"`clew serve --background` starts it{again}")
    return 0 if well else 1


def stop() -> int:
    """End it; 0 if none runs then."""
    from clew.gateway.background import answers

    gateway = background()
    plan = gateway.plan()
    if gateway.stop():
        typer.echo("clew's gateway has ended.")
    elif plan and answers(plan):
        typer.echo(f"clew: the gateway at {plan.url} was started in a terminal: Ctrl+C ends it there", err=True)
        return 1
    else:
        typer.echo("no gateway runs in the background; nothing to end.")
    if plan and plan.installed:
        typer.echo("Clients that talk through it start it again; `clew install CLIENT --remove` takes one off it.")
    else:
        gateway.forget()
    return 0
