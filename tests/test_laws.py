"""Every step against every law. A new step is added to STEPS, never gets a copy of its own."""

import asyncio
import os
from collections import Counter as Tally
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st

from clew import Budget
from clew.adapters.middle import Middle
from clew.core import rawjson
from clew.core.items import Item
from clew.steps import (
    ClearBeside,
    ClearReasoning,
    ClearResults,
    Cut,
    Dedupe,
    Offload,
    ShrinkCalls,
    Summarize,
    Trim,
    default,
    null,
    sliding,
    summarizing,
)
from clew.steps.chapters.allowance import Allowance, CallLimits
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.with_chapters import WithChapters
from clew.steps.protocol import Fallback, Pipeline, Step, When
from clew.testing import ScriptedModel, check_laws, conversation, view_of, write_chapter
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.tokens.target import Target
from clew.wire import FORMATS, decode, encode


def noting() -> ByModel:
    """A model that notes something of every item it is shown."""
    limits = CallLimits(calls=10**9, tokens=10**12, hourly_calls=10**9, hourly_tokens=10**12)
    clock = count(0, 10**6)  # by which no breaker stays open: it would be one call's trace in the next
    return ByModel(ScriptedModel(write_chapter), allowance=Allowance(limits, now=lambda: float(next(clock))))


STEPS: list[tuple[Step, bool]] = [
    (Offload(over=0.02, head=200, tail=100), False),
    (Dedupe(), False),
    (ClearReasoning(), False),
    (ClearResults(), False),
    (ClearBeside(), False),
    (ShrinkCalls(), False),
    (Summarize(), False),
    (Trim(), True),
    (Cut(), False),
    (default(), True),
    (summarizing(), True),
    (sliding(), True),
    (null(), False),
    (Pipeline(Pipeline(Offload(over=0.05, head=200, tail=100)), Trim()), True),
    (When(lambda view, budget: len(view.nodes) > 9, ClearResults()), False),
    (Fallback(ClearResults(), Trim()), False),
    (WithChapters(noting(), summarizing()), True),
    # By itself it compacts what fits, too: whoever runs it says when. Here, of the tail all stays that has room.
    (When(lambda view, budget: budget.excess(view), Middle(10**9, 200)), False),
    (When(lambda view, budget: budget.excess(view), Middle(10**9, 200, "[so far]\n", noting())), False),
]
METERS = {
    format: Meter(counter_for("gpt-4o" if "openai" in format else "claude-sonnet-4-5", format)) for format in FORMATS
}
# The same cases each time here, 700 of 1,400, each with three runs of its step; `make laws` has others, and more.
FIRST = int(os.environ.get("LAWS_SEED", "4"))
EXAMPLES = int(os.environ.get("LAWS_EXAMPLES", "36"))

# A long first answer to a short question, and a goal of no picture.
ONE_PICTURE: Mapping[str, Any] = {
    "turns": 5, "format": "gemini", "share": 1.0, "pins": 0, "low": 0.8, "images": 1, "echo": False, "waits": False,
}  # fmt: skip

pytestmark = pytest.mark.hypothesis


def kind(step: Step) -> str:
    """What a step is, whenever it runs."""
    return type(step.step if isinstance(step, When) else step).__name__


def echoed(item: Item) -> Item:
    """A call that reads one of two files, a result that says the same as others of its length."""
    if item.kind == "call" and item.wire is None:
        return replace(item, text=rawjson.dumps({"path": f"{len(item.text) % 2}.py"}).decode())
    if item.kind == "result" and item.wire is None:
        return replace(item, text="an echo. " * (20 + len(item.text) % 9))
    return item


@pytest.mark.few(1)
@pytest.mark.parametrize("part", range(2))
def test_every_step_obeys_every_law(part: int) -> None:
    seen: Tally[str] = Tally()

    @seed(FIRST + part)
    @settings(max_examples=EXAMPLES, database=None, suppress_health_check=list(HealthCheck))
    @given(
        number=st.integers(0, 2**32),
        turns=st.integers(0, 9),
        format=st.sampled_from(sorted(METERS)),
        share=st.floats(0.02, 1.6),
        pins=st.integers(0, 3),
        low=st.sampled_from((0.3, 0.5, 0.8)),
        images=st.sampled_from((0, 1, 100)),
        echo=st.sampled_from((False, False, True)),
        waits=st.sampled_from((False, True, True)),
    )
    @example(number=1, **ONE_PICTURE)
    @example(number=27913037, **ONE_PICTURE)
    def laws(
        number: int, turns: int, format: str, share: float, pins: int, low: float, images: int, echo: bool, waits: bool
    ) -> None:
        body = conversation(number, turns, format, wordy=30)
        if echo:
            frame, items = decode(body, format)
            body = encode(frame, map(echoed, items))
        view = view_of(body, format, pins, number)
        if waits:  # for the assistant, who has not seen the last results yet
            stops = [c for c in view.cuts() if c and view.nodes[c - 1].item.kind == "result"]
            view = replace(view, nodes=view.nodes[: stops[-1]]) if stops else view
        size = Target.of(Budget(window=10**9), METERS[format]).size(view)
        window = max(64, int(share * size.tokens))
        bounds = Target.of(
            Budget(window, reserve=window // 10, low=low, high=max(low, 0.7), images=images), METERS[format]
        )
        budget = bounds.around(view.frame)
        batch = any(b.item.kind == a.item.kind == "call" for a, b in zip(view.nodes, view.nodes[1:], strict=False))
        for step, fits in STEPS:
            after = runner.run(check_laws(step, view, budget.aim(size), fits=fits))
            seen["cases"] += 1
            seen["edited"] += after is not view and bool(after.edits)
            seen["parallel"] += batch
            seen[kind(step)] += bool(after.edits)

    # A loop for each of 3,000 cases would take a fifth of the time.
    with asyncio.Runner() as runner:
        laws()
    assert seen["cases"] >= 0.9 * EXAMPLES * len(STEPS)
    assert seen["edited"] >= 0.3 * seen["cases"]
    assert seen["parallel"] >= 0.1 * seen["cases"]
    assert min(seen[kind(step)] for step, _ in STEPS) >= EXAMPLES // 20
