"""Commands for models: which can be asked, whether one answers, and what their providers refused of late."""

from importlib.util import find_spec
from typing import Annotated

import typer

from clew.cli.app import (
    AsJson,
    CommandLine,
    ScopeName,
    StorePath,
    app,
    configured,
    echo_json,
    looking,
    model_to_ask,
    on_terminal,
)
from clew.config.places import here
from clew.errors import NotFound, install_line

model = CommandLine(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List and test the models that clew can use, and see or forget what their providers refused as too long.",
    epilog="Example: clew model list",
)
app.add_typer(model, name="model")

_KEYS = {"openai": ("OPENAI_API_KEY",), "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")}


@model.command("list", epilog="Example: clew model list")
def show_models(as_json: AsJson = False) -> None:
    """Show which models can be used, and what is missing for the others."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = {f"{provider}/NAME": _remote(provider, keys) for provider, keys in _KEYS.items()}
    rows["http://HOST/v1#NAME"] = _package("openai", "openai") or "a server that speaks OpenAI's API"
    if as_json:
        echo_json(rows)
        return
    table = Table.grid("", "", padding=(0, 2, 0, 0))
    table.columns[1].overflow = "fold"
    for name, state in rows.items():
        table.add_row(name, Text(state))
    Console(highlight=False).print(table)


def _remote(provider: str, keys: tuple[str, ...]) -> str:
    key = next((name for name in keys if here().env.get(name)), None)
    return _package(provider, provider) or (f"ready, with {key}" if key else f"no key: set {keys[0]}")


def _package(package: str, extra: str) -> str:
    return "" if find_spec(package) else f"not installed: {install_line(extra)}"


@model.command("ask", epilog="Example: clew model ask 'Say hello.' --model openai/gpt-5-mini")
def ask_model(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The prompt.")],
    name: Annotated[
        str, typer.Option("--model", metavar="NAME", help="For example openai/NAME or http://HOST/v1#NAME.")
    ] = "",
    max_tokens: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum tokens of the answer.")] = 256,
) -> None:
    """Send a prompt to a model, to test that it works."""
    from clew import run
    from clew.llm import named
    from clew.steps.chapters.model import Prompt, Reply

    asked = named(model_to_ask(name, configured()))

    async def talk() -> Reply:
        try:
            return await asked(Prompt(text, max_tokens))
        finally:
            await asked.close()

    reply = run(talk())
    typer.echo(on_terminal(reply.text))
    spent = f"{reply.spent.input:,} tokens read, {reply.spent.output:,} written"
    typer.echo(f"clew: {spent}{', cut short' if reply.cut else ''}", err=True)


@model.command("limits", epilog="Example: clew model limits")
async def show_limits(as_json: AsJson = False, scope: ScopeName = "", store: StorePath = None) -> None:
    """Show what providers refused as too long, by model and upstream; each counts for a day, then it is forgotten."""
    from clew.screens.limits import limits_in_words
    from clew.screens.lines import moment

    async with looking(scope, store) as found:
        learned = await limits_in_words(found.engine.limits.windows, scope)
    if as_json:
        echo_json({told.place: told.limit.to_json() for told in learned})
        return
    if not learned:
        typer.echo("no provider refused a request as too long within the last day", err=True)
    for told in learned:
        often = f", refused {told.times}" if told.limit.refusals else ""
        typer.echo(on_terminal(f"{told.name}: {told.limits}{often}, last {moment(told.limit.at)}"))


@model.command("forget", epilog="Example: clew model forget my-local --upstream near")
async def forget_limits(
    name: Annotated[str, typer.Argument(metavar="MODEL", help="A model, as `clew model limits` lists it.")],
    upstream: Annotated[
        str, typer.Option("--upstream", metavar="NAME", help="Only what this upstream of the gateway refused.")
    ] = "",
    scope: ScopeName = "",
    store: StorePath = None,
) -> None:
    """Forget what a model's provider refused: the next request uses the whole window again."""
    from clew.screens.limits import limits_in_words

    async with looking(scope, store) as found:
        windows = found.engine.limits.windows
        known = [t for t in await limits_in_words(windows, scope) if t.model == name and upstream in ("", t.upstream)]
        for told in known:
            await windows.forget(scope, told.place)
    if not known:
        asked = f"{name} at {upstream}" if upstream else name
        raise NotFound(f"no limit of {asked} is known; `clew model limits` lists those that are")
    for told in known:
        typer.echo(on_terminal(f"forgotten: {told.name}, {told.limits}"))
