"""Shrink calls: the long arguments of old calls become their first words, inside valid JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Any

from clew.core import rawjson
from clew.core.items import Item
from clew.core.pointers import pointer
from clew.core.view import Swap, View
from clew.steps.protocol import PureStep
from clew.steps.shorten import parsed, shortened
from clew.steps.taking import replaceable, take
from clew.tokens.target import Target

KEPT_CHARACTERS = 400  # characters of one string, or of a whole call, that may stay
HEAD_CHARACTERS = 120  # characters that stay of a longer one: what a command does, where a patch goes
KEPT_ENTRIES = 40  # of one list
FREE_FORM = frozenset({"custom", "custom_tool_call"})  # calls whose argument is any text


@dataclass(frozen=True)
class ShrinkCalls(PureStep):
    """Old calls keep their arguments, the long ones cut and marked with a recall id, largest first.

    Whatever else the provider put into a call, such as a signature, stays. Left alone are arguments that are not JSON,
    and in OpenAI Responses calls with an id of their own, which the provider may know in full.
    """

    def apply(self, view: View, target: Target) -> View:
        return take(view, target, _found(view, target), by=self) if target.excess(view) else view


def _found(view: View, target: Target) -> Iterator[Swap]:
    kept_whole = view.frame.format == "openai_responses"
    calls = {
        i: len(item.text)
        for i in replaceable(view, target)
        if (item := view.nodes[i].item).kind == "call"
        and len(item.text) > KEPT_CHARACTERS
        and not (kept_whole and "id" in (item.wire or ()))
    }
    for i in sorted(calls, key=lambda i: -calls[i]):
        if (short := shrunk(view.nodes[i].item, view.short(i, i + 1))) is not None:
            yield Swap(i, i + 1, [short])


def shrunk(call: Item, recall: str) -> Item | None:
    """The call with its long arguments cut; None where that cannot be done safely."""

    def cut(text: str) -> str:
        if len(text) <= KEPT_CHARACTERS:
            return text
        hidden = len(text) - HEAD_CHARACTERS
        return f"{text[:HEAD_CHARACTERS]}[… {hidden:,} of {len(text):,} characters out of view; {pointer(recall)}]"

    if call.wire is not None and call.wire.get("type") in FREE_FORM:
        text = cut(call.text)
    elif (
        isinstance(value := parsed(call.text), dict)
        and (short := shortened(value, cut, KEPT_ENTRIES, f", {pointer(recall)}")) != value
    ):
        text = rawjson.dumps(short).decode()
    else:
        return None
    if call.wire is None:
        return with_(call, text=text, mark=None)
    wire = _exchanged(call.wire, call.text, text)
    return None if wire == call.wire else with_(call, text=text, wire=wire, mark=None)


def _exchanged(block: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """The provider's block with other arguments, be they a string in it or an object; all else as it was."""
    out = dict(block)
    for key, value in block.items():
        if value == old:
            out[key] = new
        elif isinstance(value, Mapping):
            same = rawjson.dumps(value).decode() == old
            out[key] = rawjson.loads(new) if same else _exchanged(value, old, new)
    return out
