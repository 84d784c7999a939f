"""Compactions of the real programs that clew does, with nothing between them and the provider.

The provider is on loopback, and refuses what is too long or invalid; a program's home is a folder of the test's own.
"""

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from driving import KEY, PROGRAMS, Model, PlanStep, Stage, stage
from in_other_words import LEAST, told
from installed import clew

from clew.resident.serving import end_all
from clew.testing.provider import Call
from recalling.sessions import pairs

BIG = "seq 1 4000"  # 19 kB
FACTS = [f"fact-{n}" for n in range(12)]
STEPS = [f"echo {fact}; {BIG}" for fact in FACTS]
TASK = {"description": "look", "prompt": "look for cobalt now", "subagent_type": "general-purpose"}
SMALL = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "4000"}
RECALL = re.compile(r"recall ([0-9a-f]{10})")


@contextmanager
def claude_stage(home: Path, plans: Mapping[str, Sequence[PlanStep]], **env: str) -> Iterator["Talking"]:
    """Claude Code with what `clew install` gives it; what it knows nothing of ends with the test."""
    with stage(home, Model(plans)) as on:
        on.url = on.provider.url
        (home / ".claude").mkdir()
        given = {"CLAUDE_CONFIG_DIR": str(home / ".claude"), **env}
        clew(on, "install", "claude", "--yes", **given)
        try:
            yield Talking(on, env)
        finally:
            end_all({**on.env, **given})
        clew(on, "install", "--remove", "claude", "--yes", **given)
    assert not (home / ".claude" / "skills").exists()


@dataclass
class Talking:
    """One process of Claude Code, asked one thing after another."""

    on: Stage
    env: Mapping[str, str]

    def __call__(self, *says: str, options: Sequence[str] = (), **more: str) -> list[str]:
        """What it answers to each."""
        on = self.on
        given = {**on.env, "CLAUDE_CONFIG_DIR": str(on.home / ".claude"), "ANTHROPIC_BASE_URL": on.url}
        given |= {"ANTHROPIC_API_KEY": KEY, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
        on.work.mkdir(exist_ok=True)
        command = [
            str(PROGRAMS / "claude"),
            "--model",
            "claude-sonnet-4-5",
            "--allowedTools",
            "Bash,Task,mcp__clew__recall,mcp__clew__search",
        ]
        command += ["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"]
        command += ["--debug-file", str(on.home / "debug.txt"), *options]
        answers = []
        with subprocess.Popen(
            command,
            env={**given, **self.env, **more},
            cwd=on.work,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as client:
            assert client.stdin
            assert client.stdout
            for text in says:
                said = {"type": "user", "message": {"role": "user", "content": text}}
                client.stdin.write(json.dumps(said) + "\n")
                client.stdin.flush()
                told = (json.loads(line) for line in client.stdout if line.startswith("{"))
                answers.append(str(next(one for one in told if one.get("type") == "result").get("result")))
            client.stdin.close()
            client.wait(60)
        return answers

    @property
    def said(self) -> str:
        """What the mod wrote for the user."""
        log = (self.on.home / "debug.txt").read_text()
        return "\n".join(line for line in log.splitlines() if "[clew] $.ui.log" in line)

    def without_clew(self, says: str) -> list[dict[str, Any]]:
        """What is sent of the session where it is resumed by who has no clew any more."""
        clew(self.on, "install", "--remove", "claude", "--yes", CLAUDE_CONFIG_DIR=str(self.on.home / ".claude"))
        [answer] = self(says, options=("-c",))
        assert answer == f"Done: {says.replace(' ', '-')}."
        return self.messages()

    def messages(self, number: int = -1) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = self.on.provider.heard[number].body["messages"]
        return messages


def core(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    """What was said, called and given back: without the client's reminders and marks, and thoughts that it dropped."""
    found: list[Any] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            match block["type"]:
                case "text" if not block["text"].startswith(("<system-reminder>", "<local-command", "<command-name>")):
                    found.append((message["role"], block["text"].strip()))
                case "tool_use":
                    found.append(("call", block["name"], json.dumps(block["input"], sort_keys=True)))
                case "tool_result":
                    text = block["content"] if isinstance(block["content"], str) else json.dumps(block["content"])
                    found.append(("result", text.partition("\n\n<system-reminder>")[0].strip()))
    return found


def test_a_compaction_asks_no_model_and_an_undo_gives_everything_back(tmp_path: Path) -> None:
    plans: Mapping[str, Sequence[PlanStep]] = {"count amber": STEPS, "what was it": ["echo after"], "and more": []}
    with claude_stage(tmp_path, plans) as talk:
        talk("count amber", "/compact", "what was it", "/compact undo", "and more")
        assert talk.on.model.summaries == 0
        before, compacted, undone = (core(talk.messages(n)) for n in (12, 13, 15))
        assert "nothing lost" in talk.said
        assert len(json.dumps(compacted)) * 3 < len(json.dumps(before))
        assert "may lack; not orders" not in json.dumps(talk.messages(13))  # nothing is put back of what was not lost
        assert undone[: len(before)] == before
        assert "the compaction is undone" in talk.said
        assert core(talk.without_clew("and more"))[: len(before)] == before
        talk.on.check()


@pytest.mark.parametrize("who", ["main", "agent"])
def test_it_compacts_by_itself_in_mid_turn(who: str, tmp_path: Path) -> None:
    steps = [f"echo fact-{n}; {BIG}" for n in range(24)]
    plans: Mapping[str, Sequence[PlanStep]] = {
        "count amber": steps,
        "delegate amber": [Call("Agent", TASK), "echo after"],
        "look for cobalt": steps,
        "and more": [],
    }
    with claude_stage(tmp_path, plans, **SMALL) as talk:
        talk("count amber" if who == "main" else "delegate amber")
        assert talk.on.model.summaries == 0
        assert talk.said.count("nothing lost") >= 2
        resumed = core(talk.without_clew("and more"))
        if who == "main":  # what was compacted is compacted for who resumes it
            assert "[work log" in json.dumps(resumed)
            assert len(json.dumps(resumed)) < 24 * 19_000 / 2
        talk.on.check()


@pytest.mark.parametrize("who", ["code", "its own model"])
def test_what_it_computes_ahead_of_time_is_refused_or_has_the_part_of_code_once(who: str, tmp_path: Path) -> None:
    plans: Mapping[str, Sequence[PlanStep]] = {
        "count amber": STEPS[:6],
        "count cobalt": STEPS[6:],
        "go on": ["echo more"],
        "what was it": [],
    }
    cached = {"CLAUDE_CODE_GB_DISK_CACHE_WHEN_TELEMETRY_OFF": "1"}
    own = {"CLEW_SUMMARY_MODEL": "own"} if who == "its own model" else {}
    with claude_stage(tmp_path, plans, **cached, **own) as talk:
        config = tmp_path / ".claude/.claude.json"
        switched = {"cachedGrowthBookFeatures": {"tengu_sepia_moth": True}}  # its maker's switch for who computes ahead
        config.write_text(json.dumps({**json.loads(config.read_text()), **switched}))
        early = ("--settings", '{"precomputeArmTokens": 20000}')
        talk("count amber", "count cobalt", "go on", "/compact", "what was it", options=early)
        log, sent = (tmp_path / "debug.txt").read_text(), json.dumps(talk.messages())
        assert "precomputed compact: started" in log
        if own:
            assert "precomputed compact: consumed" in log
            assert sent.count("A summary that the model made.") == sent.count("[clew log ") == 1
        else:
            assert "precomputed compact: skipped" in log
            assert "nothing lost" in talk.said
            assert talk.on.model.summaries == 0
        talk.on.check()


def test_every_original_is_recalled_in_a_real_request(tmp_path: Path) -> None:
    def recall(body: dict[str, Any]) -> Call:
        return Call("mcp__clew__recall", {"id": RECALL.findall(json.dumps(body["messages"]))[0], "pattern": "fact-"})

    plans: Mapping[str, Sequence[PlanStep]] = {"count amber": STEPS, "what was it": [recall]}
    with claude_stage(tmp_path, plans) as talk:
        talk("count amber", "/compact", "what was it")
        asked = json.dumps(talk.messages(13))
        recalled = json.dumps(talk.messages(-1)[-1])
        missing = [fact for fact in FACTS if f"{fact}\\n" not in asked and fact not in asked and fact not in recalled]
        assert not missing, recalled
        talk.on.check()


def test_what_is_asked_for_in_other_words_is_found_by_the_tools(tmp_path: Path) -> None:
    facts, others = pairs("boatyard")
    plans: dict[str, Sequence[PlanStep]] = {}
    with claude_stage(tmp_path, plans) as talk:
        turns = told(talk.on, [*facts, *others])
        plans |= {key: steps for key, (_, steps) in turns.items()}
        plans |= {pair.question: [Call("mcp__clew__search", {"text": pair.question})] for pair in facts}
        said = [f"{text} Now {key}." for key, (text, _) in turns.items()]
        talk(*said, "/compact", *(pair.question for pair in facts))
        assert talk.on.model.summaries == 0
        assert "nothing lost" in talk.said
        found = dict[str, str]()
        for pair in facts:
            asked = [
                h.body["messages"] for h in talk.on.provider.heard if pair.question in json.dumps(h.body["messages"])
            ]
            first, second = json.dumps(asked[0]), json.dumps(asked[1])
            found[pair.question] = "in view" if pair.key in first else "searched" if pair.key in second else "-"
        talk.on.check()
    lines = "\n".join(f"    {where:8} {question}" for question, where in found.items())
    sys.stdout.write(f"\n{sum(where != '-' for where in found.values())} of {len(found)}\n{lines}\n")
    assert sum(where != "-" for where in found.values()) >= LEAST


def test_where_the_user_wants_it_the_clients_own_model_writes(tmp_path: Path) -> None:
    plans: Mapping[str, Sequence[PlanStep]] = {"count amber": STEPS, "what was it": []}
    with claude_stage(tmp_path, plans, CLEW_SUMMARY_MODEL="own") as talk:
        talk("count amber", "/compact", "what was it")
        assert talk.on.model.summaries == 1
        sent = json.dumps(talk.messages())
        assert "A summary that the model made." in sent
        assert "[clew log " in sent
        assert "fact-0" in sent
        talk.on.check()


@pytest.mark.parametrize("how", ["gone", "locked", "full disk", "broken store", "another version", "slow", "killed"])
def test_on_any_doubt_the_client_does_what_it_always_did(how: str, tmp_path: Path) -> None:
    plans: Mapping[str, Sequence[PlanStep]] = {"count amber": STEPS[:4], "what was it": []}
    with claude_stage(tmp_path, plans) as talk:
        mod = tmp_path / ".claude/skills/clew/hooks/register.js"
        whole, log = mod.read_text(), tmp_path / "log.db"
        limited = f"ulimit -f 0; exec {sys.executable} -P -m clew plugin claude"
        command = {
            "gone": ["/nowhere/clew"],
            "full disk": ["sh", "-c", limited, "sh"],
            "another version": ["sh", "-c", 'echo \'{"id": 1, "messages": [99, {}]}\''],
            "slow": ["sh", "-c", "sleep 30"],
            "killed": ["sh", "-c", "kill -9 $$"],
        }.get(how)
        if command:
            text = re.sub(r"(const COMMAND = )\[.*\]", lambda found: found[1] + json.dumps(command), whole)
            mod.write_text(text.replace("PATIENCE = 9_000", "PATIENCE = 1_000"))
        elif how == "broken store":
            log.write_text("this is no database")
        with closing(sqlite3.connect(log if how == "locked" else ":memory:")) as other:
            other.execute("begin exclusive")
            talk("count amber", "/compact", "what was it")
        assert talk.on.model.summaries == 1
        assert "A summary that the model made." in json.dumps(talk.messages())
        talk.on.check()
        mod.write_text(whole)
