"""The command with which agents ask for what was said, by the Model Context Protocol."""

import asyncio
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.app import StorePath, UsageError, app, configured
from clew.cli.background import ensured
from clew.config.places import here

if TYPE_CHECKING:
    from clew.mcp.library import Library


@app.command(epilog="Example: clew mcp --project . (for Claude Code: claude mcp add clew -- clew mcp)")
def mcp(
    project: Annotated[
        Path | None, typer.Option("--project", metavar="FOLDER", help="The project, if not the one of this folder.")
    ] = None,
    conversation: Annotated[
        str, typer.Option("--conversation", metavar="NAME", help="Only this conversation and its past.")
    ] = "",
    every: Annotated[bool, typer.Option("--all", help="All conversations in the scope, of every project.")] = False,
    index: Annotated[
        bool, typer.Option("--index/--no-index", help="Read session files of agents on this machine.")
    ] = True,
    scope: Annotated[str, typer.Option("--scope", metavar="NAME", help="Scope, if not the configured one.")] = "",
    store: StorePath = None,
) -> None:
    """Serve what was said to agents, by MCP: search, recall, timeline, lost, pin, status.

    A client starts this itself, in the folder of a project, and sees that project's conversations: those that went
    through clew, and the session files of coding agents on this machine, which are read as they grow and never changed.
    Other projects and scopes are out of reach; --all shows every project.
    """
    if conversation and every:
        raise UsageError("--conversation shows one and --all every conversation: give one of them")
    ensured()
    folder = (project or Path.cwd()).absolute()

    def library() -> "Library":
        config = configured()  # and not before: a client waits for the first answer
        from clew.mcp import opening

        wanted: dict[str, Any] = {
            "conversation": conversation,
            "every": every,
            "index": index,
            "scope": scope,
            "store": store,
        }
        return opening.library(config, here().env, folder, **wanted)

    from clew.mcp.stdio import serve_lines
    from clew.resident.alone import alone

    made = cache(library)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve_lines(made, reader, writer)
        finally:
            if made.cache_info().currsize:
                await made().close()

    alone(talk)
