"""The command line: see it work, count, compress, look at what was sent, get originals back."""

import asyncio
import io
import os
import secrets
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperGroup

from clew.errors import Ambiguous, BadRequest, ClewError, NotFound

if TYPE_CHECKING:
    from clew.budget import Budget
    from clew.items import Node
    from clew.screens import Talk
    from clew.store import BranchInfo, SQLite, Store
    from clew.view import View

LISTED = 20  # branches
TICK = 0.05  # seconds a turn stays on the screen

# Newer typers bring their own copy of click; this is `UsageError` in all of them.
_Usage = cast(type[typer.BadParameter], typer.BadParameter.__mro__[1])


class Commands(TyperGroup):
    """Says what went wrong in one line."""

    def main(self, *args: Any, **extra: Any) -> Any:
        try:
            code = super().main(*args, **{**extra, "standalone_mode": False})
        except typer.Abort:
            code = 130
        except _Usage as error:
            code = _fail(f"{error.format_message()} (see clew --help)", 2)
        except (ClewError, OSError, sqlite3.Error) as error:
            code = _fail(str(error))
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int = 1) -> int:
    # A name in it may be anybody's text: no control character of it reaches the terminal.
    line = "".join(c if c.isprintable() else "�" for c in " ".join(message.split()))
    typer.echo(f"clew: {line}", err=True)
    return code


app = typer.Typer(cls=Commands, add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)

Source = Annotated[str, typer.Argument(metavar="FILE", help="A file, or - for standard input.")]
ModelName = Annotated[str, typer.Option("--model", metavar="NAME", help="Whose tokens to count.")]
ScopeName = Annotated[str, typer.Option("--scope", metavar="NAME", help="The tenant whose log it is.")]
StorePath = Annotated[Path | None, typer.Option("--store", metavar="PATH", help="The store, if not $CLEW_STORE.")]


@app.callback(invoke_without_command=True, epilog="Start here: clew demo")
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Long agent sessions that fit the window and forget nothing."""
    if version:
        from clew import __version__

        typer.echo(f"clew {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog="Example: clew demo --window 16000")
def demo(
    window: Annotated[int, typer.Option(metavar="TOKENS", help="How much the model can read.")] = 24_000,
    fast: Annotated[bool, typer.Option("--fast", help="As fast as it goes, not as fast as one can read.")] = False,
) -> None:
    """Replay a real agent session in a window too small for it."""
    from clew.demo import run

    asyncio.run(run(default_store(os.environ), window, 0 if fast else TICK))


@app.command(epilog="Example: clew count talk.jsonl --model gpt-5")
def count(file: Source, model: ModelName = "") -> None:
    """Count the tokens of a text or of a conversation, by kind of item."""
    from rich.console import Console

    from clew.screens import counted, parse, read, tally, vocabulary
    from clew.tokens import counter_for
    from clew.wire import decode

    console = Console(highlight=False)
    text = read(file)
    try:
        talk = parse(file, text)
    except BadRequest:
        counter = counter_for(model)
        line = f"{counter.text(text):,} tokens of text · chars/4 would say {len(text) // 4:,}"
        console.print(f"{line}\n{vocabulary(counter, model)}", markup=False, soft_wrap=True)
        return
    frame, items = decode(talk.body)
    counter = counter_for(model or frame.model, frame.format)
    console.print(counted(tally(counter, frame, items)))
    console.print(vocabulary(counter, model or frame.model), markup=False, soft_wrap=True)


@app.command(epilog="Example: clew compress talk.json --target 20000 -o short.json")
def compress(
    file: Source,
    model: ModelName = "",
    window: Annotated[int | None, typer.Option(metavar="TOKENS", help="What the model can read.")] = None,
    target: Annotated[int | None, typer.Option(metavar="TOKENS", help="Or: what the result may take.")] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="OUT", help="Where to write it.")] = None,
    format: Annotated[str | None, typer.Option(metavar="NAME", help="openai_chat or anthropic, if told wrong.")] = None,
    no_store: Annotated[bool, typer.Option("--no-store", help="Keep no original: nothing to recall.")] = False,
) -> None:
    """Make a conversation fit, and keep what is left out where it can be recalled."""
    from clew import catalog
    from clew.budget import Budget, Meter
    from clew.engine import body
    from clew.screens import difference, parse, read, save
    from clew.tokens import counter_for
    from clew.wire import decode

    if window is not None and target is not None:
        raise typer.BadParameter("give --window or --target, not both")
    talk = parse(file, read(file))
    frame, items = decode(talk.body, format)
    model = model or frame.model
    meter = Meter(counter_for(model, frame.format))
    if target is not None:
        budget = Budget(target, 0, 1, 1, meter=meter)
    else:
        budget = Budget(catalog.window(model) if window is None else window, meter=meter)
    session = None if no_store else f"{'stdin' if file == '-' else Path(file).stem}-{secrets.token_hex(2)}"
    path = ":memory:" if no_store else default_store(os.environ)
    view = asyncio.run(_fitted(path, budget, talk, frame.format, session))
    data = talk.written(body(view))
    if out is None:
        typer.echo(data, nl=False)
    else:
        save(out, data)
    before = meter.frame(frame).plus(meter.items(items)).tokens
    typer.echo(difference(view, before, budget, model, session), err=True)


async def _fitted(path: str | Path, budget: "Budget", talk: "Talk", format: str, session: str | None) -> "View":
    from clew.engine import Engine, Request
    from clew.store import SQLite

    store = SQLite(path)
    try:
        # A session of its own: the edits of an earlier run, with another target, must not show in this one.
        engine = Engine(store, budget, counter=budget.meter.counter)
        return await engine.prepare(Request(talk.body, format, session=session))
    finally:
        await store.close()


@app.command(epilog="Example: clew show demo --scope demo")
def show(
    id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A branch or a session; its beginning will do.")
    ] = None,
    scope: ScopeName = "default",
    store: StorePath = None,
) -> None:
    """List what is stored, or show a conversation as the model last saw it."""
    asyncio.run(_show(id, scope, store))


async def _show(id: str | None, scope: str, path: Path | None) -> None:
    from rich.console import Console

    from clew.budget import Meter
    from clew.engine import Engine
    from clew.screens import listing, seen
    from clew.tokens import counter_for

    store = _opened(path)
    try:
        branches = await store.branches(scope)
        if not branches:
            raise NotFound(f"nothing is stored in scope {scope!r} yet: try clew demo, or another --scope")
        if id is None:
            rows = [(b, await _said(store, scope, b)) for b in branches[:LISTED]]
            listing(Console(highlight=False), rows, len(branches) - len(rows))
            return
        branch = _named(id, branches)
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


def _named(id: str, branches: list["BranchInfo"]) -> "BranchInfo":
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


@app.command(epilog="Example: clew recall 3fa94c21b0 --grep error")
def recall(
    id: Annotated[str, typer.Argument(metavar="ID", help="As a stand-in names it, after the word recall.")],
    lines: Annotated[str, typer.Option(metavar="A-B", help="Only these lines, counted from 1.")] = "",
    grep: Annotated[str, typer.Option(metavar="PATTERN", help="Only lines that match, with their numbers.")] = "",
    scope: ScopeName = "default",
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


async def _recalled(id: str, scope: str, path: Path | None) -> Sequence["Node"]:
    from clew.engine import Engine

    store = _opened(path)
    try:
        return await Engine(store).recall(scope, id)
    except Ambiguous:
        raise
    except NotFound as error:
        raise NotFound(f"{error} (scope {scope!r}); is it in another --scope or --store?") from None
    finally:
        await store.close()


# --- the environment ------------------------------------------------------------------------------------------------


def default_store(env: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Where the log is, unless somebody says otherwise."""
    if env.get("CLEW_STORE"):
        return Path(env["CLEW_STORE"]).expanduser()
    if env.get("XDG_DATA_HOME"):
        return Path(env["XDG_DATA_HOME"]) / "clew" / "clew.db"
    if platform == "win32":
        return Path(env.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "clew" / "clew.db"
    if platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "clew" / "clew.db"
    return Path.home() / ".local" / "share" / "clew" / "clew.db"


def _opened(path: Path | None) -> "SQLite":
    """A store that is there: looking must not make one."""
    from clew.store import SQLite

    path = path or default_store(os.environ)
    if not path.exists() or path.stat().st_size == 0:
        raise NotFound(f"{path}: no store there yet; clew demo makes one, or say where it is with --store")
    return SQLite(path)


def main() -> None:
    """The entry point of the `clew` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an old console without ▸ is no reason to stop
    app()


if __name__ == "__main__":
    main()
