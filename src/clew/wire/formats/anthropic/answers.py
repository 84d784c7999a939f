"""An answer of Anthropic's Messages, put together from its events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clew.core import rawjson
from clew.wire.streams import pieces
from clew.wire.streams.faults import failure
from clew.wire.streams.pieces import AnswerMessage, Called, Piece, Spoken, StopReason, Text, Thought, ToolCall

MessagesEvent = Mapping[str, Any]

_STOPS: Mapping[str, StopReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
_THINKING = ("thinking", "redacted_thinking")
# Where in a block, and in a delta, that lies which grows.
_GROWS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
    "compaction_delta": "content",
}
_INVALID = "INVALID_JSON"  # what Anthropic advises to wrap arguments in that are none: `input` must be an object


class MessagesAnswer:
    """What a model has said so far; of a server that does not stream, its whole answer is one event."""

    def __init__(self) -> None:
        self.over = False  # nothing more is to come
        self._blocks: dict[int, _GrowingBlock] = {}
        self._reason: str | None = None
        self._usage: AnswerMessage = {}

    def add(self, event: MessagesEvent) -> Sequence[Piece]:
        """Hear one event: what it adds; those of unknown types, and pings, say nothing."""
        match event.get("type"):
            case "content_block_delta":  # most events
                return self._blocks[event["index"]].add(event["delta"])
            case "message_start":
                self._report(event["message"])
            case "content_block_start":
                return self._start(event["index"], event["content_block"])
            case "content_block_stop":
                self._blocks[event["index"]].done = True
            case "message_delta":
                self._reason = event["delta"].get("stop_reason") or self._reason
                self._report(event)
            case "message_stop":
                self.over = True
            case "message":
                began = [piece for index, block in enumerate(event["content"]) for piece in self._start(index, block)]
                for block in self._blocks.values():
                    block.done = True
                self._reason = event.get("stop_reason")
                self._report(event)
                return began
            case _ if "error" in event:
                raise failure(event["error"])
        return ()

    def spoken(self) -> Spoken:
        """What was said; a half-made block is left out unless it is text."""
        blocks = [block for _, block in sorted(self._blocks.items()) if block.done or block.kind == "text"]
        text = "".join(block.text for block in blocks)
        calls = [block.call for block in blocks if block.kind == "tool_use"]
        sent = [block for block in blocks if block.kind != "text" or block.text.strip()]  # it takes no blank text
        while sent and sent[-1].kind in _THINKING:  # nor thoughts at the end of a message
            sent.pop()
        messages = [{"role": "assistant", "content": [block.wire for block in sent]}] if sent else []
        return Spoken(messages, text, calls, self._stop(calls), self._reason, self._usage or None)

    def _stop(self, calls: list[ToolCall]) -> StopReason:
        if self._reason is None:
            return "cut"
        return _STOPS.get(self._reason) or ("calls" if calls else "end")

    def _start(self, index: int, block: MessagesEvent) -> Sequence[Piece]:
        growing = self._blocks[index] = _GrowingBlock(dict(block))
        return growing.begin()

    def _report(self, said: MessagesEvent) -> None:
        """What comes later in a stream is said of the whole, but not everything is said again."""
        self._usage |= {key: value for key, value in (said.get("usage") or {}).items() if value is not None}


@dataclass(slots=True)
class _GrowingBlock:
    """A block that is still coming."""

    start: AnswerMessage
    parts: dict[str, list[str]] = field(default_factory=dict)
    done: bool = False

    def begin(self) -> Sequence[Piece]:
        """What a block says at its start, which is all of it where nothing is streamed."""
        if text := self.start.get("text"):
            return (Text(text),)
        if thought := self.start.get("thinking"):
            return (Thought(thought),)
        if self.kind == "tool_use":
            whole = self.start.get("input")
            return (Called(self.start["id"], self.start["name"], rawjson.dumps(whole).decode() if whole else ""),)
        return ()

    def add(self, delta: MessagesEvent) -> Sequence[Piece]:
        kind = delta["type"]
        if kind == "citations_delta":
            self.start["citations"] = [*(self.start.get("citations") or ()), delta["citation"]]
        grows = _GROWS.get(kind)
        if grows is None:
            return ()
        part = delta.get(grows) or ""
        self.parts.setdefault(grows, []).append(part)
        if kind == "text_delta":
            return (Text(part),)
        if kind == "thinking_delta":
            return (Thought(part),)
        if kind == "input_json_delta" and self.kind == "tool_use":
            return (Called(self.start["id"], self.start["name"], part),)
        return ()

    @property
    def kind(self) -> str:
        return str(self.start["type"])

    @property
    def text(self) -> str:
        return self._grown("text") if self.kind == "text" else ""

    @property
    def call(self) -> ToolCall:
        raw = self._grown("partial_json") or rawjson.dumps(self.start.get("input") or {}).decode()
        return pieces.call(self.start.get("id", ""), self.start.get("name", ""), raw)

    @property
    def wire(self) -> AnswerMessage:
        """The block as it is sent back."""
        grown: AnswerMessage = {key: self._grown(key) for key in self.parts if key != "partial_json"}
        if "partial_json" in self.parts:
            call = self.call
            grown["input"] = {_INVALID: call.raw} if call.arguments is None else call.arguments
        return {**self.start, **grown}

    def _grown(self, key: str) -> str:
        return (self.start.get(key) or "") + "".join(self.parts.get(key, ()))
