"""JSON at the speed of orjson, with the standard library behind it for what orjson refuses.

orjson rejects lone surrogates, integers past 64 bits and NaN. A log that forgets nothing must carry them all.
"""

import json
from typing import Any

import orjson

from clew.errors import BadRequest


def loads(data: bytes | str) -> Any:
    """Parse JSON; a clear error says where it is broken."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        text = data.decode("utf-8", "surrogatepass") if isinstance(data, bytes) else data
        return json.loads(text)
    except RecursionError:
        raise BadRequest("the JSON is nested too deeply to read") from None
    except UnicodeDecodeError as error:
        raise BadRequest(f"not UTF-8 at byte {error.start}: send JSON as UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadRequest(f"not JSON: {error.msg} at line {error.lineno} column {error.colno}") from None


def dumps(value: Any) -> bytes:
    """Serialise compactly, keeping key order."""
    try:
        return orjson.dumps(value)
    except TypeError:
        pass
    try:
        return json.dumps(value, separators=(",", ":")).encode()
    except RecursionError:
        raise BadRequest("the value is nested too deeply to write as JSON") from None
    except (TypeError, ValueError) as error:
        raise BadRequest(f"not JSON data: {error}") from None
