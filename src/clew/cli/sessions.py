"""Commands that show sessions: which there are, what one is made of, what a compaction did, what it all came to."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import (
    AsJson,
    Nothing,
    PerhapsName,
    ScopeName,
    SessionName,
    StorePath,
    app,
    bar,
    configured,
    conversation,
    echo_json,
    looking,
    printable,
    seek_store,
)

if TYPE_CHECKING:
    from clew.sessions.chains import Chain
    from clew.sessions.sessions import Sessions
    from clew.store.records import Session

LISTED = 20  # conversations


# --- clew sessions ----------------------------------------------------------------------------------------------------


@app.command(epilog="Example: clew sessions")
async def sessions(
    name: PerhapsName = None,
    tag: Annotated[str, typer.Option(metavar="WORD", help="Only conversations with this tag.")] = "",
    archived: Annotated[bool, typer.Option("--archived", help="Include archived conversations.")] = False,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Maximum number of conversations.")] = LISTED,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """List conversations, newest first, with the cause, tokens and cost of each of their sessions."""
    _listed(as_json, store)
    await _sessions(name, tag, archived, limit, as_json, scope, store)


def _listed(as_json: bool, store: str | None) -> None:
    """Before a list: that there is no store yet is said to people, and is an empty list for a program."""
    try:
        seek_store(store)
    except Nothing:
        if as_json:
            echo_json([])
            raise typer.Exit from None
        raise


async def _sessions(
    name: str | None, tag: str, archived: bool, limit: int, as_json: bool, scope: str, path: str | None
) -> None:
    from rich.console import Console

    from clew.screens.tree import tree
    from clew.sessions.names import meant

    async with looking(scope, path) as found:
        every = await found.all()
        roots = _wanted(every, meant(name, every).session if name is not None else None, tag, archived)
        if not roots:
            if as_json:
                echo_json([])
                return
            raise Nothing(_nothing(every, tag, scope))
        listed = roots[:limit]
        titles = await _titles(found, [chain for root in listed for chain in root.all()])
        if as_json:
            rows = [s for root in listed for chain in root.all() for s in chain.sessions]
            echo_json([asdict(s) | {"title": titles.get(s.branch)} for s in rows])
        else:
            tree(Console(highlight=False), listed, titles, whole=name is not None, more=len(roots) - len(listed))


def _wanted(every: Sequence["Session"], one: "Session | None", tag: str, archived: bool) -> list["Chain"]:
    """The conversations to be listed: the one that a session is of, or all that fit."""
    from clew.sessions.chains import conversations

    roots = conversations(s for s in every if one or archived or not s.archived)
    if one:
        return [root for root in roots if root.has(one.branch)]
    return [root for root in roots if not tag or any(tag in chain.first.tags for chain in root.all())]


def _nothing(every: Sequence["Session"], tag: str, scope: str) -> str:
    if not every:
        return f"scope {scope!r} is empty: try clew demo, or another --scope"
    return f"no conversation has the tag {tag!r}" if tag else "all conversations are archived: --archived lists them"


async def _titles(found: "Sessions", chains: Iterable["Chain"]) -> dict[str, str]:
    """The first words of conversations that no person named, and that have no past of another one."""
    from clew.sessions.about import Abouts
    from clew.sessions.chains import is_named_by_person

    firsts = [chain.first for chain in chains]
    unnamed = [first for first in firsts if not is_named_by_person(first) and first.cause != "fork"]
    abouts = await Abouts(found.engine).of(found.scope, unnamed)
    return {branch: about.title for branch, about in abouts.items()}


# --- clew show --------------------------------------------------------------------------------------------------------


@app.command(epilog="Example: clew show demo")
async def show(
    name: PerhapsName = None,
    ids: Annotated[bool, typer.Option("--ids", help="Show the id of each item, for clew pin.")] = False,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Show what fills the window, and the conversation as the model last saw it; without NAME, list conversations."""
    if name is None:
        _listed(as_json, store)
        await _sessions(None, "", False, LISTED, as_json, scope, store)
        return
    from rich.console import Console

    from clew.control.pointers import as_read
    from clew.screens.window import ShownWindow, window

    async with conversation(name, scope, store) as one:
        found = await one.window(sent=True)
        session, said = await one.session(), await one.said(found.view)
    shown = ShownWindow(session, replace(found, view=as_read(found.view)), said)
    if as_json:
        echo_json(shown.as_json())
    else:
        window(Console(highlight=False), shown, ids)


# --- clew diff --------------------------------------------------------------------------------------------------------


@app.command(epilog="Example: clew diff demo")
async def diff(
    name: SessionName,
    full: Annotated[bool, typer.Option("--full", help="List every item that left the view.")] = False,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Show what a compaction removed, replaced and saved, and what can be recalled.

    NAME.3 is the compaction that began the third session; NAME alone is the newest.
    """
    from rich.console import Console

    from clew.screens import diff as screen

    async with conversation(name, scope, store) as one:
        found = await one.diff()
    if as_json:
        echo_json(screen.as_json(found))
    else:
        screen.diff(Console(highlight=False), found, full)


# --- clew preview -----------------------------------------------------------------------------------------------------


@app.command(epilog="Example: clew preview demo")
async def preview(
    name: SessionName,
    focus: Annotated[str, typer.Option("--focus", metavar="WORDS", help="What matters most.")] = "",
    full: Annotated[bool, typer.Option("--full", help="List every item that would leave the view.")] = False,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Show what a compaction would do now: what would leave the view, and the exact text that would replace it.

    Nothing is written, and no model is asked.
    """
    from rich.console import Console

    from clew.screens import diff as screen

    async with conversation(name, scope, store) as one:
        found = await one.preview(focus)
    if as_json:
        echo_json(screen.as_json(found))
    else:
        named = configured().summary.model
        model = {"none": "", "own": "the conversation's own model"}.get(named, named)
        screen.preview(Console(highlight=False), found, full, model)


# --- clew chapters ----------------------------------------------------------------------------------------------------


@app.command(epilog="Example: clew chapters demo")
async def chapters(
    name: SessionName,
    id: Annotated[
        str, typer.Argument(metavar="[ID]", help="One of them, with what its model was asked and answered.")
    ] = "",
    by_code: Annotated[
        bool, typer.Option("--by-code", help="Have code write it instead; clew undo takes that back.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --by-code: only show the text.")] = False,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Show who wrote each chapter that stands in for a history, and what that cost."""
    from rich.console import Console

    from clew.screens import chapters as screen

    if by_code:
        if not id:
            raise typer.BadParameter("--by-code needs the ID of a chapter")
        await _rewritten(name, id, dry_run, as_json, scope, store)
        return
    async with conversation(name, scope, store) as one:
        found = await one.chapters(id)
    if as_json:
        echo_json([screen.as_json(one) for one in found])
    elif not found:
        raise Nothing(f"{name} has no chapters: nothing was compacted")
    elif id:
        for chapter in found:
            screen.told(Console(highlight=False), chapter)
    else:
        screen.listed(Console(highlight=False), found)


async def _rewritten(name: str, id: str, dry_run: bool, as_json: bool, scope: str, path: str | None) -> None:
    from rich.console import Console

    from clew.screens.lines import read

    async with conversation(name, scope, path) as one:
        done = await one.rewrite(id, dry_run)
    if as_json:
        echo_json(asdict(done))
        return
    typer.echo(
        printable(f"{done.id}: code's words instead of {done.author}'s, {done.before:,} → {done.after:,} tokens")
    )
    if dry_run:
        read(Console(highlight=False), done.text, 4)


# --- clew stats -------------------------------------------------------------------------------------------------------


@app.command(epilog="Example: clew stats")
async def stats(
    name: PerhapsName = None,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Show tokens and cost of all conversations or one, compared with sending everything."""
    _listed(as_json, store)
    from rich.console import Console

    from clew.screens import totals as screen
    from clew.sessions.totals import totals

    async with looking(scope, store) as found:
        every = await ((await found.conversation(name)).namesakes() if name is not None else found.all())
        if not every and not as_json:
            raise Nothing(_nothing(every, "", scope))
        with bar("counting") as progress:
            sums = await totals(found.engine, scope, every, progress)
    largest = screen.largest(every)
    if as_json:
        echo_json(screen.as_json(sums, largest))
    else:
        screen.stats(Console(highlight=False), sums, largest)
