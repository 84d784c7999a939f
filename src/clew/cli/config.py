"""Commands for the configuration: what holds and from where, and how to change it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clew.cli.app import AsJson, app, configured, echo_json
from clew.config.places import here
from clew.core import rawjson
from clew.errors import BadRequest

if TYPE_CHECKING:
    from clew.config import Config, Places

config = typer.Typer(invoke_without_command=True, rich_markup_mode="rich")
app.add_typer(config, name="config")

InProject = Annotated[bool, typer.Option("--project", help="Write to the project's clew.toml.")]
KeyName = Annotated[str, typer.Argument(metavar="KEY", help='For example budget.high or models."gpt-5".window.')]


@config.callback(epilog="Example: clew config set budget.high 0.8")
def show_all(
    context: typer.Context,
    why: Annotated[bool, typer.Option("--why", help="Show when a history is compacted with these settings.")] = False,
    model: Annotated[str, typer.Option(help="With --why: the model whose window is used.")] = "",
    as_json: AsJson = False,
) -> None:
    """Show all settings and where each comes from, or change one.

    The first of these that sets a key wins:

    - an environment variable: budget.high is CLEW_BUDGET_HIGH
    - the project's clew.toml: may set budget and models, and make secrets stricter
    - your config.toml: may set everything
    - the default
    """
    if context.invoked_subcommand is not None:
        return
    holds = configured()
    if why:
        _explain(holds, model, as_json)
        return
    if as_json:
        rows = {key: {"value": holds.value(key), "from": source} for key, source in holds.sources.items()}
        told = json.dumps(rows, indent=2, default=str, ensure_ascii=False)
        typer.echo(rawjson.visible(told.encode("utf-8", "replace")))
        return
    _print(holds)


def _print(holds: "Config") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from clew.config import read_key

    table = Table.grid("", "", "", padding=(0, 2, 0, 0))
    table.columns[1].overflow = "fold"
    group: tuple[str, ...] = ()
    files = {}
    for name, source in holds.sources.items():
        key = read_key(name)
        around = key[:2] if key[0] == "models" else key[:-1]
        short = ".".join(key[len(around) :])
        if around != group:
            table.add_row()
            table.add_row(Text(f"[{name.removesuffix(f'.{short}')}]", "bold"))
            group = around
        word, file, path = source.partition(" file ")
        if file:
            files[f"{word} file"] = path
        told = Text(f"{word} file" if file else source.removeprefix("environment "), "dim" * (source == "default"))
        table.add_row(short, Text(_shown(holds, name)), told)
    console = Console(highlight=False)
    console.print(table)
    if files:
        console.print()
    for word, path in files.items():
        console.print(f"{word}: {path}", markup=False, soft_wrap=True)


def _explain(holds: "Config", model: str, as_json: bool) -> None:
    """When a history is compacted: the rules in their order, what sets them, and the tokens that follow."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from clew.engine.due import RULES
    from clew.tokens.target import Target

    model = model or holds.agent.model or ""
    target = Target.of(holds.budget_for(holds.model(model)))
    counts = {"limit": target.limit.tokens, "compacted above": target.threshold, "down to": target.goal.tokens}
    if as_json:
        rules = [{**rule._asdict(), "settings": {key: holds.value(key) for key in rule.settings}} for rule in RULES]
        typer.echo(json.dumps({"model": model, "window": target.window, **counts, "rules": rules}, indent=2))
        return
    console, table = Console(highlight=False), Table.grid(padding=(0, 2, 0, 0))
    console.print("Before each request, the first rule that applies decides whether its history is compacted:\n")
    for number, rule in enumerate(RULES, 1):
        table.add_row(f"{number:>2}", f"{rule.when}: [bold]{rule.then}[/]")
        for key in rule.settings:
            table.add_row(
                "", Text(f"  {key} = {_shown(holds, key) or 'not set'} ({holds.sources[key].partition(' ')[0]})", "dim")
            )
    console.print(table)
    named = model or "a model that nobody named"
    console.print(f"\nFor {named}, window {target.window:,} tokens, without system prompt and tools:", end=" ")
    console.print(", ".join(f"{name} {tokens:,}" for name, tokens in counts.items()))


def _shown(holds: "Config", name: str) -> str:
    """A value for people."""
    from clew.config import read_key, setting_of

    value, setting = holds.value(name), setting_of(read_key(name))
    match value:
        case None | ():
            return setting.otherwise if setting else ""
        case Path():
            return _places().shown(value)
        case tuple():
            return "\n".join(value)
        case int() if value >= 10_000:
            return f"{value:_}"  # as TOML may have it
        case _:
            return _plain(value)


def _plain(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


@config.command("path", epilog="Example: clew config path")
def show_paths(as_json: AsJson = False) -> None:
    """List where clew looks for configuration files, and which ones it reads."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from clew.config import is_file

    rows: list[tuple[str, str, str]] = []
    places = _places()
    used = places.user_file()
    for file in places.user_files():
        there = "read" if file == used else "not read: another file comes first"
        rows.append(("user", places.shown(file), there if is_file(file) else "not found"))
    project = places.project_file()
    if project is None:
        rows.append(("project", "clew.toml", "not found here or in a folder above"))
    else:
        there = "read" if places.trusted(project) else "not read: it belongs to another user"
        rows.append(("project", places.shown(project), there))
    if as_json:
        echo_json([dict(zip(("kind", "path", "state"), row, strict=True)) for row in rows])
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    for kind, path, state in rows:
        table.add_row(kind, Text(path), state)
    Console(highlight=False).print(table)


@config.command("get", epilog="Example: clew config get store")
def get_one(key: KeyName) -> None:
    """Print one value; nothing if it is not set."""
    from clew.config import nearest

    try:
        typer.echo(_plain(configured().value(key)))
    except KeyError:
        raise BadRequest(f"{key} is not a setting; {nearest(key)}") from None


@config.command("set", epilog="Example: clew config set models.gpt-5.window 400000 --project")
def set_one(
    key: KeyName,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="The value; separate a list with commas.")],
    project: InProject = False,
) -> None:
    """Set a value in your file or the project's; the rest of the file is unchanged."""
    path, holds = written(key, value, project)
    typer.echo(f"{_full(key)} is set in {path}")
    if not holds.sources[_full(key)].endswith(path):
        typer.echo(f"but {holds.sources[_full(key)]} takes precedence: {_plain(holds.value(_full(key)))}")


@config.command("unset", epilog="Example: clew config unset budget.high")
def unset_one(key: KeyName, project: InProject = False) -> None:
    """Remove a value from your file or the project's; what holds then is printed."""
    path, holds = written(key, None, project)
    now = holds.sources.get(_full(key))
    held = f"; now {_plain(holds.value(_full(key))) or 'not set'} ({now})" if now else ""
    typer.echo(f"{_full(key)} is not set in {path}{held}")


def _full(key: str) -> str:
    from clew.config import read_key, write_key

    return write_key(read_key(key))


def written(key: str, value: str | None, project: bool) -> tuple[str, "Config"]:
    """Set or remove a key; the file, as people read its name, and what holds then."""
    from clew.config import edited
    from clew.screens import save

    places = _places()
    path, text, holds = edited(places, key, value, project=project)
    if value is not None or path.exists():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        save(path, text.encode())
    return places.shown(path), holds


def _places() -> "Places":

    return here()
