"""Made-up conversations for tests: one script, written down as each format would."""

import json
import struct
import zlib
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

SampleMessage = dict[str, Any]

SAMPLE_WORDS = (
    "the parser reads src/clew/view.py and fails with KeyError 'id' at line 42 while 17 of 93 tests pass; retry after "
    '250 ms, see issue #381 and build 7f3a9c; Übergröße 東京 данные 🙂 {"a": [1, 2]} --flag=x'
).split(" ")


def _png(width: int, height: int) -> str:
    """A blank picture, in base64."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"\0" * (3 * width + 1) * height)
    return b64encode(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")).decode()


PICTURE = _png(320, 240)


@dataclass(frozen=True)
class UserTurn:
    """The user says something, perhaps in two parts, perhaps with a picture."""

    texts: tuple[str, ...]
    picture: bool


@dataclass(frozen=True)
class ToolTurn:
    """The assistant calls tools together and gets its results, in some order."""

    thought: str
    said: str
    calls: tuple[tuple[str, str], ...]  # (id, command)
    results: tuple[tuple[str, str], ...]  # (id, output)


@dataclass(frozen=True)
class AnswerTurn:
    """The assistant says something and waits."""

    text: str


SampleTurn = UserTurn | ToolTurn | AnswerTurn


def script(seed: int, turns: int, wordy: int) -> tuple[str, list[SampleTurn]]:
    """A system prompt and what happens under it, the same for the same arguments; it ends with the user asking."""
    random = Random(seed)  # noqa: S311  # for variety, not for secrets
    made = 0

    def text() -> str:
        size = random.choice((1, 3, wordy // 4, wordy, wordy * random.choice((1, 1, 1, 8))))
        return " ".join(random.choices(SAMPLE_WORDS, k=max(1, size)))

    def work() -> ToolTurn:
        nonlocal made
        count = random.choice((1, 1, 1, 2, 3, 7))
        made += count
        ids = [f"call_{made - n}" for n in range(count)]
        thought = text() if random.random() < 0.3 else ""
        said = text() if random.random() < 0.5 else ""
        calls = tuple((id, text()) for id in ids)
        random.shuffle(ids)
        return ToolTurn(thought, said, calls, tuple((id, text()) for id in ids))

    system, steps = text(), list[SampleTurn]()
    for turn in range(turns + 1):
        steps.append(UserTurn((text(), text()) if random.random() < 0.2 else (text(),), random.random() < 0.15))
        if turn < turns:
            steps += [work() for _ in range(random.randrange(4))]
            steps.append(AnswerTurn(text()))
    return system, steps


def conversation(seed: int, turns: int, format: str = "openai_chat", wordy: int = 60) -> dict[str, Any]:
    """A valid request body, the same for the same arguments: text, reasoning, images, single and parallel calls."""
    return WRITERS[format](*script(seed, turns, wordy))


def _openai_chat(system: str, steps: list[SampleTurn]) -> dict[str, Any]:
    messages: list[SampleMessage] = [{"role": "system", "content": system}]
    for step in steps:
        match step:
            case UserTurn((text,), False):
                messages.append({"role": "user", "content": text})
            case UserTurn(texts, picture):
                parts: list[SampleMessage] = [{"type": "text", "text": t} for t in texts]
                parts += [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}] * picture
                messages.append({"role": "user", "content": parts, "name": "kim"})
            case AnswerTurn(text):
                messages.append({"role": "assistant", "content": text})
            case ToolTurn(thought, said, calls, results):
                made = [
                    {"id": id, "type": "function", "function": {"name": "bash", "arguments": json.dumps({"cmd": cmd})}}
                    for id, cmd in calls
                ]
                extra = {"reasoning_content": thought} if thought else {}
                messages.append({"role": "assistant", "content": said or None, "tool_calls": made, **extra})
                messages += [{"role": "tool", "tool_call_id": id, "content": output} for id, output in results]
    return {"model": "gpt-4o", "messages": messages}


def _anthropic(system: str, steps: list[SampleTurn]) -> dict[str, Any]:
    messages: list[SampleMessage] = []
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}
    for step in steps:
        match step:
            case UserTurn((text,), False):
                messages.append({"role": "user", "content": text})
            case UserTurn(texts, picture):
                blocks: list[SampleMessage] = [{"type": "text", "text": t} for t in texts]
                messages.append({"role": "user", "content": blocks + [image] * picture})
            case AnswerTurn(text):
                messages.append({"role": "assistant", "content": text})
            case ToolTurn(thought, said, calls, results):
                blocks = [{"type": "thinking", "thinking": thought, "signature": "c2ln"}] if thought else []
                blocks += [{"type": "text", "text": said}] if said else []
                blocks += [{"type": "tool_use", "id": id, "name": "bash", "input": {"cmd": cmd}} for id, cmd in calls]
                back = [{"type": "tool_result", "tool_use_id": id, "content": output} for id, output in results]
                messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": back}]
    tool = {"name": "bash", "description": "Run a command.", "input_schema": {"type": "object", "properties": {}}}
    frame = {"model": "claude-sonnet-4-5", "max_tokens": 1024, "system": system, "tools": [tool]}
    return {**frame, "messages": messages}


def _openai_responses(system: str, steps: list[SampleTurn]) -> dict[str, Any]:
    items: list[SampleMessage] = []
    for step in steps:
        match step:
            case UserTurn((text,), False):
                items.append({"role": "user", "content": text})
            case UserTurn(texts, picture):
                parts: list[SampleMessage] = [{"type": "input_text", "text": t} for t in texts]
                url = f"data:image/png;base64,{PICTURE}"
                parts += [{"type": "input_image", "detail": "auto", "image_url": url}] * picture
                items.append({"type": "message", "role": "user", "content": parts})
            case AnswerTurn(text):
                items.append({"role": "assistant", "content": text})
            case ToolTurn(thought, said, calls, results):
                items += [_sealed(calls[0][0], thought)] if thought else []
                items += [{"role": "assistant", "content": said}] if said else []
                for id, cmd in calls:
                    arguments = json.dumps({"cmd": cmd})
                    items.append({"type": "function_call", "call_id": id, "name": "bash", "arguments": arguments})
                items += [{"type": "function_call_output", "call_id": id, "output": output} for id, output in results]
    return {"model": "gpt-5", "instructions": system, "input": items, "store": False}


def _sealed(id: str, thought: str) -> SampleMessage:
    """Reasoning as a stateless client sends it back."""
    summary = [{"type": "summary_text", "text": thought}]
    return {"type": "reasoning", "id": f"rs_{id}", "summary": summary, "encrypted_content": "c2VhbGVk"}


def _bedrock(system: str, steps: list[SampleTurn]) -> dict[str, Any]:
    messages: list[SampleMessage] = []
    image = {"image": {"format": "png", "source": {"bytes": PICTURE}}}
    for step in steps:
        match step:
            case UserTurn(texts, picture):
                messages.append({"role": "user", "content": [{"text": t} for t in texts] + [image] * picture})
            case AnswerTurn(text):
                messages.append({"role": "assistant", "content": [{"text": text}]})
            case ToolTurn(thought, said, calls, results):
                signed = {"reasoningText": {"text": thought, "signature": "c2ln"}}
                blocks: list[SampleMessage] = [{"reasoningContent": signed}] if thought else []
                blocks += [{"text": said}] if said else []
                blocks += [{"toolUse": {"toolUseId": id, "name": "bash", "input": {"cmd": c}}} for id, c in calls]
                back = [{"toolResult": {"toolUseId": id, "content": [{"text": out}]}} for id, out in results]
                messages += [{"role": "assistant", "content": blocks}, {"role": "user", "content": back}]
    spec = {"name": "bash", "inputSchema": {"json": {"type": "object"}}}
    frame = {"modelId": "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "toolConfig": {"tools": [{"toolSpec": spec}]}}
    return {**frame, "system": [{"text": system}], "messages": messages}


def _gemini(system: str, steps: list[SampleTurn]) -> dict[str, Any]:
    contents: list[SampleMessage] = []
    image = {"inlineData": {"mimeType": "image/png", "data": PICTURE}}
    for step in steps:
        match step:
            case UserTurn(texts, picture):
                contents.append({"role": "user", "parts": [{"text": t} for t in texts] + [image] * picture})
            case AnswerTurn(text):
                contents.append({"role": "model", "parts": [{"text": text}]})
            case ToolTurn(thought, said, calls, results):
                parts: list[SampleMessage] = [{"text": thought, "thought": True}] if thought else []
                parts += [{"text": said}] if said else []
                parts += [{"functionCall": {"id": id, "name": "bash", "args": {"cmd": cmd}}} for id, cmd in calls]
                back = [
                    {"functionResponse": {"id": id, "name": "bash", "response": {"result": output}}}
                    for id, output in results
                ]
                contents += [{"role": "model", "parts": parts}, {"role": "user", "parts": back}]
    tools = [{"functionDeclarations": [{"name": "bash", "parameters": {"type": "OBJECT"}}]}]
    return {
        "model": "gemini-2.5-pro",
        "systemInstruction": {"parts": [{"text": system}]},
        "tools": tools,
        "contents": contents,
    }


WRITERS: Mapping[str, Callable[[str, list[SampleTurn]], dict[str, Any]]] = {
    "openai_chat": _openai_chat,
    "anthropic": _anthropic,
    "openai_responses": _openai_responses,
    "bedrock": _bedrock,
    "gemini": _gemini,
}
