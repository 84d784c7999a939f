"""Ways to make a history smaller: clew's, and the two that need no library."""

from typing import Any

from benchmark.judging import MODEL, RECALLED, Messages, Method, Recall, arguments, shown, strings
from clew.compression import LEAST_TARGET, Compressed, bounds, compress
from clew.core.bridge import run
from clew.core.items import Digests, Frame, Item
from clew.core.view import View
from clew.steps import default, repair
from clew.tokens import Counter, Plain, counter_for
from clew.tokens.meter import Meter
from clew.tokens.target import Target
from clew.wire import decode, encode

KEPT = 6  # results that stay where old ones are cleared
FORMAT = "openai_chat"


class Characters(Counter):
    """Counts the characters that `shown` makes of an item, so that a size in characters is met exactly."""

    def __init__(self) -> None:
        super().__init__(Plain("characters", len, exact=True), FORMAT)

    def item(self, item: Item) -> int:
        opens = len(f"\n{item.role}: ") if item.opens is not None or item.kind == "summary" else 0
        if item.kind == "call":
            return opens + len(f"\n[call {item.name} {arguments(item.text or '{}')}]")
        if item.wire is not None:
            return opens + sum(len(s) + 1 for s in strings(item.wire))
        alone = item.kind in ("summary", "result") or (item.opens is not None and item.opens.bare)
        return opens + len(item.text) + (0 if alone else len(" text "))

    def _frame(self, frame: Frame) -> int:
        return len(shown(frame.lead))


def compacted(messages: Messages, size: int, counter: Counter) -> Compressed:
    """What `clew.compress` gives for a history of so many tokens, by another counter than a model's."""
    said = view_of(messages)
    meter = Meter(counter)
    target = Target.of(bounds(size, said.frame, [n.item for n in said.nodes], meter), meter).around(said.frame)
    view = repair(said)
    if target.excess(view):
        view = run(default()(view, target))
    sizes = target.size(said).tokens, target.size(view).tokens
    found = encode(view.frame, (n.item for n in view.nodes))["messages"]
    return Compressed(found, *sizes, view.edits, counter.exact, {n.id: n for n in said.nodes}, {})


def clew(messages: Messages, size: int) -> tuple[Messages, Recall]:
    """clew, at a size in characters."""
    found = compacted(without_frame(messages, size // 2), size, Characters())
    return found.messages, lambda query: found.answer(query, RECALLED)


def view_of(messages: Messages) -> View:
    """A history as it was said."""
    frame, items = decode({"messages": list(messages)}, FORMAT)
    digests = Digests()
    return View(frame, tuple(digests.chain(items)), digests)


def without_frame(messages: Messages, most: int) -> Messages:
    """A system prompt larger than this, as if the user had said it: clew never shortens one, and here it counts."""
    system = [m for m in messages if m["role"] == "system"]
    if len(shown(system)) <= most:
        return messages
    return [{**m, "role": "user"} if m["role"] == "system" else m for m in messages]


def newest(messages: Messages, size: int) -> str:
    """The last characters: what every sliding window keeps at best."""
    return shown(messages)[-size:]


def cleared(messages: Messages, size: int) -> str:
    """Old results cleared, then the last characters."""
    results = [i for i, m in enumerate(messages) if m["role"] == "tool"]
    old = set(results[:-KEPT])
    bare: list[Any] = [{**m, "content": "[output omitted]"} if i in old else m for i, m in enumerate(messages)]
    return newest(bare, size)


CLEW = "clew"
PLAIN: dict[str, Method] = {"newest": newest, "clear results": cleared}


def clew_in_tokens(messages: Messages, size: int) -> tuple[Messages, Recall]:
    """clew as its users call it, at a size in tokens."""
    framed = counter_for(MODEL).frame(view_of(messages).frame)  # others have it in their size, too
    found = compress(messages, target_tokens=max(LEAST_TARGET, size - framed), model=MODEL)
    return found.messages, lambda query: found.answer(query, RECALLED)


def in_tokens(method: Method, messages: Messages) -> Method:
    """A method that counts characters, at a size in tokens: at the rate of these messages, and what is over is cut."""
    count = counter_for(MODEL).text
    rate = len(text := shown(messages)) / max(1, count(text))

    def sized(messages: Messages, size: int) -> str:
        found = method(messages, int(size * rate))
        assert isinstance(found, str), "who has a recall counts tokens itself"
        while (have := count(found)) > size:
            found = found[len(found) - int(len(found) * size / have * 0.99) :]
        return found

    return sized
