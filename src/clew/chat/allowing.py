"""Commands that the user allowed for good in a folder: one as it is, or all that begin alike."""

import json
import logging
import re
from pathlib import Path
from typing import NamedTuple

from clew.screens import save

SYNTAX = re.compile(r"[;&|<>$`(){}\\\n*?!#'\"~=]|\[")  # what makes of one command another, or several
# Commands whose arguments are commands, code or what is to be deleted: one of them says nothing of the next.
WILD = frozenset(
    "bash sh zsh fish dash env sudo doas su exec eval xargs find rm mv cp dd ssh python python3 node deno perl ruby "
    "php awk sed npx uvx pipx nohup nice time timeout tee curl wget chmod chown kill".split()
)
# Commands whose first argument says what they do.
SEVERAL = frozenset("git docker podman npm pnpm yarn uv pip cargo go kubectl make systemctl apt brew".split())
PLAIN_WORD = re.compile("[a-z][a-z0-9-]*")


class CommandRule(NamedTuple):
    """A command as it is, or how commands begin that are allowed with whatever follows."""

    text: str
    begins: bool = False

    def __str__(self) -> str:
        return f"{self.text} …" if self.begins else self.text


def alike(command: str) -> CommandRule | None:
    """The rule for commands like this one; None where there is no safe one."""
    first, *rest = command.split() or [""]
    if not first or first in WILD or "/" in first or SYNTAX.search(command):
        return None
    if first in SEVERAL:
        return CommandRule(f"{first} {rest[0]}", True) if rest and PLAIN_WORD.fullmatch(rest[0]) else None
    return CommandRule(first, True)


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
