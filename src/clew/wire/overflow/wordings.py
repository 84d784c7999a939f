"""How providers say that a request does not fit: the rows of `wordings.toml`."""

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Literal, NamedTuple

What = Literal["tokens", "bytes", "images", "messages"]
_NUMBER = r"\d[\d,_]*(?:\.\d+)?(?:[km]\b)?"
_TABLE: dict[str, Any] = tomllib.loads(files("clew.wire.overflow").joinpath("wordings.toml").read_text("utf-8"))


class Wording(NamedTuple):
    """A provider, what it says, an example of it, and what there was too much of."""

    provider: str
    pattern: re.Pattern[str]
    example: str
    what: What = "tokens"


def _wording(row: Mapping[str, Any]) -> Wording:
    pattern = row["pattern"]
    for name, part in _TABLE["parts"].items():
        pattern = pattern.replace(f"<{name}>", part)
    for name in ("limit", "asked", "more", "answer"):
        pattern = pattern.replace(f"<{name}>", f"(?P<{name}>{_NUMBER})")
    return Wording(**{**row, "pattern": re.compile(pattern.replace("<n>", _NUMBER), re.IGNORECASE)})


PLAIN, FIRM, LOOSE = (tuple(map(_wording, _TABLE[kind])) for kind in ("plain", "firm", "loose"))
