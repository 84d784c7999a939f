"""What OpenAI's Responses API refuses; a rule's docstring is the refusal it stands for.

A rule yields where it is broken and why, and passes over what it cannot read: another rule reports that. One refusal
has no rule, for only the provider knows which reasoning an id belongs to: "Item 'fc_x' of type 'function_call' was
provided without its required 'reasoning' item: 'rs_x'."
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from clew.wire.rules.turns import Findings, Placed, Rule, WireBody, listed, objects, roles, text_or_parts, wording

ROLES = ("assistant", "system", "developer", "user")
ELSEWHERE = ("previous_response_id", "conversation", "prompt")  # where history may be that is not in the body
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("output",),
    "custom_tool_call": ("call_id", "name", "input"),
    "custom_tool_call_output": ("call_id", "output"),
    "computer_call_output": ("call_id", "output"),
    "reasoning": ("summary",),
    "compaction": ("encrypted_content",),
    "item_reference": ("id",),
}
ANSWERED = (
    "function_call",
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
)
FOREIGN: Mapping[str, frozenset[str]] = {
    "assistant": frozenset({"input_text", "input_image", "input_file", "input_audio", "text", "image_url"}),
    "user": frozenset({"output_text", "refusal", "text", "image_url"}),
}
PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "reasoning": "rs",
    "web_search_call": "ws",
}
NAMED_TYPES = ("function", "custom", "function_call", "custom_tool_call")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]+")
ID_LENGTH = 64


def has_input(body: WireBody) -> Findings:
    """One of "input" or "previous_response_id" or 'prompt' or 'conversation_id' must be provided."""
    if body.get("input") in (None, "", [], ()) and not any(body.get(key) for key in ELSEWHERE):
        yield "input", "there is no input, and no history elsewhere to go on from"


def input_is_text_or_items(body: WireBody) -> Findings:
    """Invalid type for 'input'. (code: invalid_union)"""
    value = body.get("input")
    if value is not None and not isinstance(value, str | list | tuple):
        yield "input", f"expected a string or a list, got {type(value).__name__}"


def item_is_an_object(body: WireBody) -> Findings:
    """Invalid type for 'input[0]': expected an input item, but got a string instead."""
    yield from objects(body, "input")


def role_is_known(body: WireBody) -> Findings:
    """Invalid value: 'tool'. Supported values are: 'assistant', 'system', 'developer', and 'user'."""
    yield from roles(_messages(body), ROLES)


def content_is_text_or_parts(body: WireBody) -> Findings:
    """Invalid type for 'input[4].content': expected one of an array of objects or string, but got null instead."""
    for where, message in _messages(body):
        yield from text_or_parts(f"{where}.content", message.get("content"))


def part_fits_its_role(body: WireBody) -> Findings:
    """Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'. (of the assistant; of all others:
    Invalid value: 'output_text'. Supported values are: 'input_text', 'input_image', and 'input_file'.)
    """
    for where, message in _messages(body):
        foreign = FOREIGN["assistant" if message.get("role") == "assistant" else "user"]
        for place, part in listed(message, "content", f"{where}."):
            kind = part.get("type")
            if isinstance(kind, str) and kind in foreign:
                yield place, f"a message of role {message.get('role')!r} holds a part of type {kind}"


def item_is_complete(body: WireBody) -> Findings:
    """Missing required parameter: 'input[7].summary'."""
    for where, item in _items(body):
        for key in REQUIRED.get(_kind(item), ()):
            if item.get(key) is None:
                yield f"{where}.{key}", f"{_kind(item)} has no {key}"


def arguments_are_a_string(body: WireBody) -> Findings:
    """Invalid type for 'input[1].arguments': expected a string, but got an object instead."""
    for where, item in _items(body):
        key = {"function_call": "arguments", "custom_tool_call": "input"}.get(_kind(item), "")
        value = item.get(key)
        if value is not None and not isinstance(value, str):
            yield f"{where}.{key}", f"{item.get('call_id')}: expected a string, got {type(value).__name__}"


def output_is_text_or_parts(body: WireBody) -> Findings:
    """Invalid type for 'input[2].output': expected one of an array of objects or string, but got an object instead."""
    for where, item in _items(body):
        value = item.get("output")
        if _kind(item) in ("function_call_output", "custom_tool_call_output") and value is not None:
            if not isinstance(value, str | list | tuple):
                yield (
                    f"{where}.output",
                    f"{item.get('call_id')}: expected a string or a list, got {type(value).__name__}",
                )
            for place, part in listed(item, "output", f"{where}."):
                if part.get("type") in ("output_text", "text"):
                    yield place, f"a result holds a part of type {part['type']}"


def ids_are_short(body: WireBody) -> Findings:
    """Invalid 'input[95].call_id': string too long. Expected a string with maximum length 64, but got a string with
    length 116 instead.
    """
    for where, item in _items(body):
        for key in ("call_id", "id"):
            value = item.get(key)
            if isinstance(value, str) and len(value) > ID_LENGTH:
                yield f"{where}.{key}", f"{value} has {len(value)} characters, {ID_LENGTH} are allowed"


def id_names_its_type(body: WireBody) -> Findings:
    """Invalid 'input[61].id': 'call_1'. Expected an ID that begins with 'fc'."""
    for where, item in _items(body):
        value, prefix = item.get("id"), PREFIXES.get(_kind(item), "")
        if isinstance(value, str) and not value.startswith(prefix):
            yield f"{where}.id", f"the id of a {_kind(item)} begins with {prefix}: {value}"


def ids_differ(body: WireBody) -> Findings:
    """Duplicate item found with id rs_x. Remove duplicate items from your input and try again."""
    seen: set[str] = set()
    for where, item in _items(body):
        value = item.get("id")
        if isinstance(value, str) and value and value in seen and not _kind(item).endswith("_output"):
            yield f"{where}.id", f"more than one item has the id {value}"
        elif isinstance(value, str):
            seen.add(value)


def calls_are_answered(body: WireBody) -> Findings:
    """No tool output found for function call call_x."""
    answered: set[tuple[str, str]] = set()
    if not _refers(body):
        for where, item, kind, call_id in reversed(list(_paired(body))):
            if _kind(item) != kind:
                answered.add((kind, call_id))
            elif (kind, call_id) not in answered:
                yield where, f"no {kind}_output after it answers {call_id}"


def outputs_answer_a_call(body: WireBody) -> Findings:
    """No tool call found for function call output with call_id call_x."""
    called: set[tuple[str, str]] = set()
    if not _refers(body) and not any(body.get(key) for key in ELSEWHERE):
        for where, item, kind, call_id in _paired(body):
            if _kind(item) == kind:
                called.add((kind, call_id))
            elif (kind, call_id) not in called:
                yield where, f"no {kind} before it has the call_id {call_id}"


def reasoning_is_followed(body: WireBody) -> Findings:
    """Item 'rs_x' of type 'reasoning' was provided without its required following item."""
    after: Mapping[str, Any] = {"role": "user"}
    for where, item in reversed(_items(body)):
        # Without its id it is not looked up. What follows must be put out by the model, not put in by us.
        if _kind(item) == "reasoning" and isinstance(item.get("id"), str) and _is_ours(after):
            yield where, f"nothing that the assistant said follows {item['id']}"
        after = item


def compaction_is_asked_for_last(body: WireBody) -> Findings:
    """Compacts the current context. Must be the final input item. (documentation of compaction_trigger)"""
    for where, item in _items(body)[:-1]:
        if _kind(item) == "compaction_trigger":
            yield where, "something stands after the compaction_trigger"


def tool_name_is_plain(body: WireBody) -> Findings:
    """Invalid 'tools[0].name': string does not match pattern. Expected a string that matches the pattern
    '^[a-zA-Z0-9_-]+$'.
    """
    for where, holder in [*listed(body, "tools"), *_items(body)]:
        name = holder.get("name") if _kind(holder) in NAMED_TYPES else None
        if isinstance(name, str) and not TOOL_NAME.fullmatch(name):
            yield f"{where}.name", f"{name!r} is not of letters, digits, underscores or dashes"


def json_is_mentioned(body: WireBody) -> Findings:
    """Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'."""
    text = body.get("text")
    wanted = text.get("format") if isinstance(text, Mapping) else None
    if not isinstance(wanted, Mapping) or wanted.get("type") != "json_object" or any(body.get(k) for k in ELSEWHERE):
        return
    whole = body.get("input")
    texts = [whole] if isinstance(whole, str) else wording(*(message for _, message in _messages(body)))
    if texts and not any("json" in words.lower() for words in texts):
        yield "input", "text.format asks for json_object, and no message says the word json"


def _items(body: WireBody) -> list[Placed]:
    return listed(body, "input")


def _messages(body: WireBody) -> list[Placed]:
    return [(where, item) for where, item in _items(body) if _kind(item) == "message"]


def _kind(item: Mapping[str, Any]) -> str:
    kind = item.get("type")
    if kind is None:
        return "message" if "role" in item or "content" in item else "item_reference"
    return kind if isinstance(kind, str) else ""


def _is_ours(item: Mapping[str, Any]) -> bool:
    return _kind(item).endswith("_output") or item.get("role") in ("user", "system", "developer")


def _paired(body: WireBody) -> Iterator[tuple[str, Mapping[str, Any], str, str]]:
    """Calls and their outputs, each with the type of the call and the id they share."""
    for where, item in _items(body):
        kind = _kind(item).removesuffix("_output")
        call_id = item.get("call_id")
        if call_id is None and _kind(item) == "local_shell_call_output":
            call_id = item.get("id")  # as the SDK has it; the API takes either
        if kind in ANSWERED and isinstance(call_id, str):
            yield where, item, kind, call_id


def _refers(body: WireBody) -> bool:
    """Whether some items stand in the body by their id alone: they may be anything."""
    return any(_kind(item) == "item_reference" for _, item in _items(body))


RULES: list[Rule] = [
    has_input,
    input_is_text_or_items,
    item_is_an_object,
    role_is_known,
    content_is_text_or_parts,
    part_fits_its_role,
    item_is_complete,
    arguments_are_a_string,
    output_is_text_or_parts,
    ids_are_short,
    id_names_its_type,
    ids_differ,
    calls_are_answered,
    outputs_answer_a_call,
    reasoning_is_followed,
    compaction_is_asked_for_last,
    tool_name_is_plain,
    json_is_mentioned,
]
