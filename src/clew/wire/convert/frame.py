"""What a request holds beside its history, from one format to another: system prompt, tools, parameters."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Any

from clew.core.items import Frame
from clew.wire.formats import named
from clew.wire.formats.plain import Block, fresh, string

LIMIT = 8192  # tokens of an answer, where the target wants a number and the source named none
STOPS = 4  # sequences that every provider takes
# A tool that takes any text takes it under this key where tools take objects.
FREE: Mapping[str, Any] = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


@dataclass(frozen=True, slots=True)
class Tool:
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


# Where each format has its parameters: the object that holds them, and how they are called there.
PARAMETERS = ("limit", "temperature", "top_p", "stream", "stop")
PLACES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "openai_chat": ("", ("max_completion_tokens", "temperature", "top_p", "stream", "stop")),
    "anthropic": ("", ("max_tokens", "temperature", "top_p", "stream", "stop_sequences")),
    "openai_responses": ("", ("max_output_tokens", "temperature", "top_p", "stream", "")),
    "bedrock": ("inferenceConfig", ("maxTokens", "temperature", "topP", "", "stopSequences")),
    "gemini": ("generationConfig", ("maxOutputTokens", "temperature", "topP", "", "stopSequences")),
}


def convert_frame(frame: Frame, to: str, model: str | None = None) -> Frame:
    """The frame in another format, for another model if one is named; what has no counterpart is left out."""
    named(to)
    key = "modelId" if to == "bedrock" else "model"
    if frame.format == to:
        return frame if model is None else with_(frame, model=model, body={**frame.body, key: model})
    name = frame.model if model is None else model
    body: Block = {key: name} if name else {}
    body |= _parameters(frame, to)
    if to == "openai_responses":
        body["store"] = False  # it would keep what is sent, which no other format does unasked
    tools = {tool.name: tool for told in _declared(frame) if (tool := _tool(told, frame.format))}
    if tools:
        choice = _CHOICES[frame.format](frame.body)
        body |= written(list(tools.values()), choice if choice.only in ("", *tools) else Choice("auto"), to)
    codec = named(to)
    lead = [{"role": "system", "content": frame.system}] if to == "openai_chat" and frame.system.strip() else []
    return codec.split({**body, **_system(frame.system, to), codec.LIST: lead})[0]


def declare(frame: Frame, names: Iterable[str]) -> Frame:
    """The frame with these tools declared, where it declares none: some providers take no calls without."""
    tools = [Tool(name, "Called earlier, and not on offer now.") for name in dict.fromkeys(names)]
    if frame.tools or not tools:
        return frame
    codec = named(frame.format)
    return codec.split({**frame.body, **written(tools, Choice("none"), frame.format), codec.LIST: []})[0]


def declared(body: Mapping[str, Any], format: str) -> set[str]:
    """The names of the tools that a body declares."""
    codec = named(format)
    frame = codec.split({**body, codec.LIST: []})[0]
    return {tool.name for told in _declared(frame) if (tool := _tool(told, format))}


def written(tools: list[Tool], choice: Choice, format: str) -> Block:
    """Tools as a format declares them."""
    return _WRITERS[format](tools, choice)


def plain_name(name: str) -> str:
    """A tool's name in letters that every provider takes."""
    plain = re.sub(r"[^a-zA-Z0-9_-]", "_", name)
    return plain[:64] if re.match(r"[a-zA-Z_]", plain) else f"_{plain}"[:64]


def _system(said: str, to: str) -> Block:
    if not said.strip():
        return {}
    match to:
        case "openai_responses":
            return {"instructions": said}
        case "anthropic":
            return {"system": said}
        case "bedrock":
            return {"system": [{"text": said}]}
        case "gemini":
            return {"systemInstruction": {"parts": [{"text": said}]}}
    return {}


def _parameters(frame: Frame, to: str) -> Block:
    told = _told(frame)
    if to == "anthropic":
        told.setdefault("limit", LIMIT)
    if isinstance(told.get("temperature"), int | float) and to in ("anthropic", "bedrock"):
        told["temperature"] = min(told["temperature"], 1)
    if isinstance(stop := told.get("stop"), str | list):
        told["stop"] = [stop] if isinstance(stop, str) else fresh(stop)[:STOPS]
    holder, keys = PLACES[to]
    written = {key: told[name] for name, key in zip(PARAMETERS, keys, strict=True) if key and name in told}
    return {holder: written} if holder and written else written


def _told(frame: Frame) -> dict[str, Any]:
    """The parameters that a frame names, under names of our own."""
    holder, keys = PLACES[frame.format]
    held: Mapping[str, Any] = _held(frame.body, holder) if holder else frame.body
    if frame.format == "gemini":
        body = _camel(frame.body)
        held = {**_held(body, "config"), **_held(body, holder)}
    if frame.format == "openai_chat":
        held = {"max_completion_tokens": held.get("max_tokens"), **held}
    return {name: held[key] for name, key in zip(PARAMETERS, keys, strict=True) if held.get(key) is not None}


def _declared(frame: Frame) -> list[Any]:
    legacy = frame.body.get("functions") if frame.format == "openai_chat" else None
    return [*frame.tools, *(legacy if isinstance(legacy, list) else ())]


def _tool(told: Any, was: str) -> Tool | None:
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
    return Tool(plain_name(name), string(held.get("description")), schema, held.get("strict") is True) if name else None


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


def _held(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = body.get(key)
    return value if isinstance(value, Mapping) else {}


def _camel(value: Any, depth: int = 3) -> Any:
    """The upper levels of a Gemini body, whose keys may be spelled in two ways."""
    if not isinstance(value, Mapping) or not depth:
        return value
    said: Block = {}
    for key, inner in value.items():
        head, *rest = str(key).split("_")
        said[head + "".join(word.title() for word in rest)] = _camel(inner, depth - 1)
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
    choice = _held(body, "tool_choice")
    alone = choice.get("disable_parallel_tool_use") is True
    if choice.get("type") == "tool":
        return Choice(only=plain_name(string(choice.get("name"))), alone=alone)
    return Choice(string(choice.get("type")), alone=alone)


def _bedrock_choice(body: Mapping[str, Any]) -> Choice:
    match _held(body, "toolConfig").get("toolChoice"):
        case {"tool": {"name": str(name)}}:
            return Choice(only=plain_name(name))
        case {"any": _}:
            return Choice("any")
        case {"auto": _}:
            return Choice("auto")
    return Choice()


def _gemini_choice(body: Mapping[str, Any]) -> Choice:
    body = _camel(body)
    config = _held(body, "toolConfig") or _held(_held(body, "config"), "toolConfig")
    match _held(config, "functionCallingConfig"):
        case {"mode": "ANY", "allowedFunctionNames": [str(name)]}:
            return Choice(only=plain_name(name))
        case {"mode": "ANY" | "AUTO" | "NONE" as mode}:
            return Choice(mode.lower())
    return Choice()


def _chat_tools(tools: list[Tool], choice: Choice) -> Block:
    functions = [t.about | {"parameters": t.takes} | ({"strict": True} if t.strict else {}) for t in tools]
    body: Block = {"tools": [{"type": "function", "function": function} for function in functions]}
    only = {"type": "function", "function": {"name": choice.only}}
    return body | _openai_wish(choice, only)


def _responses_tools(tools: list[Tool], choice: Choice) -> Block:
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


def _anthropic_tools(tools: list[Tool], choice: Choice) -> Block:
    body: Block = {"tools": [{**t.about, "input_schema": t.takes} for t in tools]}
    wish = {"type": "tool", "name": choice.only} if choice.only else {"type": choice.mode or "auto"}
    if choice.alone and choice.mode != "none":
        wish["disable_parallel_tool_use"] = True  # type: ignore[assignment]
    return body | ({"tool_choice": wish} if choice != Choice() else {})


def _bedrock_tools(tools: list[Tool], choice: Choice) -> Block:
    config: Block = {"tools": [{"toolSpec": {**t.about, "inputSchema": {"json": t.takes}}} for t in tools]}
    if choice.only:
        config["toolChoice"] = {"tool": {"name": choice.only}}
    elif choice.mode in ("auto", "any"):  # that no tool may be called cannot be said here
        config["toolChoice"] = {choice.mode: {}}
    return {"toolConfig": config}


def _gemini_tools(tools: list[Tool], choice: Choice) -> Block:
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
_WRITERS: Mapping[str, Callable[[list[Tool], Choice], Block]] = {
    "openai_chat": _chat_tools,
    "anthropic": _anthropic_tools,
    "openai_responses": _responses_tools,
    "bedrock": _bedrock_tools,
    "gemini": _gemini_tools,
}
