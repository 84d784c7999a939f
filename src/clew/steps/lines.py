"""The words of stand-ins: one line that says what was there, how much of it, and how to get it back."""

import json
from collections import Counter as Tally
from collections.abc import Mapping, Sequence
from dataclasses import replace as with_

from clew.core.bounds import clip
from clew.core.items import Item, Node
from clew.core.pointers import PREVIEWED, pointer
from clew.core.view import View
from clew.steps.matches import MatchedLine, listing
from clew.steps.outcome import outcome
from clew.steps.shorten import arguments
from clew.text.framing import neutral
from clew.tokens import media

ARGUMENTS = 120  # characters of a call's arguments in a line
OUTCOME = 100  # characters of a result in a line
OUT_OF_VIEW = "earlier conversation out of view"


def calls_by_result(nodes: Sequence[Node]) -> dict[int, Item]:
    """For the position of each result, the call it answers."""
    found: dict[int, Item] = {}
    open_calls: dict[str, Item] = {}
    for i, node in enumerate(nodes):
        if node.item.kind == "call":
            open_calls[node.item.call_id] = node.item
        elif node.item.kind == "result" and node.item.call_id in open_calls:
            found[i] = open_calls[node.item.call_id]
    return found


def cleared(item: Item, call: Item | None, recall: str) -> Item:
    """A result or a medium as one informative line."""
    if item.kind == "media":
        return plain(item, f"[{amount(item)}, out of view; {pointer(recall)}]")
    how = clip(neutral(outcome(item)), OUTCOME)
    said = f": {how}" if how else ""
    return plain(item, f"[result of {_called(call)}, {amount(item)}, out of view; {pointer(recall)}{said}]")


def repeated(result: Item, newest: Item | None, recall: str) -> Item:
    """A result as one line that points to a newer one of the same words; `newest` is the call of that one."""
    return plain(result, f"[same output as the newer result of {_called(newest)}, {pointer(recall)}]")


def superseded(result: Item, call: Item | None, recall: str, by: str) -> Item:
    """A read as one line that says what made it old."""
    return plain(result, f"[result of {_called(call)}, {amount(result)}, superseded by {by}; {pointer(recall)}]")


def _called(call: Item | None) -> str:
    if call is None:
        return "a tool"
    given = arguments(call.text, ARGUMENTS) or clip(call.text, ARGUMENTS)
    return neutral(" ".join(f"{call.name} {given}".split()))


def preview(item: Item, recall: str, head: int, tail: int, matches: Sequence[MatchedLine] = ()) -> Item:
    """An item's first and last characters, between them the lines that match, and how to get the rest."""
    text = item.text
    if len(text) <= head + tail:
        return plain(item, f"{text}\n[{amount(item)}; {pointer(recall)}]")
    # The matches take a third from head and tail: with them it is no longer than without.
    first, last = _ends(text, head - head // 3, tail - tail // 3)
    found = listing(matches, len(first), len(text) - len(last), head // 3 + tail // 3)
    if not found:
        first, last = _ends(text, head, tail)
    missing = len(text) - len(first) - len(last)
    middle = f"\n[… {missing:,} of {len(text):,}{PREVIEWED}{pointer(recall)}{found} …]\n"
    return plain(item, first + middle + last)


def _ends(text: str, head: int, tail: int) -> tuple[str, str]:
    """Both ends without the piece of a line at which they are cut, unless it is long."""
    first, last = text[:head], text[len(text) - tail :]
    end, start = first.rfind("\n", head * 3 // 4), last.find("\n", 0, tail // 4)
    return first[:end] if end >= 0 else first, last[start + 1 :]


def omitted(nodes: Sequence[Node], earlier: Mapping[str, Mapping[str, int]], recall: str) -> tuple[str, dict[str, int]]:
    """One line for a whole span, and the tallies it is made of; `earlier` has those of stand-ins inside it."""
    tally: Tally[str] = Tally()
    for node in nodes:
        tally.update(earlier.get(node.id) or {_noun(node.item): 1})
    parts = [f"{n:,} {noun if n == 1 else plural(noun)}" for noun, n in sorted(tally.items())]
    return f"[{OUT_OF_VIEW}: {', '.join(parts)}; {pointer(recall)}]", dict(tally)


def tallies(view: View) -> dict[str, Mapping[str, int]]:
    """What stand-ins in view were made of, by their ids, where it was counted."""
    made = ((n.id, view.edits.made.get(n.id)) for n in view.nodes)
    return {id: edit.evidence["tally"] for id, edit in made if edit and "tally" in edit.evidence}


LONGEST_LINE = (
    f"[{OUT_OF_VIEW}: "
    + ", ".join(
        f"999,999 {noun}"
        for noun in (
            "assistant messages",
            "media",
            "opaque",
            "reasoning",
            "summaries",
            "system messages",
            "tool calls",
            "tool results",
            "user messages",
        )
    )
    + "; recall 0123456789]"
)  # what `omitted` can at most become: the room to keep for it


def plain(item: Item, text: str) -> Item:
    """The item with other text: same kind, same pairing, same message; no provider block of its own."""
    if item.kind in ("media", "opaque", "reasoning"):
        return Item("text", item.role, text, opens=item.opens)
    return with_(item, text=text, wire=None, mark=None)


def amount(item: Item) -> str:
    """How much an item holds, in words."""
    if item.kind == "media":
        weight = len(json.dumps(item.wire, default=str)) if item.wire else 0
        wire = item.wire or {}
        return f"{wire.get('type') or next(iter(wire), 'media')}, {weight:,} bytes"
    lines = item.text.count("\n") + 1
    held = sum(1 for _ in media.blocks(item.wire)) if item.wire else 0
    beside = f" and {held:,} media" if held else ""
    return f"{len(item.text):,} characters" + (f" in {lines:,} lines" if lines > 1 else "") + beside


def plural(noun: str) -> str:
    match noun:
        case "media" | "reasoning" | "opaque":
            return noun
        case "summary":
            return "summaries"
        case _:
            return noun + "s"


def _noun(item: Item) -> str:
    match item.kind:
        case "text":
            return f"{item.role} message"
        case "call" | "result":
            return f"tool {item.kind}"
        case "summary":
            return "summary"
        case kind:
            return kind
