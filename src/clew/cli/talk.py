"""Commands that take a conversation from a file: see it work, count it, make it fit."""

import asyncio
import re
import secrets
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import AsJson, ModelName, ScopeName, SourceFile, StorePath, app, configured, echo_json, printable
from clew.config.places import here
from clew.errors import BadRequest

if TYPE_CHECKING:
    from clew.config import Config
    from clew.core.limits import Budget
    from clew.core.view import View
    from clew.engine.engine import Request
    from clew.facts.chapters import Written
    from clew.store.places import Server
    from clew.tokens import Counter

JSON_STARTS = re.compile(r"\s*(\{\s*\"|\[\s*\{)")
TICK = 0.05  # seconds a turn stays on the screen


@app.command(epilog='Example: clew demo --ask "Which view should be the default?"')
def demo(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="A session file of yours; it is only read, nothing is kept.")
    ] = None,
    ask: Annotated[
        list[str] | None, typer.Option(metavar="QUESTION", help="Ask the log this. May be given several times.")
    ] = None,
    window: Annotated[
        int, typer.Option(metavar="TOKENS", help="Context window of the model; 0: 24,000, or a quarter of your file.")
    ] = 0,
    html: Annotated[Path | None, typer.Option(metavar="OUT", help="Write what is shown as a web page, too.")] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Run at full speed instead of reading speed.")] = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Replay a real agent session, or one of yours, in a window too small for it."""
    from rich.console import Console

    from clew.screens import save
    from clew.screens.demo import DEMO_WINDOW, command, next_steps, run, sample
    from clew.screens.own_sessions import messages_of, newest, quarter
    from clew.store.places import place

    console = Console(highlight=False, record=html is not None)
    tick = 0 if fast else TICK
    if file:
        messages = messages_of(file)
        asyncio.run(run(console, ":memory:", messages, window or quarter(messages), scope, ask or (), tick))
    else:
        where = place(store) if store else configured().store
        replay = asyncio.run(run(console, where, sample(), window or DEMO_WINDOW, scope, ask or (), tick))
        given = "" if scope == configured().scope else f" --scope {scope}"
        next_steps(console, replay, given + (f" --store {where}" if store else ""))
        if mine := newest(here()):
            line = f"  {command()} demo {shlex.quote(str(mine))}  # your own newest session; it is only read"
            console.print(line, markup=False, soft_wrap=True)
    if html:
        save(html, console.export_html().encode())
        typer.echo(f"written: {html}", err=True)


@app.command(epilog="Example: clew count talk.jsonl --model gpt-5")
def count(file: SourceFile, model: ModelName = "", as_json: AsJson = False) -> None:
    """Count the tokens of a text or of a conversation, by kind of item."""
    from rich.console import Console

    from clew.screens import parse, read
    from clew.screens.counts import counted, tally, vocabulary
    from clew.tokens import counter_for
    from clew.wire import decode

    console = Console(highlight=False)
    text = read(file)
    try:
        talk = parse(file, text)
    except BadRequest:
        if JSON_STARTS.match(text) or Path(file).suffix in (".json", ".jsonl"):
            raise  # broken JSON, and no text that anybody would send
        counter = counter_for(model)
        if as_json:
            echo_json({"tokens": counter.text(text), "characters": len(text), "exact": counter.exact})
            return
        line = f"{counter.text(text):,} tokens of text · chars/4 would say {len(text) // 4:,}"
        console.print(f"{line}\n{vocabulary(counter, model)}", markup=False, soft_wrap=True)
        return
    frame, items = decode(talk.body)
    counter = counter_for(model or frame.model, frame.format)
    sums = tally(counter, frame, items)
    if as_json:
        kinds = {kind: row._asdict() for kind, row in sums.items()}
        tokens = sum(row.tokens for row in sums.values())
        echo_json({"tokens": tokens, "exact": counter.exact, "kinds": kinds})
        return
    console.print(counted(sums))
    console.print(vocabulary(counter, model or frame.model), markup=False, soft_wrap=True)


@app.command(epilog="Example: clew compress talk.json --target 20000 -o short.json")
def compress(
    file: SourceFile,
    model: ModelName = "",
    window: Annotated[int | None, typer.Option(metavar="TOKENS", help="Context window of the model.")] = None,
    target: Annotated[
        int | None, typer.Option(metavar="TOKENS", help="Token budget of the history, without system prompt and tools.")
    ] = None,
    out: Annotated[Path | None, typer.Option("-o", "--out", metavar="OUT", help="Output file.")] = None,
    format: Annotated[
        str | None, typer.Option(metavar="NAME", help="Format, if detection is wrong: openai_chat or anthropic.")
    ] = None,
    no_store: Annotated[
        bool, typer.Option("--no-store", help="Do not keep the originals; nothing can be recalled.")
    ] = False,
    notes: Annotated[
        str, typer.Option(metavar="MODEL", help="Model that writes the summary; clew model list shows the names.")
    ] = "",
    focus: Annotated[str, typer.Option(metavar="WORDS", help="What the summary should focus on.")] = "",
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Compress a conversation to a size, and keep the originals for recall."""
    from clew.agent.control.pointers import with_names
    from clew.compression import bounds
    from clew.core import rawjson
    from clew.engine.engine import Request, body
    from clew.screens import parse, read, save
    from clew.screens.counts import difference
    from clew.tokens import counter_for
    from clew.tokens.meter import Meter
    from clew.tokens.target import Target
    from clew.wire import decode

    if window is not None and target is not None:
        raise typer.BadParameter("give --window or --target, not both")
    talk = parse(file, read(file))
    frame, items = decode(talk.body, format)
    model = model or frame.model
    meter = Meter(counter_for(model, frame.format))
    config = configured()
    if notes:
        config = replace(config, summary=replace(config.summary, model=notes))
    if target is not None:
        budget = bounds(target, frame, list(items), meter)
    else:
        budget = config.budget_for(config.model(model), window)
    session = None if no_store else f"{'stdin' if file == '-' else Path(file).stem}-{secrets.token_hex(2)}"
    where = ":memory:" if no_store else store or config.store
    request = Request(talk.body, frame.format, scope, session)
    view = asyncio.run(_fitted(config, where, budget, meter.counter, request, focus))
    if no_store:
        view = with_names(view, "")  # nothing was kept that an id could bring back
    data = rawjson.visible(talk.written(body(view)))
    if out is None:
        typer.echo(data, nl=False)
    else:
        save(out, data)
    before = meter.frame(frame).plus(meter.items(items)).tokens
    typer.echo(difference(view, before, Target(budget, meter), model, session), err=True)


async def _fitted(
    config: "Config", where: "str | Path | Server", budget: "Budget", counter: "Counter", request: "Request", focus: str
) -> "View":
    from clew.config import engine
    from clew.config.wiring import author
    from clew.steps import PRESETS
    from clew.steps.chapters.with_chapters import WithChapters
    from clew.store import open_store

    given: dict[str, object] = {"counter": counter}
    writes = author(config)  # nobody talks to a model here: none is one's own
    if writes is not None and writes != "own":
        # Here one waits for the model: there is no next turn in which its chapter could be used.
        writes.progress = lambda part, parts: typer.echo(f"{writes.name} reads part {part} of {parts}", err=True)
        given |= {"step": WithChapters(writes, PRESETS[config.preset](), focus, told=_told), "author": None}
    store = open_store(where)
    try:
        # A session of its own: the edits of an earlier run, with another target, must not show in this one.
        return await engine(config, store, budget, **given).prepare(request)
    finally:
        await store.close()


def _told(written: "Written") -> None:
    """What came of asking a model."""
    what = f"chapters written: {len(written.chapters)}, lines left out: {len(written.left_out)}"
    said = f"{written.model}: {what}, {written.spent:,} tokens"
    faults = f"; {', '.join(written.faults)}: code writes what it did not" if written.faults else ""
    typer.echo(printable(said + faults), err=True)
