"""What Amazon Bedrock's Converse API refuses; a rule's docstring is the refusal it stands for.

A rule yields where it is broken and why, and passes over what it cannot read: another rule reports that. Some refusals
come from boto3 before anything is sent, some from the service, and some from one family of models: Claude's are here.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from clew.wire.rules.turns import Findings, Placed, Rule, WireBody, filled, listed, messages, repeated, roles, values

ROLES = ("user", "assistant", "system")
TOOL_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
DOCUMENTS = 5


def has_messages(body: WireBody) -> Findings:
    """A conversation must start with a user message. (boto3, of no list: Invalid type for parameter messages)"""
    yield from filled(body, "messages")


def role_is_known(body: WireBody) -> Findings:
    """Value 'tool' at 'messages.1.member.role' failed to satisfy constraint: Member must satisfy enum value set:
    [user, assistant]
    """
    yield from roles(((f"messages[{i}]", message) for i, message in enumerate(values(body, "messages"))), ROLES)


def starts_with_the_user(body: WireBody) -> Findings:
    """A conversation must start with a user message. Try again with a conversation that starts with a user message."""
    for where, message in _spoken(body)[:1]:
        if message["role"] == "assistant":
            yield where, "the first message is the assistant's"


def roles_alternate(body: WireBody) -> Findings:
    """A conversation must alternate between user and assistant roles. Make sure the conversation alternates between
    user and assistant roles and try again.
    """
    for (_, before), (where, message) in pairwise(_spoken(body)):
        if before["role"] == message["role"]:
            yield where, f"this message and the one before it are both the {message['role']}'s"


def content_is_blocks(body: WireBody) -> Findings:
    """Invalid type for parameter messages[0].content, value: Hello, type: <class 'str'>, valid types: <class 'list'>,
    <class 'tuple'> (boto3)
    """
    for where, message in messages(body):
        content = message.get("content")
        if not isinstance(content, list | tuple):
            yield f"{where}.content", f"expected a list, got {type(content).__name__}"
            continue
        for i, block in enumerate(content):
            if not isinstance(block, Mapping):
                yield f"{where}.content[{i}]", f"expected an object, got {type(block).__name__}"


def block_is_one_thing(body: WireBody) -> Findings:
    """Invalid number of parameters set for tagged union structure messages[0].content[0]. Can only set one of the
    following keys: text, image, document, ... (boto3)
    """
    for where, block in _blocks(body):
        if len(block) != 1:
            yield where, f"expected one key, got {len(block)}: {', '.join(map(str, block))}"


def message_is_not_empty(body: WireBody) -> Findings:
    """The content field in the Message object at messages.0 is empty. Add a ContentBlock object to the content field
    and try again.
    """
    for where, message in messages(body):
        if message.get("content") in ([], ()):
            yield f"{where}.content", f"the {message.get('role')} message is empty"


def text_is_not_blank(body: WireBody) -> Findings:
    """The text field in the ContentBlock object at messages.11.content.0 is blank. Add text to the text field, and try
    again.
    """
    for where, block in [*listed(body, "system"), *_blocks(body)]:
        text = block.get("text")
        if isinstance(text, str) and not text.strip():
            yield where, f"the text is {text!r}"


def result_text_is_not_empty(body: WireBody) -> Findings:
    """messages: text content blocks must be non-empty"""
    for where, result in _of(_blocks(body), "toolResult"):
        for place, part in listed(result, "content", f"{where}."):
            if part.get("text") == "":
                yield place, f"the result of {result.get('toolUseId')} holds an empty text"


def failed_result_has_reason(body: WireBody) -> Findings:
    """The content field at messages.2.content.0.toolResult cannot be empty when status value is error."""
    for where, result in _of(_blocks(body), "toolResult"):
        if result.get("status") == "error" and not result.get("content"):
            yield f"{where}.content", f"the result of {result.get('toolUseId')} is an error without words"


def tool_block_is_complete(body: WireBody) -> Findings:
    """Missing required parameter in messages[1].content[0].toolUse: "name" (boto3)"""
    for key, needs in (("toolUse", ("toolUseId", "name", "input")), ("toolResult", ("toolUseId", "content"))):
        for where, block in _of(_blocks(body), key):
            for need in needs:
                if block.get(need) is None:
                    yield f"{where}.{need}", f"the {key} block has no {need}"


def tool_input_is_an_object(body: WireBody) -> Findings:
    """The format of the value at messages.1.content.1.toolUse.input is invalid. Provide a json object for the field and
    try again.
    """
    for where, used in _of(_blocks(body), "toolUse"):
        given = used.get("input")
        if given is not None and not isinstance(given, Mapping):
            yield f"{where}.input", f"{used.get('toolUseId')}: expected an object, got {type(given).__name__}"


def tool_ids_are_plain(body: WireBody) -> Findings:
    """Value at 'messages.2.member.content.1.member.toolUse.toolUseId' failed to satisfy constraint: Member must satisfy
    regular expression pattern: [a-zA-Z0-9_.:-]+ (and have a length of 1 to 64)
    """
    for where, block in [*_of(_blocks(body), "toolUse"), *_of(_blocks(body), "toolResult")]:
        i = block.get("toolUseId")
        if isinstance(i, str) and not TOOL_ID.fullmatch(i):
            yield f"{where}.toolUseId", f"{i!r} is not 1 to 64 letters, digits or any of _.:-"


def tool_names_are_plain(body: WireBody) -> Findings:
    """Value at 'toolConfig.tools.1.member.toolSpec.name' failed to satisfy constraint: Member must satisfy regular
    expression pattern: [a-zA-Z0-9_-]+ (and have a length of 1 to 64)
    """
    for where, named in [
        *_of(listed(_config(body), "tools", "toolConfig."), "toolSpec"),
        *_of(_blocks(body), "toolUse"),
    ]:
        name = named.get("name")
        if isinstance(name, str) and not TOOL_NAME.fullmatch(name):
            yield f"{where}.name", f"{name!r} is not 1 to 64 letters, digits, underscores or dashes"


def tool_config_is_defined(body: WireBody) -> Findings:
    """The toolConfig field must be defined when using toolUse and toolResult content blocks."""
    # Without a model this is only a history, and its tools are somewhere else.
    if "modelId" not in body or _config(body):
        return
    used = [where for where, block in _blocks(body) if "toolUse" in block or "toolResult" in block]
    if used:
        yield "toolConfig", f"{used[0]} is a tool block, and the request has no toolConfig"


def tool_use_ids_differ(body: WireBody) -> Findings:
    """The toolUse blocks at messages.2.content contain duplicate Ids: tooluse_x"""
    for where, message in messages(body):
        yield from _repeated(where, message, "toolUse")


def tool_result_ids_differ(body: WireBody) -> Findings:
    """The toolResult blocks at messages.2.content contain duplicate Ids: tooluse_x"""
    for where, message in messages(body):
        yield from _repeated(where, message, "toolResult")


def tool_uses_are_answered(body: WireBody) -> Findings:
    """Expected toolResult blocks at messages.2.content for the following Ids: tooluse_x"""
    for where, used, answered in _exchanges(body):
        missing = [i for i in dict.fromkeys(used) if i not in answered]
        if missing:
            yield where, f"no toolResult right after answers {', '.join(missing)}"


def tool_results_are_expected(body: WireBody) -> Findings:
    """The number of toolResult blocks at messages.2.content exceeds the number of toolUse blocks of previous turn."""
    for where, used, answered in _exchanges(body):
        extra = [i for i in dict.fromkeys(answered) if i not in used]
        if len(set(answered)) > len(set(used)):
            yield where, f"no toolUse right before called for {', '.join(extra)}"


def cache_point_follows_no_reasoning(body: WireBody) -> Findings:
    """Cache point cannot be inserted after reasoning block. Please remove the invalid cache point and try again."""
    for where, message in messages(body):
        for (_, before), (place, block) in pairwise(listed(message, "content", f"{where}.")):
            if "reasoningContent" in before and "cachePoint" in block:
                yield place, "the cache point stands right after reasoning"


def documents_come_with_text(body: WireBody) -> Findings:
    """A text block must be included when using documents."""
    for where, message in messages(body):
        blocks = [block for _, block in listed(message, "content")]
        if any("document" in b for b in blocks) and not any("text" in b for b in blocks):
            yield where, "the message holds a document and no text"


def document_names_differ(body: WireBody) -> Findings:
    """Messages can't contain duplicate document names. Rename the document and retry your request."""
    names = ((f"{where}.name", document.get("name")) for where, document in _of(_blocks(body), "document"))
    yield from ((where, f"more than one document is named {name!r}") for where, name in repeated(names))


def documents_are_few(body: WireBody) -> Findings:
    """You can't include more than 5 documents in a request."""
    found = _of(_blocks(body), "document")
    if len(found) > DOCUMENTS:
        yield found[DOCUMENTS][0], f"the request holds {len(found)} documents"


def _spoken(body: WireBody) -> list[Placed]:
    """The messages of user and assistant."""
    return [placed for placed in messages(body) if placed[1].get("role") in ("user", "assistant")]


def _blocks(body: WireBody) -> list[Placed]:
    return [block for where, message in messages(body) for block in listed(message, "content", f"{where}.")]


def _of(placed: list[Placed], key: str) -> list[Placed]:
    """What the blocks of one type hold; tools that the provider runs obey rules of their own."""
    return [
        (f"{where}.{key}", held)
        for where, block in placed
        if isinstance(held := block.get(key), Mapping) and not (key != "document" and "type" in held)
    ]


def _config(body: WireBody) -> Mapping[str, Any]:
    config = body.get("toolConfig")
    return config if isinstance(config, Mapping) else {}


def _ids(message: Mapping[str, Any], key: str) -> list[str]:
    ids = [held.get("toolUseId") for _, held in _of(listed(message, "content"), key)]
    return [i for i in ids if isinstance(i, str)]


def _repeated(where: str, message: Mapping[str, Any], key: str) -> Findings:
    ids = _ids(message, key)
    for i in dict.fromkeys(i for i in ids if ids.count(i) > 1):
        yield f"{where}.content", f"more than one {key} has the id {i}"


def _exchanges(body: WireBody) -> Iterator[tuple[str, list[str], list[str]]]:
    """Where tools are called or answered, the ids called for there and those answered right after."""
    spoken = _spoken(body)
    for (where, message), (after, answer) in pairwise([("", {}), *spoken, ("", {})]):
        used = _ids(message, "toolUse") if message.get("role") == "assistant" else []
        answered = _ids(answer, "toolResult") if answer.get("role") == "user" else []
        if used or answered:
            yield where if used else after, used, answered


RULES: list[Rule] = [
    has_messages,
    role_is_known,
    starts_with_the_user,
    roles_alternate,
    content_is_blocks,
    block_is_one_thing,
    message_is_not_empty,
    text_is_not_blank,
    result_text_is_not_empty,
    failed_result_has_reason,
    tool_block_is_complete,
    tool_input_is_an_object,
    tool_ids_are_plain,
    tool_names_are_plain,
    tool_config_is_defined,
    tool_use_ids_differ,
    tool_result_ids_differ,
    tool_uses_are_answered,
    tool_results_are_expected,
    cache_point_follows_no_reasoning,
    documents_come_with_text,
    document_names_differ,
    documents_are_few,
]
