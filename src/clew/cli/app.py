"""What all commands share: how errors are said, their options, where the log is."""

import io
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import wraps
from inspect import iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer
from typer.core import TyperGroup

from clew.cli.completion import names
from clew.cli.groups import GONE, PLACES
from clew.config.places import here
from clew.errors import BadConfig, ClewError

if TYPE_CHECKING:
    from clew.config import Config
    from clew.sessions.conversation import Conversation
    from clew.sessions.sessions import Sessions
    from clew.store.sql import SQLStore

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])

# Newer typers bring their own copy of click; this is `UsageError` in all of them.
UsageError = cast(type[typer.BadParameter], typer.BadParameter.__mro__[1])


class Nothing(ClewError):
    """There is nothing to list, which is no error."""


class Commands(TyperGroup):
    """Groups its commands, and says what went wrong in one line."""

    def list_commands(self, ctx: Any) -> list[str]:
        order = list(PLACES)
        known = super().list_commands(ctx)
        return sorted(known, key=lambda name: order.index(name) if name in PLACES else len(order))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in GONE:
            raise UsageError(f"clew {cmd_name} is gone; use {GONE[cmd_name]}")
        found: Any = super().get_command(ctx, cmd_name)
        if found is not None and cmd_name in PLACES:
            found.rich_help_panel, found.short_help = PLACES[cmd_name]
        return found

    def main(self, *args: Any, **extra: Any) -> Any:
        try:
            code = super().main(*args, **{**extra, "standalone_mode": False})
        except typer.Abort:
            code = 130
        except UsageError as error:
            _, *command = error.ctx.command_path.split() if error.ctx else [""]
            code = _fail(f"{error.format_message()} (see {' '.join(['clew', *command])} --help)", 2)
        except Nothing as error:
            code = _fail(str(error), 0)
        except BadConfig as error:
            code = max(_fail(problem) for problem in error.problems)
        except (ClewError, OSError, sqlite3.Error) as error:
            code = _fail(str(error))
        sys.exit(code if isinstance(code, int) else 0)


class CommandLine(typer.Typer):
    """Commands, some of which are awaited."""

    def command(self, *args: Any, **how: Any) -> Callable[[CommandFunction], CommandFunction]:
        add = super().command(*args, **how)

        def added(act: CommandFunction) -> CommandFunction:
            @wraps(act)
            def blocking(**given: Any) -> None:
                import asyncio

                asyncio.run(act(**given))

            add(blocking if iscoroutinefunction(act) else act)
            return act

        return added


def _fail(message: str, code: int = 1) -> int:
    typer.echo(f"clew: {printable(message)}", err=True)
    return code


def printable(message: str) -> str:
    """One line; a name in it may be anybody's text, and no control character of it reaches the terminal."""
    return "".join(c if c.isprintable() else "�" for c in " ".join(message.split()))


app = CommandLine(
    cls=Commands,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


FIRST_STEPS = """\
clew keeps long agent conversations within the context window without losing anything.

  clew demo              watch a real session shrink, with no key and no network
  clew install           give Claude Code, Codex and other agents on this machine search and recall
  clew serve             a gateway: any client, one base URL
  clew chat              an agent in this terminal
  clew open              look at the conversations on a page

clew --help lists all commands; clew COMMAND --help explains one."""


def _scope(name: str) -> str:
    return name or _loaded().scope


ScopeName = Annotated[
    str,
    typer.Option("--scope", metavar="NAME", help="Scope (tenant), if not the configured one.", callback=_scope),
]
StorePath = Annotated[str | None, typer.Option("--store", metavar="PATH|URL", help="Store, if not the configured one.")]
NAME_HELP = "A conversation by its name or id, or NAME.3 for its third session; a unique prefix is enough."
SessionName = Annotated[str, typer.Argument(metavar="NAME", help=NAME_HELP, autocompletion=names)]
PerhapsName = Annotated[str | None, typer.Argument(metavar="[NAME]", help=NAME_HELP, autocompletion=names)]
AsJson = Annotated[bool, typer.Option("--json", help="Output JSON.")]
CallNumber = Annotated[
    int | None,
    typer.Option("--call", metavar="N", help="The request as sent in this call; clew calls lists the numbers."),
]


@app.callback(invoke_without_command=True, epilog="Start here: clew demo")
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Keep long agent conversations within the context window without losing anything."""
    if version:
        from clew import __version__

        typer.echo(f"clew {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(FIRST_STEPS)


# --- the configuration ----------------------------------------------------------------------------------------------


def _loaded() -> "Config":
    from clew.config import load

    return load(here().env, here().folder)


def configured() -> "Config":
    """What holds here and now; what was passed over is said."""
    config = _loaded()
    for note in config.notes:
        typer.echo(f"clew: {printable(note)}", err=True)
    return config


def model_to_ask(given: str, config: "Config") -> str:
    """The model that an option names, else the configuration."""
    if model := given or config.agent.model:
        return model
    raise UsageError(
        "no model is set: use --model NAME or clew config set agent.model NAME; clew model list shows the models"
    )


def opened(where: str | None, create: bool = False) -> "SQLStore":
    """A store that is there: looking must not make one."""
    from clew.store import open_store

    return open_store(where or configured().store, create)


def seek_store(where: str | None) -> None:
    """Where nobody named a store and none was made yet, there is nothing to list."""
    store = configured().store
    if where is None and isinstance(store, Path) and not store.exists():
        raise Nothing("no conversations yet: clew demo makes one, and clew chat, clew serve and clew import yours")


@asynccontextmanager
async def looking(scope: str, path: str | None) -> AsyncIterator["Sessions"]:
    """The sessions of a store that is there, with the budget that is configured."""
    from clew.config import engine
    from clew.sessions.sessions import Sessions
    from clew.store import open_store

    config = configured()
    store = open_store(path or config.store, create=False)
    # Nothing is summed up here: no model need be at hand.
    made = engine(replace(config, summary=replace(config.summary, model="none")), store)
    try:
        yield Sessions(made, scope)
    finally:
        await store.close()


@asynccontextmanager
async def conversation(name: str, scope: str, path: str | None) -> AsyncIterator["Conversation"]:
    """What a name means in a store that is there."""
    async with looking(scope, path) as found:
        yield await found.conversation(name)


# --- what they write --------------------------------------------------------------------------------------------------


def on_terminal(text: str) -> str:
    """Text from elsewhere as it is; on a terminal, with a sign for each character that this would obey."""
    from clew.agent.tools.terminal import shown

    return shown(text) if sys.stdout.isatty() else text


def echo_json(value: Any) -> None:
    """A value for a program, on standard output."""
    from clew.core import rawjson

    typer.echo(rawjson.visible(rawjson.dumps(value)))


@contextmanager
def bar(title: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on a terminal while something long goes on; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=None)
        yield lambda done, whole: shown.update(task, completed=done, total=whole)


def main() -> None:
    """The entry point of the `clew` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an old console without ▸ is no reason to stop
    app()
