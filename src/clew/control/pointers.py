"""Whether a model can recall, and under which name: by this its view tells it to, or says nothing of it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace as with_
from itertools import takewhile
from typing import Any

from clew.core.items import Frame, Item, Node
from clew.core.own_tools import RECALL, is_own_recall
from clew.core.pointers import as_named
from clew.core.view import View
from clew.engine.engine import body
from clew.errors import ClewError
from clew.wire.convert.tools import declarations
from clew.wire.formats import named
from clew.wire.formats.tools import ToolDeclaration

BEGINS = 3  # messages in which a client may list them
_TAKES = {"id", "lines", "pattern"}  # what clew's own recall takes; others have a tool of that name, too
# In the list that a client gives of tools that are declared once they are looked for.
_LATER = re.compile(rf"^[ \t*-]*((?:mcp__)?clew__{RECALL})\b", re.MULTILINE)


def recall_in(body: Mapping[str, Any], format: str) -> str:
    """The name of clew's recall among the tools of a body; empty: it is not there."""
    tools = declarations(body, format)
    if RECALL in tools and _is_ours(tools[RECALL]):
        return RECALL
    return next(filter(is_own_recall, tools), "")


def recall_later(frame: Frame, said: Sequence[Item]) -> str:
    """Its name in a list of tools that the client declares when they are asked for."""
    found = _LATER.search(frame.system)
    texts = (item.text for item in said if item.kind == "text" and item.role in ("user", "system"))
    found = found or next(filter(None, map(_LATER.search, texts)), None)
    return found[1] if found else ""


def opening(items: Sequence[Item]) -> Sequence[Item]:
    """What was said before the first answer: it stays the same for a whole session."""
    return [*takewhile(lambda item: item.role != "assistant", items)]


def recall_name(body: Mapping[str, Any], view: View) -> str:
    """Under which name the model that a body is for can recall; empty: it cannot."""
    return recall_in(body, view.frame.format) or recall_later(view.frame, [node.item for node in view.nodes])


def recall_first(body: Mapping[str, Any] | bytes, view: View) -> str:
    """Its name in what a request begins with, which may be folded by now."""
    if isinstance(body, bytes) or not view.edits:
        return ""
    codec = named(view.frame.format)
    begins = body.get(codec.LIST)
    first = begins[:BEGINS] if isinstance(begins, list) else []
    return recall_later(view.frame, opening([item for n, one in enumerate(first) for item in codec.read(one, f"{n}")]))


def with_names(view: View, name: str) -> View:
    """The view as a model reads it that has recall under this name, or has it not."""
    if name == RECALL:
        return view
    made = view.stand_ins()
    return with_(view, nodes=tuple(_named(n, name) if n.id in made else n for n in view.nodes))


def as_read(view: View) -> View:
    """A view of the log as its model read it, as far as the tools tell that were sent with it.

    Without any, the host may have declared them elsewhere: then with the ids that a person can recall by.
    """
    if not view.edits or not view.frame.tools:
        return view
    try:
        return with_names(view, recall_name(body(view), view))
    except ClewError:  # what is wrong with its tools is its provider's to say
        return view


def _is_ours(tool: ToolDeclaration) -> bool:
    properties = (tool.schema or {}).get("properties")
    return isinstance(properties, Mapping) and properties.keys() >= _TAKES


def _named(node: Node, name: str) -> Node:
    text = as_named(node.item.text, name)
    if text == node.item.text:
        return node
    return with_(node, item=with_(node.item, text=text, wire=node.item.wire and _renamed(node.item.wire, name)))


def _renamed(value: Any, name: str) -> Any:
    match value:
        case str():
            return as_named(value, name)
        case Mapping():
            return {key: _renamed(inner, name) for key, inner in value.items()}
        case list() | tuple():
            return [_renamed(inner, name) for inner in value]
    return value
