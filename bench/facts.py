"""A compactor for the corpus scorer: score.py bench.facts:compactor; `tailed` keeps a quarter of the size verbatim."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clew.facts import Sheet, digest, ranked, sheet
from clew.items import Item
from clew.wire import decode

Messages = Sequence[Mapping[str, Any]]
Result = tuple[str, Callable[[str], str]]

_items: dict[int, tuple[Any, list[Item]]] = {}  # by identity of the message, which is kept alive with them
_sheets: dict[int, list[Sheet]] = {}


def compactor(messages: Messages, target: int) -> Result:
    """The digest in `target` characters, and a recall over what it stands for."""
    items, sheets = read(messages)
    return digest(items, target, sheets=sheets).text, lambda query: ranked(items, query, sheets=sheets)


def tailed(messages: Messages, target: int) -> Result:
    """The same with the newest quarter of the size verbatim, as the product sends it."""
    items, sheets = read(messages)
    tail, cut = "", len(items)
    while cut and len(tail) + len(items[cut - 1].text) + 1 <= target // 4:
        cut -= 1
        tail = f"{items[cut].text}\n{tail}"
    old = digest(items[:cut], target - len(tail) - 1, sheets=sheets[:cut]).text
    return f"{old}\n{tail}", lambda query: ranked(items, query, sheets=sheets)


def read(messages: Messages) -> tuple[list[Item], list[Sheet]]:
    """Items and sheets of messages, each read once however often they are scored."""
    items: list[Item] = []
    sheets: list[Sheet] = []
    for message in messages:
        if id(message) not in _items:
            found = [] if message["role"] == "system" else decode({"messages": [message]}, "openai_chat")[1]
            _items[id(message)] = (message, found)
            _sheets[id(message)] = [sheet(item) for item in found]
        items += _items[id(message)][1]
        sheets += _sheets[id(message)]
    return items, sheets
