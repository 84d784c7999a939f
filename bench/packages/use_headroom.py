"""Headroom: content made denser, message by message; it removes no message, whatever the window."""

from collections.abc import Sequence
from importlib import import_module
from typing import Any


class Compressing:
    """`compress` as it comes, without its model for prose: the weights are not in the package."""

    def __init__(self, window: int) -> None:
        self._compress, self._window = import_module("headroom").compress, window

    def fit(self, messages: Sequence[Any]) -> list[Any]:
        given = [dict(m) for m in messages]
        found: list[Any] = self._compress(
            given, model="gpt-4o", model_limit=self._window, kompress_model="disabled"
        ).messages
        return found


WAYS = {"compress": Compressing}
