"""What clients start themselves, as their configuration names it: hooks, plugins, and the tools of MCP."""

import asyncio
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.app import ScopeName, StorePath, UsageError, app, configured
from clew.cli.background import ensured
from clew.config.places import here

if TYPE_CHECKING:
    from clew.mcp.library import Library


@app.command(hidden=True, epilog="Example: clew mcp --project . (for Claude Code: claude mcp add clew -- clew mcp)")
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
    """An MCP server: with it, agents search and recall their conversations (also timeline, lost, pin, status).

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


@app.command(hidden=True, epilog="Example: clew hook claude < event.json")
def hook(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="The client that asks, as `clew install` wrote it.")],
) -> None:
    """Answer an event of a coding agent, from standard input; `clew install` tells agents to run this."""
    from clew.hooks.running import run

    raise typer.Exit(run([client], sys.stdin.buffer, sys.stdout))


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
