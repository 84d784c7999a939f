"""Sixty turns of a real program, several windows long: once it never compacts, once its compactions cost nothing.

Run with -s to read the figures.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_code import claude
from codex import codex
from driving import SCOPE, Model, Stage, stage

PROMPTS, STEPS = 12, 4  # with the answer at the end, a prompt is five turns
FACT = "port {n}017 is for service s{n:02}"


def by_claude(on: Stage, *arguments: str) -> str:
    return claude(on, *arguments, CLAUDE_CODE_AUTO_COMPACT_WINDOW="100000", CLAUDE_CODE_MAX_OUTPUT_TOKENS="4000")


def by_codex(on: Stage, *arguments: str) -> str:
    resumed = ("resume", "--last") if arguments[0] == "-c" else ()
    return codex(on, "own", *resumed, arguments[-1], model_auto_compact_token_limit=90_000)


CLIENTS: dict[str, Callable[..., str]] = {"claude": by_claude, "codex": by_codex}


def tell(figures: str) -> None:
    sys.stdout.write(f"\n{figures}\n")


def prompt(n: int) -> str:
    return f"look at service s{n:02} now; {FACT.format(n=n)}, and that must never change"


def talk(client: Callable[..., str], on: Stage) -> None:
    for n in range(PROMPTS):
        more = ("-c",) if n else ()
        assert f"Done: look-at-service-s{n:02}." in client(on, *more, prompt(n))


def model() -> Model:
    return Model(
        {
            f"look at service s{n:02}": [f"echo fact-{n}-{k}; seq {n * 100 + k} 3500" for k in range(STEPS)]
            for n in range(PROMPTS)
        }
    )


def clew(on: Stage, *arguments: str) -> Any:
    """What the command says of the log, as JSON."""
    store = ("--store", str(on.home / "log.db"), "--scope", SCOPE, "--json")
    done = subprocess.run([sys.executable, "-m", "clew.cli", *arguments, *store], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CLIENTS)
async def test_sixty_turns_without_a_compaction_of_its_own(name: str, tmp_path: Path) -> None:
    with stage(tmp_path, model(), window=90_000) as on, on.serving("prevent"):
        talk(CLIENTS[name], on)
    on.check()
    turns = len(on.provider.heard)
    assert turns >= PROMPTS * (STEPS + 1)
    assert (on.model.summaries, on.answered) == (0, 0)
    [main] = await on.conversations()
    assert all(FACT.format(n=n) in main.text for n in range(PROMPTS))
    assert all(f"fact-{n}-{k}\n" in main.text for n in range(PROMPTS) for k in range(STEPS))
    last = json.dumps(on.provider.heard[-1].body)
    kept = sum(FACT.format(n=n) in last for n in range(PROMPTS))
    folds = sum(map(int, re.findall(r"clew_folds_total\S* (\d+)", on.told)))
    tell(f"{name}, prevent: {turns} requests, {folds} folds, {kept} of {PROMPTS} facts in the last request")
    assert folds
    assert kept == PROMPTS


@pytest.mark.parametrize("name", CLIENTS)
async def test_sixty_turns_whose_compactions_cost_nothing(name: str, tmp_path: Path) -> None:
    with stage(tmp_path, model()) as on, on.serving("answer"):
        talk(CLIENTS[name], on)
    on.check()
    assert on.model.summaries == 0
    assert on.answered >= 2
    took = float(re.findall(r"^clew_compactions_answered_seconds_total (\S+)", on.told, re.M)[0]) / on.answered
    said = "".join(one.text for one in await on.conversations())
    assert all(f"fact-{n}-{k}\n" in said for n in range(PROMPTS) for k in range(STEPS))
    last = json.dumps(on.provider.heard[-1].body)
    kept = sum(FACT.format(n=n) in last for n in range(PROMPTS))
    made = f"{on.answered} compactions from the log, {took:.2f} s each"
    tell(f"{name}, answer: {len(on.provider.heard)} requests, {made}, {kept} of {PROMPTS} facts in the last request")
    assert kept == PROMPTS
    _take_back(on)


def _take_back(on: Stage) -> None:
    """What the last compaction left out is shown, and is in view again when it is undone."""
    name = clew(on, "sessions")[0]["name"]
    diff, undone = clew(on, "show", "--diff", name)["tokens"], clew(on, "undo", name, "--yes")
    tell(f"diff: {diff['before']:,} -> {diff['after']:,} tokens; undo: {undone['before']:,} -> {undone['after']:,}")
    assert diff["after"] < diff["before"]
    assert undone["after"] > undone["before"]
