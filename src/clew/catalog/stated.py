"""What a request says of its model's window, in headers or beside the messages: the rows of `stated.toml`."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Any, NamedTuple

MOST_STATED = 100_000_000  # tokens: whoever says more makes a joke
_IN_SERVED = re.compile(r", window (\d+)$")


class StatedWindow(NamedTuple):
    """One way to say it."""

    models: tuple[str, ...]
    source: str
    example: str
    header: str = ""
    body: str = ""
    says: str = ""
    window: int = 0

    def read(self, value: Any) -> int:
        """The window that a value states; 0 where it states none."""
        if self.says:
            parts = value if isinstance(value, list | tuple) else str(value).split(",")
            return self.window if any(str(part).strip().startswith(self.says) for part in parts) else 0
        digits = str(value)
        tokens = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 12 else 0
        return tokens if tokens <= MOST_STATED else 0


def _rows() -> Iterator[StatedWindow]:
    for row in tomllib.loads(files("clew.catalog").joinpath("stated.toml").read_text(encoding="utf-8"))["stated"]:
        yield StatedWindow(**{**row, "models": tuple(row["models"])})


STATED = tuple(_rows())


HEADERS = frozenset(row.header for row in STATED if row.header)


def by_headers(model: str, headers: Iterable[tuple[str, str]]) -> int:
    """The window that headers state for a model; 0 where they state none. One may stand there more than once."""
    said = [(name.lower(), value) for name, value in headers]
    return _stated(model, [(row, value) for row in STATED for name, value in said if row.header == name])


def by_body(model: str, body: Mapping[str, Any]) -> int:
    """The same of what stands in a request beside its messages."""
    return _stated(model, [(row, body.get(row.body)) for row in STATED if row.body])


def _stated(model: str, values: list[tuple[StatedWindow, Any]]) -> int:
    found = (
        row.read(value)
        for row, value in values
        if value is not None and any(fnmatchcase(model.lower(), pattern) for pattern in row.models)
    )
    return max(found, default=0)


def served(by: str, window: int = 0) -> str:
    """By whom a model is served, and as what: as a frame has it."""
    return f"{by}, window {window}" if window else by


def window_served(served: str) -> int:
    """The window in it."""
    found = _IN_SERVED.search(served)
    return int(found[1]) if found else 0
