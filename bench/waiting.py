"""How long turns wait for a slow summariser: python bench/waiting.py [--turns N] [--scale N]

A session in which a turn comes every 10 s and a summariser takes 20 s for an answer, both scaled down; the window is
small enough for several folds. For the step that waits (`WithNotes`) and for drafts in the background
(`Engine(writer=...)`): the turns whose `prepare` waited for the summariser, those of them below a full window, and the
longest wait, scaled back. Wanted: none below a full window.
"""

import argparse
import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clew import Budget, Engine, Request, SQLite, View, body
from clew.drafting.allowance import Allowance, Limits
from clew.drafting.noting import WithNotes
from clew.drafting.writing import Writer
from clew.step import Prompt, Reply
from clew.steps import summarizing
from clew.testing import ScriptedModel, take_notes, view_of

PAUSE, LATENCY = 10.0, 20.0  # seconds between two turns, and of the summariser
MODEL = "gpt-4o"
BUDGET = Budget(window=12_000, reserve=1_000, tail=1_000, model=MODEL)
LONG = 4.0  # seconds: less may be the machine's own
PATIENCE = 15.0  # seconds, as the engine has it
BUSY = Limits(hourly_calls=10**6, hourly_tokens=10**9)  # an hour of the session is a moment here


@dataclass
class Watched(ScriptedModel):
    """A summariser of which one sees whether it is at work."""

    answered: int = 0

    async def __call__(self, prompt: Prompt) -> Reply:
        try:
            return await super().__call__(prompt)
        finally:
            self.answered += 1

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
    return BUDGET.size(view_of(next_body)).tokens > BUDGET.limit.tokens


async def run(name: str, turns: int, scale: float, background: bool) -> Row:
    """One session."""
    model = Watched(take_notes, seconds=LATENCY / scale)
    writer = Writer(model, size=300, seconds=10 * LATENCY / scale, allowance=Allowance(BUSY))
    step = summarizing() if background else WithNotes(writer, summarizing())
    store = SQLite(":memory:")
    engine = Engine(store, BUDGET, step, writer=writer if background else None, patience=PATIENCE / scale)
    said, view, waits = session(turns), None, []
    early = 0
    for n in range(1, turns + 1):
        full = view is not None and _is_full(view, said[2 * n - 1 : 1 + 2 * n])
        asked, reading = len(model.prompts), model.at_work
        begin, cpu = time.monotonic(), time.process_time()
        view = await engine.prepare(Request({"model": MODEL, "messages": said[: 1 + 2 * n]}))
        waited = scale * (time.monotonic() - begin - (time.process_time() - cpu))  # what it computed is no waiting
        if waited > LONG and (reading or len(model.prompts) > asked):
            waits.append(waited)
            early += not full
        await asyncio.sleep(PAUSE / scale)
    await engine.close()
    await store.close()
    folds = [e for e in (view.edits if view else ()) if "coverage" in e.evidence]
    noted = sum("claims" in e.evidence for e in folds)
    return Row(name, len(folds), len(model.prompts), noted, tuple(waits), early)


def show(rows: Sequence[Row], turns: int) -> None:
    """Print the table."""
    print(f"{f'{turns} turns':24}{'folds':>7}{'asked':>7}{'noted':>7}{'waited':>8}{'early':>7}{'longest wait, s':>17}")
    for row in rows:
        longest = max(row.waits, default=0.0)
        print(f"{row.name:24}{row.folds:7}{row.asked:7}{row.noted:7}{len(row.waits):8}{row.early:7}{longest:17.1f}")


async def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--scale", type=float, default=40.0, help="seconds of the session in one of ours")
    given = parser.parse_args()
    rows = [
        await run("foreground (WithNotes)", given.turns, given.scale, background=False),
        await run("background drafts", given.turns, given.scale, background=True),
    ]
    show(rows, given.turns)


if __name__ == "__main__":
    asyncio.run(main())
