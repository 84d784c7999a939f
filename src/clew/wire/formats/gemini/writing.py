"""An answer of Gemini's that no model gave."""

from collections.abc import Iterator
from uuid import uuid4

from clew.wire.formats.plain import Block


def answer_block(text: str, model: str, read: int, written: int) -> Block:
    """The answer that says a text; `read` and `written` are the tokens it reports."""
    content = {"role": "model", "parts": [{"text": text}]}
    usage = {"promptTokenCount": read, "candidatesTokenCount": written, "totalTokenCount": read + written}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
        "modelVersion": model,
        "responseId": uuid4().hex,
    }


def events(whole: Block) -> Iterator[tuple[str, Block]]:
    """The same as it is streamed: it is one chunk."""
    yield "", whole
