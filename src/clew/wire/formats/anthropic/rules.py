"""What Anthropic's Messages API refuses; a rule's docstring is the refusal it stands for.

A rule yields where it is broken and why, and passes over what it cannot read: another rule reports that. An assistant
message in the first place and roles that do not alternate are accepted, so no rule speaks of them.
"""

import re
from collections.abc import Mapping
from itertools import pairwise

from clew.wire.formats.anthropic.compaction import COMPACTION_RULES
from clew.wire.rules.binding import binding_is_known, thinking_is_bound
from clew.wire.rules.turns import (
    Findings,
    Placed,
    Rule,
    WireBody,
    blocks,
    exchanges,
    filled,
    ids,
    is_directive,
    is_server_result,
    listed,
    marks,
    messages,
    nested,
    repeated,
    roles,
    text_or_parts,
    turns,
    values,
    within,
)

TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


ROLES = ("user", "assistant", "system")
MARKS = 4
MOST_MEDIA = 600  # on models with a window of a million tokens; 100 on others


def has_messages(body: WireBody) -> Findings:
    """messages: at least one message is required"""
    yield from filled(body, "messages")


def role_is_known(body: WireBody) -> Findings:
    """The role of a message is user, assistant or system. (MessageParam in the SDK)"""
    yield from roles(((f"messages[{i}]", message) for i, message in enumerate(values(body, "messages"))), ROLES)


def content_is_text_or_blocks(body: WireBody) -> Findings:
    """The content of a message is a string or a list of blocks, each with a `type`. (MessageParam in the SDK)"""
    for where, message in messages(body):
        if not is_directive(message):
            yield from text_or_parts(f"{where}.content", message.get("content"))


def message_is_not_empty(body: WireBody) -> Findings:
    """messages.0: all messages must have non-empty content except for the optional final assistant message"""
    placed = messages(body)
    for n, (where, message) in enumerate(placed):
        final = n == len(placed) - 1 and message.get("role") == "assistant"
        if not final and not is_directive(message) and message.get("content") in ("", [], ()):
            yield f"{where}.content", f"the {message.get('role')} message is empty"


def text_is_not_blank(body: WireBody) -> Findings:
    """messages: text content blocks must be non-empty; text content blocks must contain non-whitespace text"""
    for where, block in [*listed(body, "system"), *blocks(body)]:
        text = block.get("text")
        if block.get("type") == "text" and isinstance(text, str) and not text.strip():
            yield where, f"the text is {text!r}"


def prefill_ends_in_a_word(body: WireBody) -> Findings:
    """messages: final assistant content cannot end with trailing whitespace"""
    role, said = [(None, []), *turns(body)][-1]
    text = said[-1][1].get("text") if role == "assistant" else None
    if isinstance(text, str) and text.strip() and text != text.rstrip():
        yield said[-1][0], f"the final assistant text ends in whitespace: {text[-10:]!r}"


def system_message_stands_right(body: WireBody) -> Findings:
    """messages.2: role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result;
    role 'system' must precede an 'assistant' message or end the array;
    messages.0: use the top-level 'system' parameter for the initial system prompt
    """
    known = turns(body)
    for n, (role, said) in enumerate(known):
        if role != "system":
            continue
        where = said[0][0].partition(".")[0]
        before, ending = known[n - 1] if n else (None, said)
        if before is None:
            yield where, "a system message comes first: use the key `system`"
        elif before == "assistant" and not ending[-1][1]["type"].endswith("_tool_result"):
            yield where, "the system message follows an assistant message that does not end in a server tool's result"
        elif n + 1 < len(known) and known[n + 1][0] != "assistant":
            yield where, f"the system message is followed by a message of role {known[n + 1][0]!r}"


def system_message_is_text(body: WireBody) -> Findings:
    """messages.1: role 'system' supports text, tool_addition, and tool_removal blocks only"""
    for where, message in messages(body):
        for place, block in within(message, where) if message.get("role") == "system" else ():
            if block["type"] not in ("text", "tool_addition", "tool_removal"):
                yield place, f"a system message holds a block of type {block['type']}"


def thinking_is_full(body: WireBody) -> Findings:
    """messages.1.content.0.thinking.signature: Field required"""
    needs = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
    for where, block in blocks(body):
        for key in needs.get(block["type"], ()):
            if not isinstance(block.get(key), str):
                yield f"{where}.{key}", f"the {block['type']} block has no {key}"


def thinking_is_not_last(body: WireBody) -> Findings:
    """messages.2: The final block in an assistant message cannot be `thinking`."""
    for role, said in turns(body):
        where, block = said[-1]
        if role == "assistant" and block["type"] in ("thinking", "redacted_thinking"):
            yield where, f"the assistant's turn ends in a {block['type']} block"


def thinking_opens_the_last_turn(body: WireBody) -> Findings:
    """messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.
    When `thinking` is enabled, a final `assistant` message must start with a thinking block
    (preceeding the lastmost set of `tool_use` and `tool_result` blocks).
    """
    thinking = body.get("thinking")
    if not isinstance(thinking, Mapping) or thinking.get("type") != "enabled":
        return
    turn: list[Placed] = []  # what the assistant said since the user last said more than results
    for role, said in turns(body):
        if role == "assistant":
            turn += said
        elif role == "user" and any(block["type"] != "tool_result" for _, block in said):
            turn = []
    for where, block in turn[:1]:
        if block["type"] in ("text", "tool_use"):
            yield where, f"thinking is enabled, and the last turn starts with a {block['type']} block"


def marks_are_at_most_four(body: WireBody) -> Findings:
    """A maximum of 4 blocks with cache_control may be provided. Found 5."""
    places = [where for where, _ in marks(body)]
    if len(places) > MARKS:
        yield places[MARKS], f"{len(places)} blocks have cache_control"


def long_marks_come_first(body: WireBody) -> Findings:
    """messages.0.content.4.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m'
    cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.
    """
    short = ""
    for where, mark in marks(body):
        if mark.get("ttl") != "1h":
            short = short or where
        elif short:
            yield f"{where}.cache_control.ttl", f"a mark of 1h comes after the mark of 5m at {short}"


def media_fit(body: WireBody) -> Findings:
    """too many images and documents: 601 + 0 > 600"""
    media = [where for where, block in nested(body) if block["type"] in ("image", "document")]
    if len(media) > MOST_MEDIA:
        yield media[MOST_MEDIA], f"the request holds {len(media)} images and documents"


def tool_blocks_fit_the_role(body: WireBody) -> Findings:
    """messages.0: `tool_use` blocks can only be in `assistant` messages;
    `tool_result` blocks can only be in `user` messages
    """
    for where, message in messages(body):
        role = message.get("role")
        for place, block in within(message, where):
            wrong = {"tool_use": role != "assistant", "tool_result": role != "user"}
            if wrong.get(block["type"]):
                yield place, f"a message of role {role!r} holds a {block['type']} block"


def tool_ids_are_plain(body: WireBody) -> Findings:
    """messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"""
    for where, block in blocks(body):
        key = {"tool_use": "id", "tool_result": "tool_use_id"}.get(block["type"])
        if key and not (isinstance(block.get(key), str) and TOOL_ID.fullmatch(block[key])):
            yield f"{where}.{key}", f"{block.get(key)!r} is not made of letters, digits, underscores and dashes"


def tool_use_ids_differ(body: WireBody) -> Findings:
    """messages.1.content.1: `tool_use` ids must be unique"""
    uses = ((where, block.get("id")) for where, block in blocks(body) if block["type"] == "tool_use")
    yield from ((where, f"an earlier tool_use has the id {i}") for where, i in repeated(uses))


def tool_uses_are_answered(body: WireBody) -> Findings:
    """messages.33: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_x.
    Each `tool_use` block must have a corresponding `tool_result` block in the next message.
    """
    for (role, said), (next_role, next_said) in pairwise([*turns(body), (None, [])]):
        answered = ids(next_said, "tool_result", "tool_use_id") if next_role == "user" else []
        missing = [i for i in ids(said, "tool_use", "id") if i not in answered]
        if role == "assistant" and missing:
            yield said[-1][0].partition(".")[0], f"no tool_result right after answers {', '.join(missing)}"


def tool_results_are_expected(body: WireBody) -> Findings:
    """messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_x.
    Each `tool_result` block must have a corresponding `tool_use` block in the previous message.
    """
    for results, asked in exchanges(body):
        for where, block in results:
            i = block.get("tool_use_id")
            if block["type"] == "tool_result" and isinstance(i, str) and i not in asked:
                yield where, f"no tool_use in the message before has the id {i}"


def tool_results_come_first(body: WireBody) -> Findings:
    """In the user message containing tool results, the tool_result blocks must come first in the content array.
    (platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls)
    """
    for results, asked in exchanges(body):
        kinds = [block["type"] for _, block in results]
        first = next((n for n, kind in enumerate(kinds) if kind != "tool_result"), len(kinds))
        late = [place for place, block in results[first:] if block.get("tool_use_id") in asked]
        if asked and late:
            yield late[0], f"the tool_result stands after a block of type {kinds[first]}"


def tool_results_differ(body: WireBody) -> Findings:
    """each tool_use must have a single result. Found multiple `tool_result` blocks with id: toolu_x"""
    for results, _ in exchanges(body):
        answers = ((where, block.get("tool_use_id")) for where, block in results if block["type"] == "tool_result")
        yield from ((where, f"an earlier tool_result answers {i}") for where, i in repeated(answers))


def server_results_are_expected(body: WireBody) -> Findings:
    """messages.7.content.0: unexpected `tool_use_id` found in `advisor_tool_result` blocks: srvtoolu_x.
    Each `advisor_tool_result` block must have a corresponding `server_tool_use` block before it.
    """
    asked: set[str] = set()
    for where, block in blocks(body):
        if block["type"] == "server_tool_use":
            asked.add(str(block.get("id")))
        elif is_server_result(block) and str(block.get("tool_use_id")) not in asked:
            yield where, f"no server_tool_use before it has the id {block.get('tool_use_id')}"


def server_tools_are_answered(body: WireBody) -> Findings:
    """`web_fetch` tool use with id `srvtoolu_x` was found without a corresponding `web_fetch_tool_result` block"""
    answered = {str(block.get("tool_use_id")) for _, block in blocks(body) if is_server_result(block)}
    waiting: list[Placed] = []
    for role, said in turns(body):
        waiting += [(w, b) for w, b in said if b["type"] == "server_tool_use" and str(b.get("id")) not in answered]
        # As long as only tool results follow, the assistant's turn is open and the server still runs the tool.
        if role == "user" and any(block["type"] != "tool_result" for _, block in said):
            yield from ((w, f"{b.get('name')} with the id {b.get('id')} has no result") for w, b in waiting)
            waiting = []


def tools_are_defined(body: WireBody) -> Findings:
    """Requests which include `tool_use` or `tool_result` blocks must define tools."""
    # Without a model this is only a history, and its tools are somewhere else.
    if "model" not in body or body.get("tools") or body.get("mcp_servers"):
        return
    used = [where for where, block in blocks(body) if block["type"] in ("tool_use", "tool_result")]
    if used:
        yield "tools", f"{used[0]} is a tool block, and the request defines no tools"


def tool_names_are_plain(body: WireBody) -> Findings:
    """tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"""
    for where, tool in listed(body, "tools"):
        name = tool.get("name")
        if isinstance(name, str) and not TOOL_NAME.fullmatch(name):
            yield f"{where}.name", f"{name!r} is not 1 to 128 letters, digits, underscores or dashes"


def tool_names_differ(body: WireBody) -> Findings:
    """tools: Tool names must be unique."""
    names = ((f"{where}.name", tool.get("name")) for where, tool in listed(body, "tools"))
    yield from ((where, f"an earlier tool is named {name!r}") for where, name in repeated(names))


RULES: list[Rule] = [
    has_messages,
    role_is_known,
    content_is_text_or_blocks,
    message_is_not_empty,
    text_is_not_blank,
    prefill_ends_in_a_word,
    system_message_stands_right,
    system_message_is_text,
    thinking_is_full,
    thinking_is_not_last,
    thinking_opens_the_last_turn,
    thinking_is_bound,
    binding_is_known,
    marks_are_at_most_four,
    long_marks_come_first,
    media_fit,
    *COMPACTION_RULES,
    tool_blocks_fit_the_role,
    tool_ids_are_plain,
    tool_use_ids_differ,
    tool_uses_are_answered,
    tool_results_are_expected,
    tool_results_come_first,
    tool_results_differ,
    server_results_are_expected,
    server_tools_are_answered,
    tools_are_defined,
    tool_names_are_plain,
    tool_names_differ,
]
