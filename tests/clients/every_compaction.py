"""Each client, told to compact or by itself, where code writes or its own model: who is asked, and what is left.

Claude Code, opencode and pi by what `clew install` gives them, with nothing between; the others through the gateway.
Twelve facts were told before; afterwards each is asked for in other words, every original is recalled by its id, and
the client goes on without clew. Run with -s to read what was found where.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from claude_code import claude
from codex import codex, codex_compacts
from driving import Model, PlanStep, Stage, stage
from gemini_cli import AGAIN, gemini
from in_other_words import PAGES
from installed import clew
from opencode import opencode, opencode_compacts
from pi import pi, pi_compacts
from qwen_code import qwen

from clew.core.own_tools import SEARCH
from clew.testing import Answer
from clew.testing.provider import Call
from made_clients.wording import Pen
from recalling.sessions import Pair, around, pairs

HOWS, WHO = ("told to", "by itself"), ("code", "its own model")
WORK = 24  # pages of 6 kB that are read after the facts were told
SHOWN = re.compile(r"recall ([0-9a-f]{10})")
ONE_WORD = "Answer with the one word: done"


class Compacting(NamedTuple):
    """A client, and how it is brought to compact."""

    say: Callable[[Stage, bool, str], Any]
    tell: Callable[[Stage], Any] | None  # to compact; None: it has no way without a screen
    by_itself: Callable[[Stage], Any]
    is_plugged: bool = False
    tools: str = ""  # how it begins the names of clew's tools; "": they are those of a plugin, or the gateway's own


def _claude(on: Stage, again: bool, text: str, window: str = "200000") -> None:
    env: dict[str, Any] = {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4000", "CLAUDE_CODE_AUTO_COMPACT_WINDOW": window}
    claude(on, *(["-c"] if again else []), text, **env)


def _opencode(on: Stage, again: bool, text: str) -> None:
    opencode(on, "messages", *(["-c"] if again else []), text)


def _pi(on: Stage, again: bool, text: str) -> None:
    pi(on, "messages", "-p", *(["-c"] if again else []), text)


def _codex(on: Stage, again: bool, text: str, limit: int = 900_000) -> None:
    codex(on, "own", *(["resume", "--last"] if again else []), text, model_auto_compact_token_limit=limit)


def _gemini(on: Stage, again: bool, text: str, **settings: Any) -> None:
    gemini(on, *(AGAIN if again else []), text, **settings)


def _qwen(on: Stage, again: bool, text: str, window: int = 0) -> None:
    qwen(on, *(["--continue"] if again else []), text, window=window)


def _is_said_to_be_full(say: Callable[[Stage, bool, str], Any], on: Stage) -> None:
    """The provider says that the last request was far more than it was."""
    on.model.first.append(Answer("I see.", output=190_000))
    say(on, True, "go on")
    say(on, True, "and now")


CLIENTS = {
    "claude": Compacting(
        _claude,
        lambda on: _claude(on, True, "/compact"),
        lambda on: _claude(on, True, "read the long ones", window="100000"),
        is_plugged=True,
        tools="mcp__clew__",
    ),
    "opencode": Compacting(
        _opencode,
        partial(opencode_compacts, way="messages"),
        partial(_is_said_to_be_full, _opencode),
        is_plugged=True,
        tools="clew_",
    ),
    "pi": Compacting(_pi, partial(pi_compacts, way="messages"), partial(_is_said_to_be_full, _pi), is_plugged=True),
    "codex": Compacting(_codex, codex_compacts, lambda on: _codex(on, True, "read the long ones", 60_000)),
    "gemini": Compacting(_gemini, None, lambda on: _gemini(on, True, "and now", model={"compressionThreshold": 0.02})),
    "qwen": Compacting(
        _qwen,
        lambda on: _qwen(on, True, "/compress"),
        lambda on: _qwen(on, True, "read the long ones", window=90_000),
    ),
}
# After three summaries of Claude Code's own model in one turn, ten of 72 pages have no id in view any more.
OPEN = pytest.mark.xfail(reason="the ids of older parts leave the view with the second summary")
CELLS = [
    pytest.param(name, how, who, marks=[OPEN] if (name, how, who) == ("claude", HOWS[1], WHO[1]) else [])
    for name in CLIENTS
    for how in HOWS
    for who in WHO
    if CLIENTS[name].tell or how != HOWS[0]
]


@contextmanager
def _wired(name: str, how: str, who: str, on: Stage) -> Iterator[None]:
    """A client with clew, in the way that it has."""
    own = who == "its own model"
    if CLIENTS[name].is_plugged:
        on.url = on.provider.url
        places = {"PI_CODING_AGENT_DIR": str(on.home / "agent"), "CLAUDE_CONFIG_DIR": str(on.home / ".claude")}
        for folder in places.values():
            Path(folder).mkdir(exist_ok=True)
        clew(on, "install", name, "--yes", **places)
        if own:
            clew(on, "config", "set", "summary.model", "own")
        yield
        clew(on, "install", "--remove", name, "--yes", **places)
    else:
        with on.serving("prevent" if how == "told to" else "answer", "own" if own else "none"):
            yield


def _turns(on: Stage, said: Sequence[Pair]) -> dict[str, tuple[str, list[PlanStep]]]:
    """What a user asks, and what is done and said then, until all of it was told by whoever is to tell it."""
    pen, by = Pen("between"), {who: [p for p in said if p.by == who] for who in ("user", "assistant", "result")}
    turns = dict[str, tuple[str, list[PlanStep]]]()
    on.work.mkdir(parents=True)
    for n in range(max(map(len, by.values()))):
        typed, answered, printed = (by[who][n] if n < len(by[who]) else None for who in by)
        text = f"{PAGES[n][:3_000]}\n{printed.fact if printed else ''}\n{PAGES[n][3_000:5_000]}\n"
        (on.work / f"list-{n}.txt").write_text(text)
        answer = Answer(f"{around(pen, answered)} List {n} is done.")
        turns[f"go through list {n}"] = (around(pen, typed), [f"cat list-{n}.txt", answer])
    for n in range(3 * WORK):
        page = PAGES[n % len(PAGES)][: 6_000 if n < WORK else 10_000]
        (on.work / f"page-{n}.txt").write_text(f"page-mark-{n}\n{page}\n")
    turns["read all pages"] = ("", [f"cat page-{n}.txt" for n in range(WORK)])
    return turns


def _searched(client: Compacting, question: str) -> Call:
    return Call(f"{client.tools}search", {"text": question}) if client.tools else Call(SEARCH, {"query": question})


@pytest.mark.parametrize(("name", "how", "who"), CELLS)
async def test_nothing_is_lost_and_only_who_shall_is_asked(name: str, how: str, who: str, tmp_path: Path) -> None:
    client, (facts, others) = CLIENTS[name], pairs("observatory")
    assert len(facts) == 12
    model = Model()
    with stage(tmp_path, model) as on:
        with _wired(name, how, who, on):
            turns = _turns(on, [*facts, *others])
            model.plans = {key: steps for key, (_, steps) in turns.items()}
            for n, (key, (text, _)) in enumerate(turns.items()):
                client.say(on, n > 0, f"{text} Now {key}.")
            model.plans = {"read the long ones": [f"cat page-{n}.txt" for n in range(WORK, 3 * WORK)]}
            before = len(on.provider.heard)
            client.tell(on) if client.tell and how == "told to" else client.by_itself(on)
            compaction = on.provider.heard[before:]
            summaries = model.summaries
            # --- twelve facts, in the next request or by a search in the one after it
            model.plans = {"look it all up": [_searched(client, pair.question) for pair in facts]}
            start = len(on.provider.heard)
            client.say(on, True, "look it all up")
            asked = [json.dumps(h.body, ensure_ascii=False) for h in on.provider.heard[start:] if h.body.get("tools")]
            asked = [body for body in asked if "look it all up" in body]
            found = {}
            for n, pair in enumerate(facts):
                later = asked[n + 1] if n + 1 < len(asked) else ""
                found[pair.question] = "in view" if pair.key in asked[0] else "searched" if pair.key in later else "-"
            # --- every original
            ids = list(dict.fromkeys(SHOWN.findall(asked[0])))
            model.plans = {
                "get it all back": [Call(f"{client.tools}recall", {"id": id, "pattern": "page-mark-"}) for id in ids]
            }
            client.say(on, True, "get it all back")
            last = json.dumps(on.provider.heard[-1].body)
            marks = re.compile(r"page-mark-\d+\b")
            sent = (mark for h in on.provider.heard[:start] for mark in marks.findall(json.dumps(h.body)))
            lost = sorted({*sent} - {*marks.findall(last)})
        with on.alone():
            model.plans = {"and more": []}
            client.say(on, True, "and more")
            assert "and more" in json.dumps(on.provider.heard[-1].body)
    if (name, who) != ("gemini", "its own model"):  # resumed, it asks for its summary with each result twice
        on.check()
    lines = "\n".join(f"    {where:8} {question}" for question, where in found.items())
    there = sum(where != "-" for where in found.values())
    sys.stdout.write(
        f"\n{name}, {how}, {who}: {summaries} asked for a summary, {there} of {len(found)}, {len(ids)} ids, "
        f"{len(lost)} pages lost\n{lines}\n"
    )
    if who == "code":
        questions = [h for h in compaction if ONE_WORD in json.dumps(h.body)]
        assert summaries == len(questions) == (1 if name == "opencode" else 0)
    else:
        assert summaries >= 1
    assert lost == []
    assert there == len(found)
