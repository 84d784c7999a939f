"""What Anthropic's Messages API refuses about compaction on demand; a rule's docstring is the refusal it stands for.

From platform.claude.com/docs/en/build-with-claude/compaction-on-demand. Only a block with a signature is of this kind:
one without is of compaction at a threshold, which stands after what it tells of.
"""

from collections.abc import Mapping
from typing import Any

from clew.wire.rules.binding import is_as_signed
from clew.wire.rules.turns import Findings, Placed, Rule, WireBody, blocks

COMPACT_BETA = "compact-2026-09-04"  # the header value for requests that ask for a block, or carry one
BLOCK_KEYS = frozenset({"type", "content", "signature", "encrypted_content", "tool_changes", "cache_control"})


def asks_for_block(body: WireBody) -> bool:
    """Whether a request asks for a block in place of an answer."""
    return body.get("compaction") is not None


def signed_blocks(body: WireBody) -> list[Placed]:
    """The blocks of a request that the provider wrote on demand."""
    return [placed for placed in blocks(body) if placed[1]["type"] == "compaction" and placed[1].get("signature")]


def block_comes_first(body: WireBody) -> Findings:
    """compaction_block_misplaced: the compaction block must come first in messages; exactly one may be sent"""
    all_blocks = blocks(body)
    for n, (where, block) in enumerate(signed_blocks(body)):
        if n:
            yield where, "the request carries more than one compaction block: send the newest alone"
        elif block is not all_blocks[0][1]:
            yield where, "compaction_block_misplaced: messages stand in front of the compaction block"


def block_is_unchanged(body: WireBody) -> Findings:
    """compaction_content_mismatch: the block was changed after the API returned it;
    messages.0.content.0.compaction.citations: Extra inputs are not permitted
    """
    for where, block in signed_blocks(body):
        if is_as_signed(block) is False:
            yield where, "compaction_content_mismatch: the content is not what was signed"
        for key in sorted(block.keys() - BLOCK_KEYS):
            yield f"{where}.compaction.{key}", "Extra inputs are not permitted"


def block_is_asked_for_alone(body: WireBody) -> Findings:
    """compaction: cannot be combined with context_management, stop_sequences, a forced tool or a format of answers"""
    if not asks_for_block(body):
        return
    asked = body["compaction"]
    if not isinstance(asked, Mapping) or asked.get("type") != "summarize":
        yield "compaction.type", "Input should be 'summarize'"
    for key in ("context_management", "stop_sequences"):
        if body.get(key):
            yield key, "cannot be combined with compaction"
    if _part(body, "tool_choice", "type") in ("any", "tool"):
        yield "tool_choice", "cannot be combined with compaction"
    if _part(body, "output_config", "format") is not None:
        yield "output_config.format", "cannot be combined with compaction"


def block_and_threshold_exclude_each_other(body: WireBody) -> Findings:
    """context_management: compact_20260112 cannot run on a request that carries a signed compaction block"""
    edits = _part(body, "context_management", "edits")
    asked = [e for e in edits if isinstance(e, Mapping)] if isinstance(edits, list | tuple) else []
    if any(edit.get("type") == "compact_20260112" for edit in asked) and signed_blocks(body):
        yield "context_management", "compact_20260112 cannot run on a request that carries a signed compaction block"


def _part(body: WireBody, key: str, inner: str) -> Any:
    held = body.get(key)
    return held.get(inner) if isinstance(held, Mapping) else None


COMPACTION_RULES: list[Rule] = [
    block_comes_first,
    block_is_unchanged,
    block_is_asked_for_alone,
    block_and_threshold_exclude_each_other,
]
