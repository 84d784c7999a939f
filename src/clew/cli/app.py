"""What all commands share: how errors are said, their options, where the log is."""

import io
import os
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperGroup

from clew.errors import BadConfig, ClewError

if TYPE_CHECKING:
    from clew.config import Config
    from clew.store.sql import SQLStore

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
        except BadConfig as error:
            code = max(_fail(problem) for problem in error.problems)
        except (ClewError, OSError, sqlite3.Error) as error:
            code = _fail(str(error))
        sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int = 1) -> int:
    typer.echo(f"clew: {printable(message)}", err=True)
    return code


def printable(message: str) -> str:
    """One line; a name in it may be anybody's text, and no control character of it reaches the terminal."""
    return "".join(c if c.isprintable() else "�" for c in " ".join(message.split()))


app = typer.Typer(cls=Commands, add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False)

Source = Annotated[str, typer.Argument(metavar="FILE", help="A file, or - for standard input.")]
ModelName = Annotated[str, typer.Option("--model", metavar="NAME", help="Whose tokens to count.")]


def _scope(name: str) -> str:
    return name or _loaded().scope


ScopeName = Annotated[
    str,
    typer.Option("--scope", metavar="NAME", help="The tenant, if not the configured one.", callback=_scope),
]
StorePath = Annotated[
    str | None, typer.Option("--store", metavar="PATH|URL", help="The store, if not the configured one.")
]


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


# --- the configuration ----------------------------------------------------------------------------------------------


def _loaded() -> "Config":
    from clew.config import load

    return load(os.environ, Path.cwd())


def configured() -> "Config":
    """What holds here and now; what was passed over is said."""
    config = _loaded()
    for note in config.notes:
        typer.echo(f"clew: {printable(note)}", err=True)
    return config


def opened(where: str | None) -> "SQLStore":
    """A store that is there: looking must not make one."""
    from clew.store import open_store

    return open_store(where or configured().store, create=False)


def main() -> None:
    """The entry point of the `clew` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # an old console without ▸ is no reason to stop
    app()
