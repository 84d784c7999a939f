"""Tools for a small agent: reading, searching and changing the files of a folder, and running commands there.

Nothing here knows a model. What tools give is text from elsewhere, unchanged: `shown` makes it fit for a terminal.
"""

from collections.abc import Callable
from pathlib import Path

from clew.agent.tools.calling import AskUser, PermissionRule, Permissions, Toolbox
from clew.agent.tools.editing import edit_file, write_file
from clew.agent.tools.listing import list_files
from clew.agent.tools.reading import read_file
from clew.agent.tools.root import Root
from clew.agent.tools.running import run
from clew.agent.tools.searching import installed, search
from clew.agent.tools.terminal import shown
from clew.agent.tools.tool import Arguments, Permission, Plan, Tool
from clew.wire.formats.tools import Outcome

__all__ = [
    "RESULT_CHARACTERS",
    "Arguments",
    "AskUser",
    "Outcome",
    "Permission",
    "PermissionRule",
    "Permissions",
    "Plan",
    "Tool",
    "Toolbox",
    "shown",
    "tools",
]

RESULT_CHARACTERS = 30_000  # characters of a result


def tools(
    folder: Path,
    *,
    anywhere: bool = False,
    size: int = RESULT_CHARACTERS,
    watch: Callable[[str], None] | None = None,
) -> list[Tool]:
    """The tools for a folder; with `anywhere`, paths may lead out of it. `watch` hears commands while they run."""
    root = Root(folder, anywhere)
    return [
        read_file(root, size),
        list_files(root, size),
        search(root, size, installed()),
        write_file(root, size),
        edit_file(root, size),
        run(root, size, watch),
    ]
