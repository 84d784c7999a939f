"""Repair: a history that a provider would refuse becomes one it accepts, with nothing lost."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from clew.core.cuts import continues, groups, pairs
from clew.core.items import Item, Node, Opening
from clew.core.view import Swap, View
from clew.steps.lines import plain
from clew.steps.protocol import PureStep
from clew.text.excerpts import framed
from clew.tokens.target import Target
from clew.wire.formats import named, openai_chat
from clew.wire.formats.openai_chat.rules import INSTEAD_OF_CONTENT

TWICE = "[the same result, sent twice]"
AGAIN_ANSWERED = "one more result of a call above"  # as Gemini CLI sends, where it masks old ones

# Keys that say the provider has a part of the history: what looks like an orphan here may be whole there.
PROVIDER_STATE = ("previous_response_id", "conversation", "thread")


@dataclass(frozen=True)
class Repair(PureStep):
    """Orphan results and unanswered calls become text, results follow their calls, empty content gets a word."""

    def apply(self, view: View, target: Target) -> View:
        return repair(view, by=self)


def repair(view: View, since: int = 0, by: object = Repair()) -> View:
    """Mend what stands at or after `since`, which must be a cut."""
    stateful = any(view.frame.body.get(key) for key in PROVIDER_STATE)
    nodes = view.nodes[since:]
    paired = {i for start, stop in pairs(nodes) for i in (start, stop - 1)}
    answered = {(nodes[i].item.call_id, nodes[i].item.text) for i in paired if nodes[i].item.kind == "result"}
    called = {node.item.call_id for node in view.nodes if node.item.kind == "call"}
    swaps = [
        # Which call it was: should its result come after all, the mending is taken back.
        Swap(since + i, since + i + 1, [mended], {"call": node.item.call_id} if node.item.kind == "call" else {})
        for i, node in enumerate(nodes)
        if (mended := _mended(node.item, i in paired or stateful, view.frame.format, answered, called)) is not node.item
    ]
    return _ordered(view.replace_all(swaps, by=by), since, by)


def _mended(item: Item, paired: bool, format: str, answered: Set[tuple[str, str]], called: Set[str]) -> Item:
    if item.kind == "call" and not paired:
        opens = Opening(item.opens.keys, bare=True) if item.opens else None
        return Item("text", item.role, f"[called {item.name} {item.text}: no result]", opens=opens)
    if item.kind == "result" and not paired and (item.call_id, item.text) in answered:
        return Item("text", "user", TWICE)
    if item.kind == "result" and not paired:
        # No call to answer, so it must stand as text: fenced, for it is what a tool said, not what the user wants.
        which = AGAIN_ANSWERED if item.call_id in called else "the result of a call that is not here"
        return Item("text", "user", framed(item.text, which))
    codec = named(format)
    if codec.refuses_empty_text and item.kind == "text" and not item.text.strip() and not item.wire:
        return plain(item, "[empty]")
    if codec.refuses_empty_results and item.kind == "result" and not item.text.strip() and item.wire is None:
        return plain(item, "[empty]")
    if format == openai_chat.NAME and _says_nothing(item):
        keys = {key: value for key, value in item.opens.keys.items() if key != "content"} if item.opens else {}
        return Item("text", item.role, "[empty]", opens=Opening(keys, bare=True))
    return item


def _says_nothing(item: Item) -> bool:
    """Whether it is a message without content, calls or what may stand instead of them."""
    if item.kind != "text" or item.text or item.wire != {} or item.opens is None:
        return False
    return all(item.opens.keys.get(key) is None for key in ("content", *INSTEAD_OF_CONTENT))


def _ordered(view: View, since: int, by: object) -> View:
    """Results right after the message that called for them; whatever stood between comes after."""
    swaps = []
    for start, stop in groups(view.nodes[since:]):
        if stop - start < 2:
            continue
        old = view.nodes[since + start : since + stop]
        new = list(_in_order(old))
        if [n.id for n in new] != [n.id for n in old]:
            swaps.append(Swap(since + start, since + stop, new))
    return view.replace_all(swaps, by=by)


def _in_order(nodes: Sequence[Node]) -> Iterator[Node]:
    answers = {start: stop - 1 for start, stop in pairs(nodes) if nodes[stop - 1].item.kind == "result"}
    results = set(answers.values())
    due: list[int] = []
    for i, node in enumerate(nodes):
        if i in results:
            continue
        if not continues(nodes, i):
            yield from (nodes[r] for r in sorted(due))
            due = []
        if i in answers:
            due.append(answers[i])
        yield node
    yield from (nodes[r] for r in sorted(due))
