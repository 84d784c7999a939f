"""Conversations whose every text has a tag of its own, so that a word is known by who said it; in all five formats.

A tag such as `ann12v0z` is the first form of the twelfth text of `ann`.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

Body = dict[str, Any]

TAG = re.compile(r"\b([a-z]{3})(\d+)v(\d+)z\b")
NAMED = re.compile(r"\b[0-9a-f]{10,32}\b")  # an id that a stand-in offers
NAMES = ("ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal")
SYSTEM = "You help people with their work."


@dataclass(frozen=True)
class Text:
    """A message of words."""

    role: str
    text: str
    note: str = ""  # a decoration: the client puts it behind the words, and takes it away again
    blocks: bool = False  # a list of one block, not a string
    mark: bool = False  # for the cache

    @property
    def words(self) -> str:
        return self.text + self.note


@dataclass(frozen=True)
class Calls:
    """A message of the assistant's that calls tools, with words or without."""

    calls: tuple[tuple[str, str], ...]  # (id, what is asked)
    text: str = ""
    value: object = None  # of the first call, beside what is asked

    def asked(self) -> list[tuple[str, Body]]:
        """Each call's id and arguments."""
        values: list[Body] = [{} if self.value is None else {"value": self.value}, *([{}] * len(self.calls))]
        return [(id, {"of": asked, **more}) for (id, asked), more in zip(self.calls, values, strict=False)]


@dataclass(frozen=True)
class Results:
    """What the tools gave back."""

    given: tuple[tuple[str, str], ...]  # (id, what it is)


Message = Text | Calls | Results


def tags(text: str) -> set[str]:
    """Every tag in a text."""
    return {found.group() for found in TAG.finditer(text)}


def foreign(text: str, name: str) -> set[str]:
    """Tags that somebody else said."""
    return {found.group() for found in TAG.finditer(text) if found[1] != name}


def words_of(message: Message) -> str:
    """All that a message says."""
    match message:
        case Text():
            return message.words
        case Calls():
            return " ".join([message.text, *(asked for _, asked in message.calls)])
        case Results():
            return " ".join(text for _, text in message.given)


def written(
    format: str, said: Sequence[Message | Body], ids: bool = True, system: str = SYSTEM, model: str = ""
) -> Body:
    """A request; without `ids`, Gemini's calls are known by their place. A message that is a body is sent as it is."""
    write, frame = WRITERS[format]
    key, named, speaks = frame(system, model)
    return {**named, key: [*speaks, *write(said, ids)]}


def history(body: Body) -> list[Body]:
    """The messages of a request or of what is sent instead."""
    found: list[Body] = body.get("messages") or body.get("input") or body.get("contents") or []
    return [m for m in found if m.get("role") != "system"]


def _chat(said: Iterable[Message | Body], ids: bool) -> list[Body]:
    made: list[Body] = []
    for message in said:
        match message:
            case Text():
                block = {"type": "text", "text": message.words}
                content: Any = [_marked(block, message)] if message.blocks or message.mark else message.words
                made.append({"role": message.role, "content": content})
            case Calls():
                calls = [
                    {"id": id, "type": "function", "function": {"name": "read", "arguments": json.dumps(asked)}}
                    for id, asked in message.asked()
                ]
                made.append({"role": "assistant", "content": message.text or None, "tool_calls": calls})
            case Results():
                made += [{"role": "tool", "tool_call_id": id, "content": text} for id, text in message.given]
            case _:
                made.append(message)
    return made


def _messages(said: Iterable[Message | Body], ids: bool) -> list[Body]:
    made: list[Body] = []
    for message in said:
        match message:
            case Text():
                block = {"type": "text", "text": message.words}
                content: Any = [_marked(block, message)] if message.blocks or message.mark else message.words
                made.append({"role": message.role, "content": content})
            case Calls():
                blocks: list[Body] = [{"type": "text", "text": message.text}] if message.text else []
                blocks += [
                    {"type": "tool_use", "id": id, "name": "read", "input": asked} for id, asked in message.asked()
                ]
                made.append({"role": "assistant", "content": blocks})
            case Results():
                back = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in message.given]
                made.append({"role": "user", "content": back})
            case _:
                made.append(message)
    return made


def _responses(said: Iterable[Message | Body], ids: bool) -> list[Body]:
    made: list[Body] = []
    for message in said:
        match message:
            case Text():
                kind = "output_text" if message.role == "assistant" else "input_text"
                blocks = message.blocks and message.role == "user"
                made.append(
                    {
                        "role": message.role,
                        "content": [{"type": kind, "text": message.words}] if blocks else message.words,
                    }
                )
            case Calls():
                made += [{"role": "assistant", "content": message.text}] if message.text else []
                made += [
                    {"type": "function_call", "call_id": id, "name": "read", "arguments": json.dumps(asked)}
                    for id, asked in message.asked()
                ]
            case Results():
                made += [{"type": "function_call_output", "call_id": id, "output": text} for id, text in message.given]
            case _:
                made.append(message)
    return made


def _converse(said: Iterable[Message | Body], ids: bool) -> list[Body]:
    made: list[Body] = []
    for message in said:
        match message:
            case Text():
                mark: list[Body] = [{"cachePoint": {"type": "default"}}] if message.mark else []
                made.append({"role": message.role, "content": [{"text": message.words}, *mark]})
            case Calls():
                blocks: list[Body] = [{"text": message.text}] if message.text else []
                blocks += [
                    {"toolUse": {"toolUseId": id, "name": "read", "input": asked}} for id, asked in message.asked()
                ]
                made.append({"role": "assistant", "content": blocks})
            case Results():
                back = [{"toolResult": {"toolUseId": id, "content": [{"text": text}]}} for id, text in message.given]
                made.append({"role": "user", "content": back})
            case _:
                made.append(message)
    return _joined(made, "content")


def _contents(said: Iterable[Message | Body], ids: bool) -> list[Body]:
    made: list[Body] = []

    def named(id: str) -> Body:
        return {"id": id, "name": "read"} if ids else {"name": "read"}

    for message in said:
        match message:
            case Text():
                role = "model" if message.role == "assistant" else "user"
                made.append({"role": role, "parts": [{"text": message.words}]})
            case Calls():
                parts: list[Body] = [{"text": message.text}] if message.text else []
                parts += [{"functionCall": {**named(id), "args": asked}} for id, asked in message.asked()]
                made.append({"role": "model", "parts": parts})
            case Results():
                back = [{"functionResponse": {**named(id), "response": {"output": text}}} for id, text in message.given]
                made.append({"role": "user", "parts": back})
            case _:
                made.append(message)
    return made


def _marked(block: Body, message: Text) -> Body:
    return {**block, "cache_control": {"type": "ephemeral"}} if message.mark else block


def _joined(made: list[Body], key: str) -> list[Body]:
    """Messages of one side in a row, as one: roles must alternate."""
    sides = groupby(made, lambda m: m["role"])
    return [{"role": role, key: [block for m in some for block in m[key]]} for role, some in sides]


Frame = Callable[[str, str], tuple[str, Body, list[Body]]]
Write = Callable[[Iterable[Message | Body], bool], list[Body]]
SCHEMA = {"type": "object", "properties": {"of": {"type": "string"}}}


def _chat_frame(system: str, model: str) -> tuple[str, Body, list[Body]]:
    tool = {"type": "function", "function": {"name": "read", "parameters": SCHEMA}}
    return "messages", {"model": model or "gpt-4o", "tools": [tool]}, [{"role": "system", "content": system}]


def _messages_frame(system: str, model: str) -> tuple[str, Body, list[Body]]:
    frame = {"model": model or "claude-sonnet-4-5", "max_tokens": 100, "system": system}
    return "messages", {**frame, "tools": [{"name": "read", "input_schema": SCHEMA}]}, []


def _responses_frame(system: str, model: str) -> tuple[str, Body, list[Body]]:
    tool = {"type": "function", "name": "read", "parameters": SCHEMA}
    return "input", {"model": model or "gpt-5", "instructions": system, "store": False, "tools": [tool]}, []


def _converse_frame(system: str, model: str) -> tuple[str, Body, list[Body]]:
    tools = {"tools": [{"toolSpec": {"name": "read", "inputSchema": {"json": SCHEMA}}}]}
    named = model or "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    return "messages", {"modelId": named, "system": [{"text": system}], "toolConfig": tools}, []


def _contents_frame(system: str, model: str) -> tuple[str, Body, list[Body]]:
    tools = [{"functionDeclarations": [{"name": "read", "parameters": {"type": "OBJECT"}}]}]
    frame = {"model": model or "gemini-2.5-pro", "systemInstruction": {"parts": [{"text": system}]}}
    return "contents", {**frame, "tools": tools}, []


WRITERS: Mapping[str, tuple[Write, Frame]] = {
    "openai_chat": (_chat, _chat_frame),
    "anthropic": (_messages, _messages_frame),
    "openai_responses": (_responses, _responses_frame),
    "bedrock": (_converse, _converse_frame),
    "gemini": (_contents, _contents_frame),
}
FORMATS = tuple(WRITERS)
