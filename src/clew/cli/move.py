"""Commands that bring conversations in and take them out: whole, or as other agents write theirs."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import (
    AsJson,
    ScopeName,
    StorePath,
    app,
    bar,
    configured,
    echo_json,
    hinted,
    looking,
    opened,
    printable,
)
from clew.cli.app import names as known
from clew.errors import BadRequest

if TYPE_CHECKING:
    from clew.engine.engine import Engine
    from clew.sessions.sessions import Sessions
    from clew.sessions.transcripts import Transcript

OWN = "clew"  # the format that keeps everything
HEADER = b'{"clew":'  # how a file of it begins
NAMES_HELP = "Names or ids of conversations; unique prefixes are enough."


@app.command("import", epilog="Example: clew import session.jsonl --as yesterday")
async def import_(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Session files, optionally gzipped.")],
    name: Annotated[
        str, typer.Option("--as", metavar="NAME", help="Name of the conversation, if not the one in the file.")
    ] = "",
    format: Annotated[str | None, typer.Option(metavar="NAME", help="Format, if detection is wrong.")] = None,
    as_json: AsJson = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Import sessions of Claude Code, Codex, pi or opencode, plain messages, or what `clew export` wrote.

    Compactions in a file become sessions. If a file has grown since its last import, only the new part is read.
    """
    if name and len(files) > 1:
        raise typer.BadParameter("--as names one conversation: give one FILE")
    made = await _imported(files, name, format, scope, store)
    if as_json:
        echo_json([{"file": file, "conversations": names, "notes": notes} for file, names, notes in made])
        return
    for file, names, notes in made:
        for note in notes:
            typer.echo(printable(f"{file}: {note}"), err=True)
        told = ", ".join(names) if names else "nothing new"
        typer.echo(printable(f"{file}: {told}"))
    if first := next((names[0] for _, names, _ in made if names), ""):
        first = shlex.quote(printable(first))
        typer.echo(hinted(f"next: `clew sessions {first}` · `clew show {first}`"), err=True)


async def _imported(
    files: list[Path], name: str, format: str | None, scope: str, where: str | None
) -> list[tuple[str, list[str], list[str]]]:
    from clew.config import engine

    store = opened(where, create=True)
    try:
        # As it happened: nothing is compacted that its own agent did not compact.
        adopting = engine(configured(), store, compaction="off", author=None)
        return [(str(file), *await _taken(adopting, scope, file, name, format)) for file in files]
    finally:
        await store.close()


async def _taken(
    engine: "Engine", scope: str, file: Path, name: str, format: str | None
) -> tuple[list[str], list[str]]:
    from clew.sessions.import_agent import adopt
    from clew.sessions.import_log import take_in
    from clew.sessions.sessions import Sessions
    from clew.sessions.transcripts import read_all
    from clew.sessions.transcripts.source import data_of

    data = data_of(file)
    if format == OWN or (format is None and data.startswith(HEADER)):
        with bar(f"reading {file.name}") as progress:
            told = list[str]()
            branches = await take_in(engine.store, scope, data.splitlines(), name or None, progress, told)
        named = {s.branch: s.name for s in await Sessions(engine, scope).all()}
        return [named.get(id) or id for id in branches], told
    with bar(f"reading {file.name}") as progress:
        found = read_all(data, str(file), format=format, progress=progress)
    names: list[str] = []
    notes: list[str] = []
    for number, transcript in enumerate(found, 1):
        own = transcript.name or (file.stem if len(found) == 1 else f"{file.stem}-{number}")
        with bar(f"writing {own}") as progress:
            names += await adopt(engine, scope, transcript, name or own, progress)
        notes += transcript.notes
    return names, notes


@app.command(epilog="Example: clew export demo -o demo.jsonl")
async def export(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help=NAMES_HELP, autocompletion=known)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All conversations in the scope.")] = False,
    format: Annotated[
        str,
        typer.Option(metavar="NAME", help="clew (complete), claude-code, codex, pi, opencode, openai, anthropic ..."),
    ] = OWN,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="FILE", help="Where to write it.")] = None,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Export conversations, completely and with their ancestors, or as a session file of another agent.

    Only the format clew keeps every edit, pin, call and id; the others keep messages and points of compaction.
    """
    from clew.core import rawjson
    from clew.screens import save

    if bool(names) == every:
        raise typer.BadParameter("give names or --all")
    data = rawjson.visible(await _exported(names or [], format, scope, store))
    if out is None:
        typer.get_binary_stream("stdout").write(data)
        sys.stdout.flush()
    else:
        save(out, data)
        typer.echo(f"{out}: {len(data):,} bytes", err=True)


async def _exported(names: list[str], format: str, scope: str, where: str | None) -> bytes:
    async with looking(scope, where) as sessions:
        branches = [(await sessions.get(name)).branch for name in names]
        if not names:
            branches = [*dict.fromkeys(s.branch for s in reversed(await sessions.all()))]
        if format == OWN:
            return await _export_log(sessions, branches)
        if len(branches) != 1:
            raise BadRequest(f"a {format} file holds one conversation: name one, or use --format {OWN}")
        return await _export_transcript(sessions, branches[0], format)


async def _export_log(sessions: "Sessions", branches: list[str]) -> bytes:
    from clew.sessions.export_log import export

    with bar("writing") as progress:
        lines = export(sessions.engine.store, sessions.scope, branches, progress)
        return b"".join([line async for line in lines])


async def _export_transcript(sessions: "Sessions", branch: str, format: str) -> bytes:
    from clew.sessions.export_agent import tell
    from clew.sessions.transcripts import write

    transcript: Transcript = await tell(sessions.engine, sessions.scope, branch)
    return write(transcript, format)
