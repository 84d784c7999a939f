"""Commands that change a conversation: undo, pins, tags, the archive, who decides when to compact."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from clew.cli.app import AsJson, ScopeName, SessionName, StorePath, UsageError, app, conversation, echo_json, printable

if TYPE_CHECKING:
    from clew.sessions.conversation import PinnedItem


@app.command(epilog="Example: clew undo demo --count 1")
async def undo(
    name: SessionName,
    count: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Number of compactions, from the newest on, if not one.")
    ] = None,
    chapter: Annotated[
        str,
        typer.Option("--chapter", metavar="ID", help="Only a model's words for this chapter: code writes it instead."),
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Undo the newest compactions: the originals are in view again, and later messages stay."""
    if chapter:
        if count is not None:
            raise UsageError("--chapter is about one chapter, --count about compactions: give one of them")
        await _rewritten(name, chapter, dry_run, as_json, scope, store)
        return
    from clew.screens.lines import count as counted

    async with conversation(name, scope, store) as one:
        ask = not yes and sys.stdin.isatty()
        done = await one.undo(count or 1, dry_run=dry_run or ask)
        if ask and not dry_run:
            grows = f"the view would grow from {done.before:,} to {done.after:,} tokens, of {done.limit:,}"
            typer.echo(grows, err=True)
            if not typer.confirm("Undo?", err=True):
                return
            done = await one.undo(count or 1)
    if as_json:
        echo_json({key: getattr(done, key) for key in ("sessions", "before", "after", "limit")})
        return
    compactions = counted(len(done.sessions), "compaction")
    how = f"{compactions} would be undone" if dry_run else f"{compactions} undone"
    typer.echo(f"{how}: {done.before:,} → {done.after:,} tokens of {done.limit:,}")


async def _rewritten(name: str, id: str, dry_run: bool, as_json: bool, scope: str, path: str | None) -> None:
    from rich.console import Console

    from clew.screens.lines import read

    async with conversation(name, scope, path) as one:
        done = await one.rewrite(id, dry_run)
    if as_json:
        echo_json(asdict(done))
        return
    sizes = f"{done.before:,} → {done.after:,} tokens"
    typer.echo(printable(f"{done.id}: code's words instead of {done.author}'s, {sizes}"))
    if dry_run:
        read(Console(highlight=False), done.text, 4)


# --- pins -------------------------------------------------------------------------------------------------------------


@app.command(epilog="Example: clew pin demo")
async def pin(
    name: SessionName,
    items: Annotated[
        list[str] | None, typer.Argument(metavar="[ITEM]...", help="Ids, as shown by `clew show NAME --ids`.")
    ] = None,
    off: Annotated[bool, typer.Option("--off", help="Unpin them.")] = False,
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


# --- what people say of a conversation --------------------------------------------------------------------------------


@app.command("set", epilog="Example: clew set demo --tag nightly")
async def set_(
    name: SessionName,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="WORD", help="Add a tag: `clew sessions --tag WORD`.")
    ] = None,
    untag: Annotated[list[str] | None, typer.Option(metavar="WORD", help="Remove a tag.")] = None,
    archive: Annotated[
        bool | None,
        typer.Option("--archive/--unarchive", help="Leave it out of lists, with its forks and sub-agents; or not."),
    ] = None,
    method: Annotated[
        Literal["auto", "llm"] | None,
        typer.Option(help="Who decides when to compact: clew, or the agent, which is told how full it is."),
    ] = None,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Set a conversation's tags, who decides when it is compacted, and whether it is archived; print what holds.

    A method holds from the next request on, also in a gateway that runs. Nothing that is archived is deleted.
    """
    from clew.sessions.methods import METHOD_SECONDS

    async with conversation(name, scope, store) as one:
        if method is not None:
            await one.switch(method, dry_run=True)  # before anything is written: some conversations refuse it
        tags = (await one.tag(tag or (), untag or ())).tags
        branches = None if archive is None else (await one.archive(off=not archive)).branches
        if method is not None:
            await one.switch(method)
            await asyncio.sleep(1.5 * METHOD_SECONDS)  # until a gateway that runs knows of it
        session = await one.session()
        holds = method or await one.method()
    if as_json:
        echo_json({"tags": tags, "archived": bool(session.archived), "method": holds, "branches": branches})
        return
    typer.echo(f"tags      {printable(', '.join(tags)) or 'none'}")
    typer.echo(f"method    {holds}")
    typer.echo(f"archived  {_archived(bool(session.archived), branches)}")


def _archived(archived: bool, branches: Sequence[str] | None) -> str:
    from clew.screens.lines import count

    others = len(branches or ()) - 1
    with_them = f", with {count(others, 'conversation')} that began in it" if others > 0 else ""
    return f"{'yes' if archived else 'no'}{with_them}"
