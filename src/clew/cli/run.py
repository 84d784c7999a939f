"""The command that works: an agent with tools, for scripts and CI."""

import sys
from contextlib import aclosing
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from clew.cli.app import ScopeName, StorePath, app, configured, model_to_ask, names, on_terminal, opened, printable
from clew.errors import ClewError

if TYPE_CHECKING:
    from clew.agent import Agent, AgentEvent
    from clew.config import Config
    from clew.store.sql import SQLStore


@app.command(epilog='Example: clew run "Why does the build fail?" --run --session build')
async def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task; - reads it from standard input.")],
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", help="The model; `clew model list` shows the names.")
    ] = "",
    session: Annotated[
        str,
        typer.Option(
            "--session", metavar="NAME", help="The conversation to continue, or to start.", autocompletion=names
        ),
    ] = "",
    method: Annotated[
        Literal["auto", "llm"] | None, typer.Option("--method", help="Who decides when to compact.")
    ] = None,
    folder: Annotated[Path, typer.Option("--in", metavar="FOLDER", help="Folder to work in.")] = Path(),
    write: Annotated[bool, typer.Option("--write", help="Allow it to change files in the folder.")] = False,
    execute: Annotated[bool, typer.Option("--run", help="Allow it to run commands.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Output JSON, one event per line.")] = False,
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Run an agent on a task: it reads, searches and, if allowed, edits files and runs commands.

    The answer goes to standard output, the actions to standard error. The log keeps all of it, and --session continues
    a conversation in another process. Without --write and --run, the agent can only read.
    """
    text = sys.stdin.read() if task == "-" else task
    if not text.strip():
        raise typer.BadParameter("the task is empty")
    if not folder.is_dir():
        raise typer.BadParameter(f"{folder} is not a folder")
    config = configured()
    model = model_to_ask(model, config)
    log = opened(store, create=True)
    agent: Agent | None = None
    try:
        agent = _agent(config, log, model, session, folder, write, execute, scope)
        await agent.controller.load(scope, agent.session)
        if method is not None:
            agent.controller.method = method
        await agent.controller.save(scope, agent.session)
        raise typer.Exit(await _watch(agent, text, as_json))
    finally:
        if agent:
            await agent.speaker.close()
            await agent.controller.engine.close()
        await log.close()


def _agent(
    config: "Config",
    store: "SQLStore",
    model: str,
    session: str,
    folder: Path,
    write: bool,
    execute: bool,
    scope: str,
) -> "Agent":
    from clew.agent import Agent
    from clew.agent.tools import Permissions, Toolbox, tools
    from clew.config import engine
    from clew.control import ContextController
    from clew.llm.streaming import speaker

    here = folder.resolve()
    system = files("clew.agent").joinpath("prompts", "system.md").read_text(encoding="utf-8")
    permissions = Permissions(write="allow" if write else "deny", run="allow" if execute else "deny")
    controller = ContextController(engine(config, store), when=config.new_session.when, how=config.new_session.how)
    return Agent(
        speaker(model),
        controller,
        Toolbox(tools(here), permissions),
        system=system.replace("{folder}", str(here)).strip(),
        session=session or None,
        scope=scope,
    )


async def _watch(agent: "Agent", text: str, as_json: bool) -> int:
    """Tell what the agent does; 0 if it came to an end by itself."""
    from clew.agent import Answered

    stop = "end"
    try:
        async with aclosing(agent.run(text)) as events:
            async for event in events:
                stop = event.stop if isinstance(event, Answered) else stop
                _as_json(event) if as_json else _print_event(event)
    except ClewError as error:
        if not as_json:
            raise
        _write({"event": "failed", "error": type(error).__name__, "why": str(error)})
        return 1
    typer.echo(f"conversation {printable(agent.session)}", err=True)
    return 0 if stop == "end" else 1


def _as_json(event: "AgentEvent") -> None:
    from dataclasses import asdict

    _write({"event": type(event).__name__.lower(), **asdict(event)})


def _write(value: dict[str, Any]) -> None:
    from clew.core import rawjson

    sys.stdout.buffer.write(rawjson.visible(rawjson.dumps(value)) + b"\n")
    sys.stdout.buffer.flush()


def _print_event(event: "AgentEvent") -> None:
    from clew.agent import Answered, Compacted, Ran, Retrying, Running
    from clew.llm.streaming import Text

    match event:
        case Text(delta):
            sys.stdout.write(on_terminal(delta))
            sys.stdout.flush()
        case Running(name=name, arguments=given):
            typer.echo(printable(f"▸ {name} {given}")[:200], err=True)
        case Ran(name=name, text=text, failed=failed):
            typer.echo(printable(f"  {'✗' if failed else '✓'} {text[:160]}"), err=True)
        case Compacted(cause=cause, before=before, after=after):
            what = "a new session begins" if cause == "handoff" else "compacted"
            typer.echo(f"◇ {what}: {before:,} → {after:,} tokens", err=True)
        case Retrying(why=why, seconds=seconds):
            typer.echo(printable(f"… {why}: trying again in {seconds:.0f} s"), err=True)
        case Answered(stop=stop):
            sys.stdout.write("\n")
            if stop != "end":
                typer.echo(f"stopped: {stop}", err=True)
