"""Commands that look into the log: what calls took, what a stand-in stands for, where something was said."""

import asyncio
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import (
    AsJson,
    Nothing,
    ScopeName,
    SessionName,
    StorePath,
    app,
    configured,
    conversation,
    echo_json,
    looking,
    on_terminal,
    printable,
)
from clew.cli.completion import names
from clew.errors import Ambiguous, NotFound, Purged

if TYPE_CHECKING:
    from clew.core.items import Node
    from clew.engine.recall import Hit
    from clew.facts.coverage import CoverageLedger
    from clew.sessions.conversation import NumberedCall

HEX = re.compile(r"[0-9a-fA-F]+")
FOUND = 10  # texts that a search shows


@app.command(epilog="Example: clew calls demo")
def calls(
    name: SessionName,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Show the estimated and the reported tokens and cost of each call."""
    from rich.console import Console

    from clew.screens.calls import bills
    from clew.sessions.bill import CallBill

    found = asyncio.run(_called(name, scope, store))
    config = configured()
    rows = [CallBill.of(number, call, config.model(call.model).prices) for number, call in found]
    if as_json:
        echo_json([row._asdict() for row in rows])
    else:
        bills(Console(highlight=False), rows)


async def _called(name: str, scope: str, path: str | None) -> "list[NumberedCall]":
    async with conversation(name, scope, path) as one:
        return await one.calls()


@app.command(epilog='Example: clew recall "remove the session lane" --grep lane')
def recall(
    id: Annotated[
        str,
        typer.Argument(metavar="ID|WORDS", help="The id after the word recall in a summary, or words."),
    ],
    lines: Annotated[str, typer.Option(metavar="A-B", help="Only these lines, counted from 1.")] = "",
    grep: Annotated[str, typer.Option(metavar="PATTERN", help="Only lines that match, or contain these words.")] = "",
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Print an original, byte for byte: what a summary stands for, or what clew search finds first.

    On a terminal, control characters are escaped.
    """
    from clew.screens.lines import described
    from clew.screens.originals import excerpt, heading, items, original

    id, nodes = asyncio.run(_recalled(id, scope, store))
    text = "\n".join(original(n.item) for n in nodes)
    if as_json:
        echo_json({"id": id} | ({"text": excerpt(text, lines, grep)} if lines or grep else {"items": items(nodes)}))
        return
    typer.echo(heading(nodes, id), err=True)
    if lines or grep:
        typer.echo(on_terminal(excerpt(text, lines, grep)).encode("utf-8", "surrogatepass"), nl=False)
        return
    for n, node in enumerate(nodes):
        if len(nodes) > 1:
            typer.echo(f"── {described(node.item)}", err=True)
        last = n == len(nodes) - 1
        told = on_terminal(original(node.item)).encode("utf-8", "surrogatepass")
        typer.echo(told, nl=not last or sys.stdout.isatty())


async def _recalled(id: str, scope: str, path: str | None) -> tuple[str, Sequence["Node"]]:
    """The originals, and the id by which they were found."""
    from clew.core.items import SHORT

    async with looking(scope, path) as found:
        if not HEX.fullmatch(id):
            best = await found.search(id, limit=1)
            if not best:
                raise NotFound(f"no match for {id!r} (scope {scope!r}); try other words, or another --scope or --store")
            id = best[0].found.id[:SHORT]
        try:
            return id, await found.recall(id)
        except (Ambiguous, Purged):
            raise
        except NotFound as error:
            raise NotFound(f"{error} (scope {scope!r}); try another --scope or --store") from None


@app.command(epilog='Example: clew search "which test failed"')
def search(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words, a name, or a question.")],
    within: Annotated[
        str | None,
        typer.Option("--in", metavar="NAME", help="Search one conversation and its ancestors.", autocompletion=names),
    ] = None,
    only: Annotated[bool, typer.Option("--only", help="With --in: only that session.")] = False,
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="Maximum number of results.")] = FOUND,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Search all conversations or one; the best matches come first, with their recall ids."""
    from rich.console import Console

    from clew.screens.originals import hits

    if only and within is None:
        raise typer.BadParameter("--only needs --in NAME")
    found, sources = asyncio.run(_search(text, within, only, limit, scope, store))
    if as_json:
        echo_json([{"session": sources[hit.branch], "branch": hit.branch} | hit.found._asdict() for hit in found])
    elif not found:
        raise Nothing(f"no match for {text!r}{f' in {within}' if within else ''}")
    else:
        hits(Console(highlight=False), found, sources)


async def _search(
    text: str, within: str | None, only: bool, limit: int, scope: str, path: str | None
) -> tuple[list["Hit"], dict[str, str]]:
    """What was found, and what the conversations that it was said in are called."""
    from clew.screens.lines import called

    async with looking(scope, path) as sessions:
        found = await sessions.search(text, within, "session" if only else "lineage", limit)
        return found, {s.branch: called(s) for s in await sessions.all()}


@app.command(epilog="Example: clew coverage demo")
def coverage(
    name: SessionName,
    most: Annotated[int, typer.Option(metavar="N", help="Maximum number of facts to list.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Output JSON.")] = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Show the state of every fact behind a stand-in: still in view, recallable (by which id), or flagged."""
    from clew.facts.coverage import lines

    found = asyncio.run(_covered(name, scope, store))
    if as_json:
        echo_json([f._asdict() for f in found.fates])
        return
    for line in lines(found, most):
        typer.echo(printable(line))


async def _covered(name: str, scope: str, path: str | None) -> "CoverageLedger":
    async with conversation(name, scope, path) as one:
        return await one.engine.covered(await one.view())
