"""How a tool call went, told from its result: exit code, error, or the first words that say something."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from clew.clients.voices import passed_on
from clew.core.items import Item

OUTCOME_CHARACTERS = 4_000  # characters at either end in which the outcome is looked for
BRIEF_RESULT = 300  # characters: a shorter result may be about the tool, not from it

ERROR = re.compile(r"(?i)(?:error|exception|failed|failure|fatal|panic|cannot|denied|no such)\b")
_CODE = re.compile(r"(?i)(?:\bexit(?:ed with)?[ _-]?(?:code|status)|\breturn[ _-]?code)\D{0,3}(-?\d{1,5})\b")
_STARTS = re.compile(r"(?i)\W*(?:tool_use_error|\w*error|\w*exception|fatal|failed|failure|panic|cannot|unable)\b")
_ABOUT = re.compile(
    r"(?i)not found|does not exist|doesn't exist|no such|denied|unchanged|rejected|not allowed|too large"
)
_WRAPPING = re.compile(r"(?i)</?\w+>|\W*|=+ .* =+|traceback \(.*|<?/?\"?(?:exit|return)[ _-]?code.*")
_SUMMARY = re.compile(r"\b\d+ (?:passed|failed|errors?)\b|no tests ran")  # how a run of tests ends
_NUMBER = re.compile(r"^\s*\d+(?:→|\t|[.:|]\s)")  # how tools number the lines of a file


def failed(result: Item) -> bool:
    """Whether a result says that its call did not do what it was called for."""
    if is_flagged(result):
        return True
    code = exit_code(result.text)
    if code is not None:
        return code != 0
    said = passed_on(result)
    brief = len(said) <= BRIEF_RESULT and _ABOUT.search(said) is not None
    starts = said[:BRIEF_RESULT].lstrip().startswith("Traceback (") or _STARTS.match(_first(said)) is not None
    return brief or starts


def outcome(result: Item) -> str:
    """One line for how it went: a count of tests, else the error, else the first line that says something."""
    code, text = exit_code(result.text), passed_on(result)
    said = _tested(text) or (_error(text) if failed(result) else "") or _first(text)
    return ": ".join(filter(None, ("" if code is None else f"exit {code}", said)))


def cause(result: Item) -> str:
    """The line that names the error, if there was one."""
    return _error(passed_on(result)) if failed(result) else ""


def exit_code(text: str) -> int | None:
    """The exit code that a result names in its first or last lines."""
    found = _CODE.search(text[:BRIEF_RESULT]) or _CODE.search(text[-BRIEF_RESULT // 3 :])
    return int(found[1]) if found else None


def _first(text: str) -> str:
    return next(_telling(text[:OUTCOME_CHARACTERS]), "")


def _tested(text: str) -> str:
    return next((s.strip("= ") for s in text[-BRIEF_RESULT:].splitlines() if _SUMMARY.search(s)), "")


def _error(text: str) -> str:
    """The line that names the error; after a traceback it is the last such line, else the first."""
    if "Traceback (most recent call last)" in text:
        return next((s for s in reversed(list(_telling(text[-OUTCOME_CHARACTERS:]))) if ERROR.search(s)), "")
    return next(
        (
            s
            for part in (text[:OUTCOME_CHARACTERS], text[-OUTCOME_CHARACTERS:])
            for s in _telling(part)
            if ERROR.search(s)
        ),
        "",
    )


def _telling(text: str) -> Iterator[str]:
    """The lines that say something, without what tools wrap around them."""
    for line in text.splitlines():
        line = _NUMBER.sub("", line, count=1).strip()
        if not _WRAPPING.fullmatch(line):
            yield line


def is_flagged(result: Item) -> bool:
    """Whether the provider's block itself says so: Anthropic's, Bedrock's, Gemini's."""
    wire: Mapping[str, Any] = result.wire or {}
    match wire:
        case {"is_error": True} | {"toolResult": {"status": "error"}}:
            return True
        case {"functionResponse": {"response": {"error": error}}}:
            return bool(error)
    return False
