"""What Anthropic's Messages API refuses about tools; a rule's docstring is the refusal it stands for."""

import re
from itertools import pairwise

from clew.wire.rules.turns import (
    Findings,
    Placed,
    Rule,
    WireBody,
    blocks,
    exchanges,
    ids,
    is_server_result,
    listed,
    messages,
    repeated,
    turns,
    within,
)

TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


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


TOOL_RULES: list[Rule] = [
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
