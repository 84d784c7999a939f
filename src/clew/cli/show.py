"""A conversation, and the views of it: its window, calls, facts and chapters, what compactions did or would do."""

from dataclasses import replace
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
    configured,
    conversation,
    echo_json,
    printable,
)
from clew.cli.sessions import LISTED, list_sessions

if TYPE_CHECKING:
    from rich.console import Console

    from clew.sessions.conversation import Conversation

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
