"""How full a client's window is when a tool answers, by what its session file says of the last call."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from clew import catalog
from clew.core.limits import Budget

TAIL = 1 << 19  # bytes at the end of a session file, in which the last report stands
LEAST_LARGE = 12_000  # characters: with fewer, a preview would save little
RESULT_TOKEN = 4  # characters in a token, more or less
LARGE_SHARE = 3  # a result is large from this part of the room on
_MODEL = re.compile(r'"model"\s*:\s*"([^"\\]{1,200})"')
_WINDOW = re.compile(r'"model_context_window"\s*:\s*(\d{1,9})')
# What a report is called, and what of it was in the window: Claude Code and Qwen Code, Codex, Gemini CLI.
_REPORTS = {
    "usage": ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"),
    "last_token_usage": ("total_tokens",),
    "tokens": ("total",),
}


class Pressure(NamedTuple):
    """A window, and how much of it is taken."""

    window: int
    used: int

    def is_too_much(self, text: str) -> bool:
        """Whether a result takes much of the room, and with it the client would soon compact."""
        budget = Budget(window=self.window)
        room, tokens = self.window - budget.kept_free(), len(text) // RESULT_TOKEN
        return tokens * LARGE_SHARE > room and self.used + tokens > budget.high * room


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
    used = max((_used(said, *report) for report in _REPORTS.items()), default=0)
    models, windows = _MODEL.findall(said), _WINDOW.findall(said)
    if not used or not (models or windows):
        return None
    window = int(windows[-1]) if windows else catalog.window(models[-1])
    if not window:
        return None
    return Pressure(window if used <= window else 5 * window, used)  # of Claude, some have a million


def _used(said: str, name: str, counts: tuple[str, ...]) -> int:
    at = said.rfind(f'"{name}"')
    begin = said.find("{", at) if at >= 0 else -1
    if begin < 0:
        return 0
    try:
        report, _ = json.JSONDecoder().raw_decode(said, begin)
    except (ValueError, RecursionError):
        return 0
    return sum(n for count in counts if isinstance(n := report.get(count), int))
