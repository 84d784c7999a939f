"""LiteLLM: `trim_messages`, and `compress`, which puts stubs where a message has little to do with the last one."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

MODEL = "gpt-4o"
RATIO = 0.75  # of the window, its default


class Trimmed:
    """The newest messages that fit."""

    def __init__(self, window: int) -> None:
        self._trim, self._most = import_module("litellm.utils").trim_messages, int(window * RATIO)
        _ready()

    def fit(self, messages: Sequence[Any]) -> list[Any]:
        given = [{**m, "content": m.get("content") or ""} for m in messages]
        found: list[Any] = self._trim(given, model=MODEL, max_tokens=self._most)
        return found


class Stubbing:
    """Messages ranked by BM25 against the last user message; it has a tool that brings them back."""

    def __init__(self, window: int) -> None:
        self._compress, self._window = import_module("litellm").compress, window
        _ready()

    def fit(self, messages: Sequence[Any]) -> list[Any]:
        given = [{**m, "content": m.get("content") or ""} for m in messages]
        found: list[Any] = self._compress(given, model=MODEL, compression_trigger=self._window)["messages"]
        return found


def _ready() -> None:
    """Loads its vocabulary, once for the process: that is a second of CPU, and no work on a history."""
    import_module("litellm").token_counter(model=MODEL, text="ready")


WAYS = {"trim": Trimmed, "compress": Stubbing}
