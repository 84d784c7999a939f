"""A conversation, and the views of it: its window, calls, facts and chapters, what compactions did or would do."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
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
    configured,
    conversation,
    echo_json,
    looking,
    opened,
    printable,
    seek_store,
)

if TYPE_CHECKING:
    from rich.console import Console

    from clew.sessions.chains import Chain
    from clew.sessions.conversation import Conversation
    from clew.store.records import Session
    from clew.store.sql import SQLStore


LISTED = 20  # conversations


FACTS = 20  # that are listed, unless all are asked for


@app.command(epilog="Example: clew show demo · clew show demo --diff")
async def show(
    name: PerhapsName = None,
    calls: Annotated[
        bool, typer.Option("--calls", help="Estimated and reported tokens and cost of each call.")
    ] = False,
    facts: Annotated[
        bool, typer.Option("--facts", help="Every fact behind a stand-in: in view, recallable by which id, or flagged.")
    ] = False,
    chapters: Annotated[
        bool, typer.Option("--chapters", help="Who wrote each chapter that stands in for a history, at what cost.")
    ] = False,
    chapter: Annotated[
        str, typer.Option("--chapter", metavar="ID", help="One chapter, with what its model was asked and answered.")
    ] = "",
    diff: Annotated[
        bool,
        typer.Option("--diff", help="What the newest compaction removed, replaced and saved, or the one of NAME.3."),
    ] = False,
    preview: Annotated[
        bool, typer.Option("--preview", help="What a compaction would do now: nothing is written, no model asked.")
    ] = False,
    focus: Annotated[str, typer.Option("--focus", metavar="WORDS", help="With --preview: what matters most.")] = "",
    full: Annotated[bool, typer.Option("--full", help="All facts, or every item that left the view.")] = False,
    ids: Annotated[bool, typer.Option("--ids", help="The id of each item, for `clew pin`.")] = False,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Show what fills the window, and the conversation as the model last saw it; or another view of it.

    Without NAME, list the conversations.
    """
    views = calls + facts + (chapters or bool(chapter)) + diff + preview
    if views > 1:
        raise UsageError("--calls, --facts, --chapters, --diff and --preview are views: give one of them")
    if (focus and not preview) or (full and not (facts or diff or preview)) or (ids and views):
        raise UsageError("--focus is for --preview, --full for --facts, --diff and --preview, --ids for the window")
    if name is None:
        if views:
            raise UsageError("give the NAME of a conversation: `clew sessions` lists them")
        await list_sessions(None, "", False, LISTED, as_json, scope, store)
        return
    from rich.console import Console

    console = None if as_json else Console(highlight=False)
    async with conversation(name, scope, store) as one:
        if calls:
            await _calls(one, console)
        elif facts:
            await _facts(one, console, None if full else FACTS)
        elif chapters or chapter:
            await _chapters(one, console, name, chapter)
        elif diff or preview:
            await _compaction(one, console, focus, full, preview)
        else:
            await _window(one, console, ids)


async def _window(one: "Conversation", console: "Console | None", ids: bool) -> None:
    from clew.control.pointers import as_read
    from clew.screens.window import ShownWindow, window

    found = await one.window(sent=True)
    session, said = await one.session(), await one.originals_by_id(found.view)
    shown = ShownWindow(session, replace(found, view=as_read(found.view)), said)
    if console is None:
        echo_json(shown.as_json())
    else:
        window(console, shown, ids)


async def _calls(one: "Conversation", console: "Console | None") -> None:
    from clew.screens.calls import bills
    from clew.sessions.bill import CallBill

    found, config = await one.calls(), configured()
    rows = [CallBill.of(number, call, config.model(call.model).prices) for number, call in found]
    if console is None:
        echo_json([row._asdict() for row in rows])
    else:
        bills(console, rows)


async def _facts(one: "Conversation", console: "Console | None", most: int | None) -> None:
    from clew.facts.coverage import lines

    found = await one.engine.covered(await one.view())
    if console is None:
        echo_json([fact._asdict() for fact in found.fates])
        return
    for line in lines(found, len(found.fates) if most is None else most):
        typer.echo(printable(line))


async def _chapters(one: "Conversation", console: "Console | None", name: str, id: str) -> None:
    from clew.screens import chapters as screen

    found = await one.chapters(id)
    if console is None:
        echo_json([screen.as_json(chapter) for chapter in found])
    elif not found:
        raise Nothing(f"{name} has no chapters: nothing was compacted")
    elif id:
        for chapter in found:
            screen.show_chapter(console, chapter)
    else:
        screen.listed(console, found)


async def _compaction(one: "Conversation", console: "Console | None", focus: str, full: bool, ahead: bool) -> None:
    from clew.screens import diff as screen

    found = await one.preview(focus) if ahead else await one.diff()
    if console is None:
        echo_json(screen.as_json(found))
    elif ahead:
        named = configured().summary.model
        model = {"none": "", "own": "the conversation's own model"}.get(named, named)
        screen.preview(console, found, full, model)
    else:
        screen.diff(console, found, full)


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
