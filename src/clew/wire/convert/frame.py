"""What a request holds beside its history, from one format to another: system prompt, tools, parameters."""

from collections.abc import Iterable, Mapping
from dataclasses import replace as with_
from typing import Any

from clew.core.items import Frame
from clew.wire.convert.tools import Choice, ToolDeclaration, camel_keys, choice_of, object_at, tools_of, written
from clew.wire.formats import named
from clew.wire.formats.plain import Block, fresh

ANSWER_LIMIT = 8192  # tokens of an answer, where the target wants a number and the source named none
STOPS = 4  # sequences that every provider takes
# Where each format has its parameters: the object that holds them, and how they are called there.
PARAMETERS = ("limit", "temperature", "top_p", "stream", "stop")
PARAMETER_PLACES: Mapping[str, tuple[str, tuple[str, ...]]] = {
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
    if tools := tools_of(frame):
        choice = choice_of(frame)
        body |= written(list(tools.values()), choice if choice.only in ("", *tools) else Choice("auto"), to)
    codec = named(to)
    lead = [{"role": "system", "content": frame.system}] if to == "openai_chat" and frame.system.strip() else []
    return codec.split({**body, **_system(frame.system, to), codec.LIST: lead})[0]


def declare(frame: Frame, names: Iterable[str]) -> Frame:
    """The frame with these tools declared, where it declares none: some providers take no calls without."""
    tools = [ToolDeclaration(name, "Called earlier, and not on offer now.") for name in dict.fromkeys(names)]
    if frame.tools or not tools:
        return frame
    codec = named(frame.format)
    return codec.split({**frame.body, **written(tools, Choice("none"), frame.format), codec.LIST: []})[0]


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
        told.setdefault("limit", ANSWER_LIMIT)
    if isinstance(told.get("temperature"), int | float) and to in ("anthropic", "bedrock"):
        told["temperature"] = min(told["temperature"], 1)
    if isinstance(stop := told.get("stop"), str | list):
        told["stop"] = [stop] if isinstance(stop, str) else fresh(stop)[:STOPS]
    holder, keys = PARAMETER_PLACES[to]
    written = {key: told[name] for name, key in zip(PARAMETERS, keys, strict=True) if key and name in told}
    return {holder: written} if holder and written else written


def _told(frame: Frame) -> dict[str, Any]:
    """The parameters that a frame names, under names of our own."""
    holder, keys = PARAMETER_PLACES[frame.format]
    held: Mapping[str, Any] = object_at(frame.body, holder) if holder else frame.body
    if frame.format == "gemini":
        body = camel_keys(frame.body)
        held = {**object_at(body, "config"), **object_at(body, holder)}
    if frame.format == "openai_chat":
        held = {"max_completion_tokens": held.get("max_tokens"), **held}
    return {name: held[key] for name, key in zip(PARAMETERS, keys, strict=True) if held.get(key) is not None}
