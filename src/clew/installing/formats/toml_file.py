"""TOML."""

import tomllib
from typing import Any

import tomlkit

from clew.config.setting import Key
from clew.config.toml import changed


def read(text: str) -> dict[str, Any]:
    """What the text says."""
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise ValueError(f"is not TOML: {error}") from None


def put(text: str, key: Key, value: Any) -> str:
    """The text with a key set; new ones above the tables."""
    return changed(text, key, value)


def drop(text: str, key: Key) -> str:
    """The text without a key."""
    document = tomlkit.parse(text)
    table: Any = document
    for name in key[:-1]:
        table = table[name]
    del table[key[-1]]
    return tomlkit.dumps(document)
