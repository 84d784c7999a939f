"""An answer of Anthropic's that no model gave: whole, and in events."""

from collections.abc import Iterator
from uuid import uuid4

from clew.wire.formats.plain import Block


def answer_block(text: str, model: str, read: int, written: int) -> Block:
    """The answer that says a text; `read` and `written` are the tokens it reports."""
    message = {"id": f"msg_{uuid4().hex}", "type": "message", "role": "assistant", "model": model}
    cached = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    usage = {"input_tokens": read, **cached, "output_tokens": written}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    return {
        **message,
        "content": [{"type": "text", "text": text}],
        **ended,
        "usage": {**usage, "output_tokens": written},
    }


def events(whole: Block) -> Iterator[tuple[str, Block]]:
    """The same as it is streamed."""
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    told: list[Block] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(whole["content"]):
        told += [
            {"type": "content_block_start", "index": index, "content_block": {**block, "text": ""}},
            {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": block["text"]}},
            {"type": "content_block_stop", "index": index},
        ]
    ended = {key: whole[key] for key in ("stop_reason", "stop_sequence")}
    told += [{"type": "message_delta", "delta": ended, "usage": whole["usage"]}, {"type": "message_stop"}]
    return ((event["type"], event) for event in told)
