"""The demo: a session of an agent, replayed in a window too small for it."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from clew.cli.app import ScopeName, StorePath, app, called, configured, hinted
from clew.config.places import here

TICK = 0.05  # seconds a turn stays on the screen


@app.command(epilog='Example: clew demo --ask "Which view should be the default?"')
async def demo(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A session file of yours; it is only read, nothing is kept.")
    ] = None,
    ask: Annotated[
        list[str] | None, typer.Option(metavar="QUESTION", help="Ask the log this. May be given several times.")
    ] = None,
    window: Annotated[
        int, typer.Option(metavar="TOKENS", help="Context window of the model; 0: 24,000, or a quarter of your file.")
    ] = 0,
    html: Annotated[Path | None, typer.Option(metavar="OUT", help="Write what is shown as a web page, too.")] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Run at full speed instead of reading speed.")] = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Replay a real agent session, or one of yours, in a window too small for it."""
    from rich.console import Console

    from clew.screens import save
    from clew.screens.demo import DEMO_WINDOW, next_steps, run, sample
    from clew.screens.own_sessions import messages_of, newest, quarter
    from clew.store.places import place

    console = Console(highlight=False, record=html is not None)
    tick = 0 if fast else TICK
    if file:
        messages = messages_of(file)
        await run(console, ":memory:", messages, window or quarter(messages), scope, ask or (), tick)
    else:
        where = place(store) if store else configured().store
        replay = await run(console, where, sample(), window or DEMO_WINDOW, scope, ask or (), tick)
        next_steps(console, replay, hinted)
        if mine := newest(here()):
            line = f"  {called()} demo {shlex.quote(str(mine))}  # your own newest session; it is only read"
            console.print(line, markup=False, soft_wrap=True)
    if html:
        save(html, console.export_html().encode())
        typer.echo(f"written: {html}", err=True)
