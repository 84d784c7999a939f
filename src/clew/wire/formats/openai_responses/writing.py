"""A response of OpenAI's that no model gave: whole, and in events."""

import time
from collections.abc import Iterator
from uuid import uuid4

from clew.wire.formats.plain import Block


def answer_block(text: str, model: str, read: int, written: int) -> Block:
    """The response that says a text; `read` and `written` are the tokens it reports."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    about = {"id": f"msg_{uuid4().hex}", "type": "message", "role": "assistant", "status": "completed"}
    return responded([{**about, "content": [part]}], model, read, written)


def responded(output: list[Block], model: str, read: int, written: int, kind: str = "response") -> Block:
    """A response with these items."""
    usage = {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }
    about: Block = {"id": f"resp_{uuid4().hex}", "object": kind, "created_at": int(time.time()), "model": model}
    return {**about, "status": "completed", "output": output, "usage": usage, "error": None}


def events(whole: Block) -> Iterator[tuple[str, Block]]:
    """The same as it is streamed."""
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    told: list[Block] = [{"type": f"response.{name}", "response": begun} for name in ("created", "in_progress")]
    for index, item in enumerate(whole["output"]):
        told += _item(item, index)
    told.append({"type": "response.completed", "response": whole})
    return ((event["type"], {**event, "sequence_number": n}) for n, event in enumerate(told))


def _item(item: Block, index: int) -> Iterator[Block]:
    place = {"output_index": index}
    if item["type"] == "message":
        at = {**place, "item_id": item["id"], "content_index": 0}
        [part] = item["content"]
        yield {"type": "response.output_item.added", **place, "item": {**item, "status": "in_progress", "content": []}}
        yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
        yield {"type": "response.output_text.delta", **at, "delta": part["text"], "logprobs": []}
        yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": part}
    else:
        yield {"type": "response.output_item.added", **place, "item": item}
    yield {"type": "response.output_item.done", **place, "item": item}
