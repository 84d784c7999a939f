"""Whether the arguments of a call fit their schema: as much of JSON Schema as our tools use, and no more."""

from collections.abc import Iterator, Mapping
from typing import Any

from clew.errors import ToolError

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
}
_SHOWN = 60  # characters of a wrong value


def takes(*required: str, **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of an object with these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def checked(tool: str, schema: Mapping[str, Any], arguments: Any) -> dict[str, Any]:
    """The arguments if they fit; null for what may be left out is the same as leaving it out."""
    if not isinstance(arguments, Mapping):
        raise ToolError(f"{tool}: arguments must be a JSON object, not {_shortened(arguments)}")
    given = {k: v for k, v in arguments.items() if v is not None or k in schema.get("required", ())}
    if problems := list(_problems(schema, given)):
        raise ToolError(f"{tool}: {'; '.join(problems)}. It takes {_signature(schema)}")
    return given


def _problems(schema: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{name} is missing" for name in schema.get("required", ()) if name not in given)
    for name, value in given.items():
        wanted = schema["properties"].get(name)
        if wanted is None:
            yield f"there is no {_shortened(name)}"
        elif not _is(value, wanted["type"]):
            yield f"{name} must be of type {wanted['type']}, not {_shortened(value)}"
        elif "minimum" in wanted and not wanted["minimum"] <= value <= wanted["maximum"]:
            yield f"{name} must be {wanted['minimum']} to {wanted['maximum']}, not {_shortened(value)}"


def _is(value: Any, type: str) -> bool:
    return isinstance(value, _TYPES[type]) and (type == "boolean" or not isinstance(value, bool))


def _signature(schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", ())
    return ", ".join(
        f"{name} ({p['type']}{'' if name in needed else ', optional'})" for name, p in schema["properties"].items()
    )


def _shortened(value: Any) -> str:
    told = repr(value)
    return told if len(told) <= _SHOWN else f"{told[:_SHOWN]}…"
