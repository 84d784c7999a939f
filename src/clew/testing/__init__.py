"""Fakes and laws, for our tests and yours: random conversations, a provider that refuses what real ones refuse, and
`check_laws`, which holds a step against everything that must be true of all steps."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from clew.catalog.usage import Spent
from clew.core import rawjson
from clew.core.items import Digests, Node
from clew.core.limits import Size
from clew.core.view import View, fold, groups, originals
from clew.steps.notes.model import Prompt, Reply
from clew.steps.places import LINE, beside, crowding, long_calls, newest, newest_turn, protected, told_turn, unread
from clew.steps.protocol import Step
from clew.steps.sealed import instructed, sealed, served
from clew.testing.conversations import PICTURE, conversation
from clew.testing.provider import Answer, Call, Heard, StrictProvider
from clew.testing.provider.answers import Turn
from clew.testing.provider.responses import compacted
from clew.testing.stores import check_store
from clew.tokens.target import Target
from clew.wire import check, decode, encode

__all__ = [
    "PICTURE",
    "Answer",
    "Call",
    "Heard",
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


NOTES = 14  # that `take_notes` takes, at most


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
    shown = re.findall(r"^(n\d+) [^:\n]+: (.{20,90})", prompt.text, re.MULTILINE)[-NOTES:]
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
        return list(compacted(Turn("openai_responses", body, Answer(self.text)))["output"])


# --- the laws -----------------------------------------------------------------------------------------------------


async def check_laws(step: Step, view: View, target: Target, *, fits: bool = False) -> View:
    """Run a step and hold the result against every law; `fits` adds that it always ends within the limit."""
    snapshot = rawjson.dumps(encode(view.frame, (n.item for n in view.nodes)))
    after = await step(view, target)
    had, has = target.size(view), target.size(after)
    assert has.tokens <= had.tokens, f"1 monotone: {had} became {has}"
    for name, was, now, most in zip(Size._fields, had, has, target.limit, strict=True):
        assert was <= most or now <= was, f"1 monotone: {name} was over its limit and grew from {was} to {now}"
    _check_valid(view, after)
    _check_lossless(view, after)
    assert fold(view.nodes, after.edits[len(view.edits) :]) == after.nodes, (
        "4 replayable: log + edits give another view"
    )
    assert snapshot == rawjson.dumps(encode(view.frame, (n.item for n in view.nodes))), "5 pure: the input changed"
    if had.within(target.goal):
        assert after == view, "6 at rest: changed a view that fits"
    assert (await step(after, target)).nodes == after.nodes, f"6 at rest: {step!r} changed its own result"
    if fits:
        _check_fits(view, after, target)
    _check_protected(view, after, target)
    return after


def _check_valid(view: View, after: View) -> None:
    broken = check(encode(after.frame, (n.item for n in after.nodes)), view.frame.format)
    if not broken:
        return
    before = {b.rule for b in check(encode(view.frame, (n.item for n in view.nodes)), view.frame.format)}
    new = [b for b in broken if b.rule not in before]
    assert not new, f"2 valid: {new[0].rule} at {new[0].where}: {new[0].why}"


def _check_lossless(view: View, after: View) -> None:
    by_id = {n.id: e for e in after.edits for n in e.stand_ins}
    found = set(originals([n.id for n in after.nodes], by_id))
    lost = [n.id for n in view.nodes if n.id not in found]
    assert not lost, f"3 lossless: {len(lost)} originals cannot be reached from the view"
    for edit in after.edits:
        assert edit.old, "3 lossless: an edit replaced nothing"
        assert edit.new, "3 lossless: an edit left no trace"


def _check_fits(view: View, after: View, target: Target) -> None:
    has, target = target.size(after), beside(after, target)
    if has.within(target.goal):
        return
    fixed = sealed(after)
    new = {i for i, is_new in enumerate(newest(after)) if is_new} | fixed
    new |= served(after) | instructed(after) if has.within(target.limit) else set()
    stand_ins = {n.id for e in after.edits for n in e.new}
    rest = [
        target.meter.nodes(after.nodes[a:b]).tokens
        for a, b in groups(after.nodes)
        if not any(i in new or after.nodes[i].id in view.pinned | stand_ins for i in range(a, b))
    ]
    assert max(rest, default=0) <= LINE, (
        f"7 convergent: {has} is over {target.goal} with {max(rest)} tokens left to shorten"
    )
    if not has.within(target.limit):
        # Calls made together cannot be parted: a pin holds its whole group.
        stays = _with_groups(after, [n.id in view.pinned or i in fixed for i, n in enumerate(after.nodes)])
        gaps = len(stays) + 3
        floor = (
            target.meter.frame(view.frame).plus(target.meter.nodes(stays)).plus(Size(LINE * gaps, 200 * gaps, 0, gaps))
        )
        assert not floor.within(target.limit), (
            f"7 convergent: {has} is over {target.limit}, frame and pins take {floor}"
        )


def _check_protected(view: View, after: View, target: Target) -> None:
    stands = {(n.id, n.content) for n in after.nodes}
    told, new = told_turn(view, target), unread(view, target)
    shorter = {view.nodes[i].id for i in (*told, *long_calls(view, target))}  # may be told of, or previews
    if crowding(view, target):
        shorter |= {n.id for n in view.nodes if n.item.kind == "result"}
    unseen = [n for n, is_new in zip(view.nodes, new, strict=True) if is_new and n.id not in shorter]
    assert all((n.id, n.content) in stands for n in unseen), "10 protected: the newest exchange fits and was replaced"

    def keeps(nodes: list[Node]) -> bool:
        return all((n.id, n.content) in stands for n in nodes)

    pins = [n for n in view.nodes if n.id in view.pinned]
    assert keeps(pins), "10 protected: a pin was replaced"
    assert keeps([view.nodes[i] for i in sealed(view)]), "10 protected: what only the provider reads was replaced"
    kept = protected(view, target)
    whole = [keep or new for keep, new in zip(kept, newest(view), strict=True)]  # some steps keep a long turn, too
    room = target.meter.frame(view.frame).plus(target.meter.nodes(_with_groups(view, whole)))
    gaps = len(pins) + len(sealed(view)) + 4
    if room._replace(tokens=room.tokens + LINE * gaps, messages=room.messages + gaps).within(target.goal):
        start, stop = newest_turn(view.nodes)
        assert told or keeps(list(view.nodes[start:stop])), "10 protected: the newest user turn was replaced"
        assert keeps([n for n, keep in zip(view.nodes, kept, strict=True) if keep and n.id not in shorter]), (
            "10 protected: head or tail was replaced"
        )


def _with_groups(view: View, kept: Sequence[bool]) -> list[Node]:
    return [n for a, b in groups(view.nodes) if any(kept[a:b]) for n in view.nodes[a:b]]
