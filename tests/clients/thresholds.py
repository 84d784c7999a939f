"""Where real programs compact by themselves, by the usage that a provider reports: `compacts` in clew/clients says so.

Run with -s to read what was measured.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from claude_code import claude
from codex import codex
from driving import ASKS_SUMMARY, SHELLS, Model, Stage, newest, stage
from gemini_cli import AGAIN, gemini
from opencode import opencode
from pi import pi
from qwen_code import qwen

from clew import wire
from clew.clients.known import CLIENTS
from clew.testing import Answer
from clew.testing.provider import Call
from clew.wire.convert.tools import declared

LARGE, BIG = 10, "seq -f 'line %g of the count' 1 900"  # results, of 19 kB each
STEPS = 40  # calls from one end of what is tried to the other


@dataclass
class Rising(Model):
    """A model whose every answer reports more tokens than the one before, until a summary is asked for."""

    low: int = 0
    high: int = 0
    talks: bool = False  # one answer a prompt after the first: some compact between two prompts alone
    pauses: bool = False  # after what is large comes another prompt: some compact only what stands before one
    begun: int = 0  # results that are large: some do not compact what they think is little
    reported: int = 0
    compacted: int = 0  # what had been reported when a summary was asked for

    def __call__(self, body: dict[str, Any]) -> Answer:
        format = wire.detect(body)
        frame, items = wire.decode(body, format)
        tools = declared(body, format)
        asked = "\n".join(item.text for item in newest(items) if item.kind == "text")
        if ASKS_SUMMARY.search(asked) or (not tools and ASKS_SUMMARY.search(frame.system[:600])):
            self.compacted = self.compacted or self.reported
            return Answer("<summary>\nAll of it.\n</summary>", input=self.reported)
        if not tools:
            return Answer("A title", input=1_000)
        if self.compacted or self.reported >= self.high:
            return Answer("Done.", input=1_000)
        if self.begun < LARGE:
            self.begun += 1
            return self._call(tools, f"echo {self.begun}; {BIG}", self.low)  # no two alike: that is a loop
        if self.pauses:
            self.pauses = False
            return Answer("Begun.", input=self.low)
        self.reported = self.reported + (self.high - self.low) // STEPS if self.reported else self.low
        if self.talks:
            return Answer(f"So far {self.reported}.", input=self.reported, output=10)
        return self._call(tools, f"echo {self.reported}", self.reported)

    def _call(self, tools: set[str], command: str, tokens: int) -> Answer:
        name = next(name for name in SHELLS if name in tools)
        return Answer("", (Call(name, SHELLS[name](command)),), "What comes next?", input=tokens, output=10)


def in_turn(talk: Callable[..., str], on: Stage) -> None:
    """Prompt after prompt, until it has compacted."""
    model = on.model
    assert isinstance(model, Rising)
    while not model.compacted and model.reported < model.high:
        talk(*(("-c",) if model.reported else ()), "count amber")


# What is run, in which window, and how long an answer it asks for.
RUNS: dict[str, tuple[str, int, int, Callable[[Stage], object]]] = {
    "claude": (
        "Claude Code",
        100_000,
        8_000,
        lambda on: claude(
            on, "count amber", CLAUDE_CODE_AUTO_COMPACT_WINDOW="100000", CLAUDE_CODE_MAX_OUTPUT_TOKENS="8000"
        ),
    ),
    "codex": ("Codex", 272_000, 0, lambda on: codex(on, "own", "count amber")),
    "gemini": ("Gemini CLI", 1_048_576, 0, lambda on: (gemini(on, "count"), gemini(on, *AGAIN, "count"))),
    "opencode": ("opencode", 100_000, 4_000, lambda on: opencode(on, "chat", "count amber", window=100_000)),
    "pi": ("pi", 200_000, 4_000, lambda on: in_turn(lambda *words: pi(on, "chat", "-p", *words), on)),
    "qwen, small": ("Qwen Code", 70_000, 0, lambda on: qwen(on, "count amber", window=70_000)),
    "qwen, large": ("Qwen Code", 400_000, 0, lambda on: qwen(on, "count amber", window=400_000)),
}


@pytest.mark.parametrize("run", RUNS)
async def test_it_compacts_where_its_file_says(run: str, tmp_path: Path) -> None:
    name, window, answer, work = RUNS[run]
    at = next(client for client in CLIENTS if client.name == name).threshold(window, answer)
    assert at is not None
    model = Rising(low=at - window // 10, high=at + window // 10, talks=run == "pi", pauses=run == "gemini")
    with stage(tmp_path, model) as on, on.alone():
        work(on)
    step = (model.high - model.low) // STEPS
    sys.stdout.write(f"\n{name} in {window:,}: at {model.compacted:,}, its file says {at:,}\n")
    assert at - step <= model.compacted <= at + 2 * step
