"""The commands of coding agents: what their plugins start, and a new session in Crush."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from clew.cli.app import ScopeName, StorePath, UsageError, app, configured
from clew.cli.background import ensured
from clew.config.places import here


@app.command(hidden=True, epilog="Example: clew plugin pi (by the plugins that clew install writes)")
def plugin(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="claude, opencode or pi.")],
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Answer the plugin of a coding agent on standard input and output, one JSON object a line."""
    from clew.plugins.conversations import FORMS, conversations
    from clew.plugins.lines import converse
    from clew.resident.alone import alone
    from clew.store import open_store

    if client not in FORMS:
        raise UsageError(f"there is no plugin for {client}: there are {', '.join(FORMS)}")
    ensured()
    config = configured()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        opened = open_store(store or config.store)
        talking = conversations(client, config, opened, scope)
        try:
            await converse(talking.answer, reader, writer)
        finally:
            await talking.close()
            await opened.close()

    alone(talk)


@app.command(epilog="Example: clew crush (in the folder of the project)")
def crush(
    session: Annotated[str, typer.Argument(metavar="[SESSION]", help="The id of a session, if not the newest.")] = "",
    server: Annotated[str, typer.Option("--server", metavar="ADDRESS", help="Of crush server, if not the usual.")] = "",
    summary: Annotated[str, typer.Option("--summary", metavar="TEXT", help="In place of clew's own summary.")] = "",
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Begin a new session in Crush that goes on from a summary of another one, which stays in clew's log.

    This needs a running crush server. No model is asked for the summary.
    """
    from clew.config import engine
    from clew.plugins.crush import CrushServer, continued, usual_address
    from clew.store import open_store

    config = configured()

    async def begin() -> str:
        opened = open_store(store or config.store)
        try:
            made, asked = engine(config, opened), CrushServer(server or usual_address(here().env))
            return await continued(asked, Path.cwd(), session, made, scope, summary)
        finally:
            await opened.close()

    typer.echo(f"Crush goes on in session {asyncio.run(begin())}.")
