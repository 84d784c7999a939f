"""Commands that go on from a conversation: a request as it was sent, a fork, a new session in another program."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from clew.cli.app import (
    AsJson,
    CallNumber,
    PerhapsName,
    ScopeName,
    SessionName,
    StorePath,
    UsageError,
    app,
    configured,
    conversation,
    echo_json,
)
from clew.config.places import here


@app.command(epilog="Example: clew resume demo -o request.json")
async def resume(
    name: PerhapsName = None,
    call: CallNumber = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="Output file.")] = None,
    client: Annotated[
        Literal["crush"] | None,
        typer.Option("--in", help="Begin a new session in Crush; NAME is then a session of Crush, else the newest."),
    ] = None,
    server: Annotated[
        str, typer.Option("--server", metavar="ADDRESS", help="With --in crush: of crush server, if not the usual.")
    ] = "",
    summary: Annotated[
        str, typer.Option("--summary", metavar="TEXT", help="With --in crush: in place of clew's own summary.")
    ] = "",
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Write the request that was sent in a call, or that would be sent now.

    With --in crush, begin a new session in Crush that goes on from a summary of another one, which stays in clew's log.
    This needs a running crush server, in the folder of the project. No model is asked for the summary.
    """
    if client is None:
        if name is None or server or summary:
            raise UsageError(
                "give the NAME of a conversation" if name is None else "--server, --summary: with --in crush"
            )
        await _written(name, call, out, scope, store)
        return
    if call is not None or out is not None:
        raise UsageError("--in crush begins a session: --call and --out are for a request")
    typer.echo(f"Crush goes on in session {await _begun_in_crush(name or '', server, summary, scope, store)}.")


async def _begun_in_crush(session: str, server: str, summary: str, scope: str, path: str | None) -> str:
    from clew.config import engine
    from clew.plugins.crush import CrushServer, continued, usual_address
    from clew.store import open_store

    config = configured()
    log = open_store(path or config.store)
    try:
        crush = CrushServer(server or usual_address(here().env))
        return await continued(crush, Path.cwd(), session, engine(config, log), scope, summary)
    finally:
        await log.close()


async def _written(name: str, call: int | None, out: Path | None, scope: str, path: str | None) -> None:
    from clew.control.pointers import as_read
    from clew.core import rawjson
    from clew.engine.engine import body
    from clew.screens import save
    from clew.screens.lines import numbered

    async with conversation(name, scope, path) as one:
        session, view = await one.session(), await one.view(call)
        tokens = await one.engine.expected(view)
    now = "at its end" if session.ended else "now"
    how = now if call is None else f"as sent in call {call}"
    data = rawjson.visible(rawjson.dumps(body(as_read(view)))) + b"\n"
    if out is None:
        typer.echo(data, nl=False)
    else:
        save(out, data)
    told = f"{numbered(session)} {how}: {len(view.nodes):,} items, {tokens:,} tokens, {view.frame.format}"
    typer.echo(told, err=True)


@app.command(epilog="Example: clew fork demo another-try")
async def fork(
    name: SessionName,
    new: Annotated[str, typer.Argument(metavar="NEWNAME", help="Name of the new conversation.")],
    call: CallNumber = None,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Start a new conversation from the history of another one, up to now or to a call."""
    from clew.screens.lines import numbered, words

    async with conversation(name, scope, store) as one:
        made = await one.fork(new, call)
    if as_json:
        echo_json(asdict(made)["session"])
        return
    at = "" if call is None else f", call {call}"
    told = f"{words(made.name)} continues from {numbered(made.source)}{at}"
    typer.echo(f"{told}: requests with its history and session={made.name!r} add to it")
