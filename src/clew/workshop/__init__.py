"""Tools for a small agent: reading, searching and changing the files of a folder, and running commands there.

Nothing here knows a model. What tools give is text from elsewhere, unchanged: `shown` makes it fit for a terminal.
"""

from pathlib import Path

from clew.workshop.calling import Ask, Outcome, Permissions, Rule, Workshop
from clew.workshop.editing import edit_file, write_file
from clew.workshop.listing import list_files
from clew.workshop.reading import read_file
from clew.workshop.root import Root
from clew.workshop.running import run
from clew.workshop.searching import installed, search
from clew.workshop.terminal import shown
from clew.workshop.tool import Arguments, Permission, Plan, Tool

__all__ = [
    "SIZE",
    "Arguments",
    "Ask",
    "Outcome",
    "Permission",
    "Permissions",
    "Plan",
    "Rule",
    "Tool",
    "Workshop",
    "shown",
    "tools",
]

SIZE = 30_000  # characters of a result


def tools(folder: Path, *, anywhere: bool = False, size: int = SIZE) -> list[Tool]:
    """The tools for a folder; with `anywhere`, paths may lead out of it."""
    root = Root(folder, anywhere)
    return [
        read_file(root, size),
        list_files(root, size),
        search(root, size, installed()),
        write_file(root, size),
        edit_file(root, size),
        run(root, size),
    ]
