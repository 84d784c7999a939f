"""What the user allowed for good in a folder: commands, tools of MCP servers, and the servers of the project's file."""

import json
import logging
import re
from pathlib import Path
from typing import Literal, NamedTuple, cast, get_args

from clew.errors import BadRequest
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


DIGEST_SHOWN = 8  # characters
RuleKind = Literal["command", "prefix", "tool", "servers", "no servers"]


class AllowedRule(NamedTuple):
    """Something that the user allowed in a folder, or refused, for good."""

    text: str  # a command, how commands begin, a tool with its server, or a digest of a file
    kind: RuleKind = "command"

    def __str__(self) -> str:
        match self.kind:
            case "prefix":
                return f"{self.text} …"
            case "servers":
                return f"the servers of .mcp.json, as it was with the digest {self.text[:DIGEST_SHOWN]}"
            case "no servers":
                return f"none of the servers of .mcp.json, as it was with the digest {self.text[:DIGEST_SHOWN]}"
        return self.text


def alike(command: str) -> AllowedRule | None:
    """The rule for commands like this one; None where there is no safe one."""
    first, second, *_ = [*command.split(), "", ""]
    if SYNTAX.search(command):
        return None
    if second and second in SEVERAL.get(first, ()):
        return AllowedRule(f"{first} {second}", "prefix")
    return AllowedRule(first, "prefix") if first in HARMLESS else None


class AllowedRules:
    """The rules of one folder, in a file of the user: a project cannot bring its own."""

    def __init__(self, file: Path, folder: Path) -> None:
        self._file = file
        self._folder = str(folder)

    def all(self) -> list[AllowedRule]:
        """What is allowed or refused here; nothing where the file cannot be read, so that everything is asked about."""
        try:
            return self._read().get(self._folder, [])
        except BadRequest as error:
            logging.getLogger("clew").warning("%s", error)
            return []

    def covers(self, command: str) -> bool:
        """Whether a command need not be asked about."""
        words = "" if SYNTAX.search(command) else " ".join(command.split()) + " "
        return any(
            words.startswith(f"{rule.text} ") if rule.kind == "prefix" else rule == AllowedRule(command)
            for rule in self.all()
        )

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
            return {folder: [_rule(text, kind) for text, kind in rules] for folder, rules in read.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            remedy = "everything is asked about; mend the file or delete it"
            raise BadRequest(f"{self._file}: cannot be read ({error}): {remedy}") from error


def _rule(text: object, kind: object) -> AllowedRule:
    if not isinstance(text, str) or kind not in get_args(RuleKind):
        raise ValueError(f"no rule: {text!r}, {kind!r}")
    return AllowedRule(text, cast(RuleKind, kind))
