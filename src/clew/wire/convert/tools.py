"""The tools that a request declares, and which of them the model may call, from one format to another."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clew.core.items import Frame
from clew.wire.formats import named
from clew.wire.formats.plain import Block, fresh, string

NAME_LENGTH = 64  # characters of a tool's name that every provider takes
# A tool that takes any text takes it under this key where tools take objects.
FREE: Mapping[str, Any] = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


@dataclass(frozen=True, slots=True)
class ToolDeclaration:
    """A tool that the host runs."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] | None = None
    strict: bool = False

    @property
    def about(self) -> Block:
        """Its name, and its description where there is one: some providers refuse an empty one."""
        return {"name": self.name} | ({"description": self.description} if self.description else {})

    @property
    def takes(self) -> Block:
        """The schema of its arguments, whole enough for every provider."""
        return {"type": "object", "properties": {}, **fresh(self.schema or {})}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which tools the model may or must call."""

    mode: str = ""  # auto, any, none; empty: not said
    only: str = ""  # the tool it must call
    alone: bool = False  # no two calls at once


def tools_of(frame: Frame) -> dict[str, ToolDeclaration]:
    """The tools that a frame declares, by name."""
    return {tool.name: tool for told in _declared(frame) if (tool := _tool(told, frame.format))}


def choice_of(frame: Frame) -> Choice:
    """Which of its tools a frame wants to be called."""
    return _CHOICES[frame.format](frame.body)


def declared(body: Mapping[str, Any], format: str) -> set[str]:
    """The names of the tools that a body declares."""
    return {*declarations(body, format)}


def declarations(body: Mapping[str, Any], format: str) -> dict[str, ToolDeclaration]:
    """The tools that a body declares, by name."""
    codec = named(format)
    plain = {tool.name: tool for told in flat(added_tools(body, format)) if (tool := _tool(told, format))}
    return tools_of(codec.split({**body, codec.LIST: []})[0]) | plain


def added_tools(body: Mapping[str, Any], format: str) -> list[Any]:
    """The tools that stand before the history itself, as Codex sends them for its newest models; none of others."""
    said = body.get("input") if format == "openai_responses" else None
    first = said[0] if isinstance(said, list) and said else None
    if not isinstance(first, Mapping) or first.get("type") != "additional_tools":
        return []
    tools = first.get("tools")
    return tools if isinstance(tools, list) else []


def flat(tools: Sequence[Any]) -> Iterator[Any]:
    """Tools, those of a namespace one by one."""
    for tool in tools:
        inner = tool.get("tools") if isinstance(tool, Mapping) and tool.get("type") == "namespace" else None
        yield from flat(inner) if isinstance(inner, list) else (tool,)


def written(tools: list[ToolDeclaration], choice: Choice, format: str) -> Block:
    """Tools as a format declares them."""
    return _WRITERS[format](tools, choice)


def plain_name(name: str) -> str:
    """A tool's name in letters that every provider takes."""
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    return plain[:NAME_LENGTH] if re.match(r"[a-zA-Z_]", plain) else f"_{plain}"[:NAME_LENGTH]


def _declared(frame: Frame) -> list[Any]:
    legacy = frame.body.get("functions") if frame.format == "openai_chat" else None
    return [*frame.tools, *(legacy if isinstance(legacy, list) else ())]


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
    if was == "gemini" and key == "parameters":
        schema = lowered(schema)
    if kind == "custom" and not key:
        schema = FREE
    schema = schema if isinstance(schema, Mapping) else None
    return (
        ToolDeclaration(plain_name(name), string(held.get("description")), schema, held.get("strict") is True)
        if name
        else None
    )


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


def object_at(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object under a key; an empty one where there is none."""
    value = body.get(key)
    return value if isinstance(value, Mapping) else {}


def camel_keys(value: Any, depth: int = 3) -> Any:
    """The upper levels of a Gemini body, whose keys may be spelled in two ways."""
    if not isinstance(value, Mapping) or not depth:
        return value
    said: Block = {}
    for key, inner in value.items():
        head, *rest = str(key).split("_")
        said[head + "".join(word.title() for word in rest)] = camel_keys(inner, depth - 1)
    return said


def _openai_choice(body: Mapping[str, Any]) -> Choice:
    alone = body.get("parallel_tool_calls") is False
    match body.get("tool_choice", body.get("function_call")):
        case str(mode):
            return Choice({"required": "any", "auto": "auto", "none": "none"}.get(mode, ""), alone=alone)
        case {"function": {"name": str(name)}} | {"custom": {"name": str(name)}} | {"name": str(name)}:
            return Choice(only=plain_name(name), alone=alone)
        case {"allowed_tools": {"mode": "required"}} | {"type": "allowed_tools", "mode": "required"}:
            return Choice("any", alone=alone)
    return Choice(alone=alone)


def _anthropic_choice(body: Mapping[str, Any]) -> Choice:
    choice = object_at(body, "tool_choice")
    alone = choice.get("disable_parallel_tool_use") is True
    if choice.get("type") == "tool":
        return Choice(only=plain_name(string(choice.get("name"))), alone=alone)
    return Choice(string(choice.get("type")), alone=alone)


def _bedrock_choice(body: Mapping[str, Any]) -> Choice:
    match object_at(body, "toolConfig").get("toolChoice"):
        case {"tool": {"name": str(name)}}:
            return Choice(only=plain_name(name))
        case {"any": _}:
            return Choice("any")
        case {"auto": _}:
            return Choice("auto")
    return Choice()


def _gemini_choice(body: Mapping[str, Any]) -> Choice:
    body = camel_keys(body)
    config = object_at(body, "toolConfig") or object_at(object_at(body, "config"), "toolConfig")
    match object_at(config, "functionCallingConfig"):
        case {"mode": "ANY", "allowedFunctionNames": [str(name)]}:
            return Choice(only=plain_name(name))
        case {"mode": "ANY" | "AUTO" | "NONE" as mode}:
            return Choice(mode.lower())
    return Choice()


def _chat_tools(tools: list[ToolDeclaration], choice: Choice) -> Block:
    functions = [t.about | {"parameters": t.takes} | ({"strict": True} if t.strict else {}) for t in tools]
    body: Block = {"tools": [{"type": "function", "function": function} for function in functions]}
    only = {"type": "function", "function": {"name": choice.only}}
    return body | _openai_wish(choice, only)


def _responses_tools(tools: list[ToolDeclaration], choice: Choice) -> Block:
    # Without a word, this API makes schemas strict, and what was optional required.
    body: Block = {
        "tools": [{"type": "function", **t.about, "parameters": t.takes, "strict": t.strict} for t in tools],
    }
    return body | _openai_wish(choice, {"type": "function", "name": choice.only})


def _openai_wish(choice: Choice, only: Block) -> Block:
    alone = {"parallel_tool_calls": False} if choice.alone else {}
    if choice.only:
        return {"tool_choice": only, **alone}
    return ({"tool_choice": "required" if choice.mode == "any" else choice.mode} if choice.mode else {}) | alone


def _anthropic_tools(tools: list[ToolDeclaration], choice: Choice) -> Block:
    body: Block = {"tools": [{**t.about, "input_schema": t.takes} for t in tools]}
    wish = {"type": "tool", "name": choice.only} if choice.only else {"type": choice.mode or "auto"}
    if choice.alone and choice.mode != "none":
        wish["disable_parallel_tool_use"] = True  # type: ignore[assignment]
    return body | ({"tool_choice": wish} if choice != Choice() else {})


def _bedrock_tools(tools: list[ToolDeclaration], choice: Choice) -> Block:
    config: Block = {"tools": [{"toolSpec": {**t.about, "inputSchema": {"json": t.takes}}} for t in tools]}
    if choice.only:
        config["toolChoice"] = {"tool": {"name": choice.only}}
    elif choice.mode in ("auto", "any"):  # that no tool may be called cannot be said here
        config["toolChoice"] = {choice.mode: {}}
    return {"toolConfig": config}


def _gemini_tools(tools: list[ToolDeclaration], choice: Choice) -> Block:
    body: Block = {"tools": [{"functionDeclarations": [t.about | {"parametersJsonSchema": t.takes} for t in tools]}]}
    if not choice.only and not choice.mode:
        return body
    wish: Block = {"mode": (choice.mode or "any").upper()} | (
        {"allowedFunctionNames": [choice.only]} if choice.only else {}
    )
    return body | {"toolConfig": {"functionCallingConfig": wish}}


_CHOICES: Mapping[str, Callable[[Mapping[str, Any]], Choice]] = {
    "openai_chat": _openai_choice,
    "anthropic": _anthropic_choice,
    "openai_responses": _openai_choice,
    "bedrock": _bedrock_choice,
    "gemini": _gemini_choice,
}
_WRITERS: Mapping[str, Callable[[list[ToolDeclaration], Choice], Block]] = {
    "openai_chat": _chat_tools,
    "anthropic": _anthropic_tools,
    "openai_responses": _responses_tools,
    "bedrock": _bedrock_tools,
    "gemini": _gemini_tools,
}
