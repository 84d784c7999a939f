"""What is out of view, as it was said: a memo for steps that tell of it."""

from collections.abc import Iterable
from typing import Any

from clew.core.items import Item, Node
from clew.facts import Sheet, sheet
from clew.facts.claims import Draft


class Past:
    """Nodes by id, and what was read out of each, once. Ids never change their meaning, so it only grows."""

    __slots__ = ("_nodes", "_sheets", "acts", "draft", "focus")

    def __init__(self) -> None:
        self.draft: Draft | None = None  # what a model made of it last
        self.focus = ""  # what somebody who has it compacted cares for above all
        self.acts: dict[tuple[str, str], Any] = {}  # what a call with its result did, in words, by their ids
        self._nodes: dict[str, Node] = {}
        self._sheets: dict[str, Sheet] = {}

    def keep(self, nodes: Iterable[Node]) -> None:
        """Remember these."""
        for node in nodes:
            self._nodes[node.id] = node

    def node(self, id: str) -> Node | None:
        """What was said there, if it is known."""
        return self._nodes.get(id)

    def sheet(self, id: str, item: Item) -> Sheet:
        """What an item says, line by line."""
        found = self._sheets.get(id)
        if found is None:
            found = self._sheets[id] = sheet(item)
        return found
