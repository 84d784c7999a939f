"""Native: the provider's own compaction, for who prefers that. What it wrote stands in; the originals stay in the log.

What is known of it is from the documentation of OpenAI (Compaction: the items it returns are the next input, as they
are) and of Anthropic (Compaction on demand: the block comes first, in a message of the assistant's, in place of what it
was made of, and what shall stay follows it). No real provider was asked. Anthropic takes a request with its block only
under the beta header of that feature, which is for the host to send; and a host that stores what it sent to Anthropic
sends back a first exchange behind the block, which is not recognised: it is compacted once more.

Where Anthropic's models bind their thinking to what was said, it stays valid behind the block if nothing stands
between: then the block alone stands for all before it. What must stay in force, system messages and a request of the
user's that is still being worked on, is said again at the very end.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Any, Protocol

from clew.core.cuts import Stretch, groups
from clew.core.items import Item, Opening
from clew.core.pointers import pointer
from clew.core.view import Swap, View
from clew.errors import BadRequest, BrokenHistory, ModelError
from clew.steps.places import newest_turn, protected, unread
from clew.steps.sealed import COMPACTED, instructed, sealed, served, type_of
from clew.steps.summarize import spans
from clew.tokens.target import Target
from clew.wire import FORMATS
from clew.wire.formats import anthropic, openai_responses
from clew.wire.rules.binding import is_refused

LEAST_NEW_TOKENS = 1_000  # tokens that the provider has not compacted yet: for less, it is not asked


class NativeCompactor(Protocol):
    """A provider that can compact a view. What goes wrong is a `ModelError`."""

    async def compact(self, view: View) -> list[dict[str, Any]]:
        """What the provider puts in place of all the view's nodes, verbatim."""


@dataclass(frozen=True)
class Native:
    """All up to the tail becomes what the provider makes of it; head, newest turn and pins stay.

    Where that is not to be had, or is no smaller, the view stays as it is: the next step of a pipeline goes on.
    """

    model: NativeCompactor
    least: int = LEAST_NEW_TOKENS

    async def __call__(self, view: View, target: Target) -> View:
        if not target.excess(view) or self._fresh(view, target) < self.least:
            return view
        stop = max(stop for _, stop in spans(view, target, _kept(view, target)))
        stop = _between_messages(view, stop) if view.frame.format == anthropic.NAME else stop
        if not stop:
            return view
        try:
            answer = await self.model.compact(with_(view, nodes=view.nodes[:stop]))
            items = list(_read(answer, view.frame.format))
            after = view.replace_all(_swaps(view, target, stop, items), by=self)
        except (ModelError, BadRequest, BrokenHistory):
            return view
        was, now = target.size(view), target.size(after)
        # What the provider wrote cannot be shortened again: it must leave room for what no model has read yet.
        crowds = any(unread(view, target)) and not any(unread(after, target))
        return after if now.tokens < was.tokens and now.within(was) and not crowds else view

    def _fresh(self, view: View, target: Target) -> int:
        """Tokens that may be folded, no summary, and newer than all that the provider has compacted."""
        if view.frame.format not in (anthropic.NAME, openai_responses.NAME):
            return 0
        own = [e for e in view.edits if e.by == repr(self)]
        made = {n.id for e in own for n in e.stand_ins} | {e.evidence.get("until") for e in own}
        since = max((i for i, n in enumerate(view.nodes) if n.id in made), default=0)
        nodes = (
            n for start, stop in spans(view, target, _kept(view, target)) for n in view.nodes[max(start, since) : stop]
        )
        return target.meter.nodes(n for n in nodes if n.id not in made and n.item.kind != "summary").tokens


def _read(answer: Sequence[Mapping[str, Any]], format: str) -> Iterator[Item]:
    """What the provider wrote, as items; its system messages are in the frame anyway."""
    messages = [{"role": "assistant", "content": answer}] if format == anthropic.NAME else answer
    for n, message in enumerate(messages):
        said = FORMATS[format].read(message, f"output[{n}]")
        yield from (item for item in said if item.role != "system" or type_of(item) == COMPACTED)


def _swaps(view: View, target: Target, stop: int, items: Sequence[Item]) -> list[Swap]:
    """A line for each gap; beside one of them what the provider wrote: for Anthropic the first, for OpenAI the last."""
    given = {view.digests.content(item): item for item in items}
    known = {node.content for node in view.nodes[:stop]}
    new = [_opening(item) for content, item in given.items() if content not in known]
    if not new:
        return []  # it only gave back what was said: what goes would be told nowhere
    leads = view.frame.format == anthropic.NAME
    until = {"until": view.nodes[stop - 1].id}
    if leads and (again := _said_again(view, target, stop)) is not None:
        end = len(view.nodes)
        more = [Swap(end - 1, end, [view.nodes[-1], *again], until)] if again else []
        return [Swap(0, stop, new, until), *more]
    gaps = list(_gaps(view, target, stop, given))
    swaps = []
    for n, (start, end) in enumerate(gaps):
        begin = 0 if leads and n == 0 else start
        written = new if n == (0 if leads else len(gaps) - 1) else []
        line = Item("summary", "user", f"[compacted by the provider; {pointer(view.short(begin, end))}]")
        swaps.append(Swap(begin, end, [*written, *view.nodes[begin:start], line], until))
    return swaps


def _between_messages(view: View, stop: int) -> int:
    """The last cut up to there at which one role's message ends and another's begins; 0 if there is none."""
    roles = ["user" if n.item.role == "tool" or n.item.kind == "summary" else n.item.role for n in view.nodes]
    whole = (c for c in view.cuts() if 0 < c <= stop and c < len(roles) and roles[c] not in (roles[c - 1], "system"))
    return max(whole, default=0)


def _said_again(view: View, target: Target, stop: int) -> list[Item] | None:
    """What is said again at the end where the block alone stands for all up to `stop`; None if it cannot.

    It does so where thinking behind it would be lost otherwise, and nothing is pinned or for the provider before it.
    """
    kept, turn, nodes = _kept(view, target), range(*newest_turn(view.nodes)), view.nodes
    if not is_refused(view.frame) or not any(n.item.kind == "reasoning" for n in nodes[stop:]):
        return None
    fixed = served(view) | {i for i in sealed(view) if type_of(nodes[i].item) != COMPACTED}
    if any(i in fixed or nodes[i].id in view.pinned for i in range(stop)):
        return None
    rules = {i for i in instructed(view) if nodes[i].item.role == "system"}
    again = [i for i in range(stop) if i in rules or (kept[i] and i in turn)]
    if again and (nodes[-1].item.role not in ("user", "tool") or nodes[-1].item.kind == "summary"):
        return None
    return [nodes[i].item for i in sorted(again, key=lambda i: i in rules)]


def _gaps(view: View, target: Target, stop: int, given: Container[str]) -> Iterator[Stretch]:
    """The stretches that go: neither protected, nor given back by the provider as they were said."""
    keep = _kept(view, target)
    begin: int | None = None
    for start, end in groups(view.nodes[:stop]):
        back = all(n.content in given and n.item.kind != "summary" for n in view.nodes[start:end])
        if not back and not any(keep[start:end]):
            begin = start if begin is None else begin
        elif begin is not None:
            yield begin, start
            begin = None
    if begin is not None:
        yield begin, stop


def _kept(view: View, target: Target) -> list[bool]:
    """What stays. An earlier compaction of the provider's does not: it reads that, too, and tells of it anew."""
    kept = protected(view, target)
    again = (type_of(n.item) == COMPACTED and n.id not in view.pinned for n in view.nodes)
    return [keep and not told for keep, told in zip(kept, again, strict=True)]


def _opening(item: Item) -> Item:
    """An item that does not continue what stands before it."""
    return with_(item, opens=Opening({})) if item.kind == "opaque" and item.opens is None else item
