"""Fakes and laws, for our tests and yours: random conversations, a provider that refuses what real ones refuse, and
`check_laws`, which holds a step against everything that must be true of all steps."""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from clew.catalog.usage import Spent
from clew.core.items import Digests
from clew.core.view import View
from clew.steps.notes.model import Prompt, Reply
from clew.testing.conversations import PICTURE, conversation
from clew.testing.laws import check_laws
from clew.testing.provider import Answer, Call, HeardRequest, StrictProvider
from clew.testing.provider.answers import ProviderTurn
from clew.testing.provider.responses import compacted
from clew.testing.stores import check_store
from clew.wire import decode, encode

__all__ = [
    "PICTURE",
    "Answer",
    "Call",
    "HeardRequest",
    "ScriptedCompactor",
    "ScriptedModel",
    "StrictProvider",
    "check_laws",
    "check_store",
    "conversation",
    "take_notes",
    "view_of",
]


def view_of(body: Mapping[str, Any], format: str | None = None, pins: int = 0, seed: int = 0) -> View:
    """A body as a view, with that many of its nodes pinned."""
    frame, items = decode(body, format)
    digests = Digests()
    nodes = tuple(digests.chain(items))
    pinned = Random(seed).sample(nodes, min(pins, len(nodes)))  # noqa: S311
    return View(frame, nodes, digests, pinned=frozenset(n.id for n in pinned))


# --- fakes --------------------------------------------------------------------------------------------------------


NOTES_TAKEN = 14  # that `take_notes` takes, at most


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


def take_notes(prompt: Prompt) -> str:
    """A script for a `ScriptedModel`: a note on each of the newest items it is shown."""
    shown = re.findall(r"^(n\d+) [^:\n]+: (.{20,90})", prompt.text, re.MULTILINE)[-NOTES_TAKEN:]
    return "\n".join(f"- It says: {text} [{label}]" for label, text in shown) or "- none"


@dataclass(frozen=True)
class ScriptedCompactor:
    """A provider's own compaction without the provider: its answer has this text in what only it can read."""

    text: str = "sealed"

    async def compact(self, view: View) -> list[dict[str, Any]]:
        """Items for OpenAI's Responses, a block for Anthropic."""
        body = encode(view.frame, (n.item for n in view.nodes))
        if view.frame.format == "anthropic":
            return [{"type": "compaction", "content": self.text}]
        return list(compacted(ProviderTurn("openai_responses", body, Answer(self.text)))["output"])
