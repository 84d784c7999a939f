"""Native: the provider's own compaction, for who prefers that. What it wrote stands in; the originals stay in the log.

What is known of it is from the documentation of OpenAI (Compaction: the items it returns are the next input, as they
are) and of Anthropic (Compaction that keeps recent turns: the block comes first, in a message of the assistant; what
stands before it is dropped, and what shall stay follows). No real provider was asked. Anthropic takes a request with
its block only under the beta header of that feature, which is for the host to send.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Any, Protocol

from clew.budget import Budget
from clew.errors import BadRequest, BrokenHistory, ModelError
from clew.items import Item, Node, Opening
from clew.steps.places import first_exchange, protected
from clew.steps.summarize import spans
from clew.view import Swap, View, groups
from clew.wire import FORMATS, anthropic, openai_responses

LEAST = 1_000  # tokens that the provider has not compacted yet: for less, it is not asked


class Compactor(Protocol):
    """A provider that can compact a view. What goes wrong is a `ModelError`."""

    async def compact(self, view: View) -> list[dict[str, Any]]:
        """What the provider puts in place of all the view's nodes, verbatim."""


@dataclass(frozen=True)
class Native:
    """All up to the tail becomes what the provider makes of it; head, newest turn and pins stay beside that.

    Where that is not to be had, or is no smaller, the view stays as it is: the next step of a pipeline goes on.
    """

    model: Compactor
    least: int = LEAST

    async def __call__(self, view: View, budget: Budget) -> View:
        stop = max((stop for _, stop in spans(view, budget)), default=0)
        if not budget.excess(view) or self._fresh(view, budget) < self.least:
            return view
        try:
            answer = await self.model.compact(with_(view, nodes=view.nodes[:stop]))
            items = list(_read(answer, view.frame.format))
            after = view.replace_all([Swap(0, stop, _placed(view, budget, stop, items))], by=self)
        except (ModelError, BadRequest, BrokenHistory):
            return view
        was, now = budget.size(view), budget.size(after)
        return after if now.tokens < was.tokens and now.within(was) else view

    def _fresh(self, view: View, budget: Budget) -> int:
        """Tokens that may be folded and are neither a summary nor out of a compaction by this provider."""
        if view.frame.format not in (anthropic.NAME, openai_responses.NAME):
            return 0
        told = {n.id for e in view.edits if e.by == repr(self) for n in e.new}
        nodes = (n for start, stop in spans(view, budget) for n in view.nodes[start:stop])
        return budget.meter.nodes(n for n in nodes if n.id not in told and n.item.kind != "summary").tokens


def _read(answer: Sequence[Mapping[str, Any]], format: str) -> Iterator[Item]:
    """What the provider wrote, as items; its system messages are in the frame anyway."""
    messages = [{"role": "assistant", "content": answer}] if format == anthropic.NAME else answer
    for n, message in enumerate(messages):
        yield from (item for item in FORMATS[format].read(message, f"output[{n}]") if item.role != "system")


def _placed(view: View, budget: Budget, stop: int, items: Sequence[Item]) -> list[Item | Node]:
    """What stands in for the first nodes: what the provider wrote, and the nodes that stay.

    What it gave back as the user said it stays the node it was. Between what the provider wrote and what the assistant
    says next, and between turns of the user that were not said in a row, something must stand that keeps them apart.
    """
    given = {view.digests.content(item): item for item in items}
    head, back, rest = _stay(view, budget, stop, given)
    known = {node.content for node in view.nodes[:stop]}
    new = [_opening(item) for content, item in given.items() if content not in known]
    line = Item("summary", "user", f"[compacted by the provider; recall {view.short(0, stop)} for all of it]")
    if view.frame.format == anthropic.NAME:
        return [*new, *head, line, *back, *rest]
    after = [*rest, *view.nodes[stop:]]
    if after and after[0].item.role == "assistant":
        return [*head, *new, line, *back, *rest]
    return [*head, line, *back, *new, *rest]


def _stay(view: View, budget: Budget, stop: int, given: Container[str]) -> tuple[list[Node], list[Node], list[Node]]:
    """The nodes that stay: the first exchange, what the provider gave back, what else is protected."""
    head: list[Node] = []
    back: list[Node] = []
    rest: list[Node] = []
    keep, first = protected(view, budget), range(*first_exchange(view.nodes))
    for start, end in groups(view.nodes[:stop]):
        nodes = view.nodes[start:end]
        if any(keep[start:end]):
            (head if start in first else rest).extend(nodes)
        else:
            back += [n for n in nodes if n.content in given and n.item.kind != "summary"]
    return head, back, rest


def _opening(item: Item) -> Item:
    """An item that does not continue what stands before it."""
    return with_(item, opens=Opening({})) if item.kind == "opaque" and item.opens is None else item
