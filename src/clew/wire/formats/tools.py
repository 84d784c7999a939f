"""A tool as every format may declare it, which of them a model may call, and what readers and writers share."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from clew.wire.formats.plain import Block, fresh

NAME_LENGTH = 64  # characters of a tool's name that every provider takes


class Outcome(NamedTuple):
    """What a model is told of its call."""

    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """A tool that the host runs."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] | None = None
    strict: bool = False

    @property
    def about(self) -> Block:
        """Its name, and its description where there is one: some providers refuse an empty one."""
        return {"name": self.name} | ({"description": self.description} if self.description else {})

    @property
    def takes(self) -> Block:
        """The schema of its arguments, whole enough for every provider."""
        return {"type": "object", "properties": {}, **fresh(self.schema or {})}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which tools the model may or must call."""

    mode: str = ""  # auto, any, none; empty: not said
    only: str = ""  # the tool it must call
    alone: bool = False  # no two calls at once


def plain_name(name: str) -> str:
    """A tool's name in letters that every provider takes."""
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    return plain[:NAME_LENGTH] if re.match(r"[a-zA-Z_]", plain) else f"_{plain}"[:NAME_LENGTH]


def object_at(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under a key; an empty one where there is none."""
    value = body.get(key)
    return value if isinstance(value, Mapping) else {}
