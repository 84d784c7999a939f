"""Fakes and laws, for our tests and yours: random conversations, a provider that refuses what real ones refuse, and
`check_laws`, which holds a step against everything that must be true of all steps."""

import json
import struct
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from clew.budget import Budget, Size
from clew.items import Digests, Node
from clew.step import Reply, Step
from clew.steps.places import newest_turn, protected
from clew.view import View, fold, groups, originals
from clew.wire import check, decode, encode

WORDS = [
    "the",
    "parser",
    "reads",
    "src/clew/view.py",
    "and",
    "fails",
    "with",
    "KeyError",
    "'id'",
    "at",
    "line",
    "42",
    "while",
    "17",
    "of",
    "93",
    "tests",
    "pass;",
    "retry",
    "after",
    "250",
    "ms,",
    "see",
    "issue",
    "#381",
    "and",
    "build",
    "7f3a9c;",
    "Übergröße",
    "東京",
    "данные",
    "🙂",
    '{"a":',
    "[1,",
    "2]}",
    "--flag=x",
]


def _png(width: int, height: int) -> str:
    """A blank picture, in base64."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"\0" * (3 * width + 1) * height)
    return b64encode(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")).decode()


PICTURE = _png(320, 240)


# --- conversations ------------------------------------------------------------------------------------------------


def conversation(seed: int, turns: int, format: str = "openai_chat", wordy: int = 60) -> dict[str, Any]:
    """A valid request body, the same for the same arguments: text, reasoning, images, single and parallel calls."""
    writer = _Anthropic(seed, wordy) if format == "anthropic" else _OpenAI(seed, wordy)
    return writer.body(turns)


class _OpenAI:
    def __init__(self, seed: int, wordy: int) -> None:
        self.random = Random(seed)  # noqa: S311  # for variety, not for secrets
        self.wordy = wordy
        self.calls = 0

    def body(self, turns: int) -> dict[str, Any]:
        messages: list[dict[str, Any]] = [{"role": "system", "content": self.text()}]
        for turn in range(turns + 1):
            messages.append(self.user())
            if turn == turns:
                break
            for _ in range(self.random.randrange(4)):
                messages += self.work()
            messages.append({"role": "assistant", "content": self.text()})
        return {"model": "gpt-4o", "messages": messages}

    def text(self) -> str:
        size = self.random.choice((1, 3, self.wordy // 4, self.wordy, self.wordy * self.random.choice((1, 1, 1, 8))))
        return " ".join(self.random.choices(WORDS, k=max(1, size)))

    def user(self) -> dict[str, Any]:
        match self.random.randrange(6):
            case 0:
                image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
                return {"role": "user", "content": [{"type": "text", "text": self.text()}, image]}
            case 1:
                return {"role": "user", "content": [{"type": "text", "text": self.text()}], "name": "kim"}
            case _:
                return {"role": "user", "content": self.text()}

    def ids(self) -> list[str]:
        """Fresh ids for calls made together."""
        made = self.random.choice((1, 1, 1, 2, 3, 7))
        self.calls += made
        return [f"call_{self.calls - n}" for n in range(made)]

    def work(self) -> list[dict[str, Any]]:
        ids = self.ids()
        said: dict[str, Any] = {"role": "assistant", "content": self.random.choice((None, self.text()))}
        if self.random.random() < 0.2:
            said["reasoning_content"] = self.text()
        said["tool_calls"] = [
            {"id": id, "type": "function", "function": {"name": "bash", "arguments": json.dumps({"cmd": self.text()})}}
            for id in ids
        ]
        self.random.shuffle(ids)
        return [said, *({"role": "tool", "tool_call_id": id, "content": self.text()} for id in ids)]


class _Anthropic(_OpenAI):
    def body(self, turns: int) -> dict[str, Any]:
        body = super().body(turns)
        system = body["messages"].pop(0)["content"]
        return {"model": "claude-sonnet-4-5", "max_tokens": 1024, "system": system, **body, "tools": [_TOOL]}

    def user(self) -> dict[str, Any]:
        match self.random.randrange(5):
            case 0:
                source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
                return {"role": "user", "content": [self.block(), {"type": "image", "source": source}]}
            case 1:
                return {"role": "user", "content": [self.block(), self.block()]}
            case _:
                return {"role": "user", "content": self.text()}

    def block(self) -> dict[str, Any]:
        return {"type": "text", "text": self.text()}

    def work(self) -> list[dict[str, Any]]:
        ids = [f"toolu_{id}" for id in self.ids()]
        said: list[dict[str, Any]] = []
        if self.random.random() < 0.3:
            said.append({"type": "thinking", "thinking": self.text(), "signature": f"sig{self.calls}"})
        if self.random.random() < 0.5:
            said.append(self.block())
        said += [{"type": "tool_use", "id": id, "name": "bash", "input": {"cmd": self.text()}} for id in ids]
        self.random.shuffle(ids)
        results = [{"type": "tool_result", "tool_use_id": id, "content": self.text()} for id in ids]
        if self.random.random() < 0.2:
            results.append(self.block())
        return [{"role": "assistant", "content": said}, {"role": "user", "content": results}]


_TOOL = {"name": "bash", "description": "Run a command.", "input_schema": {"type": "object", "properties": {}}}


def view_of(body: Mapping[str, Any], format: str | None = None, pins: int = 0, seed: int = 0) -> View:
    """A body as a view, with that many of its nodes pinned."""
    frame, items = decode(body, format)
    digests = Digests()
    nodes = tuple(digests.chain(items))
    pinned = Random(seed).sample(nodes, min(pins, len(nodes)))  # noqa: S311
    return View(frame, nodes, digests, pinned=frozenset(n.id for n in pinned))


# --- fakes --------------------------------------------------------------------------------------------------------


@dataclass
class ScriptedModel:
    """A model that says what it was told to say, one reply a call; an exception in the script is raised."""

    replies: list[str | Exception]
    prompts: list[str] = field(default_factory=list)

    async def __call__(self, prompt: str, *, max_tokens: int) -> Reply:
        self.prompts.append(prompt)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return Reply(reply, spent=max_tokens)


class Refused(Exception):
    """What a strict provider answers instead of a reply."""


@dataclass
class StrictProvider:
    """Takes requests like a provider does: refuses a body that breaks a rule or exceeds the window."""

    budget: Budget
    bodies: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, body: dict[str, Any], format: str | None = None) -> dict[str, int]:
        frame, items = decode(body, format)
        if broken := check(body, frame.format):
            raise Refused(f"{broken[0].where}: {broken[0].why}")
        tokens = self.budget.meter.frame(frame).plus(self.budget.meter.items(items)).tokens
        if tokens > self.budget.window:
            raise Refused(f"prompt is too long: {tokens} tokens > {self.budget.window} maximum")
        self.bodies.append(body)
        return {"input_tokens": tokens, "output_tokens": 0}


# --- the laws -----------------------------------------------------------------------------------------------------


async def check_laws(step: Step, view: View, budget: Budget, *, fits: bool = False) -> View:
    """Run a step and hold the result against every law; `fits` adds that it always ends within the limit."""
    snapshot = json.dumps(encode(view.frame, (n.item for n in view.nodes)))
    after = await step(view, budget)
    had, has = budget.size(view), budget.size(after)
    assert has.tokens <= had.tokens, f"1 monotone: {had} became {has}"
    for name, was, now, most in zip(Size._fields, had, has, budget.limit, strict=True):
        assert was <= most or now <= was, f"1 monotone: {name} was over its limit and grew from {was} to {now}"
    _check_valid(view, after)
    _check_lossless(view, after)
    assert fold(view.nodes, after.edits[len(view.edits) :]) == after.nodes, (
        "4 replayable: log + edits give another view"
    )
    assert snapshot == json.dumps(encode(view.frame, (n.item for n in view.nodes))), "5 pure: the input changed"
    if had.within(budget.goal):
        assert after == view, "6 at rest: changed a view that fits"
    assert (await step(after, budget)).nodes == after.nodes, f"6 at rest: {step!r} changed its own result"
    if fits:
        _check_fits(view, after, budget)
    _check_protected(view, after, budget)
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


def _check_fits(view: View, after: View, budget: Budget) -> None:
    has = budget.size(after)
    if has.within(budget.goal):
        return
    turn = range(*newest_turn(after.nodes))
    stand_ins = {n.id for e in after.edits for n in e.new}
    rest = [
        budget.meter.nodes(after.nodes[a:b]).tokens
        for a, b in groups(after.nodes)
        if not any(i in turn or after.nodes[i].id in view.pinned | stand_ins for i in range(a, b))
    ]
    assert max(rest, default=0) <= LINE, (
        f"7 convergent: {has} is over {budget.goal} with {max(rest)} tokens left to shorten"
    )
    if not has.within(budget.limit):
        # Calls made together cannot be parted: a pin holds its whole group.
        fixed = _with_groups(after, [n.id in view.pinned for n in after.nodes])
        gaps = len(fixed) + 3
        floor = (
            budget.meter.frame(view.frame).plus(budget.meter.nodes(fixed)).plus(Size(LINE * gaps, 200 * gaps, 0, gaps))
        )
        assert not floor.within(budget.limit), (
            f"7 convergent: {has} is over {budget.limit}, frame and pins take {floor}"
        )


LINE = 130  # tokens that a one-line stand-in takes at most


def _check_protected(view: View, after: View, budget: Budget) -> None:
    stands = {(n.id, n.content) for n in after.nodes}

    def keeps(nodes: list[Node]) -> bool:
        return all((n.id, n.content) in stands for n in nodes)

    pins = [n for n in view.nodes if n.id in view.pinned]
    assert keeps(pins), "10 protected: a pin was replaced"
    kept = protected(view, budget)
    room = budget.meter.frame(view.frame).plus(budget.meter.nodes(_with_groups(view, kept)))
    gaps = LINE * (len(pins) + 4)
    if room._replace(tokens=room.tokens + gaps, messages=room.messages + len(pins) + 4).within(budget.goal):
        start, stop = newest_turn(view.nodes)
        assert keeps(list(view.nodes[start:stop])), "10 protected: the newest user turn was replaced"
        assert keeps([n for n, keep in zip(view.nodes, kept, strict=True) if keep]), (
            "10 protected: head or tail was replaced"
        )


def _with_groups(view: View, kept: Sequence[bool]) -> list[Node]:
    return [n for a, b in groups(view.nodes) if any(kept[a:b]) for n in view.nodes[a:b]]
