"""What a setting may be: said in words, read from text, and checked."""

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeGuard
from urllib.parse import urlsplit

from clew.core.extensions import FORMATS, is_brought
from clew.errors import BadRequest

TRUE = frozenset({"true", "yes", "on", "1"})
FALSE = frozenset({"false", "no", "off", "0"})


@dataclass(frozen=True, slots=True)
class ValueKind:
    """One sort of value; `parse` takes the text of a variable and may raise `ValueError`."""

    expected: str
    holds: Callable[[object], bool]
    parse: Callable[[str], object] = str
    choices: tuple[str, ...] = ()


def count(least: int, such: int, most: int | None = None) -> ValueKind:
    """A whole number."""
    expected = f"a whole number of at least {least}{f' and at most {most}' if most else ''}, such as {such}"
    # True is an int, and no number of tokens.
    return ValueKind(expected, lambda v: type(v) is int and least <= v <= (v if most is None else most), int)


def share(such: float) -> ValueKind:
    """A part of the whole."""
    return ValueKind(f"a number between 0 and 1, such as {such}", lambda v: _number(v) and 0 < v <= 1, float)


def choice(*words: str) -> ValueKind:
    """One of some words; where strictness counts, the strictest comes last."""
    quoted = [f'"{word}"' for word in words]
    return ValueKind(f"{', '.join(quoted[:-1])} or {quoted[-1]}", lambda v: v in words, choices=words)


def named(group: str, *words: str) -> ValueKind:
    """One of some words, or what an installed package brings under a name."""
    known = choice(*words)
    expected = f"{known.expected.replace(' or', ',')} or an entry point in `{group}`"
    return ValueKind(expected, lambda v: v in words or (_plain(v) and is_brought(group, str(v))), choices=words)


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _plain(value: object) -> bool:
    """Text that is not blank and can be written to a file and a terminal."""
    if not isinstance(value, str) or not value.strip() or any(ord(c) < 32 or ord(c) == 127 for c in value):
        return False
    return value.encode(errors="replace").decode() == value


def _address(value: object) -> bool:
    """A base URL without a name or password: what is in a configuration gets shown."""
    if not _plain(value):
        return False
    try:
        parts = urlsplit(str(value))
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


def _askable(text: str) -> bool:
    """Whether a text names a model that can be asked."""
    from clew.llm import read  # with all that a model is asked by

    try:
        read(text)
    except BadRequest:
        return False
    return True


def _switched(text: str) -> bool:
    if text.strip().lower() in TRUE | FALSE:
        return text.strip().lower() in TRUE
    raise ValueError(text)


def _switched_or_auto(text: str) -> bool | str:
    return "auto" if text.strip().lower() == "auto" else _switched(text)


def _listed(text: str) -> object:
    if text.lstrip().startswith("["):
        return tomllib.loads(f"list = {text}")["list"]
    return [part.strip() for part in text.split(",") if part.strip()]


TEXT = ValueKind('text, such as "work"', _plain)
STORE = ValueKind('a path or a postgresql:// URL, such as "~/clew.db"', _plain)
MODEL = ValueKind(
    'openai/NAME, anthropic/NAME, or a model of your own server, such as "http://127.0.0.1:11434/v1#llama3"',
    lambda v: _plain(v) and (":" not in str(v) or _address(v)) and _askable(str(v)),
)
AUTHOR = ValueKind(
    f'"own" (the model that the conversation talks to), "none" (code), or a model: {MODEL.expected}',
    lambda v: v in ("own", "none") or MODEL.holds(v),
)
SWITCH = ValueKind("true or false", lambda v: isinstance(v, bool), _switched)
SWITCH_OR_AUTO = ValueKind('"auto", true or false', lambda v: isinstance(v, bool) or v == "auto", _switched_or_auto)
PRICE = ValueKind("US dollars for a million tokens, such as 2.5", lambda v: _number(v) and v >= 0, float)
ADDRESSES = ValueKind(
    'a list of base URLs without passwords, such as ["http://127.0.0.1:11434"]',
    lambda v: isinstance(v, list) and all(map(_address, v)),
    _listed,
)
ADDRESS = ValueKind('a base URL without a password, such as "https://api.openai.com/v1"', _address)
TEXT_LIST = ValueKind(
    'a list of texts, such as ["gpt-*"]', lambda v: isinstance(v, list) and all(map(_plain, v)), _listed
)
FORMAT_LIST = replace(TEXT_LIST, expected=f'a list of entry points in `{FORMATS}`, such as ["cohere"]')
