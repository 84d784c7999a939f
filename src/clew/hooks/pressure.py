"""How full a client's window is when a tool answers, by what its session file says of the last call."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from clew import catalog
from clew.core.limits import Budget

TAIL = 1 << 19  # bytes at the end of a session file, in which the last report stands
LEAST_LARGE = 12_000  # characters: with fewer, a preview would save little
RESULT_TOKEN = 4  # characters in a token, more or less
LARGE_SHARE = 3  # a result is large from this part of the room on
# What a report is called, and what of it was in the window: Claude Code and Qwen Code, Codex, Gemini CLI.
_REPORTS = {
    "usage": ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"),
    "last_token_usage": ("total_tokens",),
    "tokens": ("total",),
}
_MODEL, _WINDOW = "model", "model_context_window"
# Under these stands what was said, or what a tool gave back: it may have the same names, and mean another window.
_SAID = frozenset(
    "content parts toolUseResult toolCalls tool_response structuredContent output result input arguments args".split()
)
_OBJECT = re.compile(r"^([ \t]*)\{", re.MULTILINE)  # a line of JSONL, or an element where one JSON is the whole file


class Pressure(NamedTuple):
    """A window, and how much of it is taken."""

    window: int
    used: int

    def is_too_much(self, text: str) -> bool:
        """Whether a result takes much of the room, and with it the client would soon compact."""
        budget = Budget(window=self.window)
        room, tokens = self.window - budget.kept_free(), len(text) // RESULT_TOKEN
        return tokens * LARGE_SHARE > room and self.used + tokens > budget.upper * room


def too_large(event: Mapping[str, Any]) -> list[str]:
    """The texts of a result for which there is no room."""
    texts = [text for text in _texts(event.get("tool_response")) if len(text) > LEAST_LARGE]
    now = pressure(event) if texts else None
    return [text for text in texts if now and now.is_too_much(text)]


def _texts(value: Any) -> list[str]:
    match value:
        case str():
            return [value]
        case dict():
            return [text for part in value.values() for text in _texts(part)]
        case list():
            return [text for part in value for text in _texts(part)]
    return []


def pressure(event: Mapping[str, Any]) -> Pressure | None:
    """That of the session of an event; None where nobody knows, and a result stays as it is."""
    try:
        with Path(str(event.get("transcript_path") or "")).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL))
            said = file.read(TAIL).decode("utf-8", "replace")
    except OSError:
        return None
    told = dict[str, Any]()
    for one in _objects(said):
        told.update(_reports(one))
    used = max((_used(told[name], counts) for name, counts in _REPORTS.items() if name in told), default=0)
    if not used or not (_WINDOW in told or _MODEL in told):
        return None
    window = told.get(_WINDOW) or catalog.window(told[_MODEL])
    return Pressure(window if used <= window else 5 * window, used)  # of Claude, some have a million


def _objects(said: str) -> Iterator[Any]:
    """What stands in the end of a file, one after the other: of what is cut off, nothing."""
    found = list(_OBJECT.finditer(said))
    outer = min((len(match[1]) for match in found if match.start()), default=0)
    decoder, end = json.JSONDecoder(), 0
    for match in found:
        if match.start() < end or (match.start() and len(match[1]) != outer):
            continue
        try:
            one, end = decoder.raw_decode(said, match.end() - 1)
        except (ValueError, RecursionError):
            continue
        yield one


def _reports(value: Any) -> Iterator[tuple[str, Any]]:
    """What a client says of its window, by name."""
    if isinstance(value, list):
        for part in value:
            yield from _reports(part)
    for name, part in value.items() if isinstance(value, dict) else ():
        match name, part:
            case (("usage" | "last_token_usage" | "tokens"), dict()):
                yield name, part
            case "model", str():
                yield name, part
            case "model_context_window", int() if type(part) is int and part > 0:
                yield name, part
            case _:
                if name not in _SAID:
                    yield from _reports(part)


def _used(report: Mapping[str, Any], counts: tuple[str, ...]) -> int:
    return sum(n for count in counts if isinstance(n := report.get(count), int))
