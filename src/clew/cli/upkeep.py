"""Commands that look after the log: how it is, a copy of it, and what is to go for good."""

import json
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import (
    AsJson,
    Nothing,
    ScopeName,
    StorePath,
    UsageError,
    app,
    bar,
    configured,
    echo_json,
    hinted,
    opened,
)
from clew.cli.app import names as completed
from clew.errors import Ambiguous, ForeignFile, NotFound, StoreError

if TYPE_CHECKING:
    from clew.store import BranchInfo
    from clew.store.database import Problem
    from clew.store.sql import SQLStore
    from clew.store.upkeep import Survey
    from clew.store.upkeep.purge import Audit, Purge


@app.command(epilog="Example: clew doctor --deep")
async def doctor(
    deep: Annotated[bool, typer.Option("--deep", help="Read and verify every body instead of a sample.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Repair what can be repaired without loss.")] = False,
    as_json: AsJson = False,
    store: StorePath = None,
) -> None:
    """Check the integrity of the log and show its size on disk, and whether what clients are told to run is there."""
    from clew.cli.repair import gone, mend

    if repair and store is None:
        mend(as_json)
    lost = gone() if store is None else []
    try:
        survey, problems, purges = await _examined(store, deep, repair)
    except NotFound:  # no log yet
        if not lost:
            raise
        survey, problems, purges = None, [], []
    problems = [replace(p, remedy=hinted(p.remedy)) for p in [*problems, *lost]]
    if as_json:
        found = {"problems": [asdict(p) for p in problems], "purges": [asdict(p) for p in purges]}
        typer.echo(json.dumps((asdict(survey) if survey else {}) | found, indent=2))
    else:
        from rich.console import Console

        from clew.screens.upkeep import health, list_problems

        console = Console(highlight=False)
        if survey:
            health(console, survey, problems, purges, deep)
        else:
            list_problems(console, problems)
    if problems:
        raise typer.Exit(1)


UNREPAIRED = "restore a backup; without one, save what can still be read: `clew export NAME -o FILE`"
Examined = tuple["Survey | None", list["Problem"], list["Audit"]]


async def _examined(where: str | None, deep: bool, repair: bool) -> Examined:
    """What a log holds, what is wrong with it and what was purged, as far as that can be read."""
    from clew.store.database import Problem

    try:
        store = opened(where)
    except StoreError as error:
        return None, _damage(where, error), []
    problems = list["Problem"]()
    try:
        if repair:
            try:
                with bar("repairing") as progress:
                    await store.repair(progress)
            except StoreError as error:
                if not error.damage:
                    raise
                problems.append(Problem(f"it cannot be repaired: {error.damage}", 1, UNREPAIRED))
        with bar("checking") as progress:
            problems += await store.check(deep, progress)
        try:
            return await store.survey(), problems, await store.purges()
        except StoreError as error:
            if not error.damage:
                raise
            return None, problems or [Problem(f"the log cannot be read: {error.damage}", 1, "restore a backup")], []
    finally:
        await store.close()


def _damage(where: str | None, error: StoreError) -> list["Problem"]:
    """What is wrong with a file that cannot be opened. Raises the error where that is no damage."""
    from clew.store.places import place
    from clew.store.sqlite.damage import damage_at

    path = place(where) if where else configured().store
    found = damage_at(path) if isinstance(path, Path) and (error.damage or isinstance(error, ForeignFile)) else []
    if not found:
        raise error
    return found


@app.command(epilog="Example: clew backup ~/clew-2026-11-15.db")
async def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write, or the one to restore.")],
    restored: Annotated[
        bool, typer.Option("--restore", help="Replace the log with FILE; the current log is moved aside, not deleted.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    store: StorePath = None,
    as_json: AsJson = False,
) -> None:
    """Copy the log to one private file and verify the copy, safe while others write; or restore such a copy."""
    if restored:
        if force:
            raise UsageError("--restore moves the log aside by itself: --force is for a copy")
        _restored(file, store, as_json)
        return
    from clew.screens.lines import volume

    log = opened(store)
    try:
        with bar("copying") as progress:
            size = await log.backup(file, force, progress)
    finally:
        await log.close()
    if as_json:
        echo_json({"file": str(file), "bytes": size, "verified": True})
        return
    typer.echo(f"{file}: {volume(size)}, verified")


def _restored(source: Path, store: str | None, as_json: bool) -> None:
    from clew.store.places import Server, is_url
    from clew.store.upkeep.backup import restore

    path = store or configured().store
    if isinstance(path, Server) or is_url(str(path)):
        raise StoreError("a store in PostgreSQL is restored with pg_restore")
    with bar("copying") as progress:
        aside = restore(source, Path(path), progress)
    if as_json:
        echo_json({"store": str(path), "source": str(source), "previous": str(aside) if aside else None})
        return
    typer.echo(f"{path}: restored from {source}")
    if aside:
        typer.echo(f"the previous log is now {aside}")


@app.command(epilog="Example: clew purge demo-2 --dry-run")
async def purge(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Names or ids; unique prefixes are enough.", autocompletion=completed),
    ] = None,
    before: Annotated[
        datetime | None,
        typer.Option(metavar="DATE", formats=["%Y-%m-%d"], help="All conversations without activity since this date."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All conversations in the scope.")] = False,
    item: Annotated[
        str, typer.Option("--id", metavar="ID", help="Only the content that recall ID shows, everywhere.")
    ] = "",
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Recorded, and shown when the content is recalled.")
    ] = "on request",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be deleted.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    scope: ScopeName = "",
    store: StorePath = None,
    as_json: AsJson = False,
) -> None:
    """Permanently delete conversations, or one item, from the log and its file."""
    if sum((bool(names), before is not None, every, bool(item))) != 1:
        raise typer.BadParameter("give names, or one of --before, --all and --id")
    from clew.engine.recall import resolve
    from clew.screens.upkeep import amounts

    def say(text: str) -> None:
        typer.echo(hinted(text), err=as_json)  # standard output is for the JSON alone

    log = opened(store)
    try:
        branches = [] if item else await _chosen(log, scope, names or [], before)
        id = await resolve(log, scope, item) if item else ""

        async def act(dry_run: bool) -> "Purge":
            if item:
                return await log.purge_item(scope, id, reason, dry_run)
            since = before.timestamp() if before else None
            with bar("looking" if dry_run else "deleting") as progress:
                return await log.purge(scope, branches, reason, dry_run, since, progress)

        took = await act(dry_run=True)
        say(f"{'would delete' if dry_run else 'to delete'}: {amounts(took)}")
        sure = not dry_run and (yes or typer.confirm("This cannot be undone. Continue?", err=as_json))
        if sure:
            took = await act(dry_run=False)
        if as_json:
            echo_json({"deleted": sure, **asdict(took)})
        if not sure:
            return
        say(f"deleted: {amounts(took)}")
        if log.lingering:
            say(log.lingering)
        if took.left_to_vacuum:
            say(
                "the tables are large and were not rewritten: the server overwrites the deleted bytes in time; "
                "`clew doctor --repair` erases them now, and locks everyone out meanwhile"
            )
        elif not took.wiped:
            say("another process is reading the log: stop it, then `clew doctor --repair` erases the deleted bytes")
            raise typer.Exit(1)
    finally:
        await log.close()


async def _chosen(store: "SQLStore", scope: str, names: list[str], before: datetime | None) -> list[str]:
    if before is not None:
        found = await store.idle(scope, before.timestamp())
    else:
        branches = await store.branches(scope)
        found = list(dict.fromkeys(id for name in names for id in meant(name, branches)))
        found = _with_results(found, branches) if names else [b.id for b in branches]
    if not found:
        # Who purges what is old each night has nothing to do on most of them.
        raise Nothing(f"nothing in scope {scope!r} matches; try another --scope")
    return found


RESULTS_CAUSES = ("subagent", "task")  # of conversations that have the results behind another's previews


def _with_results(found: list[str], branches: list["BranchInfo"]) -> list[str]:
    """These branches, and those that have the results of which they have previews."""
    from clew.sessions.about import results_of

    beside = {results_of(b.session) for b in branches if b.session and b.id in found}
    more = [b.id for b in branches if b.session in beside and b.cause in RESULTS_CAUSES]
    return list(dict.fromkeys([*found, *more]))


def meant(name: str, branches: list["BranchInfo"]) -> list[str]:
    """The branches of a session, or the one of an id; the beginning of either will do if it fits no other."""
    from clew.sessions.about import results_of
    from clew.sessions.names import expect_name

    expect_name(name)
    for exact in (True, False):
        fits = [b for b in branches if _fits(b.id, name, exact)]
        sessions = {b.session for b in branches if b.session and _fits(b.session, name, exact)}
        sessions -= {results_of(session) for session in sessions}  # they are meant with the one beside which they are
        if len(fits) + len(sessions) > 1:
            raise Ambiguous(f"{name} matches {len(fits) + len(sessions)} branches and sessions; give more of it")
        if fits or sessions:
            return [b.id for b in fits] or [b.id for b in branches if b.session in sessions]
    raise NotFound(f"no branch or session begins with {name!r}: `clew sessions` lists them; or try another --scope")


def _fits(text: str | None, name: str, exact: bool) -> bool:
    return text is not None and (text == name if exact else text.startswith(name))
