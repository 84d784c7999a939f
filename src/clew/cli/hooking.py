"""The command that coding agents run at their own events."""

import sys
from typing import Annotated

import typer

from clew.cli.app import app


@app.command(hidden=True)
def hook(client: Annotated[str, typer.Argument(help="The client that asks, as clew install wrote it.")]) -> None:
    """Answer an event of a coding agent, from standard input; clew install tells agents to run this."""
    from clew.hooks.running import run

    raise typer.Exit(run([client], sys.stdin.buffer, sys.stdout))
