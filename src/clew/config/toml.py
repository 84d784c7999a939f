"""A TOML file that somebody wrote: on which line a key is, and how to set it with all the rest left as it is."""

import re
from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.items import AoT, Comment, InlineTable, Table

from clew.config.setting import Key
from clew.config.table import write_key

MARK = "c1e3a0b5-here"  # found again in the text, where no file has it


def line_of(text: str, key: Key) -> int | None:
    """The line a key is on, counted from 1; of what is in it or around it, if it has none itself."""
    document = tomlkit.parse(text)
    parent: Any = None
    name, found = "", document
    for part in key:
        if not isinstance(found, Mapping) or part not in found:
            break
        parent, name, found = found, part, found[part]
    while parent is not None:
        if isinstance(found, AoT):
            found = found[0]
        if isinstance(found, Table):
            found.comment(MARK)
        elif not isinstance(found, Mapping) or isinstance(found, InlineTable):
            parent[name] = MARK
        before, mark, _ = tomlkit.dumps(document).partition(MARK)
        if mark:
            return before.count("\n") + 1
        parent, name = found, next(iter(found))  # tables around other tables, and dotted keys, have no header
        found = found[name]
    return None


def changed(text: str, key: Key, value: Any) -> str:
    """The file with one key set, or without it for None; `ValueError` where something else is in its place."""
    document = tomlkit.parse(text if text.endswith("\n") or not text else f"{text}\n")
    table: Any = document
    try:
        for at, part in enumerate(key[:-1], 1):
            if value is None and part not in table:
                return text
            if part not in table:
                table[part] = tomlkit.table(is_super_table=at < len(key) - 1)
            table = table[part]
        if value is None:
            table.pop(key[-1], None)
            result = tomlkit.dumps(document)
        elif table is document and key[-1] not in table:
            result = _with_new(document, key[-1], value)
        else:
            table[key[-1]] = value
            result = tomlkit.dumps(document)
    except (TypeError, ValueError):
        raise ValueError(f"{write_key(key)} = {tomlkit.item(value).as_string()}") from None
    is_windows = "\r\n" in text and not re.search(r"(?<!\r)\n", text)
    return re.sub(r"(?<!\r)\n", "\r\n", result) if is_windows else result


def _with_new(document: tomlkit.TOMLDocument, name: str, value: Any) -> str:
    """The file with a new key above its tables; `tomlkit` would put it below what is said of the first of them."""
    headers = [n for n, (key, item) in enumerate(document.body) if _is_header(key, item)]
    at = headers[0] if headers else len(document.body)
    keys = [n for n, (key, _) in enumerate(document.body[:at]) if key]
    if keys:
        at = keys[-1] + 1
    while headers and not keys and at and isinstance(document.body[at - 1][1], Comment):
        at -= 1
    above, below = tomlkit.document(), tomlkit.document()
    above.body.extend(document.body[:at])
    below.body.extend(document.body[at:])
    gap = "\n" if headers and not keys else ""
    return tomlkit.dumps(above) + tomlkit.dumps({name: value}) + gap + tomlkit.dumps(below)


def _is_header(key: Any, item: Any) -> bool:
    return isinstance(item, (Table, AoT)) and not key.is_dotted()
