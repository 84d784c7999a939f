"""How well is the next request's size foreseen? python bench/calibration.py [--base NAME] [--corpus DIR]

Sessions of 40 calls, compacted on the way by clew's own steps, at providers whose tokenizer, wrapping and hidden prompt
our counter does not know; after each call they report what they counted. One row per provider: mean and 95th percentile
of the error of the foreseen size over all calls after the fifth, by chars/4, by a plain ratio (reported / counted,
smoothed) and by `clew.tokens.calibration`; the same for the calls right after a compaction; how often the upper bound
held, and how far above it lay. Last, what the traits cost beside the count itself.
"""

import argparse
import asyncio
import gzip
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any, NamedTuple

from clew.core.items import Digests, Frame, Item, Node
from clew.core.limits import Budget
from clew.core.view import View
from clew.steps import default
from clew.tokens import Counter, Plain, vocabulary_for
from clew.tokens.calibration import Anchor, Calibration, Traits, traits
from clew.tokens.meter import Meter
from clew.tokens.target import Target
from clew.wire import decode
from estimate import ESTIMATE

SAMPLE = Path(__file__).parents[1] / "src" / "clew" / "data" / "sample.jsonl.gz"
CALLS = 40
LEARNING = 5  # calls that are not scored
BASES = {"o200k": Plain("o200k", vocabulary_for("gpt-4o").count), "estimate": ESTIMATE}


@dataclass(frozen=True)
class Provider:
    """Counts by its own rules, all of them unknown to us: what is said, what it is wrapped in, a hidden prompt."""

    name: str
    model: str  # whose vocabulary it has
    scale: float = 1.0
    item: int = 4
    call: int = 12
    result: int = 8
    hidden: int = 300

    def reports(self, frame: Frame, nodes: Iterable[Node]) -> int:
        """The input tokens of a request."""
        said = self._text(frame.system) + self._text(json.dumps([dict(t) for t in frame.tools]))
        return round(self.hidden + said + sum(self._item(node.item) for node in nodes))

    def _item(self, item: Item) -> float:
        wrapping = {"call": self.call, "result": self.result}.get(item.kind, 0)
        return self.item + wrapping + self._text(item.name + item.text)

    def _text(self, text: str) -> float:
        return self.scale * count(self.model, text)


PROVIDERS = (
    Provider("o200k", "gpt-4o", item=7, hidden=400),
    Provider("cl100k", "gpt-4", item=3, call=15),
    Provider("llama3", "llama-3.1-8b", hidden=50),
    Provider("deepseek", "deepseek-v3", item=2, call=30, hidden=700),
    Provider("mistral", "mistral-nemo", item=5, hidden=120),
    Provider("mistral 7b", "mixtral-8x22b"),
    Provider("gemma", "gemma-3-27b", item=6, call=0, result=0),
    Provider("qwen", "qwen3-32b", item=5, call=25, result=10, hidden=200),
    Provider("claude-3", "claude-sonnet-4-5", item=3, call=45, result=25, hidden=550),
    Provider("claude-5", "claude-opus-5", item=3, call=45, result=25, hidden=550),
    Provider("o200k x 1.35", "gpt-4o", scale=1.35, item=7),
    Provider("qwen x 1.35", "qwen3-32b", scale=1.35, item=11, hidden=900),
    Provider("cl100k x 0.8", "gpt-4", scale=0.8, item=0, call=0, result=0, hidden=0),
)


@cache
def count(model: str, text: str) -> int:
    """The tokens of a text, counted once for all calls and providers."""
    return vocabulary_for(model).count(text)


# --- sessions -----------------------------------------------------------------------------------------------------


class Call(NamedTuple):
    """One request: its nodes, and whether what was sent before has been edited."""

    frame: Frame
    nodes: tuple[Node, ...]
    edited: bool


def conversations(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """A conversation a line."""
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def stretches(conversation: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Request bodies of about 40 calls each: a long conversation is several sessions."""
    messages = conversation["messages"]
    lead = [m for m in messages[:2] if m["role"] == "system"]
    starts = [i for i, m in enumerate(messages) if i and m["role"] == "assistant"][::CALLS]
    for begin, end in zip([len(lead), *starts[1:]], [*starts[1:], len(messages)], strict=True):
        part = messages[begin:end]
        if sum(m["role"] == "assistant" for m in part) > 2 * LEARNING:
            yield {"messages": lead + part} | ({"tools": conversation["tools"]} if conversation.get("tools") else {})


async def session(body: dict[str, Any]) -> list[Call]:
    """Every call of a session, in a window that makes it compact several times."""
    frame, items = decode(body, "openai_chat")
    digests = Digests()
    nodes = digests.chain(items)
    meter = Meter(Counter(BASES["o200k"]))
    fixed = meter.frame(frame).tokens
    target = Target.of(Budget(fixed + max(2_000, meter.nodes(nodes).tokens * 6 // 10)), meter)
    step, view, said = default(), View(frame, (), digests), 0
    calls: list[Call] = []
    ends = [i for i, n in enumerate(nodes) if i and n.item.opens is not None and n.item.role == "assistant"]
    for end in ends:
        view = View(frame, (*view.nodes, *nodes[said:end]), digests, view.edits)
        said, known = end, len(view.edits)
        size = target.size(view)
        if target.exceeded(size):
            view = await step(view, target.aim(size))
        calls.append(Call(frame, view.nodes, len(view.edits) > known))
    return calls


# --- foreseeing ---------------------------------------------------------------------------------------------------


class Guess(NamedTuple):
    """What was foreseen of one call, beside what the provider then reported."""

    reported: int
    edited: bool
    quarter: float  # chars / 4
    ratio: float
    expected: float
    upper: int


Measured = list[tuple[Traits, int]]  # of each request of a session its traits, and its characters


def measure(sessions: Iterable[Sequence[Call]], base: str) -> list[Measured]:
    """All requests by one of our vocabularies, each content once."""
    counter = Counter(BASES[base])
    known: dict[str, tuple[Traits, int]] = {}

    def node(node: Node) -> tuple[Traits, int]:
        if node.content not in known:
            text = node.item.name + node.item.text
            known[node.content] = traits(text, counter.item(node.item)), len(text)
        return known[node.content]

    def request(call: Call) -> tuple[Traits, int]:
        text = call.frame.system + json.dumps([dict(t) for t in call.frame.tools])
        parts = [(traits(text, counter.frame(call.frame)), len(text)), *map(node, call.nodes)]
        return Traits(*map(sum, zip(*(own for own, _ in parts), strict=True))), sum(length for _, length in parts)

    return [[request(call) for call in calls] for calls in sessions]


def foresee(calls: Sequence[Call], measured: Measured, provider: Provider) -> list[Guess]:
    """Go through a session with nothing known at first, and foresee each call."""
    calibration, anchor, ratio = Calibration.fresh(exact=False), Anchor(), 1.0
    guesses = []
    for number, ((own, characters), call) in enumerate(zip(measured, calls, strict=True)):
        reported = provider.reports(call.frame, call.nodes)
        expected, upper = anchor.expected(calibration, own), anchor.upper(calibration, own)
        guesses.append(Guess(reported, call.edited, characters / 4, ratio * own.tokens, expected, upper))
        anchor, calibration = anchor.reported(calibration, own, reported)
        ratio += (reported / own.tokens - ratio) * (0.3 if number else 1.0)
    return guesses


class Errors(NamedTuple):
    """Mean and 95th percentile of relative errors."""

    mean: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:7.2%} {self.high:7.2%}"


def errors(guesses: Iterable[Guess], foreseen: Callable[[Guess], float]) -> Errors:
    """How far off one way to foresee was."""
    off = [abs(foreseen(g) / g.reported - 1) for g in guesses]
    return Errors(fmean(off), quantiles(off, n=20)[-1])


def held(guesses: Sequence[Guess]) -> float:
    """How often the upper bound was one."""
    return fmean(g.reported <= g.upper for g in guesses)


def slack(guesses: Sequence[Guess]) -> float:
    """How far the upper bound lay above what was expected."""
    return fmean(g.upper / g.expected - 1 for g in guesses)


def foreseen(sessions: Sequence[Sequence[Call]], measured: Sequence[Measured], provider: Provider) -> list[Guess]:
    """All scored guesses over all sessions, each begun with nothing known."""
    pairs = zip(sessions, measured, strict=True)
    return [guess for calls, own in pairs for guess in foresee(calls, own, provider)[LEARNING:]]


def cost(sessions: Sequence[Sequence[Call]], base: str) -> float:
    """CPU of the traits beside that of the count, over the texts of all sessions."""
    texts = {n.item.text for calls in sessions for call in calls for n in call.nodes}
    counted = BASES[base].count
    for text in texts:  # what a tokenizer builds on its first use is not the question
        counted(text)
    begin = time.process_time()
    for text in texts:
        counted(text)
    middle = time.process_time()
    for text in texts:
        traits(text, 1)
    return (time.process_time() - middle) / (middle - begin)


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", choices=BASES, default="o200k", help="what our counter counts with")
    parser.add_argument("--corpus", type=Path, help="a folder of *.jsonl.gz; the shipped sample if not given")
    given = parser.parse_args()
    files = sorted(given.corpus.glob("*.jsonl.gz")) if given.corpus else [SAMPLE]
    bodies = [body for c in conversations(files) if c.get("messages") for body in stretches(c)]
    sessions = [await session(body) for body in bodies]
    print(f"{len(sessions)} sessions, {sum(map(len, sessions)):,} calls; our counter: {given.base}")
    print(f"{'':13} {'chars/4':>15} {'ratio':>15} {'clew':>15} {'after an edit':>15} {'held':>7} {'slack':>7}")
    measured = measure(sessions, given.base)
    for provider in PROVIDERS:
        guesses = foreseen(sessions, measured, provider)
        ways = [errors(guesses, lambda g: g.quarter), errors(guesses, lambda g: g.ratio)]
        ways += [errors(guesses, lambda g: g.expected)]
        ways += [errors([g for g in guesses if g.edited], lambda g: g.expected)]
        print(f"{provider.name:13} {' '.join(map(str, ways))} {held(guesses):7.1%} {slack(guesses):7.1%}")
        sys.stdout.flush()
        count.cache_clear()
    print(f"CPU of the traits / of the count: {cost(sessions, given.base):.2f}")


if __name__ == "__main__":
    asyncio.run(main())
