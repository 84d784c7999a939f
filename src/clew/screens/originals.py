"""What `clew recall` and `clew search` show."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from clew.core import rawjson
from clew.core.items import SHORT, Item, Node
from clew.engine.recall import Hit
from clew.errors import NotFound
from clew.screens.lines import described, line, words
from clew.text.excerpts import matching, span


def heading(nodes: Sequence[Node], id: str) -> str:
    """What a recalled id is."""
    if len(nodes) == 1:
        return f"{id}: {described(nodes[0].item)}"
    return f"{id}: {len(nodes)} items, {sum(len(n.item.text) for n in nodes):,} characters"


def original(item: Item) -> str:
    """An item's text, byte for byte; the provider's block for one that is no text."""
    return item.text if item.text or not item.wire else rawjson.dumps(item.wire).decode()


def excerpt(text: str, lines: str, grep: str) -> str:
    """Some lines of a text; those that match a pattern come with their numbers."""
    every = text.split("\n")
    first, last = span(lines, len(every))
    picked = every[first - 1 : last]
    if not picked:
        raise NotFound(f"there are only {len(every):,} lines, none of them in {lines}")
    if not grep:
        return "".join(f"{told}\n" for told in picked)
    found = [f"{n}:{every[n - 1]}\n" for n in matching(picked, grep, first)]
    if not found:
        raise NotFound(f"no line of {len(picked):,} matches {grep}")
    return "".join(found)


def items(nodes: Sequence[Node]) -> list[dict[str, Any]]:
    """Originals for a program."""
    keys = ("kind", "role", "name", "call_id")
    return [{"id": n.id} | {k: getattr(n.item, k) for k in keys} | {"text": original(n.item)} for n in nodes]


def hits(console: Console, found: Sequence[Hit], sources: Mapping[str, str]) -> None:
    """What was found: a line for each text with the conversation it is of, and the lines of it that say so."""
    for branch, hit in found:
        line(console, f"{hit.id[:SHORT]}  {sources[branch]}  {words(hit.title, 80)}", "bold")
        first = dict(reversed(hit.lines))  # a long line may have the words several times
        for number, text in reversed(first.items()):
            line(console, f"  {number:>6}  {words(text)}")
