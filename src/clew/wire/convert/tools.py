"""The tools that a request declares, and which of them the model may call, from one format to another."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clew.core.items import Frame
from clew.wire.formats import named
from clew.wire.formats.plain import string
from clew.wire.formats.tools import ToolDeclaration, plain_name

# A tool that takes any text takes it under this key where tools take objects.
FREE: Mapping[str, Any] = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


def tools_of(frame: Frame) -> dict[str, ToolDeclaration]:
    """The tools that a frame declares, by name."""
    return {tool.name: tool for told in named(frame.format).declared(frame) if (tool := _tool(told, frame.format))}


def declared(body: Mapping[str, Any], format: str) -> set[str]:
    """The names of the tools that a body declares."""
    return {*declarations(body, format)}


def declarations(body: Mapping[str, Any], format: str) -> dict[str, ToolDeclaration]:
    """The tools that a body declares, by name."""
    codec = named(format)
    plain = {tool.name: tool for told in flat(codec.added_tools(body)) if (tool := _tool(told, format))}
    return tools_of(codec.split({**body, codec.LIST: []})[0]) | plain


def flat(tools: Sequence[Any]) -> Iterator[Any]:
    """Tools, those of a namespace one by one."""
    for tool in tools:
        inner = tool.get("tools") if isinstance(tool, Mapping) and tool.get("type") == "namespace" else None
        yield from flat(inner) if isinstance(inner, list) else (tool,)


def _tool(told: Any, was: str) -> ToolDeclaration | None:
    """A tool as anybody declares it; None where the provider itself runs it or knows what it takes."""
    kind = told.get("type") or "function" if isinstance(told, Mapping) else ""
    if kind not in ("function", "custom"):
        return None
    inner = told.get(kind)
    held = inner if isinstance(inner, Mapping) else told
    name = string(held.get("name"))
    keys = ("parametersJsonSchema", "parameters_json_schema", "parameters", "input_schema", "inputSchema")
    key = next((k for k in keys if isinstance(held.get(k), Mapping)), "")
    schema = held.get(key)
    if key == "inputSchema" and isinstance(schema, Mapping):
        schema = schema.get("json")
    if key == "parameters":
        schema = named(was).plain_schema(schema)
    if kind == "custom" and not key:
        schema = FREE
    schema = schema if isinstance(schema, Mapping) else None
    return (
        ToolDeclaration(plain_name(name), string(held.get("description")), schema, held.get("strict") is True)
        if name
        else None
    )
