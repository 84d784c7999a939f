"""What OpenAI's Chat Completions API refuses; a rule's docstring is the refusal it stands for.

A rule yields where it is broken and why, and passes over what it cannot read: another rule reports that.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from clew.wire.rules.turns import (
    Findings,
    Placed,
    Rule,
    WireBody,
    filled,
    listed,
    messages,
    objects,
    repeated,
    roles,
    text_or_parts,
    values,
    wording,
)

ROLES = ("system", "assistant", "user", "function", "tool", "developer")
INSTEAD_OF_CONTENT = ("tool_calls", "function_call", "refusal", "audio")
FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
CALL_ID_LENGTH = 40


def has_messages(body: WireBody) -> Findings:
    """Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.
    (earlier: [] is too short - 'messages')
    """
    yield from filled(body, "messages")


def message_is_an_object(body: WireBody) -> Findings:
    """Invalid type for 'messages[0]': expected an object, but got a string instead."""
    yield from objects(body, "messages")


def role_is_known(body: WireBody) -> Findings:
    """Invalid value: 'x'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."""
    yield from roles(messages(body), ROLES)


def content_is_present(body: WireBody) -> Findings:
    """Invalid value for 'content': expected a string, got null."""
    for where, message in messages(body):
        role = message.get("role")
        if role == "function" or role not in ROLES or message.get("content") is not None:
            continue
        if role != "assistant" or all(message.get(key) is None for key in INSTEAD_OF_CONTENT):
            yield f"{where}.content", f"the {role} message says nothing: its content is null or missing"


def content_is_text_or_parts(body: WireBody) -> Findings:
    """Invalid type for 'messages[1].content': expected one of a string or array of objects, but got null instead."""
    for where, message in messages(body):
        if message.get("content") is not None:
            yield from text_or_parts(f"{where}.content", message["content"])


def tool_calls_are_a_list(body: WireBody) -> Findings:
    """Invalid type for 'messages[1].tool_calls': expected an array of objects, but got a string instead."""
    for where, message in messages(body):
        calls = message.get("tool_calls")
        if calls is not None and not isinstance(calls, list | tuple):
            yield f"{where}.tool_calls", f"expected a list, got {type(calls).__name__}"


def tool_calls_are_not_empty(body: WireBody) -> Findings:
    """Invalid 'messages[1].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array
    instead.
    """
    for where, message in messages(body):
        if message.get("tool_calls") in ([], ()):
            yield f"{where}.tool_calls", "the list is empty: leave the key out"


def call_is_complete(body: WireBody) -> Findings:
    """Missing required parameter: 'messages[2].tool_calls[0].function'."""
    for where, message in messages(body):
        for i, call in enumerate(values(message, "tool_calls")):
            place = f"{where}.tool_calls[{i}]"
            if not isinstance(call, Mapping):
                yield place, f"expected an object, got {type(call).__name__}"
            elif not isinstance(call.get("id"), str):
                yield f"{place}.id", f"expected a string, got {type(call.get('id')).__name__}"
            elif call.get("type") not in ("function", "custom"):
                yield f"{place}.type", f"{call.get('type')!r} is neither function nor custom"
            elif not isinstance(_called(call).get("name"), str):
                yield f"{place}.{call['type']}", f"call {call['id']} names no tool"


def arguments_are_a_string(body: WireBody) -> Findings:
    """Invalid type for 'messages[2].tool_calls[0].function.arguments': expected a string, but got an object instead."""
    for where, call in _calls(body):
        key = "input" if call.get("type") == "custom" else "arguments"
        called = _called(call)
        if "name" in called and not isinstance(called.get(key), str):
            place = f"{where}.{call.get('type', 'function')}.{key}"
            yield place, f"{call.get('id')}: expected a string, got {type(called.get(key)).__name__}"


def call_ids_differ(body: WireBody) -> Findings:
    """Duplicate value for 'tool_call_id' of 'call_x' in message[2]"""
    for where, message in messages(body):
        ids = ((f"{where}.tool_calls", i) for i in _call_ids(message))
        yield from ((place, f"more than one call has the id {i}") for place, i in repeated(ids))


def call_id_is_short(body: WireBody) -> Findings:
    """Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a
    string with length 41
    """
    for where, call in _calls(body):
        i = call.get("id")
        if isinstance(i, str) and len(i) > CALL_ID_LENGTH:
            yield f"{where}.id", f"{i} has {len(i)} characters, {CALL_ID_LENGTH} are allowed"


def calls_are_answered(body: WireBody) -> Findings:
    """An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The
    following tool_call_ids did not have response messages: call_x
    """
    answered: set[str] = set()
    for where, message in reversed(messages(body)):
        if message.get("role") == "tool":
            answered.add(str(message.get("tool_call_id")))
            continue
        missing = [i for i in _call_ids(message) if i not in answered]
        if missing and message.get("role") == "assistant":
            yield where, f"no tool message right after answers {', '.join(missing)}"
        answered = set()


def tool_has_an_id(body: WireBody) -> Findings:
    """Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'."""
    for where, message in messages(body):
        if message.get("role") == "tool" and not isinstance(message.get("tool_call_id"), str):
            yield f"{where}.tool_call_id", "the tool message does not say which call it answers"


def tool_follows_calls(body: WireBody) -> Findings:
    """messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."""
    for where, _, before in _answers(body):
        if not before:
            yield where, "no assistant message with tool_calls stands right before this tool message"


def tool_answers_a_call(body: WireBody) -> Findings:
    """Invalid parameter: 'tool_call_id' of 'call_x' not found in 'tool_calls' of previous message."""
    for where, message, before in _answers(body):
        i = message.get("tool_call_id")
        if before and isinstance(i, str) and i not in before:
            yield f"{where}.tool_call_id", f"{i} is none of the calls before it: {', '.join(before)}"


def function_has_a_name(body: WireBody) -> Findings:
    """Missing parameter 'name': messages with role 'function' must have a 'name'."""
    for where, message in messages(body):
        if message.get("role") == "function" and not isinstance(message.get("name"), str):
            yield f"{where}.name", "the function message does not name its function"


def function_name_is_plain(body: WireBody) -> Findings:
    """Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern
    '^[a-zA-Z0-9_-]+$'. (FunctionDefinition.name: a maximum length of 64)
    """
    for where, holder in [*listed(body, "tools"), *_calls(body)]:
        function = holder.get("function")
        name = function.get("name") if isinstance(function, Mapping) else None
        if isinstance(name, str) and not FUNCTION_NAME.fullmatch(name):
            yield f"{where}.function.name", f"{name!r} is not 1 to 64 letters, digits, underscores or dashes"


def images_come_from_the_user(body: WireBody) -> Findings:
    """Invalid 'messages[3]'. Image URLs are only allowed for messages with role 'user', but this message with role
    'tool' contains an image URL.
    """
    for where, message in messages(body):
        for place, part in listed(message, "content", f"{where}."):
            if message.get("role") != "user" and part.get("type") == "image_url":
                yield place, f"a message of role {message.get('role')!r} holds an image"


def json_is_mentioned(body: WireBody) -> Findings:
    """'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."""
    wanted = body.get("response_format")
    if not isinstance(wanted, Mapping) or wanted.get("type") != "json_object":
        return
    texts = wording(*(message for _, message in messages(body)))
    if texts and not any("json" in text.lower() for text in texts):
        yield "messages", "response_format asks for json_object, and no message says the word json"


def _calls(body: WireBody) -> list[Placed]:
    return [call for where, message in messages(body) for call in listed(message, "tool_calls", f"{where}.")]


def _called(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """The tool that a call names, and what it is called with."""
    called = call.get("custom" if call.get("type") == "custom" else "function")
    return called if isinstance(called, Mapping) else {}


def _call_ids(message: Mapping[str, Any]) -> list[str]:
    ids = [call.get("id") for _, call in listed(message, "tool_calls")]
    return [i for i in ids if isinstance(i, str)]


def _answers(body: WireBody) -> Iterator[tuple[str, Mapping[str, Any], list[str]]]:
    """Tool messages, each with the ids of the calls it stands after."""
    before: list[str] = []
    for where, message in messages(body):
        if message.get("role") == "tool":
            yield where, message, before
        else:
            before = _call_ids(message) if message.get("role") == "assistant" else []


RULES: list[Rule] = [
    has_messages,
    message_is_an_object,
    role_is_known,
    content_is_present,
    content_is_text_or_parts,
    tool_calls_are_a_list,
    tool_calls_are_not_empty,
    call_is_complete,
    arguments_are_a_string,
    call_ids_differ,
    call_id_is_short,
    calls_are_answered,
    tool_has_an_id,
    tool_follows_calls,
    tool_answers_a_call,
    function_has_a_name,
    function_name_is_plain,
    images_come_from_the_user,
    json_is_mentioned,
]
