"""What an author that is a model is asked: all of the nodes, in as many questions as its window needs."""

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import NamedTuple

from clew.core.cuts import groups
from clew.core.items import Item, Node
from clew.facts.sheets import voice_of
from clew.steps.lines import amount
from clew.steps.worklog.fold import ChapterStretch

TITLES = 30  # earlier chapters whose titles a model is shown
WORDS = 0.4  # of a token: a record is full of names and figures
UNSPACED = "Chinese", "Japanese", "Korean", "Thai"  # of these a token is a character, more or less
SHORT = 1 / 3  # of the full length
FIRST_WORDS = 80  # characters by which a model finds a message
WHO = {"user": "person", "said": "assistant", "result": "result"}


class Chunk(NamedTuple):
    """Some nodes in a row, as a model reads them."""

    nodes: tuple[Node, ...]
    text: str
    tokens: int


def instruction(name: str) -> str:
    """A prompt as it ships: `chapter`, and what leads to it `after` a request that was just sent."""
    return (files("clew.steps.chapters") / "prompts" / f"{name}.md").read_text(encoding="utf-8")


def filled(
    prompt: str, language: str, size: int, titles: Sequence[str] = (), instructions: str = "", focus: str = ""
) -> str:
    """A prompt with what holds this time."""
    sizes = {"{full}": length(size, language), "{short}": length(SHORT * size, language)}
    for name, value in {"{language}": language, **sizes}.items():
        prompt = prompt.replace(name, value)
    parts = [prompt.rstrip()]
    if instructions:
        parts.append(f"The person's standing instructions for this record:\n{_inside(instructions)}")
    if focus:
        parts.append(f"This time the person wants above all:\n{_inside(focus)}")
    if titles:
        known = (f"- {title}" for title in titles[-TITLES:])
        parts.append("The record already tells of what came before; do not repeat that:\n" + "\n".join(known))
    return "\n\n".join(parts)


def length(size: float, language: str) -> str:
    """So many tokens as a model can count them."""
    return f"{round(size):,} characters" if language in UNSPACED else f"{round(WORDS * size):,} words"


def several(parts: Sequence[ChapterStretch], language: str) -> str:
    """How to answer for more than one part, and which of them the record has already."""
    found = []
    if len(parts) > 1:
        lengths = ((length(one.size, language), length(SHORT * one.size, language)) for one in parts)
        sizes = "; ".join(
            f"part {n} in full at most {full}, in short {short}" for n, (full, short) in enumerate(lengths, 1)
        )
        found.append(instruction("parts").replace("{parts}", f"{len(parts)}").replace("{sizes}", sizes))
    for n, one in enumerate(parts, 1):
        if one.blocks:
            which = f"Part {n}" if len(parts) > 1 else "What you are shown this time"
            found.append(instruction("earlier").replace("{which}", which))
    return "\n\n".join(found)


def following(parts: Sequence[ChapterStretch], lacking: Sequence[Node] = (), longer: Sequence[str] = ()) -> str:
    """What leads to the prompt where a model has the parts before it, but for what is shorter there than it was."""
    some = [_reaches(one.shown or [n for n in one.nodes if n not in lacking]) for one in parts]
    listed = some[0] if len(some) == 1 else "".join(f"\n{n}. {one}" for n, one in enumerate(some, 1))
    which = "a part" if len(some) == 1 else f"{len(some)} parts"
    begin = instruction("after").replace("{which}", which).replace("{parts}", listed)
    shortened = "\n\n".join([*longer, *([lines(lacking)] if lacking else ())])
    return f"{begin}Shortened there, and here as it was:\n\n{shortened}\n\n" if shortened else begin


def _reaches(nodes: Sequence[Node]) -> str:
    first, last = (" ".join(shown(node.item)[1].split())[:FIRST_WORDS] for node in (nodes[0], nodes[-1]))
    return f"from the message that begins\n  {first}\nup to the message that begins\n  {last}"


def reading(parts: Sequence[ChapterStretch]) -> str:
    """All of these, for a model that has nothing of them."""
    texts = ["\n\n".join(one.blocks) if one.blocks else lines(one.nodes) for one in parts]
    return texts[0] if len(texts) == 1 else "\n\n".join(f"Part {n}:\n{text}" for n, text in enumerate(texts, 1))


def chunks(nodes: Sequence[Node], room: int, count: Callable[[str], int]) -> Iterator[Chunk]:
    """The nodes in order, in as few chunks of about the same size as there can be, none above `room` tokens.

    A call stays with its result. What is longer than a chunk is shown without its middle.
    """
    units = [(nodes[start:stop], _text(nodes[start:stop], room, count)) for start, stop in groups(nodes)]
    sizes = [count(text) + 1 for _, text in units]
    even = sum(sizes) / max(1, -(-sum(sizes) // room))
    held, used = list[int](), 0
    for at, size in enumerate(sizes):
        if held and (used + size > room or used + size / 2 > even):
            yield _chunk(units, held, used)
            held, used = [], 0
        held.append(at)
        used += size
    if held:
        yield _chunk(units, held, used)


def _chunk(units: Sequence[tuple[Sequence[Node], str]], held: Sequence[int], tokens: int) -> Chunk:
    return Chunk(tuple(n for at in held for n in units[at][0]), "\n".join(units[at][1] for at in held), tokens)


def _text(nodes: Sequence[Node], room: int, count: Callable[[str], int]) -> str:
    """Nodes as text; such as are larger than the room, without the middle of each."""
    most = max((len(node.item.text) for node in nodes), default=0)
    while True:
        text = lines(nodes, most)
        if count(text) < room or most < FIRST_WORDS:
            return text
        most //= 2


def lines(nodes: Sequence[Node], most: int = sys.maxsize) -> str:
    """Nodes as text, of each at most so many characters."""
    return "\n".join(f"{head}: {_inside(_ends(body, most))}" for head, body in (shown(n.item) for n in nodes))


def _ends(text: str, most: int) -> str:
    """The beginning and the end of a text in so many characters."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[… {len(text) - most:,} characters not shown …]\n{text[-(most // 2) :]}"


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
    """Text whose lines cannot be taken for somebody else's: only who speaks begins at the margin."""
    return "\n  ".join(text.splitlines())
