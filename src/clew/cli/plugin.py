"""The command that plugins of coding agents start."""

import asyncio
import sys
from contextlib import suppress
from typing import Annotated

import typer

from clew.cli.app import ScopeName, StorePath, UsageError, app, configured


@app.command(hidden=True, epilog="clew install opencode and clew install pi write the plugins that start this.")
def plugin(
    client: Annotated[str, typer.Argument(metavar="CLIENT", help="opencode or pi.")],
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Answer the plugin of a coding agent on standard input and output, one JSON object a line."""
    from clew.catalog import Model
    from clew.config import engine
    from clew.core.limits import Budget
    from clew.plugins.conversations import FORMS, PluginConversations
    from clew.plugins.lines import converse
    from clew.store import open_store

    if client not in FORMS:
        raise UsageError(f"there is no plugin for {client}: there are {', '.join(FORMS)}")
    config = configured()
    windows: dict[str, int] = {}

    def budget(model: Model) -> Budget:
        told, own = windows.get(model.name), config.budget.window
        return config.budget_for(model, min(told, own) if told and own else told)

    async def serve() -> None:
        opened = open_store(store or config.store)
        talk = PluginConversations(client, engine(config, opened, budget, method="auto"), windows, scope)
        try:
            await converse(talk.answer, sys.stdin.buffer, sys.stdout.buffer)
        finally:
            await opened.close()

    with suppress(KeyboardInterrupt, BrokenPipeError):
        asyncio.run(serve())
