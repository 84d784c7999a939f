"""Strands: its sliding window, and its manager that has summaries written."""

import json
from collections.abc import AsyncIterator, Sequence
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from packages.standin import shortened

THRESHOLD = 0.7  # of the window, where `proactive_compression=True` reduces
CHARACTERS = 4  # of a token, as its own estimate has it


class Managed:
    """An agent's messages under a manager: before a call proactively, then for as long as a provider would refuse."""

    def __init__(self, manager: Any, window: int) -> None:
        self._manager, self._window = manager, window
        self._overflow = import_module("strands.types.exceptions").ContextWindowOverflowException
        self._agent = SimpleNamespace(messages=[], aux_model=SimpleNamespace(stream=_stream))

    def fit(self, messages: Sequence[Any]) -> list[Any]:
        start = next((i for i, m in enumerate(messages) if m["role"] != "system"), len(messages))
        room = self._window - _size(messages[:start])
        self._agent.messages = _joined(messages[start:])
        self._manager.apply_management(self._agent)
        if _size(self._agent.messages) > THRESHOLD * room:
            self._manager.reduce_context(self._agent)
        while (have := _size(self._agent.messages)) > room:
            try:
                self._manager.reduce_context(self._agent, self._overflow("too long"))
            except self._overflow:
                break  # it gives up, and the agent with it
            if _size(self._agent.messages) >= have:
                break
        return [*messages[:start], *(plain for m in self._agent.messages for plain in _plain(m))]


def sliding(window: int) -> Managed:
    """The newest 40 messages; results are cut where that is not enough."""
    made = import_module("strands.agent.conversation_manager").SlidingWindowConversationManager
    return Managed(made(per_turn=True), window)


def summarising(window: int) -> Managed:
    """The oldest 30 % become a summary, and again."""
    made = import_module("strands.agent.conversation_manager").SummarizingConversationManager
    return Managed(made(), window)


async def _stream(messages: Sequence[Any], *_: Any, **__: Any) -> AsyncIterator[Any]:
    """A model that copies; the last message asks for the summary."""
    said = [(m["role"], " ".join(_texts(m["content"]))) for m in messages[:-1]]
    yield {"messageStart": {"role": "assistant"}}
    yield {"contentBlockDelta": {"delta": {"text": shortened(said)}}}
    yield {"contentBlockStop": {}}
    yield {"messageStop": {"stopReason": "end_turn"}}


def _texts(blocks: Sequence[Any]) -> list[str]:
    return [b["text"] for b in blocks if "text" in b] + [
        part["text"] for b in blocks if "toolResult" in b for part in b["toolResult"]["content"] if "text" in part
    ]


def _size(messages: Sequence[Any]) -> int:
    return sum(len(json.dumps(m.get("content"), ensure_ascii=False)) for m in messages) // CHARACTERS


def _joined(messages: Sequence[Any]) -> list[Any]:
    """Messages as Strands has them: results of one turn in one message."""
    found: list[Any] = []
    for message in messages:
        role, blocks = ("assistant" if message["role"] == "assistant" else "user"), _blocks(message)
        if (
            found
            and message["role"] == "tool"
            and found[-1]["role"] == role
            and "toolResult" in found[-1]["content"][0]
        ):
            found[-1]["content"] += blocks
        elif blocks:
            found.append({"role": role, "content": blocks})
    return found


def _blocks(message: Any) -> list[Any]:
    text = message.get("content") or ""
    said = text if isinstance(text, str) else "\n".join(part.get("text", "") for part in text)
    if message["role"] == "tool":
        result = {"toolUseId": message["tool_call_id"], "status": "success", "content": [{"text": said}]}
        return [{"toolResult": result}]
    calls = [
        {"toolUse": {"toolUseId": c["id"], "name": c["function"]["name"], "input": _read(c["function"]["arguments"])}}
        for c in message.get("tool_calls") or ()
    ]
    return [*([{"text": said}] if said else []), *calls]


def _read(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return {"text": arguments}


def _plain(message: Any) -> list[Any]:
    """A message of Strands in OpenAI's format."""
    blocks = message["content"]
    found: list[Any] = [
        {"role": "tool", "tool_call_id": b["toolResult"]["toolUseId"], "content": " ".join(_texts([b]))}
        for b in blocks
        if "toolResult" in b
    ]
    text = "\n".join(b["text"] for b in blocks if "text" in b)
    calls = [
        {"id": b["toolUse"]["toolUseId"], "type": "function", "function": _function(b["toolUse"])}
        for b in blocks
        if "toolUse" in b
    ]
    if text or calls:
        found.append({"role": message["role"], "content": text, **({"tool_calls": calls} if calls else {})})
    return found


def _function(used: Any) -> dict[str, str]:
    return {"name": used["name"], "arguments": json.dumps(used["input"], ensure_ascii=False)}


WAYS = {"window": sliding, "summarise": summarising}
