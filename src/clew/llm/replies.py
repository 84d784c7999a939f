"""What a model answered, from the JSON of each API: the text alone, with thoughts and calls told apart."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from clew.catalog import usage
from clew.catalog.usage import Spent
from clew.errors import BadRequest, ModelError
from clew.steps.chapters.model import Reply
from clew.wire.formats.openai_chat import REASONING
from clew.wire.formats.plain import text_of

ReplyBody = Mapping[str, Any]

# Servers that do not part thoughts from text leave them at the beginning; one that was cut has no end.
_THOUGHT = re.compile(r"\s*<think>.*?(?:</think>\s*|\Z)", re.DOTALL)


def read(answer: ReplyBody, reader: Callable[[ReplyBody], Reply]) -> Reply:
    """The reply in an answer; one that does not have the shape of its API is refused."""
    try:
        return reader(answer)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ModelError(f"the answer cannot be read: {type(error).__name__} {error}", "refused") from None


def chat(answer: ReplyBody) -> Reply:
    """The reply of OpenAI's Chat Completions."""
    choice = answer["choices"][0]
    message = choice["message"]
    if message.get("refusal"):
        raise _declined(message["refusal"])
    said = text_of(message.get("content"))
    text = _THOUGHT.sub("", said, count=1) if _THOUGHT.match(said) else said
    reasoning = text != said or any(message.get(key) for key in REASONING)
    calls = [call.get("function") or call.get("custom") for call in message.get("tool_calls") or ()]
    return Reply(text, _spent(answer), _names(calls), reasoning, choice.get("finish_reason") == "length")


def responses(answer: ReplyBody) -> Reply:
    """The reply of OpenAI's Responses."""
    if answer.get("status") == "failed":
        raise ModelError(f"it failed: {(answer.get('error') or {}).get('message')}", "refused")
    items = answer["output"]
    parts = [part for item in items if item["type"] == "message" for part in item["content"]]
    if refusals := [part["refusal"] for part in parts if part["type"] == "refusal"]:
        raise _declined(refusals[0])
    text = "".join(part["text"] for part in parts if part["type"] == "output_text")
    calls = [item for item in items if "call_id" in item]  # what the provider runs itself has none
    reasoning = any(item["type"] == "reasoning" for item in items)
    cut = (answer.get("incomplete_details") or {}).get("reason") == "max_output_tokens"
    return Reply(text, _spent(answer), _names(calls), reasoning, cut)


def messages(answer: ReplyBody) -> Reply:
    """The reply of Anthropic's Messages."""
    if answer.get("stop_reason") == "refusal":
        raise _declined("stop_reason is refusal")
    blocks = answer["content"]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    calls = [block for block in blocks if block["type"] == "tool_use"]
    reasoning = any(block["type"] in ("thinking", "redacted_thinking") for block in blocks)
    cut = answer.get("stop_reason") in ("max_tokens", "model_context_window_exceeded")
    return Reply(text, _spent(answer), _names(calls), reasoning, cut)


def _names(calls: Iterable[ReplyBody]) -> tuple[str, ...]:
    return tuple(str(call.get("name") or call.get("type")) for call in calls)


def _spent(answer: ReplyBody) -> Spent:
    """What the call took; a server that does not say took nothing that we know of."""
    try:
        return usage.spent(answer.get("usage") or {})
    except BadRequest:
        return Spent(0)


def _declined(why: str) -> ModelError:
    return ModelError(f"the model declined to answer: {why}", "refused")
