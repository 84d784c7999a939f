"""JSON at the speed of orjson, with the standard library behind it for what orjson refuses.

orjson refuses lone surrogates, reads no NaN and no number past the largest float, which it writes as null, and makes
floats of integers past 64 bits. A log that forgets nothing must carry them all, and the raw bytes that some SDKs put
into their requests too: those are written as `{"$clew:bytes": base64}`.
"""

import json
import sys
from base64 import b64decode, b64encode
from math import isfinite
from typing import Any
from unicodedata import category

import orjson

from clew.errors import BadRequest

# Where so many digits stand in a row there may be one. Looked for by a table: that takes a tenth of a pattern.
_DIGITS = bytes(ord("1") if chr(byte) in "0123456789" else 0 for byte in range(256))
_HUGE = b"1" * 19


def attempt(data: bytes) -> Any:
    """Parse plain JSON; None where there is something else, or what only `loads` can read."""
    try:
        return None if _HUGE in data.translate(_DIGITS) else orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def loads(data: bytes | str) -> Any:
    """Parse JSON; a clear error says where it is broken."""
    try:
        raw = data if isinstance(data, bytes) else data.encode()
        if _HUGE not in raw.translate(_DIGITS):
            return orjson.loads(raw)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        pass
    try:
        text = data.decode("utf-8", "surrogatepass") if isinstance(data, bytes) else data
        return json.loads(text)
    except RecursionError:
        raise BadRequest("the JSON is nested too deeply to read") from None
    except UnicodeDecodeError as error:
        raise BadRequest(f"not UTF-8 at byte {error.start}: send JSON as UTF-8") from None
    except json.JSONDecodeError as error:
        fault = error.msg.removesuffix(" at")
        raise BadRequest(f"not JSON: {fault} at line {error.lineno} column {error.colno}") from None
    except ValueError:  # the language's own limit: to read it takes the square of its length
        most = sys.get_int_max_str_digits()
        raise BadRequest(f"an integer of more than {most:,} digits: write it as text, in quotation marks") from None


def plain_bytes(value: Any) -> dict[str, str]:
    """Bytes as JSON: some SDKs send images as they are."""
    if isinstance(value, bytes | bytearray):
        return {BYTES: b64encode(value).decode()}
    raise TypeError(f"{type(value).__name__} is not JSON")


BYTES = "$clew:bytes"  # no key that anybody else uses


def ordered(value: Any) -> bytes:
    """Serialise compactly, with sorted keys; raises `TypeError` for what orjson refuses."""
    return orjson.dumps(value, plain_bytes, orjson.OPT_SORT_KEYS)


def dumps(value: Any) -> bytes:
    """Serialise compactly, keeping key order."""
    try:
        made = orjson.dumps(value, default=plain_bytes)
        if b"null" not in made or _is_finite(value):
            return made
    except TypeError:
        pass
    try:
        return json.dumps(value, separators=(",", ":"), default=plain_bytes).encode()
    except RecursionError:
        raise BadRequest("the value is nested too deeply to write as JSON") from None
    except (TypeError, ValueError) as error:
        raise BadRequest(f"not JSON data: {error}") from None


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return all(map(_is_finite, parts))


class _Visible(dict[int, str]):
    """For each character itself; for one that a terminal obeys, or that hides or turns round others, its escape."""

    def __missing__(self, code: int) -> str:
        hidden = code > 0x7E and category(chr(code)) in ("Cc", "Cf", "Zl", "Zp")
        escaped = "\\u007f" if code == 0x7F else json.dumps(chr(code))[1:-1]
        found = self[code] = escaped if hidden else chr(code)
        return found


_VISIBLE = _Visible()


def visible(data: bytes) -> bytes:
    """The same JSON, with escapes for characters that cannot be seen: safe on a terminal, and exact."""
    return data if data.isascii() and b"\x7f" not in data else data.decode().translate(_VISIBLE).encode()


def with_bytes(value: Any) -> Any:
    """What was read, its bytes as they were before they were written."""
    if isinstance(value, dict):
        if value.keys() == {BYTES}:
            return b64decode(value[BYTES])
        return {k: with_bytes(v) for k, v in value.items()}
    return [with_bytes(v) for v in value] if isinstance(value, list) else value
