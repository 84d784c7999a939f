"""Finding lines in files: with ripgrep where it is installed, else with a process of our own.

Either way it is a process, because a regular expression can take for ever, and a process can be ended.
"""

import os
import re
import shutil
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clew.agent.tools.bounds import Ends
from clew.agent.tools.files import encodable
from clew.agent.tools.processes import finish
from clew.agent.tools.root import Root
from clew.agent.tools.tool import Plan, Tool
from clew.agent.tools.walking import SKIPPED, Glob
from clew.core import rawjson
from clew.core.arguments import takes
from clew.errors import ToolError

SEARCH_SECONDS = 60
FOUND_LINE = 300  # characters shown of a line
FLAGS = (
    "--no-config --no-messages --crlf --no-ignore-global --no-ignore-exclude --no-ignore-dot --no-require-git --hidden "
    f"--line-number --no-heading --with-filename --color never --sort path "
    f"--max-columns {FOUND_LINE} --max-columns-preview"
).split()


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for, and where: a folder, or a file in it."""

    pattern: str
    folder: Path
    file: str = ""
    glob: str = ""  # from the folder on
    plain: bool = False  # no regular expression

    @property
    def path(self) -> str:
        """What is searched, from the folder on."""
        return f"./{self.file}" if self.file else "."


def search(root: Root, size: int, ripgrep: str | None = None) -> Tool:
    """A tool that searches files."""

    async def plan(pattern: str, path: str = ".", glob: str = "") -> Plan:
        where = root.find(path)
        if not where.exists():
            raise ToolError(f"{root.name(where)} does not exist")
        if not pattern:
            raise ToolError("the pattern is empty")
        Glob(encodable("glob", glob)).fits("")
        folder, file = (where, "") if where.is_dir() else (where.parent, where.name)
        query = Query(encodable("pattern", pattern), folder, file, glob, not _is_expression(pattern))
        return Plan(f"{pattern} in {root.name(where)} {glob}".rstrip(), lambda: _search(root, query, size, ripgrep))

    return Tool(
        "search",
        "Find lines in files, given a regular expression or plain words. Gives file:line:text. Skips binary files "
        "and what .gitignore names; (?i) at the beginning ignores case.",
        takes(
            "pattern",
            pattern={"type": "string", "description": "A regular expression; what is none is taken as plain text."},
            path={"type": "string", "description": "A file or folder; the root if left out."},
            glob={"type": "string", "description": "Which files, such as *.py or src/**/*.ts, from path on."},
        ),
        "read",
        plan,
    )


def installed() -> str | None:
    """Where ripgrep is, if it is."""
    return shutil.which("rg")


def _is_expression(pattern: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about what may mean something else one day
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


async def _search(root: Root, query: Query, size: int, ripgrep: str | None) -> str:
    """The first program that understands the query answers it: ripgrep knows no lookaround, for one."""
    start = "" if query.folder == root.folder else f"{root.name(query.folder)}/"
    text = ""
    for command, env in _programs(root, query, ripgrep):
        output = Ends(size, tail=0)
        ended = await finish(command, query.folder, SEARCH_SECONDS, output, env)
        lines = output.text().replace("\r\n", "\n").rstrip("\n")
        text = re.sub(r"^\./", lambda _: start, lines, flags=re.MULTILINE)
        if ended.how != "itself":
            return (
                f"{text}\n[it took longer than {SEARCH_SECONDS} seconds: search fewer files, or for something simpler]"
            )
        if ended.code in (0, 1):
            note = "\n[searched as plain text: the pattern is no regular expression]" if query.plain else ""
            return f"{text or '[nothing found]'}{note}"
    raise ToolError(f"the search failed: {text}")


def _programs(root: Root, query: Query, ripgrep: str | None) -> Iterator[tuple[list[str], Mapping[str, str] | None]]:
    if ripgrep:
        yield [ripgrep, *FLAGS, *_ripgrep(query)], None
    # -P: nothing in the folder that is searched may pass for a module of ours.
    home = {"PYTHONPATH": str(Path(__file__).parents[3]), "PYTHONIOENCODING": "utf-8:surrogateescape"}
    asked = rawjson.dumps([query.pattern, query.file, query.glob, query.plain, str(root.folder)]).decode()
    yield [sys.executable, "-P", "-W", "ignore", "-m", "clew.agent.tools.grep", asked], {**os.environ, **home}


def _ripgrep(query: Query) -> Iterator[str]:
    if query.glob:
        yield f"--glob={query.glob}"
    yield from (f"--glob=!**/{name}" for name in SKIPPED)
    if query.plain:
        yield "--fixed-strings"
    yield from (f"--regexp={query.pattern}", "--", query.path)
