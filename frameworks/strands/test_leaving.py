"""What leaves an agent's messages says so, can be had again, and thresholds that cannot hold are told."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest
from frameworks.strands.talking import LONG, reading, said, texts
from frameworks.strands.talking import read as read_tool
from strands.session import FileSessionManager

from clew import Engine, Sessions, SQLite, run
from clew.adapters.strands import ClewStrategy
from clew.adapters.strands import SlidingWindowConversationManager as Sliding
from clew.testing import Answer, Call

LEFT = re.compile(r"\[earlier conversation out of view: ([^\[\]]*); recall ([0-9a-f]{10})\]")


def tools(body: Any) -> set[str]:
    return {tool["function"]["name"] for tool in body.get("tools") or ()}


@pytest.mark.parametrize("pins", [None, 1])
def test_above_the_window_one_line_says_what_left_and_the_agent_may_recall_it(
    pins: int | None, provide: Any, agent: Any
) -> None:
    def script(body: dict[str, Any]) -> Answer:
        last = body["messages"][-1]
        if last["role"] == "user" and "which port" in str(last["content"]):
            found = LEFT.findall("".join(texts(body)))[-1]
            return Answer(calls=(Call("recall", {"id": found[1]}),))
        return Answer("Noted.")

    provider = provide(script, 100_000)
    manager = Sliding(window_size=6, pin_first=pins, proactive_compression=True, engine="clew.db")
    talking = agent(provider, window=100_000, conversation_manager=manager)
    for n in range(8):
        talking(f"Turn {n}: the port of host{n} is {9000 + n}.")
        assert len(talking.messages) <= 6 + bool(pins)
    sent = [heard.body for heard in provider.heard]
    assert not LEFT.search("".join(texts(sent[2])))
    assert "recall" not in tools(sent[2])  # nothing left yet
    for body in sent[4:]:
        [(what, _)] = LEFT.findall("".join(texts(body)))
        assert what.endswith(("message", "messages"))
        assert {"recall", "search_history"} <= tools(body)
    assert LEFT.findall("".join(texts(sent[-1])))[0][0] == f"4 assistant messages, {4 - bool(pins)} user messages"
    assert len({s.branch for s in run(Sessions(Engine(SQLite("clew.db"))).all())}) == 1
    talking("And which port has host1?")
    assert "host1 is 9001" in str(provider.heard[-1].body["messages"])


def test_it_counts_all_that_left_calls_too_and_a_session_goes_on_from_there(
    provide: Any, agent: Any, tmp_path: Path
) -> None:
    def script(body: dict[str, Any]) -> Answer:
        return Answer("Seen.") if body["messages"][-1]["role"] == "tool" else reading(2)

    provider = provide(script, 100_000)

    def resumed() -> Any:
        return agent(
            provider,
            window=100_000,
            tools=[read_tool],
            conversation_manager=Sliding(window_size=8, proactive_compression=True, engine="clew.db"),
            session_manager=FileSessionManager("s1", storage_dir=str(tmp_path / "sessions")),
        )

    talking = resumed()
    for n in range(6):
        talking(f"Turn {n}: look.")
    again = resumed()
    assert said(again.messages) == said(talking.messages)
    again("Turn 6: look.")
    [(what, _)] = LEFT.findall("".join(texts(provider.heard[-1].body)))
    assert "tool calls" in what
    assert "tool results" in what
    assert "recall" in tools(provider.heard[-1].body)
    assert "recall" in tools(provider.heard[-2].body)  # the first one after the restart


def test_an_agent_with_the_strategy_may_recall_once_there_is_something_to(provide: Any, agent: Any) -> None:
    provider = provide([Answer("Noted.")])
    talking = agent(provider, context_manager={"strategies": [ClewStrategy("clew.db")], "stash": False})
    for n in range(14):
        talking(f"Turn {n}: the port of host{n} is {9000 + n}. {LONG}")
    named = [bool(re.search("recall [0-9a-f]{10}", str(heard.body["messages"]))) for heard in provider.heard]
    assert named == ["recall" in tools(heard.body) for heard in provider.heard]
    assert set(named) == {True, False}


def test_unset_it_is_as_with_strands(provide: Any, agent: Any) -> None:
    provider = provide([Answer("Noted.")], 100_000)
    talking = agent(provider, window=100_000, conversation_manager=Sliding(window_size=4, engine="clew.db"))
    for n in range(6):
        talking(f"Turn {n}")
    assert "recall" not in str(provider.heard[-1].body)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"compression_threshold": 0.9}, ["compression_threshold 0.9", "3,600", "1,000 are kept free"]),
        ({"compression_threshold": 0.1}, ["compression_threshold 0.1", "400", "nearly every call"]),
        ({"buffer_tokens": 200}, ["buffer_tokens 200", "3,800", "kept free"]),
        ({"compression_threshold": 0.5}, []),
        (True, []),
    ],
    ids=str,
)
def test_a_threshold_that_cannot_hold_is_told_once(
    given: Any, words: list[str], provide: Any, agent: Any, caplog: pytest.LogCaptureFixture
) -> None:
    manager = Sliding(proactive_compression=given, engine="clew.db")
    talking = agent(provide([Answer("Noted.")]), conversation_manager=manager)
    with caplog.at_level(logging.WARNING, "clew"):
        for n in range(3):
            talking(f"Turn {n}: {LONG}")
    told = [r.getMessage() for r in caplog.records if r.name == "clew" and "proactive_compression" in r.getMessage()]
    assert len(told) == bool(words)
    assert all(word in told[0] for word in words), told


def test_what_was_folded_last_can_be_recalled_at_once(provide: Any, agent: Any) -> None:
    """A refusal folds, and the next thing that the agent does is to look at what it folded."""

    def script(body: dict[str, Any]) -> Answer:
        ids = re.findall(r"recall ([0-9a-f]{10})", "".join(texts(body)))
        if ids and body["messages"][-1]["role"] == "user":
            return Answer(calls=tuple(Call("recall", {"id": id}) for id in dict.fromkeys(ids)))
        return Answer("Noted.")

    provider = provide(script)
    talking = agent(provider, window=100_000, conversation_manager=Sliding(window_size=40, engine="clew.db"))
    for n in range(14):
        talking(f"Turn {n}: the port of host{n} is {9000 + n}. {LONG}")
    results = [text for heard in provider.heard for text in texts(heard.body) if "from earlier in this" in text]
    assert results
    assert "no item has the id" not in str([heard.body for heard in provider.heard])
