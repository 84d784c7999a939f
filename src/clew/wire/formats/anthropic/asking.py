"""One more question after a request, so that the provider finds in its cache what it was sent before."""

from typing import Any

from clew import catalog
from clew.errors import ModelError
from clew.wire.formats.base import ModelQuestion
from clew.wire.formats.plain import Block


def question(asked: ModelQuestion) -> Block:
    """The body that asks it."""
    limit = asked.limit
    body = asked.after
    if body is None:
        body = {"messages": [], **({"system": asked.system} if asked.system else {})}
    else:
        # A change of `thinking` would lose the cache, and thinking alone may use up the limit.
        limit += int((body.get("thinking") or {}).get("budget_tokens") or 0)
        if limit > (catalog.lookup(asked.model).max_output or limit):
            raise ModelError(f"{asked.model} has no room for a summary beside its thinking", "refused")
        if not _is_marked(body):
            _mark(body["messages"])
    return {**body, "messages": [*body["messages"], {"role": "user", "content": asked.text}], "max_tokens": limit}


def _is_marked(value: Any) -> bool:
    """Whether there is a cache mark on the request or on anything in it."""
    if isinstance(value, dict):
        return "cache_control" in value or any(map(_is_marked, value.values()))
    return isinstance(value, list) and any(map(_is_marked, value))


def _mark(messages: list[Block]) -> None:
    """Mark the end of what was sent before.

    The cache is written and looked up at marks alone. Those of the live request stay where they are, so what it wrote
    is found. Without any, nothing was written and there is nothing to find; but the same request may be asked about
    again, for a retry or the next part, and the mark is what that will find. On the question it would find nothing.
    """
    if not messages:
        return
    content = messages[-1].get("content")
    if isinstance(content, str):
        content = messages[-1]["content"] = [{"type": "text", "text": content}]
    if content and content[-1].get("type") not in ("thinking", "redacted_thinking") and content[-1].get("text") != "":
        content[-1]["cache_control"] = {"type": "ephemeral"}
