"""Ids for a model that can recall what they stand for; another one would call a tool that it does not have."""

import re
from collections.abc import Mapping
from dataclasses import replace as with_
from typing import Any

from clew.agent.control.offering import RECALL
from clew.core.items import SHORT, Node
from clew.core.own_tools import is_own_tool
from clew.core.view import View
from clew.errors import ClewError
from clew.wire.convert.tools import declared

_ID = rf"recall [0-9a-f]{{{SHORT}}}"
_ALONE = re.compile(rf"\[{_ID}\]")
_BESIDE = re.compile(
    rf" \({_ID}\)|(?:; for the rest: |[;,:] ){_ID}(?: lines [0-9]{{1,12}}-[0-9]{{1,12}})?(?: for all of it)?"
)
_LATER = f"clew__{RECALL}"  # in the list that a client gives of tools that are declared once they are looked for


def may_recall(body: Mapping[str, Any], view: View) -> bool:
    """Whether the model that a body is for has a tool to recall with."""
    try:
        names = declared(body, view.frame.format)
    except ClewError:  # what is wrong with its tools is its provider's to say
        return True
    if any(name == RECALL or (is_own_tool(name) and name.endswith(RECALL)) for name in names):
        return True
    return _LATER in view.frame.system or any(n.item.role == "user" and _LATER in n.item.text for n in view.nodes)


def without_ids(view: View) -> View:
    """The view as a model reads it that cannot recall: its stand-ins say what they stand for, and no more."""
    made = view.stand_ins()
    return with_(view, nodes=tuple(_bare(n) if n.id in made else n for n in view.nodes))


def _bare(node: Node) -> Node:
    text = _said(node.item.text)
    if text == node.item.text:
        return node
    return with_(node, item=with_(node.item, text=text, wire=node.item.wire and _said(node.item.wire)))


def _said(value: Any) -> Any:
    match value:
        case str():
            return _BESIDE.sub("", _ALONE.sub("[out of view]", value))
        case Mapping():
            return {key: _said(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_said(inner) for inner in value]
    return value
