"""What Anthropic's Messages API refuses; a rule's docstring is the refusal it stands for.

A rule yields where it is broken and why, and passes over what it cannot read: another rule reports that. An assistant
message in the first place and roles that do not alternate are accepted, so no rule speaks of them.
"""

from collections.abc import Mapping
from typing import Any

from clew.wire.rules_anthropic_tools import TOOL_RULES
from clew.wire.turns import (
    Body,
    Found,
    Placed,
    Rule,
    blocks,
    is_directive,
    listed,
    marks,
    messages,
    nested,
    turns,
    within,
)

ROLES = ("user", "assistant", "system")
THINKING = ("thinking", "redacted_thinking")
MARKS = 4
MEDIA = 600  # on models with a window of a million tokens; 100 on others


def has_messages(body: Body) -> Found:
    """messages: at least one message is required"""
    messages = body.get("messages")
    if not isinstance(messages, list | tuple):
        yield "messages", f"expected a list, got {type(messages).__name__}"
    elif not messages:
        yield "messages", "the list is empty"


def role_is_known(body: Body) -> Found:
    """messages.0.role: Input should be 'user', 'assistant' or 'system'"""
    messages = body.get("messages")
    for i, message in enumerate(messages if isinstance(messages, list | tuple) else ()):
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in ROLES:
            yield f"messages[{i}].role", f"{role!r} is none of {', '.join(ROLES)}"


def content_is_text_or_blocks(body: Body) -> Found:
    """messages.0.content.0: Input should be an object with a `type` (MessageParam in the SDK)"""
    for where, message in messages(body):
        content = message.get("content")
        if isinstance(content, str) or (content is None and message.get("role") == "system"):
            continue
        if not isinstance(content, list | tuple):
            yield f"{where}.content", f"expected a string or a list, got {type(content).__name__}"
            continue
        for i, block in enumerate(content):
            if not isinstance(block, Mapping) or not isinstance(block.get("type"), str):
                yield f"{where}.content[{i}]", "expected an object with a `type`"


def message_is_not_empty(body: Body) -> Found:
    """messages.0: all messages must have non-empty content except for the optional final assistant message"""
    messages = list(messages(body))
    for n, (where, message) in enumerate(messages):
        final = n == len(messages) - 1 and message.get("role") == "assistant"
        if not final and not is_directive(message) and message.get("content") in ("", [], ()):
            yield f"{where}.content", f"the {message.get('role')} message is empty and does not end the list"


def text_is_not_blank(body: Body) -> Found:
    """messages: text content blocks must be non-empty; text content blocks must contain non-whitespace text"""
    for where, block in [*listed(body, "system"), *blocks(body)]:
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str) and not text.strip():
            yield where, f"the text is {text!r}"
    for where, message in messages(body):
        content = message.get("content")
        if isinstance(content, str) and content and not content.strip():
            yield f"{where}.content", f"the text is {content!r}"


def prefill_ends_in_a_word(body: Body) -> Found:
    """messages: final assistant content cannot end with trailing whitespace"""
    messages = list(messages(body))
    where, message = messages[-1] if messages else ("", {})
    if message.get("role") != "assistant":
        return
    content = message.get("content")
    blocks = within(message, where)
    text = blocks[-1][1].get("text") if blocks else content
    if isinstance(text, str) and text.strip() and text != text.rstrip():
        yield f"{where}.content", f"the final assistant text ends in whitespace: {text[-10:]!r}"


def system_message_stands_right(body: Body) -> Found:
    """messages.2: role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result;
    role 'system' must precede an 'assistant' message or end the array;
    messages.0: use the top-level 'system' parameter for the initial system prompt
    """
    turns = [(role, blocks) for role, blocks in turns(body, keep_empty=True)]
    for n, (role, blocks) in enumerate(turns):
        if role != "system" or not blocks:
            continue
        where = blocks[0][0]
        if n == 0:
            yield where, "a system message cannot come first: use the key `system`"
        elif turns[n - 1][0] == "assistant" and not ends_in_server_result(turns[n - 1][1]):
            yield where, "the system message follows an assistant message that does not end in a server tool's result"
        elif n + 1 < len(turns) and turns[n + 1][0] != "assistant":
            yield where, "the system message is followed by a user message"


def system_message_is_text(body: Body) -> Found:
    """messages.1: role 'system' supports text, tool_addition, and tool_removal blocks only"""
    for where, message in messages(body):
        for place, block in within(message, where) if message.get("role") == "system" else ():
            if block["type"] not in ("text", "tool_addition", "tool_removal"):
                yield place, f"a system message holds a block of type {block['type']}"


def thinking_is_whole(body: Body) -> Found:
    """messages.1.content.0.thinking.signature: Field required"""
    needs = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
    for where, block in blocks(body):
        for key in needs.get(block["type"], ()):
            if not isinstance(block.get(key), str):
                yield f"{where}.{key}", f"the {block['type']} block has no {key}"


def thinking_is_not_last(body: Body) -> Found:
    """messages.2: The final block in an assistant message cannot be `thinking`."""
    for role, blocks in turns(body):
        if role == "assistant" and blocks[-1][1]["type"] in THINKING:
            yield blocks[-1][0], f"the assistant's turn ends in a {blocks[-1][1]['type']} block"


def thinking_opens_the_last_turn(body: Body) -> Found:
    """messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.
    When `thinking` is enabled, a final `assistant` message must start with a thinking block
    (preceeding the lastmost set of `tool_use` and `tool_result` blocks).
    """
    thinking = body.get("thinking")
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return
    turn: list[Placed] = []  # what the assistant said since the user last said more than results
    for role, blocks in turns(body):
        if role == "assistant":
            turn += blocks
        elif role == "user" and any(block["type"] != "tool_result" for _, block in blocks):
            turn = []
    if turn and turn[0][1]["type"] in ("text", "tool_use"):
        yield turn[0][0], f"thinking is enabled, and the last turn starts with a {turn[0][1]['type']} block"


def marks_are_at_most_four(body: Body) -> Found:
    """A maximum of 4 blocks with cache_control may be provided. Found 5."""
    places = [where for where, _ in marks(body)]
    if len(places) > MARKS:
        yield places[MARKS], f"{len(places)} blocks have cache_control"


def long_marks_come_first(body: Body) -> Found:
    """messages.0.content.4.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m'
    cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.
    """
    short = ""
    for where, mark in marks(body):
        if mark.get("ttl") != "1h":
            short = short or where
        elif short:
            yield f"{where}.cache_control.ttl", f"a mark of 1h comes after the mark of 5m at {short}"


def media_fit(body: Body) -> Found:
    """too many images and documents: 601 + 0 > 600"""
    media = [where for where, block in nested(body) if block["type"] in ("image", "document")]
    if len(media) > MEDIA:
        yield media[MEDIA], f"the request holds {len(media)} images and documents"


RULES: list[Rule] = [
    has_messages,
    role_is_known,
    content_is_text_or_blocks,
    message_is_not_empty,
    text_is_not_blank,
    prefill_ends_in_a_word,
    system_message_stands_right,
    system_message_is_text,
    thinking_is_whole,
    thinking_is_not_last,
    thinking_opens_the_last_turn,
    marks_are_at_most_four,
    long_marks_come_first,
    media_fit,
    *TOOL_RULES,
]
