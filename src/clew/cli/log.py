"""Commands that look into the log: what is there, what the model saw, what a stand-in stands for."""

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import ScopeName, StorePath, app, configured, opened, printable
from clew.errors import Ambiguous, NotFound, Purged

if TYPE_CHECKING:
    from clew.coverage import Ledger
    from clew.items import Node
    from clew.store import BranchInfo, Call, Store

LISTED = 20  # branches
FOUND = 10  # texts that a search shows


@app.command(epilog="Example: clew show demo --scope demo")
def show(
    id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A branch or a session; its beginning will do.")
    ] = None,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """List what is stored, or show a conversation as the model last saw it."""
    asyncio.run(_show(id, scope, store))


async def _show(id: str | None, scope: str, where: str | None) -> None:
    from rich.console import Console

    from clew.budget import Meter
    from clew.engine import Engine
    from clew.screens import listing, seen
    from clew.tokens import counter_for

    store = opened(where)
    try:
        branches = await store.branches(scope)
        if not branches:
            raise NotFound(f"nothing is stored in scope {scope!r} yet: try clew demo, or another --scope")
        if id is None:
            rows = [(b, await _said(store, scope, b)) for b in branches[:LISTED]]
            listing(Console(highlight=False), rows, len(branches) - len(rows))
            return
        branch = named(id, branches)
        calls = await store.calls(scope, branch.id)
        if not calls:
            raise NotFound(f"{id}: nothing was sent on this branch yet")
        view = await Engine(store).resume(scope, calls[-1])
        places = (await store.load(scope, branch.id, calls[-1].seq)).said
        said = await store.nodes(scope, [p.id for p in places])
        meter = Meter(counter_for(calls[-1].model, calls[-1].format))
        seen(Console(highlight=False), view, calls[-1], meter, said)
    finally:
        await store.close()


async def _said(store: "Store", scope: str, branch: "BranchInfo") -> int:
    return len((await store.load(scope, branch.id)).said)


def named(id: str, branches: list["BranchInfo"]) -> "BranchInfo":
    """The branch of that id or session, or the only one that begins so; the newest of a session."""
    for exact in (True, False):
        found: dict[str, BranchInfo] = {}
        for b in branches:
            for name in (b.id, b.session):
                if name is not None and (name == id if exact else name.startswith(id)):
                    found.setdefault(b.session or b.id, b)
        if len(found) == 1:
            return next(iter(found.values()))
        if found:
            raise Ambiguous(f"{id} fits {len(found)} sessions; give more of it: {', '.join(list(found)[:5])}")
    raise NotFound(f"no branch or session begins with {id!r}: clew show lists them; is it in another --scope?")


@app.command(epilog="Example: clew calls talk-3f1a")
def calls(
    id: Annotated[str, typer.Argument(metavar="ID", help="A branch or a session; its beginning will do.")],
    as_json: Annotated[bool, typer.Option("--json", help="For a program.")] = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Show what each call was thought to take and to cost, and what the provider reported."""
    from rich.console import Console

    from clew import rawjson
    from clew.costs import Bill
    from clew.screens import bills

    found = asyncio.run(_called(id, scope, store))
    config = configured()
    rows = [Bill.of(call, config.model(call.model).prices) for call in found]
    if as_json:
        typer.echo(rawjson.dumps([row._asdict() for row in rows]))
    else:
        bills(Console(highlight=False), rows)


async def _called(id: str, scope: str, where: str | None) -> list["Call"]:
    store = opened(where)
    try:
        return await store.calls(scope, named(id, await store.branches(scope)).id)
    finally:
        await store.close()


@app.command(epilog="Example: clew recall 3fa94c21b0 --grep error")
def recall(
    id: Annotated[str, typer.Argument(metavar="ID", help="As a stand-in names it, after the word recall.")],
    lines: Annotated[str, typer.Option(metavar="A-B", help="Only these lines, counted from 1.")] = "",
    grep: Annotated[str, typer.Option(metavar="PATTERN", help="Only lines that match, or hold these words.")] = "",
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Print the original that a stand-in stands for, byte for byte."""
    from clew.screens import described, excerpt, heading, original

    nodes = asyncio.run(_recalled(id, scope, store))
    typer.echo(heading(nodes, id), err=True)
    text = "\n".join(original(n.item) for n in nodes)
    if lines or grep:
        typer.echo(excerpt(text, lines, grep).encode("utf-8", "surrogatepass"), nl=False)
        return
    for n, node in enumerate(nodes):
        if len(nodes) > 1:
            typer.echo(f"── {described(node.item)}", err=True)
        last = n == len(nodes) - 1
        typer.echo(original(node.item).encode("utf-8", "surrogatepass"), nl=not last or sys.stdout.isatty())


async def _recalled(id: str, scope: str, where: str | None) -> Sequence["Node"]:
    from clew.engine import Engine

    store = opened(where)
    try:
        return await Engine(store).recall(scope, id)
    except (Ambiguous, Purged):
        raise
    except NotFound as error:
        raise NotFound(f"{error} (scope {scope!r}); is it in another --scope or --store?") from None
    finally:
        await store.close()


@app.command(epilog='Example: clew search demo "which test failed" --scope demo')
def search(
    id: Annotated[str, typer.Argument(metavar="ID", help="A branch or a session; its beginning will do.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words, a name, or a whole question.")],
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="At most so many.")] = FOUND,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Find what was said in a conversation, best first, with its recall id."""
    asyncio.run(_search(id, text, limit, scope, store))


async def _search(id: str, text: str, limit: int, scope: str, where: str | None) -> None:
    from rich.console import Console

    from clew.engine import Engine
    from clew.screens import hits

    store = opened(where)
    try:
        branch = named(id, await store.branches(scope))
        found = await Engine(store).find(scope, text, branch.id, limit)
        if not found:
            raise NotFound(f"nothing was said in {id} about {text!r}")
        hits(Console(highlight=False), found)
    finally:
        await store.close()


@app.command(epilog="Example: clew coverage talk-3f1a")
def coverage(
    id: Annotated[str, typer.Argument(metavar="ID", help="A branch or a session; its beginning will do.")],
    most: Annotated[int, typer.Option(metavar="N", help="How many facts to list.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="All of them, for a program.")] = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Show what became of every fact that is out of view: in view elsewhere, recallable by which id, or flagged."""
    from clew import rawjson
    from clew.coverage import lines

    found = asyncio.run(_covered(id, scope, store))
    if as_json:
        typer.echo(rawjson.dumps([f._asdict() for f in found.fates]))
        return
    for line in lines(found, most):
        typer.echo(printable(line))


async def _covered(id: str, scope: str, where: str | None) -> "Ledger":
    from clew.engine import Engine

    store = opened(where)
    try:
        branch = named(id, await store.branches(scope))
        calls = await store.calls(scope, branch.id)
        if not calls:
            raise NotFound(f"{id}: nothing was sent on this branch yet")
        return await Engine(store).coverage(scope, calls[-1])
    finally:
        await store.close()
