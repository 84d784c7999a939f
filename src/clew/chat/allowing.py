"""The commands that the user allowed for good in a folder."""

import json
import logging
from pathlib import Path

from clew.errors import BadRequest
from clew.screens import save

COMMAND = "command"  # the kind of a rule; rules of other kinds, which earlier versions had, hold no more


class AllowedCommands:
    """The commands of one folder, in a file of the user: a project cannot bring its own."""

    def __init__(self, file: Path, folder: Path) -> None:
        self._file = file
        self._folder = str(folder)

    def all(self) -> list[str]:
        """What is allowed here; nothing where the file cannot be read, so that everything is asked about."""
        try:
            return self._read().get(self._folder, [])
        except BadRequest as error:
            logging.getLogger("clew").warning("%s", error)
            return []

    def add(self, command: str) -> None:
        """Allow it from now on. Raises `BadRequest` where the file cannot be read: what is in it is not lost."""
        rules = self._read()
        rules[self._folder] = sorted({*rules.get(self._folder, []), command})
        self._write(rules)

    def remove(self, command: str) -> None:
        """Allow it no longer. Raises `BadRequest`."""
        rules = self._read()
        rules[self._folder] = [kept for kept in rules.get(self._folder, []) if kept != command]
        self._write(rules)

    def _write(self, rules: dict[str, list[str]]) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        kept = {folder: [(text, COMMAND) for text in texts] for folder, texts in rules.items() if texts}
        save(self._file, json.dumps(kept, indent=1).encode())

    def _read(self) -> dict[str, list[str]]:
        try:
            read = json.loads(self._file.read_bytes())
            return {folder: [str(text) for text, kind in rules if kind == COMMAND] for folder, rules in read.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, AttributeError) as error:
            remedy = "everything is asked about; mend the file or delete it"
            raise BadRequest(f"{self._file}: cannot be read ({error}): {remedy}") from error
