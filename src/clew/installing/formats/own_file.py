"""A file that is clew's as a whole: the one key `text` is all that is in it."""

from typing import Any

from clew.config.setting import Key

OWN_TEXT: Key = ("text",)


def read(text: str) -> dict[str, Any]:
    """What the text says."""
    return {"text": text} if text else {}


def put(text: str, key: Key, value: Any) -> str:
    """The new text."""
    return str(value)


def drop(text: str, key: Key) -> str:
    """Nothing."""
    return ""
