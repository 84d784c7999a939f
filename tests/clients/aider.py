"""Aider through the gateway: it has no tools, answers are edits, and it sums up its history by its own count."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from driving import HERE, KEY, Model, Stage, stage

from clew.testing import Answer

MODEL = "gpt-4o"
PROGRAM = HERE / ".venv-aider" / "bin" / "aider"
EDIT = "{name}\n```\n<<<<<<< SEARCH\n=======\n{text}\n>>>>>>> REPLACE\n```\n"


@dataclass
class Editor(Model):
    """What a provider says who writes a file a request: its name is the last word that it was asked."""

    long: int = 8  # sentences

    def __call__(self, body: dict[str, Any]) -> Answer:
        system, *_ = (m["content"] for m in body["messages"])
        if system.startswith("*Briefly* summarize"):
            self.summaries += 1
            return Answer("I asked you for something that the model forgot.")
        if "commit message" in system[:200]:
            self.asides += 1
            return Answer("feat: add a file")
        if self.first:
            return self.first.pop(0)
        name = [m["content"] for m in body["messages"] if m["role"] == "user"][-1].split()[-1]
        if not name.endswith(".txt"):
            return Answer(f"Done: {name}.")
        return Answer(
            f"I write {name}. " + "It is what you wanted. " * self.long + "\n" + EDIT.format(name=name, text="x")
        )


def aider(on: Stage, *lines: str, well: bool | None = True, options: tuple[str, ...] = ()) -> str:
    """What it says to lines that are typed."""
    env = {"OPENAI_API_BASE": f"{on.url}/v1", "OPENAI_API_KEY": KEY, "AIDER_ANALYTICS": "false"}
    quiet = ("--no-check-update", "--no-show-release-notes", "--no-show-model-warnings", "--no-fancy-input")
    plain = ("--no-pretty", "--yes-always", "--no-detect-urls", "--no-suggest-shell-commands", "--no-auto-lint")
    typed = "".join(f"{line}\n" for line in (*lines, "/exit"))
    return on.run(PROGRAM, "--model", MODEL, *quiet, *plain, *options, env=env, well=well, stdin=typed)


FACTS = [f"write fact-{n}.txt" for n in range(12)]


async def test_hi_an_edit_and_a_restored_history(tmp_path: Path) -> None:
    """What it restores it has read from a page, spaces and all: that is another conversation."""
    with stage(tmp_path, Editor()) as on:
        with on.serving():
            assert "Done: hi." in aider(on, "say hi", "write amber-1.txt", "say bye")
        with on.serving():
            assert "I write amber-2.txt" in aider(on, "write amber-2.txt", options=("--restore-chat-history",))
    on.check()
    assert [(on.work / f"amber-{n}.txt").read_text() for n in (1, 2)] == ["x\n", "x\n"]
    assert on.model.asides == 2  # the messages of its commits
    *earlier, later = await on.conversations()
    first = earlier[-1]
    assert all(word in first.text for word in ("say hi", "I write amber-1.txt", "say bye"))
    assert all(word in later.text for word in ("say hi", "I write amber-1.txt", "write amber-2.txt"))
    assert all("commit message" not in one.text for one in (*earlier, later))


async def test_far_past_the_window(tmp_path: Path) -> None:
    options = ("--max-chat-history-tokens", "1000000")
    with stage(tmp_path, Editor(long=60), window=12_000) as on, on.serving("prevent"):
        assert "I write fact-11.txt" in aider(on, *FACTS, options=options)
    on.check()
    assert (on.model.summaries, on.answered) == (0, 0)
    assert max(heard.spent.input for heard in on.provider.heard) < 12_000
    *_, main = await on.conversations()  # what it asks before it has a file stands alone
    assert all(fact in main.text for fact in FACTS)


async def test_its_summary_is_answered_from_the_log(tmp_path: Path) -> None:
    with stage(tmp_path, Editor(long=60), window=128_000) as on, on.serving("answer"):
        assert "Done: it." in aider(on, *FACTS, "tell it", options=("--max-chat-history-tokens", "2000"))
    on.check()
    assert on.model.summaries == 0
    assert on.answered >= 1
    sent = json.dumps(on.provider.heard[-1].body)
    assert [fact for fact in FACTS if fact not in sent] == []


@pytest.mark.parametrize(
    "fault",
    [Answer(status=429, retry_after=0.1), Answer(status=500), Answer("Some words that are cut.", cut=700)],
    ids=["429", "500", "cut"],
)
async def test_faults_are_met_as_they_are_alone(fault: Answer, tmp_path: Path) -> None:
    with stage(tmp_path / "alone", Editor(first=[fault])) as alone, alone.alone():
        aider(alone, "say hi", well=None)
    with stage(tmp_path / "through", Editor(first=[fault])) as on, on.serving():
        aider(on, "say hi", well=None)
    assert [("Done: hi." in one.ran[-1].stdout, one.ran[-1].returncode) for one in (on, alone)] == [(True, 0)] * 2
    on.check(refused=True)


async def test_what_was_too_long_is_sent_shorter(tmp_path: Path) -> None:
    options = ("--max-chat-history-tokens", "1000000")
    windows = {MODEL: 12_000, "gpt-4o-mini": 128_000}
    with stage(tmp_path, Editor(long=60), window=128_000, models=windows) as on, on.serving():
        assert "I write fact-11.txt" in aider(on, *FACTS, options=options)
    on.check()
