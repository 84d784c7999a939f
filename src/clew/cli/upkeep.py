"""Commands that look after the log: how it is, a copy of it, and what is to go for good."""

import asyncio
import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import ScopeName, StorePath, app, bar, configured, opened
from clew.cli.completion import names as completed
from clew.errors import Ambiguous, NotFound, StoreError

if TYPE_CHECKING:
    from clew.store import BranchInfo
    from clew.store.sql import SQLStore
    from clew.store.upkeep import Problem, Survey
    from clew.store.upkeep.purge import Audit, Purge


@app.command(epilog="Example: clew doctor --deep")
def doctor(
    deep: Annotated[bool, typer.Option("--deep", help="Read every body again, not only some.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what can be mended without losing anything.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Output JSON.")] = False,
    store: StorePath = None,
) -> None:
    """Say what the log takes on disk, and whether it is whole."""
    survey, problems, purges = asyncio.run(_examined(store, deep, repair))
    if as_json:
        found = {"problems": [asdict(p) for p in problems], "purges": [asdict(p) for p in purges]}
        typer.echo(json.dumps(asdict(survey) | found, indent=2))
    else:
        from rich.console import Console

        from clew.screens.upkeep import health

        health(Console(highlight=False), survey, problems, purges, deep)
    if problems:
        raise typer.Exit(1)


async def _examined(where: str | None, deep: bool, repair: bool) -> tuple["Survey", list["Problem"], list["Audit"]]:
    store = opened(where)
    try:
        if repair:
            with bar("repairing") as progress:
                await store.repair(progress)
        with bar("checking") as progress:
            problems = await store.check(deep, progress)
        return await store.survey(), problems, await store.purges()
    finally:
        await store.close()


@app.command(epilog="Example: clew backup ~/clew-2026-11-15.db")
def backup(
    dest: Annotated[Path, typer.Argument(metavar="DEST", help="The file to write.")],
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
    store: StorePath = None,
) -> None:
    """Copy the log to one private file, while others write to it, and verify the copy."""
    from clew.screens.lines import volume

    size = asyncio.run(_backed_up(dest, force, store))
    typer.echo(f"{dest}: {volume(size)}, verified")


async def _backed_up(dest: Path, force: bool, where: str | None) -> int:
    store = opened(where)
    try:
        with bar("copying") as progress:
            return await store.backup(dest, force, progress)
    finally:
        await store.close()


@app.command(epilog="Example: clew restore ~/clew-2026-11-15.db")
def restore(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="A file that clew backup wrote.")],
    store: StorePath = None,
) -> None:
    """Put a backup where the log is; the log that is there is moved aside, not lost."""
    from clew.store.places import Server, is_url
    from clew.store.upkeep.backup import restore

    path = store or configured().store
    if isinstance(path, Server) or is_url(str(path)):
        raise StoreError("a store in PostgreSQL is restored with pg_restore")
    with bar("copying") as progress:
        aside = restore(source, Path(path), progress)
    typer.echo(f"{path}: restored from {source}")
    if aside:
        typer.echo(f"what was there is now {aside}")


@app.command(epilog="Example: clew purge demo-3f2a --scope demo --dry-run")
def purge(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[BRANCH|SESSION]...", help="Their beginnings will do.", autocompletion=completed),
    ] = None,
    before: Annotated[
        datetime | None,
        typer.Option(metavar="DATE", formats=["%Y-%m-%d"], help="All on which nothing happened since."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All in the scope.")] = False,
    item: Annotated[str, typer.Option("--id", metavar="ID", help="Only what recall ID shows, wherever it is.")] = "",
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Kept, and shown to who looks for it.")] = "on request",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Take conversations, or one thing that was said, out of the log and its file for good."""
    if sum((bool(names), before is not None, every, bool(item))) != 1:
        raise typer.BadParameter("say what is to go: names, or one of --before, --all and --id")
    asyncio.run(_purge(names or [], before, item, reason, dry_run, yes, scope, store))


async def _purge(
    names: list[str],
    before: datetime | None,
    item: str,
    reason: str,
    dry_run: bool,
    yes: bool,
    scope: str,
    where: str | None,
) -> None:
    from clew.engine.recall import resolve
    from clew.screens.upkeep import amounts

    store = opened(where)
    try:
        branches = [] if item else await _chosen(store, scope, names, before)
        id = await resolve(store, scope, item) if item else ""

        async def act(dry_run: bool) -> "Purge":
            if item:
                return await store.purge_item(scope, id, reason, dry_run)
            return await store.purge(scope, branches, reason, dry_run)

        typer.echo(f"{'would go' if dry_run else 'to go'}: {amounts(await act(dry_run=True))}")
        if dry_run or not (yes or typer.confirm("They cannot be got back. Go on?")):
            return
        took = await act(dry_run=False)
        typer.echo(f"gone: {amounts(took)}")
        if store.lingering:
            typer.echo(store.lingering)
        if not took.wiped:
            typer.echo("another process reads the log: stop it, then run clew doctor --repair to wipe their bytes")
            raise typer.Exit(1)
    finally:
        await store.close()


async def _chosen(store: "SQLStore", scope: str, names: list[str], before: datetime | None) -> list[str]:
    branches = await store.branches(scope)
    if before is not None:
        found = await store.idle(scope, before.timestamp())
    elif names:
        found = list(dict.fromkeys(id for name in names for id in meant(name, branches)))
    else:
        found = [b.id for b in branches]
    if not found:
        raise NotFound(f"nothing in scope {scope!r} fits; is it in another --scope?")
    return found


def meant(name: str, branches: list["BranchInfo"]) -> list[str]:
    """The branches of a session, or the one of an id; the beginning of either will do if it fits no other."""
    for exact in (True, False):
        fits = [b for b in branches if _fits(b.id, name, exact)]
        sessions = {b.session for b in branches if _fits(b.session, name, exact)}
        if len(fits) + len(sessions) > 1:
            raise Ambiguous(f"{name} fits {len(fits) + len(sessions)} branches and sessions; give more of it")
        if fits or sessions:
            return [b.id for b in fits] or [b.id for b in branches if b.session in sessions]
    raise NotFound(f"no branch or session begins with {name!r}: clew sessions lists them; is it in another --scope?")


def _fits(text: str | None, name: str, exact: bool) -> bool:
    return text is not None and (text == name if exact else text.startswith(name))
