"""What all commands share: how errors are said, their options, where the log is."""

import io
import re
import shlex
import shutil
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import wraps
from importlib import import_module
from inspect import cleandoc, iscoroutinefunction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import typer
from typer.core import TyperGroup
from typer.main import get_group

from clew.cli.groups import GROUPS, MODULES, MOVED, listed
from clew.config.places import here
from clew.errors import BadConfig, ClewError

if TYPE_CHECKING:
    from clew.config import Config
    from clew.sessions.conversation import Conversation
    from clew.sessions.sessions import Sessions
    from clew.store.sql import SQLStore


def names(context: typer.Context, incomplete: str) -> list[str]:
    """Names and ids that begin like this; none where there is no store yet."""
    try:
        return _names(context, incomplete)
    except Exception:  # a shell has no place for an error
        return []


def _names(context: typer.Context, incomplete: str) -> list[str]:
    import asyncio

    from clew.config import load
    from clew.core.items import SHORT
    from clew.store import open_store

    config = load(here().env, here().folder)

    async def listed() -> list[str]:
        store = open_store(context.params.get("store") or config.store, create=False)
        try:
            sessions = await store.sessions(context.params.get("scope") or config.scope)
        finally:
            await store.close()
        return list(dict.fromkeys(s.name or s.branch[:SHORT] for s in sessions))

    return [name for name in asyncio.run(listed()) if name.startswith(incomplete) and name.isprintable()]


CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])

# Newer typers bring their own copy of click; this is `UsageError` in all of them.
UsageError = cast(type[typer.BadParameter], typer.BadParameter.__mro__[1])


BROKEN_LINE = re.compile(r"(?<!\n)\n(?![\n-])")  # within a paragraph, and no item of a list
HINT = re.compile("`clew ([a-z][^`]*)`")
NAMED: dict[str, str] = {}  # --store and --scope, as whoever runs this command gave them


class Nothing(ClewError):
    """There is nothing to list, which is no error."""


class Renamed(ClewError):
    """The command has another name now."""


class Commands(TyperGroup):
    """Imports the module of a command when that is asked for, and says what went wrong in one line."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*MODULES]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in MOVED:
            raise Renamed(f"`clew {cmd_name}` is now `{MOVED[cmd_name]}`")
        if cmd_name in MODULES and cmd_name not in self.commands:
            import_module(f"clew.cli.{MODULES[cmd_name]}")
            self.commands.update(get_group(app).commands)
        return super().get_command(ctx, cmd_name)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        parts = [f"Usage: {ctx.command_path} [OPTIONS] COMMAND [ARGS]...\n{self.help}\n"]
        parts += [f"{typer.style(group, bold=True)}\n{listed(group)}\n" for group in GROUPS]
        options = (param.opts[0] for param in self.get_params(ctx) if param.name != "help")
        formatter.write("\n".join([*parts, f"Also: clew COMMAND --help, {', '.join(options)}\n"]))

    def hint(self, found: re.Match[str]) -> str:
        """A command in a text, as its reader can type it: with the log that they named, if it takes one."""
        command: Any = self
        words, rest = [called()], found[1].split(" ")
        while rest and isinstance(command, TyperGroup) and rest[0] not in MOVED:
            command = command.get_command(typer.Context(self), rest[0])
            words.append(rest.pop(0))
        takes = [name for param in getattr(command, "params", ()) for name in param.opts]
        words += [f"{option} {shlex.quote(value)}" for option, value in NAMED.items() if option in takes]
        return f"`{' '.join([*words, *rest])}`"

    def main(self, *args: Any, **extra: Any) -> Any:
        NAMED.clear()
        try:
            code = super().main(*args, **{**extra, "standalone_mode": False})
        except typer.Abort:
            code = 130
        except UsageError as error:
            _, *command = error.ctx.command_path.split() if error.ctx else [""]
            code = _fail(f"{error.format_message()} (see {' '.join(['clew', *command])} --help)", 2)
        except Renamed as error:
            code = _fail(str(error), 2)
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
        def added(act: CommandFunction) -> CommandFunction:
            described = BROKEN_LINE.sub(" ", cleandoc(act.__doc__ or ""))  # or help breaks where the source does
            add = super(CommandLine, self).command(*args, **{"help": described, **how})

            @wraps(act)
            def blocking(**given: Any) -> None:
                import asyncio

                asyncio.run(act(**given))

            add(blocking if iscoroutinefunction(act) else act)
            return act

        return added


def _fail(message: str, code: int = 1) -> int:
    typer.echo(f"clew: {printable(hinted(message))}", err=True)
    return code


def hinted(text: str) -> str:
    """Each command in it as its reader can type it, in backquotes as everywhere in what clew says."""
    return HINT.sub(cast(Commands, get_group(app)).hint, text)


def called() -> str:
    """How the reader can call clew: after `make demo` it is in the project's own environment, not on the path."""
    path = Path(sys.argv[0])
    if shutil.which("clew") or path.name != "clew":
        return "clew"
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def printable(message: str) -> str:
    """One line; a name in it may be anybody's text, and no control character of it reaches the terminal."""
    return "".join(c if c.isprintable() else "�" for c in " ".join(message.split()))


app = CommandLine(
    cls=Commands,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


FIRST_STEPS = f"""\
clew keeps long agent conversations within the context window without losing anything.

{listed("Start here")}

clew --help lists all commands; clew COMMAND --help explains one."""


def _named(param: typer.CallbackParam, value: str | None) -> str | None:
    if value:
        NAMED[f"--{param.name}"] = value
    return value or (_loaded().scope if param.name == "scope" else None)


ScopeName = Annotated[
    str,
    typer.Option("--scope", metavar="NAME", help="Scope (tenant), if not the configured one.", callback=_named),
]
StorePath = Annotated[
    str | None,
    typer.Option("--store", metavar="PATH|URL", help="Store, if not the configured one.", callback=_named),
]
NAME_HELP = "A conversation by its name or id, or NAME.3 for its third session; a unique prefix is enough."
SessionName = Annotated[str, typer.Argument(metavar="NAME", help=NAME_HELP, autocompletion=names)]
PerhapsName = Annotated[str | None, typer.Argument(metavar="[NAME]", help=NAME_HELP, autocompletion=names)]
AsJson = Annotated[bool, typer.Option("--json", help="Output JSON.")]
CallNumber = Annotated[
    int | None,
    typer.Option("--call", metavar="N", help="The request as sent in this call; `clew show NAME --calls` lists them."),
]


@app.callback(invoke_without_command=True)
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
        "no model is set: use --model NAME or `clew config set agent.model NAME`; `clew model list` shows the models"
    )


def opened(where: str | None, create: bool = False) -> "SQLStore":
    """A store that is there: looking must not make one."""
    from clew.store import open_store

    return open_store(where or configured().store, create)


def seek_store(where: str | None) -> None:
    """Where nobody named a store and none was made yet, there is nothing to list."""
    store = configured().store
    if where is None and isinstance(store, Path) and not store.exists():
        raise Nothing(
            f"no conversations yet in {store}: `clew demo` makes one; `clew chat`, `clew serve` and `clew import` "
            'yours. What `clew.wrap(client, "agent.db")` keeps is seen with --store agent.db'
        )


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
