"""A body as Anthropic's API looks at it: consecutive messages of one role are one turn, a string is one text block.

Everything here passes over what it cannot read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

WireBody = Mapping[str, Any]
Findings = Iterator[tuple[str, str]]  # where a rule is broken, and why
Placed = tuple[str, Mapping[str, Any]]  # where it stands, and the object there
Rule = Callable[[WireBody], Findings]


def messages(body: WireBody) -> list[Placed]:
    """The messages of a body."""
    return listed(body, "messages")


def blocks(body: WireBody) -> list[Placed]:
    """The blocks of all messages."""
    return [placed for where, message in messages(body) for placed in within(message, where)]


def nested(body: WireBody) -> list[Placed]:
    """The blocks of all messages, each followed by those it holds."""
    return [inner for where, block in blocks(body) for inner in ((where, block), *within(block, where))]


def within(holder: Mapping[str, Any], where: str) -> list[Placed]:
    """The blocks in the content of a message or of a block."""
    content = holder.get("content")
    if isinstance(content, str) and content:
        return [(f"{where}.content", {"type": "text", "text": content})]
    return [
        (place, block) for place, block in listed(holder, "content", f"{where}.") if isinstance(block.get("type"), str)
    ]


def listed(holder: Mapping[str, Any], key: str, where: str = "") -> list[Placed]:
    """The objects in the list under a key."""
    return [(f"{where}{key}[{i}]", v) for i, v in enumerate(values(holder, key)) if isinstance(v, Mapping)]


# --- what rules of several providers ask ------------------------------------------------------------------------------


def values(holder: Mapping[str, Any], key: str) -> Sequence[Any]:
    """What is in the list under a key."""
    value = holder.get(key)
    return value if isinstance(value, list | tuple) else ()


def filled(body: WireBody, key: str) -> Findings:
    """There is a list under a key, with something in it."""
    value = body.get(key)
    if not isinstance(value, list | tuple):
        yield key, f"expected a list, got {type(value).__name__}"
    elif not value:
        yield key, "the list is empty"


def objects(body: WireBody, key: str) -> Findings:
    """All in the list under a key are objects."""
    for i, one in enumerate(values(body, key)):
        if not isinstance(one, Mapping):
            yield f"{key}[{i}]", f"expected an object, got {type(one).__name__}"


def roles(placed: Iterable[tuple[str, Any]], known: Sequence[str]) -> Findings:
    """All of these have a role that is known; what is no object has none."""
    for where, message in placed:
        role = message.get("role") if isinstance(message, Mapping) else None
        if role not in known:
            yield f"{where}.role", f"{role!r} is none of {', '.join(known)}"


def text_or_parts(where: str, content: Any) -> Findings:
    """A content is a string or a list of objects with a type."""
    if isinstance(content, str):
        return
    if not isinstance(content, list | tuple):
        yield where, f"expected a string or a list, got {type(content).__name__}"
        return
    for i, part in enumerate(content):
        if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
            yield f"{where}[{i}]", "expected an object with a `type`"


def repeated(found: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    """The strings among these that came before."""
    seen: set[str] = set()
    for where, value in found:
        if isinstance(value, str):
            if value in seen:
                yield where, value
            seen.add(value)


def wording(*holders: Mapping[str, Any]) -> list[str]:
    """The texts of messages, whole or in parts."""
    found = [text for m in holders for text in (m.get("content"), *(p.get("text") for _, p in listed(m, "content")))]
    return [text for text in found if isinstance(text, str)]


def turns(body: WireBody) -> list[tuple[Any, list[Placed]]]:
    """The role and the blocks of every turn that has blocks."""
    said = [(message.get("role"), within(message, where)) for where, message in messages(body)]
    grouped = groupby((turn for turn in said if turn[1]), key=lambda turn: turn[0])
    return [(role, [placed for _, part in parts for placed in part]) for role, parts in grouped]


def exchanges(body: WireBody) -> Iterator[tuple[list[Placed], list[str]]]:
    """The blocks of every user turn, and the ids of the tools that the turn before it called."""
    before: list[Placed] = []
    for role, said in turns(body):
        if role == "user":
            yield said, ids(before, "tool_use", "id")
        before = said if role == "assistant" else []


def ids(placed: list[Placed], kind: str, key: str) -> list[str]:
    """The ids under a key of all blocks of one type."""
    found = [block.get(key) for _, block in placed if block["type"] == kind]
    return [i for i in found if isinstance(i, str)]


def marks(body: WireBody) -> list[Placed]:
    """The cache marks of a body, in the order in which they are processed."""
    holders = [*listed(body, "tools"), *listed(body, "system"), *nested(body)]
    found = [(where, h["cache_control"]) for where, h in holders if isinstance(h.get("cache_control"), Mapping)]
    whole = body.get("cache_control")
    # A mark on the whole request is put on its last block, where that has none.
    if isinstance(whole, Mapping) and not (found and holders[-1][0] == found[-1][0]):
        found.append(("cache_control", whole))
    return found


def is_directive(message: Mapping[str, Any]) -> bool:
    """Whether a system message only changes settings: it needs no content and may stand anywhere."""
    return message.get("role") == "system" and not message.get("content") and bool(message.get("output_config"))


def is_server_result(block: Mapping[str, Any]) -> bool:
    """Whether the block is what a tool on the provider's side gave back."""
    kind = str(block["type"])
    return kind.endswith("_tool_result") and kind != "mcp_tool_result"
