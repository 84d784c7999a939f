"""What a summariser is asked: all of the nodes, none of them cut short, in as many prompts as its window needs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from math import ceil
from operator import itemgetter
from typing import NamedTuple

from clew.core.items import Item, Node
from clew.facts.claims import Claim
from clew.facts.sheets import voice_of
from clew.steps.lines import amount

KNOWN = 30  # notes from before that a model is shown
WHO = {"user": "user", "said": "assistant", "result": "result"}


class Chunk(NamedTuple):
    """Some nodes in a row, as a model reads them; a node that is too long for one chunk goes on in the next."""

    ids: tuple[str, ...]
    text: str
    tokens: int


def instruction(name: str) -> str:
    """A prompt as it ships: `summarize` for items with labels, `after` for what was just sent."""
    return (files("clew.steps.notes") / "prompts" / f"{name}.md").read_text(encoding="utf-8")


def filled(
    prompt: str, language: str, words: int, notes: Sequence[Claim] = (), instructions: str = "", focus: str = ""
) -> str:
    """A prompt with what holds this time."""
    parts = [prompt.replace("{language}", language).replace("{words}", f"{words:,}").rstrip()]
    if instructions:
        parts.append(f"The user's standing instructions for these notes:\n{_inside(instructions)}")
    if focus:
        parts.append(f"This time the user wants above all:\n{_inside(focus)}")
    if notes:
        known = (f"- {c.text}" for c in notes[-KNOWN:])
        parts.append("You noted before, about what came earlier; do not repeat it:\n" + "\n".join(known))
    return "\n\n".join(parts)


def labels(nodes: Sequence[Node]) -> dict[str, str]:
    """The label of each node, by its id."""
    return {node.id: f"n{n}" for n, node in enumerate(nodes, 1)}


def chunks(
    nodes: Sequence[Node], labelled: Mapping[str, str], room: int, count: Callable[[str], int]
) -> Iterator[Chunk]:
    """The nodes in order, in chunks of about the same size, each within `room` tokens."""
    pieces = [piece for node in nodes for piece in _pieces(node, labelled[node.id], room, count)]
    whole = sum(tokens for _, _, tokens in pieces)
    even = whole / max(1, ceil(whole / room))
    at, used, placed = 0, 0, []
    for id, text, tokens in pieces:
        if used and (used + tokens > room or used + tokens / 2 > even):
            at, used = at + 1, 0
        used += tokens
        placed.append((at, id, text, tokens))
    for _, members in groupby(placed, key=itemgetter(0)):
        _, ids, texts, sizes = zip(*members, strict=True)
        yield Chunk(tuple(dict.fromkeys(ids)), "\n".join(texts), sum(sizes))


def _pieces(node: Node, label: str, room: int, count: Callable[[str], int]) -> Iterator[tuple[str, str, int]]:
    """A node as text; one that is larger than the room, in parts."""
    head, body = shown(node.item)
    text = f"{label} {head}: {_inside(body)}"
    tokens = count(text) + 1
    if tokens <= room:
        yield node.id, text, tokens
        return
    size = int(len(body) * room / tokens)
    left, n = [*reversed(list(parts(body, max(1, size))))], 0
    while left:
        part = left.pop()
        text = f"{label} {head}, part {n + 1}: {_inside(part)}"
        tokens = count(text) + 1
        if tokens > room and len(part) > 1:  # some parts are dearer than the average
            left += reversed(list(parts(part, (len(part) + 1) // 2)))
            continue
        n += 1
        yield node.id, text, tokens


def parts(text: str, size: int) -> Iterator[str]:
    """A text in parts of at most `size` characters that end with a line, if they can."""
    start = 0
    while start < len(text):
        stop = start + size
        if stop < len(text):
            stop = text.rfind("\n", start, stop) + 1 or stop
        yield text[start:stop]
        start = stop


def shown(item: Item) -> tuple[str, str]:
    """Who says it, and what: the arguments of a call, a placeholder for a picture."""
    match item.kind:
        case "call":
            return f"call {' '.join(item.name.split())}", item.text
        case "media" | "opaque":
            return item.role, f"[{amount(item)}]" if not item.text else f"[{amount(item)}] {item.text}"
        case "reasoning":
            return "assistant, thinking", item.text
        case _:
            return "system" if item.role == "system" else WHO[voice_of(item)], item.text


def _inside(text: str) -> str:
    """Text whose lines cannot be taken for items: only those begin at the margin."""
    return "\n  ".join(text.splitlines())
