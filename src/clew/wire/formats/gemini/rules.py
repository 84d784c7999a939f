"""What Gemini's generateContent refuses; a rule's docstring is the refusal it stands for.

A rule yields where it is broken and why, and passes over what it cannot read: another rule reports that. Two contents
of one role in a row are accepted, so no rule speaks of them.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from clew.wire.rules.turns import Findings, Placed, Rule, WireBody, filled, listed, objects

ROLES = (None, "", "user", "model", "function")  # without a role, a content is the user's
FUNCTION_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
SIGNS_CALLS = re.compile(r"gemini-([3-9]|\d\d)")
CALL = ("functionCall", "function_call")
RESPONSE = ("functionResponse", "function_response")
SIGNATURE = ("thoughtSignature", "thought_signature")
DECLARATIONS = ("functionDeclarations", "function_declarations")
DATA = {
    "text": "text",
    "inline_data": "inlineData",
    "file_data": "fileData",
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "executable_code": "executableCode",
    "code_execution_result": "codeExecutionResult",
    "tool_call": "toolCall",
    "tool_response": "toolResponse",
}
BESIDE_KEYS = {  # keys that say something about a part, and nothing without it
    "thought": "thought",
    "thought_signature": "thoughtSignature",
    "video_metadata": "videoMetadata",
    "media_resolution": "mediaResolution",
    "part_metadata": "partMetadata",
}


def has_contents(body: WireBody) -> Findings:
    """* GenerateContentRequest.contents: contents is not specified"""
    yield from filled(body, "contents")


def contents_are_objects(body: WireBody) -> Findings:
    """Invalid value at 'contents[0]' (type.googleapis.com/google.ai.generativelanguage.v1beta.Content)"""
    yield from objects(body, "contents")


def role_is_known(body: WireBody) -> Findings:
    """Please use a valid role: user, model."""
    for where, content in _contents(body):
        role = content.get("role")
        if role not in ROLES:
            yield f"{where}.role", f"{role!r} is neither user nor model"


def parts_are_present(body: WireBody) -> Findings:
    """* GenerateContentRequest.contents[1].parts: contents.parts must not be empty. (Vertex AI: Unable to submit
    request because it must include at least one parts field, which describes the prompt input.)
    """
    for where, content in _contents(body):
        if not content.get("parts"):
            yield f"{where}.parts", "the content has no parts"


def parts_are_objects(body: WireBody) -> Findings:
    """Invalid value at 'contents[0].parts[0]' (type.googleapis.com/google.ai.generativelanguage.v1beta.Part)"""
    for where, content in _contents(body):
        parts = content.get("parts")
        if parts and not isinstance(parts, list | tuple):
            yield f"{where}.parts", f"expected a list, got {type(parts).__name__}"
        yield from ((f"{where}.{place}", why) for place, why in objects(content, "parts"))


def part_has_data(body: WireBody) -> Findings:
    """* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have one initialized
    field
    """
    beside = {*BESIDE_KEYS, *BESIDE_KEYS.values()}
    for where, part in _parts(body):
        said = [key for key, value in part.items() if value is not None]
        if beside.issuperset(said):
            yield where, "the part holds no text, data, call or response"


def part_holds_one_thing(body: WireBody) -> Findings:
    """Invalid value at 'contents[1].parts[0]' (oneof), oneof field 'data' is already set. Cannot set 'text'"""
    for where, part in _parts(body):
        held = [camel for snake, camel in DATA.items() if part.get(snake, part.get(camel)) is not None]
        if len(held) > 1:
            yield where, f"the part holds {' and '.join(held)}: each needs a part of its own"


def text_is_not_empty(body: WireBody) -> Findings:
    """Unable to submit request because it has an empty text parameter. Add a value to the parameter and try again.
    (Vertex AI)
    """
    for where, part in _parts(body):
        # A signature may come in a part of its own, with empty text, and must go back so.
        if part.get("text") == "" and _value(part, SIGNATURE) is None:
            yield where, "the text is empty"


def single_content_is_the_users(body: WireBody) -> Findings:
    """Please ensure that single turn requests end with a user role or the role field is empty."""
    contents = _contents(body)
    if len(contents) == 1 and contents[0][1].get("role") == "model":
        yield f"{contents[0][0]}.role", "the only content is the model's"


def calls_follow_the_user(body: WireBody) -> Findings:
    """Please ensure that function call turn comes immediately after a user turn or after a function response turn."""
    contents = _contents(body)
    # A content alone is another rule's.
    for (_, before), (where, content) in pairwise([("", {"role": "model"}), *contents] if len(contents) > 1 else []):
        if _calls(content) and before.get("role") == "model":
            yield where, "no user turn and no function response stands right before this function call"


def responses_follow_calls(body: WireBody) -> Findings:
    """Please ensure that function response turn comes immediately after a function call turn."""
    for (_, before), (where, content) in pairwise([("", {}), *_contents(body)]):
        if _responses(content) and not _calls(before):
            yield where, "no function call stands right before this function response"


def calls_are_answered(body: WireBody) -> Findings:
    """Please ensure that the number of function response parts is equal to the number of function call parts of the
    function call turn.
    """
    for (where, content), (_, after) in pairwise([*_contents(body), ("", {})]):
        called, answered = len(_calls(content)), len(_responses(after))
        if called and called != answered:
            yield where, f"{called} functions are called, {answered} responses stand right after"


def functions_are_named(body: WireBody) -> Findings:
    """* GenerateContentRequest.contents[2].parts[0].function_response.name: Name cannot be empty."""
    for where, held in _functions(body):
        if not held.get("name"):
            yield f"{where}.name", "the function has no name"


def function_names_are_plain(body: WireBody) -> Findings:
    """The GenerateContentRequest proto is invalid: * tools[0].function_declarations[53].name: [FIELD_INVALID] Invalid
    function name. Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain underscores (_), dots
    (.), colons (:), or dashes (-), with a maximum length of 64.
    """
    for where, tool in listed(body, "tools"):
        for place, declared in [d for key in DECLARATIONS for d in listed(tool, key, f"{where}.")]:
            name = declared.get("name")
            if isinstance(name, str) and not FUNCTION_NAME.fullmatch(name):
                yield f"{place}.name", f"{name!r} is not 1 to 64 letters, digits or any of _.:-, or starts with a digit"


def tools_hold_something(body: WireBody) -> Findings:
    """tools[0].tool_type: required one_of 'tool_type' must have one initialized field"""
    for where, tool in listed(body, "tools"):
        if all(value is None or (key in DECLARATIONS and not value) for key, value in tool.items()):
            yield where, "the tool declares nothing"


def values_are_objects(body: WireBody) -> Findings:
    """Invalid value at 'contents[2].parts[0].function_response.response'
    (type.googleapis.com/google.protobuf.Struct)
    """
    for where, held in _functions(body):
        for key in ("args", "response"):
            if held.get(key) is not None and not isinstance(held[key], Mapping):
                yield f"{where}.{key}", f"expected an object, got {type(held[key]).__name__}"


def calls_are_signed(body: WireBody) -> Findings:
    """Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly,
    and missing thought_signature may lead to degraded model performance.
    """
    if not SIGNS_CALLS.search(str(body.get("model"))):
        return
    turn: list[Placed] = []  # the first call of each content since the user last said more than responses
    for where, content in _contents(body):
        if content.get("role") == "model":
            turn += _holding(listed(content, "parts", f"{where}."), CALL)[:1]
        elif not _responses(content):
            turn = []
    for where, part in turn:
        if not _value(part, SIGNATURE):
            yield where, "the first function call of this content has no thoughtSignature"


def _contents(body: WireBody) -> list[Placed]:
    return listed(body, "contents")


def _parts(body: WireBody) -> list[Placed]:
    return [part for where, content in _contents(body) for part in listed(content, "parts", f"{where}.")]


def _value(holder: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((holder[k] for k in keys if holder.get(k) is not None), None)


def _holding(parts: list[Placed], keys: tuple[str, ...]) -> list[Placed]:
    return [placed for placed in parts if isinstance(_value(placed[1], keys), Mapping)]


def _calls(content: Mapping[str, Any]) -> list[Placed]:
    return _holding(listed(content, "parts"), CALL) if content.get("role") == "model" else []


def _responses(content: Mapping[str, Any]) -> list[Placed]:
    return _holding(listed(content, "parts"), RESPONSE) if content.get("role") != "model" else []


def _functions(body: WireBody) -> Iterator[Placed]:
    """The calls and responses of all contents."""
    for where, part in _parts(body):
        for key in (*CALL, *RESPONSE):
            if isinstance(held := part.get(key), Mapping):
                yield f"{where}.{key}", held


RULES: list[Rule] = [
    has_contents,
    contents_are_objects,
    role_is_known,
    parts_are_present,
    parts_are_objects,
    part_has_data,
    part_holds_one_thing,
    text_is_not_empty,
    single_content_is_the_users,
    calls_follow_the_user,
    responses_follow_calls,
    calls_are_answered,
    functions_are_named,
    function_names_are_plain,
    tools_hold_something,
    values_are_objects,
    calls_are_signed,
]
