"""Commands that look into the log: what a stand-in stands for, where something was said."""

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import (
    AsJson,
    Nothing,
    ScopeName,
    StorePath,
    app,
    echo_json,
    looking,
    names,
    on_terminal,
)
from clew.errors import Ambiguous, NotFound, Purged

if TYPE_CHECKING:
    from clew.core.items import Node

HEX = re.compile(r"[0-9a-fA-F]+")
FOUND = 10  # texts that a search shows


@app.command(epilog='Example: clew recall "remove the session lane" --grep lane')
async def recall(
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
    """Print an original, byte for byte: what a summary stands for, or what `clew search` finds first.

    On a terminal, control characters are escaped.
    """
    from clew.screens.lines import described
    from clew.screens.originals import excerpt, heading, items, original

    id, nodes = await _recalled(id, scope, store)
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
async def search(
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

    from clew.screens.lines import called
    from clew.screens.originals import hits

    if only and within is None:
        raise typer.BadParameter("--only needs --in NAME")
    async with looking(scope, store) as known:
        found = await known.search(text, within, "session" if only else "lineage", limit)
        sources = {s.branch: called(s) for s in await known.all()}
    if as_json:
        echo_json([{"session": sources[hit.branch], "branch": hit.branch} | hit.found._asdict() for hit in found])
    elif not found:
        raise Nothing(f"no match for {text!r}{f' in {within}' if within else ''}")
    else:
        hits(Console(highlight=False), found, sources)
