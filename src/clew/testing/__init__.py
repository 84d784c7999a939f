"""Fakes and laws, for our tests and yours: random conversations, a provider that refuses what real ones refuse, and
`check_laws`, which holds a step against everything that must be true of all steps."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from clew.catalog.usage import Spent
from clew.core.items import Digests, Node
from clew.core.lazy import gone
from clew.core.view import View
from clew.steps.chapters.model import Prompt, Reply
from clew.steps.chapters.questions import shown
from clew.testing.conversations import PICTURE, conversation
from clew.testing.laws import check_laws
from clew.testing.provider import Answer, Call, HeardRequest, StrictProvider
from clew.wire import decode

__all__ = [
    "PICTURE",
    "Answer",
    "Call",
    "HeardRequest",
    "ScriptedModel",
    "StrictProvider",
    "asked_of",
    "check_laws",
    "conversation",
    "view_of",
    "write_chapter",
]

__getattr__ = gone(
    __name__,
    check_store="it is in tests/store_promises.py of clew's repository",
    take_notes="it is `clew.testing.write_chapter` now",
)


def view_of(body: Mapping[str, Any], format: str | None = None, pins: int = 0, seed: int = 0) -> View:
    """A body as a view, with that many of its nodes pinned."""
    frame, items = decode(body, format)
    digests = Digests()
    nodes = tuple(digests.chain(items))
    pinned = Random(seed).sample(nodes, min(pins, len(nodes)))  # noqa: S311
    return View(frame, nodes, digests, pinned=frozenset(n.id for n in pinned))


# --- fakes --------------------------------------------------------------------------------------------------------


LINES_WRITTEN = 14  # of what it is shown, at most, that `write_chapter` tells


@dataclass
class ScriptedModel:
    """A model that says what it was told to say, one reply a call, or what `script` makes of a prompt.

    An exception in the script is raised.
    """

    script: list[str | Reply | Exception] | Callable[[Prompt], str | Reply | Exception]
    name: str = "scripted"
    window: int = 32_000
    seconds: float = 0  # before each reply
    prompts: list[Prompt] = field(default_factory=list)

    async def __call__(self, prompt: Prompt) -> Reply:
        self.prompts.append(prompt)
        await asyncio.sleep(self.seconds)
        reply = self.script(prompt) if callable(self.script) else self.script.pop(0)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Reply):
            return reply
        return Reply(reply, Spent(len(prompt.system + prompt.text) // 4, len(reply) // 4))


def write_chapter(prompt: Prompt) -> str:
    """A script for a `ScriptedModel`: of each part a chapter with a line on each of the newest items it is shown."""
    found = []
    for nodes, text in asked_of(prompt):
        heads = [node.item.text.splitlines()[0][:90] for node in nodes if node.item.text.strip()]
        heads = heads or re.findall(r"^\w[^:\n]*: (.{20,90})", text, re.MULTILINE)
        lines = [f"- It says: {head}" for head in heads[-LINES_WRITTEN:]] or ["- Nothing was said."]
        full, short = "\n".join(lines), "\n".join(lines[: 1 + len(lines) // 4])
        found.append(f"<line>{lines[-1][2:]}</line>\n<short>\n{short}\n</short>\n<full>\n{full}\n</full>")
    return "\n".join(found)


def asked_of(prompt: Prompt) -> list[tuple[Sequence[Node], str]]:
    """The parts that a model is asked to write of: what it has of them already, or the text that it is to read."""
    if not prompt.after:
        _, *several = re.split(r"(?m)^Part \d+:\n", prompt.text)
        return [((), text) for text in several or [prompt.text]]
    there, found = prompt.after.nodes, list[tuple[Sequence[Node], str]]()
    begins = [" ".join(shown(node.item)[1].split()) for node in there]
    for first, last in re.findall(r"that begins\n  (.*)\nup to the message that begins\n  (.*)\n", f"{prompt.text}\n"):
        start = next((n for n, text in enumerate(begins) if text.startswith(first)), 0)
        stop = next((n for n in range(len(there) - 1, start, -1) if begins[n].startswith(last)), start)
        found.append((there[start : stop + 1], ""))
    return found or [(there, "")]
