"""How long turns wait for a slow summariser: python bench/waiting.py [--turns N]

A session in which a turn comes every 10 s and a summariser takes 20 s for an answer; the window is small enough for
several folds. The seconds are those of a clock that goes on between turns, and in a turn only while nothing but the
summariser keeps it: what this machine computes does not count. For the step that waits (`WithChapters`) and for
chapters in the background (`Settings(author=...)`): the turns whose `prepare` waited for the summariser, those of them
below a full window, and the longest wait. Wanted: none below a full window.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from clew import Budget, Engine, Request, SQLite, body
from clew.core.view import View
from clew.engine.settings import Settings
from clew.steps import summarizing
from clew.steps.chapters.allowance import Allowance, CallLimits
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Prompt, Reply
from clew.steps.chapters.with_chapters import WithChapters
from clew.testing import ScriptedModel, view_of, write_chapter
from clew.tokens.target import Target

PAUSE, LATENCY = 10.0, 20.0  # seconds between two turns, and of the summariser
MODEL = "gpt-4o"
BUDGET = Budget(window=12_000, reserve=1_000, tail=1_000, model=MODEL)
GRACE = 2.0  # real seconds: a turn that waits for nobody is done by then
BUSY = CallLimits(hourly_calls=10**6, hourly_tokens=10**9)  # an hour of the session is a moment here


class Clock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0
        self._ticked = asyncio.Event()

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self._ticked.set()
        self._ticked = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        while self.now < until:
            await self._ticked.wait()


@dataclass
class Slow(ScriptedModel):
    """A summariser that takes its time by such a clock."""

    clock: Clock = field(default_factory=Clock)
    answered: int = 0

    async def __call__(self, prompt: Prompt) -> Reply:
        reply = await super().__call__(prompt)
        await self.clock.sleep(LATENCY)
        self.answered += 1
        return reply

    @property
    def at_work(self) -> bool:
        return len(self.prompts) > self.answered


@dataclass(frozen=True)
class Row:
    """What one way of summarising came to."""

    name: str
    folds: int
    asked: int
    noted: int  # folds with a model's notes in them
    waits: tuple[float, ...]  # seconds, of the turns that waited
    early: int  # turns that waited below a full window


def session(turns: int) -> list[dict[str, Any]]:
    """An agent builds part after part; each brings some 300 tokens."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "Build all parts. Never touch the billing tables."}]
    for n in range(turns):
        function = {"name": "bash", "arguments": f'{{"command": "make p{n}"}}'}
        call = {"id": f"c{n}", "type": "function", "function": function}
        text = "\n".join(f"{n:03d}.{k} handler_{n}_{k} took {k * 7} ms in src/part_{n}/mod_{k}.py" for k in range(12))
        words = f"I will build part {n} because part {n - 1} is built."
        said += [
            {"role": "assistant", "content": words, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": text},
        ]
    return said


def _is_full(view: View, more: list[dict[str, Any]]) -> bool:
    """Whether what was sent last and what is new exceed the window."""
    next_body = {**body(view), "messages": [*body(view)["messages"], *more]}
    target = Target.of(BUDGET)
    return target.size(view_of(next_body)).tokens > target.limit.tokens


async def run(name: str, turns: int, background: bool) -> Row:
    """One session."""
    model = Slow(write_chapter)
    writer = ByModel(model, size=300, allowance=Allowance(BUSY))
    step = summarizing() if background else WithChapters(writer, summarizing())
    store = SQLite(":memory:")
    engine = Engine(store, BUDGET, Settings(step=step, author=writer if background else None))
    said, waits, early = session(turns), [], 0
    view = await engine.prepare(Request({"model": MODEL, "messages": said[:1]}))
    for n in range(1, turns + 1):
        full = _is_full(view, said[2 * n - 1 : 1 + 2 * n])
        request = Request({"model": MODEL, "messages": said[: 1 + 2 * n]})
        view, waited = await timed(asyncio.create_task(engine.prepare(request)), model)
        if waited:
            waits.append(waited)
            early += not full
        model.clock.advance(PAUSE)
        await asyncio.sleep(0.01)  # what came of a draft is read
    await engine.close()
    await store.close()
    folds = [e for e in view.edits if "coverage" in e.evidence]
    noted = sum(bool(e.evidence.get("log", {}).get("author")) for e in folds)
    return Row(name, len(folds), len(model.prompts), noted, tuple(waits), early)


async def timed(turn: "asyncio.Task[View]", model: Slow) -> tuple[View, float]:
    """What a turn gives, and how long it waited for a model: while it does, the clock goes on."""
    begin = model.clock.now
    await asyncio.wait([turn], timeout=GRACE)
    while not turn.done():
        if model.at_work:
            model.clock.advance(1.0)
        await asyncio.wait([turn], timeout=0.05)
    return turn.result(), model.clock.now - begin


def show(rows: Sequence[Row], turns: int) -> None:
    """Print the table."""
    print(f"{f'{turns} turns':24}{'folds':>7}{'asked':>7}{'noted':>7}{'waited':>8}{'early':>7}{'longest wait, s':>17}")
    for row in rows:
        longest = max(row.waits, default=0.0)
        print(f"{row.name:24}{row.folds:7}{row.asked:7}{row.noted:7}{len(row.waits):8}{row.early:7}{longest:17.1f}")


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=150)
    turns = parser.parse_args().turns
    ways = {"foreground (WithChapters)": False, "background drafts": True}
    show([await run(name, turns, background) for name, background in ways.items()], turns)


if __name__ == "__main__":
    asyncio.run(main())
