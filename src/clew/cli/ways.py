"""Commands that go back or another way: undo, resume, fork; and what people say of a conversation: pins, tags."""

import asyncio
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from clew.cli.app import AsJson, CallNumber, ScopeName, SessionName, StorePath, app, conversation, echo_json, printable

if TYPE_CHECKING:
    from clew.sessions.conversation import PinnedItem

Off = Annotated[bool, typer.Option("--off", help="Remove it again.")]


@app.command(epilog="Example: clew undo demo --count 1")
async def undo(
    name: SessionName,
    count: Annotated[int, typer.Option(min=1, metavar="N", help="Number of compactions, from the newest on.")] = 1,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Undo the newest compactions: the originals are in view again, and later messages stay."""
    from clew.screens.lines import count as counted

    async with conversation(name, scope, store) as one:
        if not yes and sys.stdin.isatty():
            would = await one.undo(count, dry_run=True)
            told = f"the view would grow from {would.before:,} to {would.after:,} tokens, of {would.limit:,}"
            typer.echo(told, err=True)
            if not typer.confirm("Undo?", err=True):
                return
        done = await one.undo(count)
    if as_json:
        echo_json({key: getattr(done, key) for key in ("sessions", "before", "after", "limit")})
        return
    told = f"{counted(len(done.sessions), 'compaction')} undone"
    typer.echo(f"{told}: {done.before:,} → {done.after:,} tokens of {done.limit:,}")


@app.command(epilog="Example: clew resume demo -o request.json")
async def resume(
    name: SessionName,
    call: CallNumber = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="Output file.")] = None,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Write the request that was sent in a call, or that would be sent now."""
    from clew.control.pointers import as_read
    from clew.core import rawjson
    from clew.engine.engine import body
    from clew.screens import save
    from clew.screens.lines import numbered

    async with conversation(name, scope, store) as one:
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
    typer.echo(f"{told}: requests with session={made.name!r} add to it")


# --- pins -------------------------------------------------------------------------------------------------------------


@app.command(epilog="Example: clew pin demo")
async def pin(
    name: SessionName,
    items: Annotated[
        list[str] | None, typer.Argument(metavar="[ITEM]...", help="Ids, as shown by clew show --ids.")
    ] = None,
    off: Off = False,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Pin items, so that they stay verbatim in every later view; without ITEM, list the pinned items."""
    async with conversation(name, scope, store) as one:
        if items:
            await one.pin(items, off)
        held = await one.pins()
    if as_json:
        echo_json([{"id": n.id, "in_view": in_view, "text": n.item.text} for n, in_view in held])
    else:
        _print_pins(held)


def _print_pins(held: "list[PinnedItem]") -> None:
    from rich.console import Console

    from clew.core.items import SHORT
    from clew.screens.lines import label, line, words

    if not held:
        typer.echo("nothing is pinned")
    for node, in_view in held:
        away = "" if in_view else "out of view; quoted from the next request on: "
        line(Console(highlight=False), f"{node.id[:SHORT]}  {label(node.item):<9} {away}{words(node.item.text)}")


# --- who decides ------------------------------------------------------------------------------------------------------


@app.command(epilog="Example: clew method demo llm")
async def method(
    name: SessionName,
    given: Annotated[
        Literal["auto", "llm"] | None,
        typer.Argument(
            metavar="[auto|llm]", help="auto: clew decides; llm: the agent does, and is told how full it is."
        ),
    ] = None,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Switch who decides when a conversation is compacted, from its next request on; without a method, print it."""
    from clew.sessions.methods import METHOD_SECONDS

    async with conversation(name, scope, store) as one:
        if given is not None:
            await one.switch(given)
            await asyncio.sleep(1.5 * METHOD_SECONDS)  # until a gateway that runs knows of it
        holds = given or await one.method()
    if as_json:
        echo_json({"method": holds})
    else:
        typer.echo(holds)


# --- tags and the archive ---------------------------------------------------------------------------------------------


@app.command(epilog="Example: clew tag demo nightly")
async def tag(
    name: SessionName,
    given: Annotated[list[str] | None, typer.Argument(metavar="[WORD]...", help="The tags.")] = None,
    off: Off = False,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Add tags to a conversation, for clew sessions --tag; without WORD, print its tags."""
    words = given or []
    async with conversation(name, scope, store) as one:
        tags = (await one.tag(() if off else words, words if off else ())).tags
    if as_json:
        echo_json(tags)
        return
    for held in tags:
        typer.echo(printable(held))


@app.command(epilog="Example: clew archive demo")
async def archive(
    name: SessionName, off: Off = False, scope: ScopeName = "", store: StorePath = None, as_json: AsJson = False
) -> None:
    """Archive a conversation with its forks and sub-agents; nothing is deleted."""
    from clew.screens.lines import called, count

    async with conversation(name, scope, store) as one:
        session, put = await one.session(), (await one.archive(off)).branches
    if as_json:
        echo_json({"session": called(session), "archived": not off, "branches": put})
        return
    others = f" and {count(len(put) - 1, 'conversation')} that began in it" if len(put) > 1 else ""
    typer.echo(f"{called(session)}{others}: {'no longer archived' if off else 'archived; --off undoes it'}")
