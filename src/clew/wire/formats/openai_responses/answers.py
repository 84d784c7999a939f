"""An answer of OpenAI's Responses, put together from its events."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clew.core import rawjson
from clew.wire.streams import pieces
from clew.wire.streams.faults import failure
from clew.wire.streams.pieces import AnswerMessage, Called, Piece, Spoken, StopReason, Text, Thought, ToolCall

ResponsesEvent = Mapping[str, Any]

_STOPS: Mapping[str, StopReason] = {"max_output_tokens": "length", "content_filter": "refused"}


class ResponsesAnswer:
    """What a model has said so far; of a server that does not stream, its whole answer is one event."""

    def __init__(self) -> None:
        self.over = False  # nothing more is to come
        self._begun: dict[int, AnswerMessage] = {}
        self._done: dict[int, AnswerMessage] = {}
        self._parts: dict[int, list[str]] = {}  # text of items that are not done
        self._response: ResponsesEvent = {}

    def add(self, event: ResponsesEvent) -> Sequence[Piece]:
        """Hear one event: what it adds; what those of unknown types tell comes again when an item is done."""
        kind = str(event.get("type"))
        match kind.removeprefix("response."):
            case "output_text.delta" | "refusal.delta":  # most events
                self._parts.setdefault(event["output_index"], []).append(event["delta"])
                return (Text(event["delta"]),)
            case "output_item.added":
                return self._begin(event["output_index"], event["item"])
            case "output_item.done":
                self._done[event["output_index"]] = event["item"]
            case "reasoning_summary_text.delta" | "reasoning_text.delta":
                return (Thought(event["delta"]),)
            case "reasoning_summary_part.added" if event.get("summary_index"):
                return (Thought("\n\n"),)
            case "function_call_arguments.delta" | "custom_tool_call_input.delta":
                item = self._begun[event["output_index"]]
                return (Called(item["call_id"], _name(item), event["delta"]),)
            case "completed" | "incomplete" | "failed" | "cancelled":
                self._end(event["response"])
            case "error":
                raise failure(event.get("error") or event)
            case _ if event.get("object") == "response":
                self._end(event)
                return [piece for item in self._items() for piece in _pieces_of_item(item)]
            case _ if event.get("error"):
                raise failure(event["error"])
        return ()

    def spoken(self) -> Spoken:
        """What was said; of what was not done, only text."""
        items = self._items()
        texts = [part.get("text") or part.get("refusal") or "" for part in _parts(items)]
        calls = [_call(item) for item in items if _is_call(item)]
        reason = (self._response.get("incomplete_details") or {}).get("reason") or self._response.get("status")
        while items and items[-1].get("type") == "reasoning":  # refused where nothing follows it
            items.pop()
        return Spoken(items, "".join(texts), calls, self._stop(items, reason), reason, self._response.get("usage"))

    def _begin(self, index: int, item: AnswerMessage) -> Sequence[Piece]:
        self._begun[index] = item
        return (Called(item["call_id"], _name(item), ""),) if _is_call(item) else ()

    def _end(self, response: ResponsesEvent) -> None:
        self.over = True
        if response.get("status") in ("failed", "cancelled"):
            raise failure(response.get("error") or f"the response was {response['status']}")
        self._response = response

    def _items(self) -> list[AnswerMessage]:
        if output := self._response.get("output"):
            return list(output)
        # Some servers do not say all of it again at the end, and one that broke off could not.
        return [item for index in sorted({*self._begun, *self._done}) if (item := self._item(index))]

    def _item(self, index: int) -> AnswerMessage | None:
        if index in self._done or index not in self._parts:
            return self._done.get(index)
        text = {"type": "output_text", "text": "".join(self._parts[index]), "annotations": []}
        return {**self._begun.get(index, {"type": "message", "role": "assistant"}), "content": [text]}

    def _stop(self, items: list[AnswerMessage], reason: str | None) -> StopReason:
        if not self._response:
            return "cut"
        if any(part.get("refusal") for part in _parts(items)):
            return "refused"
        return _STOPS.get(str(reason)) or ("calls" if any(map(_is_call, items)) else "end")


def _parts(items: list[AnswerMessage]) -> Iterator[AnswerMessage]:
    for item in items:
        if item.get("type") == "message":
            yield from item.get("content") or ()


def _is_call(item: ResponsesEvent) -> bool:
    """Whether it is for the client to run: what the provider runs itself has no `call_id`, and an output is no call."""
    return "call_id" in item and str(item.get("type")).endswith("_call")


def _name(item: ResponsesEvent) -> str:
    return str(item.get("name") or item["type"])


def _call(item: ResponsesEvent) -> ToolCall:
    raw = item.get("arguments") or item.get("input") or item.get("action") or item.get("operation") or ""
    return pieces.call(item["call_id"], _name(item), raw if isinstance(raw, str) else rawjson.dumps(raw).decode())


def _pieces_of_item(item: AnswerMessage) -> Iterator[Piece]:
    """The pieces of an item that was not streamed."""
    if item.get("type") == "reasoning":
        yield from (Thought(part["text"]) for part in item.get("summary") or () if part.get("text"))
    elif _is_call(item):
        call = _call(item)
        yield Called(call.id, call.name, call.raw)
    yield from (Text(text) for part in _parts([item]) if (text := part.get("text") or part.get("refusal")))
