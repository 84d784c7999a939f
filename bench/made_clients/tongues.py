"""One history in the words of each format, as the SDKs that clients are built with write it."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from made_clients.shape import ClientMessage, Worked
from made_clients.wording import Pen

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
Spec = tuple[str, str]  # the name of a tool, and what it says of itself


def tools_of(pen: Pen, tokens: int, names: Sequence[str]) -> list[Spec]:
    """Tools whose descriptions take about so many tokens together."""
    return [(name, pen.prose(tokens // len(names))) for name in names]


class Tongue(ABC):
    """How a format says things; each act gives the messages it adds."""

    format = ""

    def __init__(self, pen: Pen) -> None:
        self.pen = pen

    def asked(self, text: str) -> list[ClientMessage]:
        return [{"role": "user", "content": text}]

    def answered(self, text: str) -> list[ClientMessage]:
        return [{"role": "assistant", "content": text}]

    @abstractmethod
    def worked(self, work: Worked) -> list[ClientMessage]:
        """What the assistant said and called, and what came back."""

    @abstractmethod
    def body(self, model: str, system: str, tools: Sequence[Spec], history: Sequence[ClientMessage]) -> ClientMessage:
        """A request."""


class ChatTongue(Tongue):
    """OpenAI Chat Completions."""

    format = "openai_chat"
    silence: str | None = None  # beside calls without a word; some SDKs write an empty string

    def worked(self, work: Worked) -> list[ClientMessage]:
        made = [
            {"id": f"call_{c.id}", "type": "function", "function": {"name": c.name, "arguments": json.dumps(c.given)}}
            for c in work.calls
        ]
        said = {"role": "assistant", "content": work.said or self.silence, "tool_calls": made}
        return [said, *({"role": "tool", "tool_call_id": f"call_{c.id}", "content": c.output} for c in work.calls)]

    def body(self, model: str, system: str, tools: Sequence[Spec], history: Sequence[ClientMessage]) -> ClientMessage:
        specs = [
            {"type": "function", "function": {"name": name, "description": about, "parameters": SCHEMA}}
            for name, about in tools
        ]
        messages = [{"role": "system", "content": system}, *history]
        frame = {"model": model, "messages": messages, "stream": True, "stream_options": {"include_usage": True}}
        return {**frame, "tools": specs} if specs else frame


class MessagesTongue(Tongue):
    """Anthropic Messages."""

    format = "anthropic"

    def worked(self, work: Worked) -> list[ClientMessage]:
        blocks: list[ClientMessage] = []
        if work.thought:
            blocks.append({"type": "thinking", "thinking": work.thought, "signature": self.pen.seal()})
        blocks += [{"type": "text", "text": work.said}] if work.said else []
        blocks += [{"type": "tool_use", "id": f"toolu_{c.id}", "name": c.name, "input": c.given} for c in work.calls]
        back = [{"type": "tool_result", "content": c.output, "tool_use_id": f"toolu_{c.id}"} for c in work.calls]
        return [{"role": "assistant", "content": blocks}, {"role": "user", "content": back}]

    def answered(self, text: str) -> list[ClientMessage]:
        return [{"role": "assistant", "content": [{"type": "text", "text": text}]}]

    def body(self, model: str, system: str, tools: Sequence[Spec], history: Sequence[ClientMessage]) -> ClientMessage:
        specs = [{"name": name, "description": about, "input_schema": SCHEMA} for name, about in tools]
        blocks = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        frame = {"model": model, "max_tokens": 32_000, "system": blocks, "messages": list(history), "stream": True}
        return {**frame, "tools": specs} if specs else frame


class ResponsesTongue(Tongue):
    """OpenAI Responses without a state on the server: items with ids, reasoning sealed."""

    format = "openai_responses"

    def message(self, role: str, *texts: str) -> ClientMessage:
        """A message with an id of its own."""
        kind = "output_text" if role == "assistant" else "input_text"
        content = [{"type": kind, "text": text} for text in texts]
        return {"type": "message", "id": self.pen.id("msg_"), "role": role, "content": content}

    def asked(self, text: str) -> list[ClientMessage]:
        return [self.message("user", text)]

    def answered(self, text: str) -> list[ClientMessage]:
        return [self.message("assistant", text)]

    def thought(self, text: str) -> ClientMessage:
        """Reasoning as a client without a state sends it back."""
        summary = [{"type": "summary_text", "text": text}]
        return {"type": "reasoning", "id": self.pen.id("rs_"), "summary": summary, "encrypted_content": self.pen.seal()}

    def worked(self, work: Worked) -> list[ClientMessage]:
        items = [self.thought(work.thought)] if work.thought else []
        items += [self.message("assistant", work.said)] if work.said else []
        for c in work.calls:
            about = {"name": c.name, "arguments": json.dumps(c.given), "call_id": f"call_{c.id}"}
            items.append({"type": "function_call", "id": self.pen.id("fc_"), **about})
        for c in work.calls:
            about = {"call_id": f"call_{c.id}", "output": c.output}
            items.append({"type": "function_call_output", "id": self.pen.id("fco_"), **about})
        return items

    def body(self, model: str, system: str, tools: Sequence[Spec], history: Sequence[ClientMessage]) -> ClientMessage:
        specs = [
            {"type": "function", "name": name, "description": about, "strict": False, "parameters": SCHEMA}
            for name, about in tools
        ]
        lead = [{"role": "developer", "content": system}] if system else []
        frame = {"model": model, "input": [*lead, *history], "store": False, "stream": True}
        return {**frame, "include": ["reasoning.encrypted_content"], **({"tools": specs} if specs else {})}


class GeminiTongue(Tongue):
    """Gemini's generateContent."""

    format = "gemini"

    def asked(self, text: str) -> list[ClientMessage]:
        return [{"role": "user", "parts": [{"text": text}]}]

    def answered(self, text: str) -> list[ClientMessage]:
        return [{"role": "model", "parts": [{"text": text}]}]

    def worked(self, work: Worked) -> list[ClientMessage]:
        parts: list[ClientMessage] = [{"text": work.said}] if work.said else []
        for n, c in enumerate(work.calls):
            # Only the first of calls made together is signed.
            signed = {"thoughtSignature": self.pen.seal()} if n == 0 else {}
            parts.append({"functionCall": {"id": c.id, "name": c.name, "args": c.given}, **signed})
        back = [
            {"functionResponse": {"id": c.id, "name": c.name, "response": {"output": c.output}}} for c in work.calls
        ]
        return [{"role": "model", "parts": parts}, {"role": "user", "parts": back}]

    def body(self, model: str, system: str, tools: Sequence[Spec], history: Sequence[ClientMessage]) -> ClientMessage:
        declared = [{"name": name, "description": about, "parametersJsonSchema": SCHEMA} for name, about in tools]
        frame: dict[str, Any] = {"contents": list(history), "generationConfig": {"temperature": 1, "topP": 0.95}}
        frame["systemInstruction"] = {"role": "user", "parts": [{"text": system}]}
        return {**frame, "tools": [{"functionDeclarations": declared}]} if declared else frame


TONGUES: Mapping[str, type[Tongue]] = {t.format: t for t in (ChatTongue, MessagesTongue, ResponsesTongue, GeminiTongue)}
