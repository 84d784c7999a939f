"""Anthropic's compaction on demand: the request that asks for a block, and the block that comes back.

From platform.claude.com/docs/en/build-with-claude/compaction-on-demand: the API sums up all messages of the request,
and the block goes first in later requests, in their place and under the same beta header. Of the two ways in which this
API compacts, only this one keeps the thinking valid that follows the block.
"""

from collections.abc import Mapping
from typing import Any

from clew.core.view import View
from clew.errors import ModelError
from clew.llm.requests import RequestBody, live
from clew.wire.formats import anthropic

SUMMARY_TOKENS = 8_192  # for the summary, beside what the model thinks before it
_REFUSED_BESIDE = ("context_management", "stop_sequences")


def compaction_request(view: View, model: str) -> RequestBody:
    """The request that has all of a view summed up: in the same frame, without what may not stand beside it."""
    body = {key: value for key, value in live(view, anthropic.NAME, model).items() if key not in _REFUSED_BESIDE}
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        del body["tool_choice"]
    if "output_config" in body:
        body["output_config"] = {k: v for k, v in body["output_config"].items() if k not in ("format", "task_budget")}
    thought = int((body.get("thinking") or {}).get("budget_tokens") or 0)
    most = max(int(body.get("max_tokens") or 0), SUMMARY_TOKENS + thought)
    return {**body, "model": model, "max_tokens": most, "compaction": {"type": "summarize"}}


def compaction_blocks(answer: Any) -> list[dict[str, Any]]:
    """The block of an answer. Raises `ModelError` where there is none: the call ended otherwise, and says how."""
    answer = answer if isinstance(answer, Mapping) else {}
    content = answer.get("content")
    found = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []
    blocks = [b for b in found if b.get("type") == "compaction" and b.get("content")]
    if not blocks:
        raise ModelError(f"no summary came back; the call ended with {answer.get('stop_reason')!r}", "refused")
    return blocks
