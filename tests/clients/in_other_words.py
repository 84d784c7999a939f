"""Real programs whose user asks, in other words, for what has left the view: it is there in their next request.

Run with -s to read which were found.
"""

import inspect
import sys
import tarfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_code import claude
from codex import codex
from driving import Model, PlanStep, Stage, stage
from gemini_cli import AGAIN, gemini
from opencode import opencode
from pi import pi
from qwen_code import qwen

from clew.testing import Answer
from made_clients.wording import Pen
from recalling.sessions import NOTE, Pair, around, pairs

WINDOW, WORK, LEAST = 64_000, 30, 7  # tokens; commands after all was told; facts, of ten
PAGES = textwrap.wrap(inspect.getsource(tarfile), 10_000, break_long_words=False, replace_whitespace=False)
CLIENTS: dict[str, Callable[..., str]] = {
    "claude": lambda on, again, text: claude(
        on, *(["-c"] if again else []), text, CLAUDE_CODE_MAX_OUTPUT_TOKENS="4000"
    ),
    "qwen": lambda on, again, text: qwen(on, *(["--continue"] if again else []), text),
    "gemini": lambda on, again, text: gemini(on, *(AGAIN if again else []), text),
    "codex": lambda on, again, text: codex(on, "own", *(["resume", "--last"] if again else []), text),
    "opencode": lambda on, again, text: opencode(on, "chat", *(["-c"] if again else []), text),
    "pi": lambda on, again, text: pi(on, "chat", "-p", *(["-c"] if again else []), text),
}


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


def told(on: Stage, said: list[Pair]) -> dict[str, tuple[str, list[PlanStep]]]:
    """What a user asks, and what is done and said then, until all of it was told by whoever is to tell it."""
    pen, by = Pen("beside"), {who: [p for p in said if p.by == who] for who in ("user", "assistant", "result")}
    turns = dict[str, tuple[str, list[PlanStep]]]()
    on.work.mkdir(parents=True)
    for n in range(max(map(len, by.values()))):
        typed, answered, printed = (by[who][n] if n < len(by[who]) else None for who in by)
        page = PAGES[n % len(PAGES)]
        (on.work / f"list-{n}.txt").write_text(
            f"{page[:4_000]}\n{printed.fact if printed else ''}\n{page[4_000:6_000]}"
        )
        answer = Answer(f"{around(pen, answered)} List {n} is done.")
        turns[f"go through list {n}"] = (around(pen, typed), [f"cat list-{n}.txt", answer])
    for n in range(WORK):
        (on.work / f"page-{n}.txt").write_text(PAGES[n % len(PAGES)])
    turns["read all pages"] = ("", [f"cat page-{n}.txt" for n in range(WORK)])
    return turns


@pytest.mark.parametrize("name", CLIENTS)
async def test_what_is_asked_for_in_other_words_is_there(name: str, tmp_path: Path) -> None:
    facts, others = pairs("boatyard")
    model = Model()
    with stage(tmp_path, model, window=WINDOW) as on, on.serving("prevent"):
        turns = told(on, [*facts, *others])
        model.plans = {key: steps for key, (_, steps) in turns.items()}
        for n, (key, (text, _)) in enumerate(turns.items()):
            CLIENTS[name](on, n > 0, f"{text} Now {key}.")
        model.plans = {}  # what stands beside a question may quote what began one
        found = dict[str, str]()
        for pair in facts:
            before = len(on.provider.heard)
            CLIENTS[name](on, True, pair.question)
            body = next(
                h.body for h in on.provider.heard[before:] if h.body.get("tools") and pair.question in str(h.body)
            )
            all_ = [*texts(body)]
            beside = any(NOTE in text and pair.key in text for text in all_)
            found[pair.question] = "beside" if beside else "in view" if any(pair.key in t for t in all_) else "-"
    on.check()
    lines = "\n".join(f"    {where:8} {question}" for question, where in found.items())
    sys.stdout.write(f"\n{name}: {sum(where != '-' for where in found.values())} of {len(found)}\n{lines}\n")
    assert sum(where != "-" for where in found.values()) >= LEAST
