"""An answer of Chat Completions that no model gave: whole, and in chunks."""

import time
from collections.abc import Iterator
from uuid import uuid4

from clew.wire.formats.plain import Block


def answer_block(text: str, model: str, read: int, written: int) -> Block:
    """The answer that says a text; `read` and `written` are the tokens it reports."""
    about = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": model, "object": "chat.completion"}
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return {**about, "choices": [choice], "usage": usage}


def events(whole: Block) -> Iterator[tuple[str, Block]]:
    """The same as it is streamed."""
    about = {key: whole[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    [choice] = whole["choices"]
    for delta, finish in ((choice["message"], None), ({}, choice["finish_reason"])):
        yield "", {**about, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    yield "", {**about, "choices": [], "usage": whole["usage"]}
