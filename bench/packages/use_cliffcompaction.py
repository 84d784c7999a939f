"""cliffcompaction, as its proxy applies it to a request: one mechanical summary, shorter ones where it is too long."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any


class Cliff:
    """Above the window, all but the newest three turns become one summary."""

    def __init__(self, window: int) -> None:
        config = import_module("cliffcompaction.config").Config(threshold_tokens=window)
        self._engine = import_module("cliffcompaction.engine").Engine(config)
        self._dialect = import_module("cliffcompaction.dialects.openai_chat").DIALECT

    def fit(self, messages: Sequence[Any]) -> list[Any]:
        context = self._engine.prepare({"model": "gpt-4o", "messages": list(messages)}, self._dialect)
        found: list[Any] = context.outgoing_body()["messages"]
        return found


WAYS = {"cliff": Cliff}
