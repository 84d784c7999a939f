"""What mkdocs asks while it builds the site: pages made from the README, the commands and the public names."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from mkdocs.structure.files import File, Files
from typer.main import get_command

import clew
import clew.errors
from clew.cli import app

ROOT = Path(__file__).parents[1]
MOVED = tomllib.loads((ROOT / "scripts" / "moved.toml").read_text(encoding="utf-8"))
OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\((?:\.\./[^)]+|(?!https?:|#|docs/)[^)#]+)\)")  # files that no page shows
ERRORS = "Errors"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that nobody writes by hand."""
    for name, text in (("index.md", front()), ("cli.md", commands()), ("api.md", names())):
        files.append(File.generated(config, name, content=text))
    for name, place in MOVED.items():
        files.append(File.generated(config, f"{name}.html", content=forward(place.replace(".md", ".html"))))
    return files


def forward(place: str) -> str:
    """A page at an old address, which leads to the new one."""
    return f'<!doctype html><meta http-equiv="refresh" content="0; url={place}"><a href="{place}">It is here now.</a>'


def on_page_markdown(markdown: str, page: Any, **given: Any) -> str:
    """Files of the checkout are named, not linked: the site has pages only."""
    return re.sub(r"\[([^\]]+)\]\(\.\./(?!docs/)[^)]+\)", r"\1", markdown)


def front() -> str:
    """The README, with links as they are from within the site."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return OUTSIDE.sub(r"\1", text).replace("](docs/", "](")


def commands() -> str:
    """Every command, as its --help has it."""
    group: Any = get_command(app)
    context = typer.Context(group, info_name="clew")
    told = ["# Commands", "", "All that `clew COMMAND --help` says, on one page.", ""]
    for name in group.list_commands(context):
        told += _command(group.get_command(context, name), typer.Context, context, f"clew {name}")
    return "\n".join(told)


def _command(command: Any, kind: Any, parent: Any, path: str, level: str = "##") -> Iterator[str]:
    context = kind(command, info_name=path.rpartition(" ")[2], parent=parent)
    yield f"{level} {path}\n"
    yield _text(command.help or "") + "\n"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```console\n$ {path} {usage}\n```\n"
    rows = [row for param in command.get_params(context) if (row := _row(param))]
    if rows:
        yield "| argument or option | |\n|---|---|"
        yield from rows
        yield ""
    if epilog := command.epilog:
        yield _text(epilog) + "\n"
    for name in getattr(command, "commands", {}):
        yield from _command(command.commands[name], kind, context, f"{path} {name}", level + "#")


def _row(param: Any) -> str:
    help = getattr(param, "help", None)
    if not help or param.name == "help":
        return ""
    names = (
        ", ".join((*param.opts, *param.secondary_opts))
        if param.param_type_name == "option"
        else param.metavar or param.name
    )
    value = f" {param.metavar}" if param.param_type_name == "option" and param.metavar else ""
    return f"| `{names}{value}` | {_text(help)} |".replace("\n", " ")


def _text(help: str) -> str:
    """Help for a page: paragraphs as they are, and nothing that Markdown would take for HTML."""
    return help.replace("<", "&lt;").replace("|", "\\|").strip()


def names() -> str:
    """Every public name, with what its docstring says."""
    errors = [
        name for name, kind in vars(clew.errors).items() if isinstance(kind, type) and issubclass(kind, Exception)
    ]
    told = ["# Python reference", "", "All names that `import clew` gives, from their docstrings.", ""]
    told += [f"::: clew.{name}\n" for name in clew.__all__]
    told += [f"## {ERRORS}\n", *(f"::: clew.errors.{name}\n" for name in sorted(errors))]
    return "\n".join(told)
