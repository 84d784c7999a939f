"""What both directions of every format share: reading keys with clear errors, and copies that nobody else holds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from clew.core.items import Item, Kind, Opening, Role
from clew.errors import BadRequest

Block = dict[str, Any]

NOTHING: Mapping[str, Any] = {}  # the wire of an item that stands for a message without content


def fresh(value: Any) -> Any:
    """A deep copy of JSON data: what a caller later does to its own lists must not reach the log."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    # Plain ones first: to ask whether something is a mapping takes longer than to copy it.
    if kind is dict or (kind is not list and isinstance(value, Mapping)):
        return {k: v if type(v) in _ATOMS else fresh(v) for k, v in value.items()}
    if kind is list or isinstance(value, list | tuple):
        return [v if type(v) in _ATOMS else fresh(v) for v in value]
    return value


_ATOMS = frozenset({str, int, float, bool, type(None)})


def unmarked(block: Mapping[str, Any]) -> tuple[Block, Mapping[str, Any] | None]:
    """A private copy of a block, and its cache mark apart."""
    copy = fresh(block)
    mark = copy.get("cache_control")
    if not isinstance(mark, dict):
        return copy, None
    del copy["cache_control"]
    return copy, mark


def marked(block: Block, item: Item) -> Block:
    """The block with its cache mark back in place."""
    if item.mark is not None:
        block["cache_control"] = fresh(item.mark)
    return block


def as_mapping(value: Any, where: str) -> Mapping[str, Any]:
    if type(value) is not dict and not isinstance(value, Mapping):
        hint = "; send message.model_dump(exclude_none=True)" if hasattr(value, "model_dump") else ""
        raise BadRequest(f"{where}: expected an object, got {type(value).__name__}{hint}")
    return value


def as_list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise BadRequest(f"{where}: expected a list, got {type(value).__name__}")
    return list(value)


def objects(value: Any) -> tuple[Mapping[str, Any], ...]:
    """The objects of a list; none of anything else, for which the provider will have its own words."""
    return tuple(v for v in value if isinstance(v, Mapping)) if isinstance(value, list | tuple) else ()


def role_of(message: Mapping[str, Any], roles: Mapping[str, Role], where: str) -> Role:
    role = message.get("role")
    if not isinstance(role, str) or role not in roles:
        raise BadRequest(f"{where}.role: expected one of {', '.join(roles)}, got {role!r}")
    return roles[role]


def string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def text_of(content: Any) -> str:
    """All text in a content value: a string, or the text of its blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        return "\n".join(filter(None, (text_of(part) for part in content)))
    if isinstance(content, Mapping):
        for key in ("text", "content", "refusal"):
            if key in content:
                return text_of(content[key])
    return ""


def text_item(kind: Kind, role: Role, block: Mapping[str, Any], key: str = "text") -> Item:
    """An item for a block whose `key` is its text; plain ones need no wire."""
    copy, mark = unmarked(block)
    plain = kind == "text" and copy.keys() == {"type", "text"} and isinstance(copy["text"], str)
    return Item(kind, role, string(copy.get(key)), wire=None if plain else copy, mark=mark)


def says_nothing(item: Item) -> bool:
    """Whether an item only stands for a message that had no content."""
    return item.kind == "text" and item.wire is not None and not item.wire


def grouped(items: Iterable[Item], joins: Callable[[Item, Item], bool]) -> Iterator[list[Item]]:
    """The items of each message, grouped as they came; one without a message `joins` the one before it where it may."""
    group: list[Item] = []
    for item in items:
        if group and (item.opens is not None or item.kind == "summary" or not joins(group[0], item)):
            yield group
            group = []
        group.append(item)
    if group:
        yield group


def opened(items: list[Item], role: Role, keys: dict[str, Any], bare: bool) -> list[Item]:
    """The items of one message, the first of them opening it; a message without content is one empty item."""
    opening = Opening(keys, bare)
    if not items:
        return [Item("text", role, wire=NOTHING, opens=opening)]
    first = items[0]
    items[0] = Item(first.kind, first.role, first.text, first.name, first.call_id, first.wire, opening, first.mark)
    return items
