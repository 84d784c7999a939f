"""Tools of Gemini's, whose keys may be spelled in two ways and whose schemas in two languages."""

from collections.abc import Mapping
from typing import Any

from clew.wire.formats.plain import Block
from clew.wire.formats.tools import Choice, ToolDeclaration, object_at, plain_name


def read_choice(body: Mapping[str, Any]) -> Choice:
    """Which of its tools a body wants to be called."""
    body = camel_keys(body)
    config = object_at(body, "toolConfig") or object_at(object_at(body, "config"), "toolConfig")
    match object_at(config, "functionCallingConfig"):
        case {"mode": "ANY", "allowedFunctionNames": [str(name)]}:
            return Choice(only=plain_name(name))
        case {"mode": "ANY" | "AUTO" | "NONE" as mode}:
            return Choice(mode.lower())
    return Choice()


def write_tools(tools: list[ToolDeclaration], choice: Choice) -> Block:
    """These tools as a body declares them, with the choice among them."""
    body: Block = {"tools": [{"functionDeclarations": [t.about | {"parametersJsonSchema": t.takes} for t in tools]}]}
    if not choice.only and not choice.mode:
        return body
    wish: Block = {"mode": (choice.mode or "any").upper()} | (
        {"allowedFunctionNames": [choice.only]} if choice.only else {}
    )
    return body | {"toolConfig": {"functionCallingConfig": wish}}


def lowered(schema: Any) -> Any:
    """Gemini's own schema as JSON schema: OBJECT is object, and nullable is one more type."""
    if isinstance(schema, list):
        return [lowered(s) for s in schema]
    if not isinstance(schema, Mapping):
        return schema
    said: Block = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, Mapping):
            said[key] = {name: lowered(s) for name, s in value.items()}
        elif key == "type" and isinstance(value, str):
            said[key] = [value.lower(), "null"] if schema.get("nullable") is True else value.lower()
        elif key in ("items", "anyOf", "any_of"):
            said["anyOf" if key == "any_of" else key] = lowered(value)
        elif key not in ("nullable", "propertyOrdering", "property_ordering"):
            said[key] = value
    return said


def camel_keys(value: Any, depth: int = 3) -> Any:
    """The upper levels of a Gemini body, whose keys may be spelled in two ways."""
    if not isinstance(value, Mapping) or not depth:
        return value
    said: Block = {}
    for key, inner in value.items():
        head, *rest = str(key).split("_")
        said[head + "".join(word.title() for word in rest)] = camel_keys(inner, depth - 1)
    return said
