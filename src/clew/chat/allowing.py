"""Commands that the user allowed for good in a folder: one as it is, or all that begin alike."""

import json
import logging
import re
from pathlib import Path
from typing import NamedTuple

from clew.screens import save

SYNTAX = re.compile(r"[;&|<>$`(){}\\\n*?!#'\"~=]|\[")  # what makes of one command another, or several
# A list of what is known to be harmless, not of what is not: that one never ends. These only read, or check, whatever
# follows; of `rg` and `sort` this is not true, which can run and write.
HARMLESS = frozenset("ls cat head tail wc nl cut grep file stat du df pwd which echo diff pytest ruff mypy tsc".split())
# Commands whose first argument says what they do, with those that only look, check or build: `git fetch` and `go test`
# can be told to run any program.
SEVERAL = {
    "git": frozenset("status diff log show blame add commit".split()),
    "npm": frozenset("test ls outdated audit".split()),
    "cargo": frozenset("build check test clippy fmt tree".split()),
    "make": frozenset("test check build lint format docs".split()),
    "uv": frozenset("sync lock tree".split()),
}


class CommandRule(NamedTuple):
    """A command as it is, or how commands begin that are allowed with whatever follows."""

    text: str
    begins: bool = False

    def __str__(self) -> str:
        return f"{self.text} …" if self.begins else self.text


def alike(command: str) -> CommandRule | None:
    """The rule for commands like this one; None where there is no safe one."""
    first, second, *_ = [*command.split(), "", ""]
    if SYNTAX.search(command):
        return None
    if second and second in SEVERAL.get(first, ()):
        return CommandRule(f"{first} {second}", True)
    return CommandRule(first, True) if first in HARMLESS else None


class AllowedCommands:
    """The rules of one folder, in a file of the user: a project cannot bring its own."""

    def __init__(self, file: Path, folder: Path) -> None:
        self._file = file
        self._folder = str(folder)

    def covers(self, command: str) -> bool:
        """Whether a command need not be asked about."""
        rules = self._all().get(self._folder, [])
        words = "" if SYNTAX.search(command) else " ".join(command.split()) + " "
        return any(words.startswith(f"{r.text} ") if r.begins else command == r.text for r in rules)

    def add(self, rule: CommandRule) -> None:
        """Allow something from now on."""
        rules = self._all()
        rules[self._folder] = sorted({*rules.get(self._folder, []), rule})
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        save(self._file, json.dumps(rules, indent=1).encode())

    def _all(self) -> dict[str, list[CommandRule]]:
        try:
            read = json.loads(self._file.read_bytes())
            return {
                folder: [CommandRule(str(text), begins is True) for text, begins in rules]
                for folder, rules in read.items()
            }
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            warning = "%s: cannot be read (%s): every command is asked about; mend the file or delete it"
            logging.getLogger("clew").warning(warning, self._file, error)
            return {}
