"""YAML of the plain kind: a key at the start of a line, and what belongs to it below, indented."""

import re
from typing import Any

from clew.config.setting import Key

KEY_LINE = re.compile(r"^([A-Za-z_][\w.-]*)[ \t]*:(?:[ \t]+([^\r\n]*?))?[ \t]*\r?$")
BELOW = re.compile(r"[ \t]|-(?:[ \t]|$)|#|\r?$")  # how a line begins that is no key


def read(text: str) -> dict[str, Any]:
    """The keys of the file, with their values where these are on the same line."""
    found: dict[str, Any] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if key := KEY_LINE.match(line):
            if key[1] in found:
                raise ValueError(f"has {key[1]} twice")
            found[key[1]] = _plain(key[2] or "")
        elif not BELOW.match(line) and not (number == 1 and line.strip() == "---"):
            raise ValueError(f"has more than plain `key: value` lines, and clew changes no others: line {number}")
    return found


def put(text: str, key: Key, value: Any) -> str:
    """The text with a key set; a new one goes to the end."""
    [name] = key
    lines = text.split("\n")
    if at := _line(lines, name):
        end = "\r" if lines[at - 1].endswith("\r") else ""
        return "\n".join([*lines[: at - 1], f"{name}: {value}{end}", *lines[at:]])
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = newline if text and not text.endswith("\n") else ""
    return f"{text}{gap}{name}: {value}{newline}"


def drop(text: str, key: Key) -> str:
    """The text without a key."""
    lines = text.split("\n")
    at = _line(lines, key[0])
    return "\n".join([*lines[: at - 1], *lines[at:]])


def _line(lines: list[str], name: str) -> int:
    """The line a key is on, counted from 1; 0 if there is none."""
    for number, line in enumerate(lines, 1):
        if (key := KEY_LINE.match(line)) and key[1] == name:
            if lines[number : number + 1] and re.match(r"[ \t]+[^\s#]|-[ \t]", lines[number]):
                raise ValueError(f"has more than one line for {name}")
            return number
    return 0


def _plain(value: str) -> str:
    if quoted := re.match(r"(['\"])(.*?)\1", value):
        return quoted[2]
    return re.sub(r"(?:^|\s+)#.*", "", value)
