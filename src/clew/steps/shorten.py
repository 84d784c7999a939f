"""JSON made shorter inside: what comes out still parses."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from clew.core import rawjson
from clew.errors import BadRequest

DEPTH = 6  # what lies deeper is one mark
SHORTENINGS = ((60, 8), (30, 4), (15, 3), (8, 2))  # characters of a string and entries of a list, until it fits


def parsed(text: str) -> Any:
    """The value of a JSON text; None where it is none."""
    try:
        return rawjson.loads(text) if text else None
    except BadRequest:
        return None


def arguments(text: str, most: int) -> str:
    """A call's arguments in at most `most` characters, valid JSON still; empty if they never were."""
    value = parsed(text)
    if value is None:
        return ""
    if len(text) <= most and "\n" not in text:
        return text
    for longest, entries in SHORTENINGS:
        short = json.dumps(shortened(value, partial(_cut, longest), entries), ensure_ascii=False)
        if len(short) <= most:
            return short
    return '{"…": "…"}'


def shortened(value: Any, text: Callable[[str], str], entries: int, note: str = "", depth: int = DEPTH) -> Any:
    """The value with its strings passed through `text`, no more than `entries` in a list; `note` marks the cut."""
    if isinstance(value, str):
        return text(value)
    if not isinstance(value, dict | list):
        return value
    if not depth:
        return f"…{note}"
    more = len(value) - entries
    if isinstance(value, list):
        kept = [shortened(v, text, entries, note, depth - 1) for v in value[:entries]]
        return [*kept, f"… {more:,} more{note}"] if more > 0 else kept
    some = {k: shortened(value[k], text, entries, note, depth - 1) for k in list(value)[:entries]}
    return some | {"…": f"{more:,} more{note}"} if more > 0 else some


def _cut(most: int, text: str) -> str:
    if len(text) <= most:
        return text
    if "/" in text and not any(map(str.isspace, text)):
        return "…" + text[1 - most :]  # the end of a path says which file it is
    return text[: most - 1] + "…"
