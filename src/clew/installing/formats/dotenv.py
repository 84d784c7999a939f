"""Files of environment variables, a line each."""

import re
from typing import Any

from clew.config.setting import Key

ASSIGNMENT = re.compile(r"^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=[ \t]*([^\r\n]*)(?:\r?\n|\Z)", re.MULTILINE)


def read(text: str) -> dict[str, str]:
    """What the text says; of two lines for one variable, the last counts."""
    return {found[1]: _plain(found[2]) for found in ASSIGNMENT.finditer(text)}


def put(text: str, key: Key, value: Any) -> str:
    """The text with a variable set; a new one goes to the end."""
    [name] = key
    if lines := [found for found in ASSIGNMENT.finditer(text) if found[1] == name]:
        start, end = lines[-1].span(2)
        return f"{text[:start]}{value}{text[end:]}"
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = newline if text and not text.endswith("\n") else ""
    return f"{text}{gap}{name}={value}{newline}"


def drop(text: str, key: Key) -> str:
    """The text without a variable."""
    line = next(found for found in ASSIGNMENT.finditer(text) if found[1] == key[0])
    return text[: line.start()] + text[line.end() :]


def _plain(value: str) -> str:
    value = value.strip()
    if quoted := re.match(r"(['\"`])(.*?)\1", value):
        return quoted[2]
    return re.sub(r"\s*#.*", "", value)
