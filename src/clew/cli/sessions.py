"""The list of conversations, and what they came to."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import (
    AsJson,
    Nothing,
    PerhapsName,
    ScopeName,
    StorePath,
    UsageError,
    app,
    bar,
    echo_json,
    looking,
    opened,
    seek_store,
)

if TYPE_CHECKING:
    from clew.sessions.chains import Chain
    from clew.store.records import Session
    from clew.store.sql import SQLStore

LISTED = 20  # conversations


@app.command(epilog="Example: clew sessions")
async def sessions(
    name: PerhapsName = None,
    tag: Annotated[str, typer.Option(metavar="WORD", help="Only conversations with this tag.")] = "",
    archived: Annotated[bool, typer.Option("--archived", help="Include archived conversations.")] = False,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Maximum number of conversations.")] = LISTED,
    sums: Annotated[
        bool, typer.Option("--totals", help="Instead: tokens and cost of all, compared with sending everything.")
    ] = False,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """List conversations, newest first, with the cause, tokens and cost of each of their sessions."""
    if sums:
        if tag or archived or limit != LISTED:
            raise UsageError("--totals are of all conversations, or of NAME: give nothing else to choose by")
        await _totals(name, as_json, scope, store)
    else:
        await list_sessions(name, tag, archived, limit, as_json, scope, store)


def _seek(as_json: bool, store: str | None) -> None:
    """Before a list: that there is no store yet is said to people, and is an empty list for a program."""
    try:
        seek_store(store)
    except Nothing:
        if as_json:
            echo_json([])
            raise typer.Exit from None
        raise


async def list_sessions(
    name: str | None, tag: str, archived: bool, limit: int, as_json: bool, scope: str, path: str | None
) -> None:
    """Print the conversations that fit."""
    _seek(as_json, path)
    from clew.screens.tree import tree
    from clew.sessions.names import meant

    log = opened(path)  # and no engine: a list is asked for often, and that takes long to load
    try:
        every = await log.sessions(scope)
        roots = _wanted(every, meant(name, every).session if name is not None else None, tag, archived)
        if not roots:
            if as_json:
                echo_json([])
                return
            raise Nothing(_nothing(every, tag, scope))
        listed = roots[:limit]
        titles = await _titles(log, scope, [chain for root in listed for chain in root.all()])
        if as_json:
            rows = [s for root in listed for chain in root.all() for s in chain.sessions]
            echo_json([asdict(s) | {"title": titles.get(s.branch)} for s in rows])
        else:
            for line in tree(listed, titles, whole=name is not None, more=len(roots) - len(listed)):
                typer.echo(line)
    finally:
        await log.close()


def _wanted(every: Sequence["Session"], one: "Session | None", tag: str, archived: bool) -> list["Chain"]:
    """The conversations to be listed: the one that a session is of, or all that fit."""
    from clew.sessions.chains import conversations

    roots = conversations(s for s in every if one or archived or not s.archived)
    if one:
        return [root for root in roots if root.has(one.branch)]
    return [root for root in roots if not tag or any(tag in chain.first.tags for chain in root.all())]


def _nothing(every: Sequence["Session"], tag: str, scope: str) -> str:
    if not every:
        return f"scope {scope!r} is empty: try `clew demo`, or another --scope"
    return f"no conversation has the tag {tag!r}" if tag else "all conversations are archived: --archived lists them"


async def _titles(store: "SQLStore", scope: str, chains: Iterable["Chain"]) -> dict[str, str]:
    """The first words of conversations that no person named, and that have no past of another one."""
    from clew.sessions.chains import is_named_by_person

    firsts = [chain.first for chain in chains]
    unnamed = [first for first in firsts if not is_named_by_person(first) and first.cause != "fork"]
    if not unnamed:
        return {}
    from clew.sessions.about import Abouts  # knows all clients, and reading of them takes long

    abouts = await Abouts(store).of(scope, unnamed)
    return {branch: about.title for branch, about in abouts.items()}


async def _totals(name: str | None, as_json: bool, scope: str, path: str | None) -> None:
    _seek(as_json, path)
    from rich.console import Console

    from clew.screens import totals as screen
    from clew.sessions.totals import totals

    async with looking(scope, path) as found:
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
