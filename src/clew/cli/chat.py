"""The command that talks: an agent in the terminal, with its window in view."""

import asyncio
import gc
import os
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import ScopeName, StorePath, UsageError, app, configured, hinted, names, opened, printable
from clew.config.places import here
from clew.errors import MissingExtra

if TYPE_CHECKING:
    from clew.chat import ChatBackend

FRAMES = "240"  # a second at most: a key waits for the next one, and at Textual's 60 that alone may take 33 ms
# Times that younger objects are looked through before all are: that takes longer than a key may wait.
COLLECT_AFTER = 1_000


@app.command(epilog="Example: clew chat build")
def chat(
    session: Annotated[
        str, typer.Argument(metavar="[NAME]", help="The conversation to continue, or to start.", autocompletion=names)
    ] = "",
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="The model; `clew model list` shows the names.")
    ] = "",
    last: Annotated[bool, typer.Option("--last", help="Continue the newest conversation.")] = False,
    folder: Annotated[Path, typer.Option("--in", metavar="FOLDER", help="Folder to work in.")] = Path(),
    light: Annotated[bool, typer.Option("--light", help="Use the light theme.")] = False,
    demo: Annotated[
        bool, typer.Option("--demo", help="Chat with a script in a temporary folder and log: no key, no cost.")
    ] = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Chat with an agent and see its context window: how full it is, and what was compacted.

    The agent reads and searches in the folder; it asks before it changes a file or runs a command. The log keeps all.
    """
    if find_spec("textual") is None:
        raise MissingExtra("`clew chat` needs Textual", "chat")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("`clew chat` needs a terminal for input and output; `clew run` does one task without one")
    if not folder.is_dir():
        raise typer.BadParameter(f"{folder} is not a folder")
    os.environ.setdefault("TEXTUAL_FPS", FRAMES)
    if demo:
        if session or model or last or store or folder != Path():
            raise UsageError("--demo has a folder, a log and a model of its own: give nothing beside it but --light")
        asyncio.run(_demo(light))
        typer.echo("the demonstration's folder and log are deleted; yours begins with: `clew chat`")
        return
    name = asyncio.run(_chat(session, model, last, folder, light, scope, store))
    typer.echo(hinted(f"to continue: `clew chat {shlex.quote(printable(name))}`"))


async def _demo(light: bool) -> None:
    from clew.chat import ChatBackend
    from clew.chat.demo import demonstration
    from clew.store import open_store

    with demonstration() as places:
        store = open_store(places.store(), True)
        try:
            await _shown(ChatBackend(places, store, session="demo"), light)
        finally:
            await store.close()


async def _chat(session: str, model: str, last: bool, folder: Path, light: bool, scope: str, where: str | None) -> str:
    from clew.chat import ChatBackend

    configured()  # says what it passes over, while there is a place to say it
    store = opened(where, create=True)
    try:
        backend = ChatBackend(here(), store, folder, scope=scope, model=model, session=session)
        if last and not session and (known := await backend.all()):
            await backend.open(known[0].name or "")
        await _shown(backend, light)
        return backend.agent.session
    finally:
        await store.close()


async def _shown(backend: "ChatBackend", light: bool) -> None:
    from clew.chat import Chat

    gc.set_threshold(*gc.get_threshold()[:2], COLLECT_AFTER)
    try:
        await Chat(backend, light).run_async()
    finally:
        await backend.close()
