"""What the user allowed for good in a folder: commands, one by one or by how they begin."""

import json
import logging
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from clew.chat.looking import LOOKING, looking
from clew.errors import BadRequest
from clew.screens import save

RuleKind = Literal["command", "prefix"]


class AllowedRule(NamedTuple):
    """Something that the user allowed in a folder for good."""

    text: str  # a command, or how commands begin
    kind: RuleKind = "command"

    def __str__(self) -> str:
        return f"{self.text} …" if self.kind == "prefix" else self.text


def alike(command: str, folder: Path = Path()) -> AllowedRule | None:
    """The rule for commands like this one; None where there is no safe one, or it would not cover this one."""
    name = looking(command, folder)
    return AllowedRule(name, "prefix") if name else None


class AllowedRules:
    """The rules of one folder, in a file of the user: a project cannot bring its own."""

    def __init__(self, file: Path, folder: Path) -> None:
        self._file = file
        self._place = folder
        self._folder = str(folder)

    def all(self) -> list[AllowedRule]:
        """What is allowed here; nothing where the file cannot be read, so that everything is asked about."""
        try:
            rules = self._read().get(self._folder, [])
        except BadRequest as error:
            logging.getLogger("clew").warning("%s", error)
            return []
        # Earlier versions had rules for programs that can be told to do anything: they hold no more.
        return [rule for rule in rules if rule.kind != "prefix" or rule.text in LOOKING]

    def alike(self, command: str) -> AllowedRule | None:
        """The rule for commands like this one in this folder; None where there is no safe one."""
        return alike(command, self._place)

    def covers(self, command: str) -> bool:
        """Whether a command need not be asked about."""
        rules = self.all()
        return AllowedRule(command) in rules or self.alike(command) in rules

    def add(self, rule: AllowedRule) -> None:
        """Have a rule from now on. Raises `BadRequest` where the file cannot be read: what is in it is not lost."""
        rules = self._read()
        rules[self._folder] = sorted({*rules.get(self._folder, []), rule})
        self._write(rules)

    def remove(self, rule: AllowedRule) -> None:
        """Have a rule no longer. Raises `BadRequest`."""
        rules = self._read()
        rules[self._folder] = [kept for kept in rules.get(self._folder, []) if kept != rule]
        self._write({folder: kept for folder, kept in rules.items() if kept})

    def _write(self, rules: dict[str, list[AllowedRule]]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        save(self._file, json.dumps(rules, indent=1).encode())

    def _read(self) -> dict[str, list[AllowedRule]]:
        try:
            read = json.loads(self._file.read_bytes())
            return {
                # Earlier versions had rules for MCP servers, too: they hold no more.
                folder: [AllowedRule(str(text), kind) for text, kind in rules if kind in get_args(RuleKind)]
                for folder, rules in read.items()
            }
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            remedy = "everything is asked about; mend the file or delete it"
            raise BadRequest(f"{self._file}: cannot be read ({error}): {remedy}") from error
