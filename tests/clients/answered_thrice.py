"""Real programs that compact three times in a row, each time answered from the log.

Run with -s to read the sizes.
"""

import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from claude_code import claude
from codex import codex
from driving import Model, Stage, stage
from gemini_cli import gemini
from opencode import opencode
from pi import pi, pi_compacts
from qwen_code import qwen

ROUNDS, ASKED, STEPS = 3, 2, 5
BIG = "seq -f 'line %g of the count' 1 900"  # 19 kB
FACT = "The port of s{n:02} is 4{n:02}17 and must never change."
LOG = "[clew log "


def prompt(n: int) -> str:
    return f"wish {n:02} is to look at the files of service s{n:02}. {FACT.format(n=n)}"


def by_claude(on: Stage, again: bool, text: str) -> None:
    claude(on, *(["-c"] if again else []), text)


def by_codex(way: str, on: Stage, again: bool, text: str) -> None:
    """It has no command for it in `exec`, and compacts by size."""
    codex(on, way, *(["resume", "--last"] if again else []), text, model_auto_compact_token_limit=45_000)


def by_opencode(way: str, on: Stage, again: bool, text: str) -> None:
    opencode(on, way, *(["-c"] if again else []), text, window=60_000)


def by_pi(way: str, on: Stage, again: bool, text: str) -> None:
    if text != "/compact":
        pi(on, way, "-p", *(["-c"] if again else []), text)
    else:
        pi_compacts(on, way)


def by_gemini(on: Stage, again: bool, text: str) -> None:
    """It compresses a session that it resumes."""
    gemini(on, *(["--resume", "latest"] if again else []), text, model={"compressionThreshold": 0.02})


def by_qwen(on: Stage, again: bool, text: str) -> None:
    qwen(on, *(["--continue"] if again else []), text.replace("/compact", "/compress"))


CLIENTS: dict[str, tuple[Callable[[Stage, bool, str], None], bool]] = {  # and whether it compacts when it is told to
    "claude": (by_claude, True),
    "qwen": (by_qwen, True),
    "pi": (partial(by_pi, "chat"), True),
    "pi, messages": (partial(by_pi, "messages"), True),
    "pi, responses": (partial(by_pi, "responses"), True),
    "codex, own": (partial(by_codex, "own"), False),
    "codex, built-in": (partial(by_codex, "built-in"), False),
    "opencode": (partial(by_opencode, "chat"), False),
    "opencode, messages": (partial(by_opencode, "messages"), False),
    "opencode, responses": (partial(by_opencode, "responses"), False),
    "gemini": (by_gemini, False),
}


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


def summaries(on: Stage) -> list[str]:
    """What the model was shown of compactions, one after the other."""
    found = list[str]()
    for heard in on.provider.heard:
        logs = [text for text in texts(heard.body) if LOG in text]
        newest = logs[-1] if logs else ""
        if newest and newest not in found:
            found.append(newest)
    return found


@pytest.mark.parametrize("name", CLIENTS)
async def test_three_compactions_in_a_row(name: str, tmp_path: Path) -> None:
    client, is_told = CLIENTS[name]
    wishes = range(ROUNDS * ASKED + (0 if is_told else ASKED))
    plans = {f"wish {n:02}": [f"echo fact-{n}-{k}; {BIG}" for k in range(STEPS)] for n in wishes}
    with stage(tmp_path, Model({**plans, "and now": []})) as on, on.serving("answer"):
        for n in wishes:
            client(on, n > 0, prompt(n))
            if is_told and n % ASKED == ASKED - 1:
                client(on, True, "/compact")
        client(on, True, "and now")
    on.check()
    told = summaries(on)
    sizes = [len(text) for text in told]
    sys.stdout.write(f"\n{name}: {on.answered} answered, {sizes} characters\n")
    assert on.answered >= ROUNDS
    assert on.model.summaries == 0, "a model was asked"
    last = on.provider.heard[-1].raw.decode()
    assert [n for n in wishes if FACT.format(n=n) not in last] == []
    for text in told:
        found = [int(n) for n in re.findall(r"wish (\d\d) is to", text)]
        assert found == [*range(len(found))], "each once, in order"
        assert text.count(LOG) <= (2 if name.startswith("pi") else 1)  # it asks in two parts for a turn that it cuts
    assert all(b <= 1.2 * a and a <= 1.2 * b for a, b in pairwise(sizes)), sizes
