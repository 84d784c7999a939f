"""What a request says of its model's window, in headers or beside the messages: the rows of `stated.toml`."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Any, NamedTuple

MOST_STATED = 100_000_000  # tokens: whoever says more makes a joke
_BETWEEN = "; "  # an upstream and what headers say


class StatedWindow(NamedTuple):
    """One way to say it."""

    models: tuple[str, ...]
    source: str
    example: str
    header: str = ""
    body: str = ""
    words: str = ""
    window: int = 0

    def read(self, value: Any) -> int:
        """The window that a value states; 0 where it states none."""
        if self.words:
            parts = value if isinstance(value, list | tuple) else str(value).split(",")
            return self.window if any(str(part).strip().startswith(self.words) for part in parts) else 0
        digits = str(value)
        tokens = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 12 else 0
        return tokens if tokens <= MOST_STATED else 0

    def concerns(self, model: str) -> bool:
        """Whether it counts for a model."""
        return any(fnmatchcase(model.lower(), pattern) for pattern in self.models)


def _rows() -> Iterator[StatedWindow]:
    for row in tomllib.loads(files("clew.catalog").joinpath("stated.toml").read_text(encoding="utf-8"))["stated"]:
        yield StatedWindow(**{**row, "models": tuple(row["models"])})


STATED = tuple(_rows())


def served(by: str, headers: Iterable[tuple[str, str]]) -> str:
    """By whom a model is served, and the windows that headers state, as a frame has it; which count, the model says."""
    said = [(name.lower(), value) for name, value in headers]
    stated = {f"{name} {row.read(value)}": None for row in STATED for name, value in said if _states(row, name, value)}
    return _BETWEEN.join([by, *stated])


def windows_in_headers(served: str) -> tuple[str, list[tuple[str, int]]]:
    """The upstream, and the windows that headers state, each with its header: what `served` put together."""
    by, *stated = served.split(_BETWEEN)
    parts = [part.rpartition(" ") for part in stated]
    return by, [(name, int(tokens)) for name, _, tokens in parts if tokens.isascii() and tokens.isdigit()]


def _states(row: StatedWindow, name: str, value: str) -> bool:
    return row.header == name and row.read(value) > 0


def stated_window(model: str, served: str, body: Mapping[str, Any]) -> int:
    """The window that a request states for its model, in headers or beside its messages; 0 where it states none."""
    rows = [row for row in STATED if row.concerns(model)] if _BETWEEN in served or body else []
    said = windows_in_headers(served)[1] if rows else []
    windows = [tokens for row in rows for name, tokens in said if row.header == name]
    windows += [row.read(body[row.body]) for row in rows if row.body in body]
    return max(windows, default=0)
