"""Commands for models that can be asked: which there are, and whether one answers."""

import os
from importlib.util import find_spec
from typing import Annotated

import typer

from clew.cli.app import AsJson, app, configured, echo_json, model_to_ask, on_terminal
from clew.errors import install_line

model = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="List and test the models that clew can use.",
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
    key = next((name for name in keys if os.environ.get(name)), None)
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
    from clew import Prompt, Reply, run
    from clew.llm import named

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
