"""`Agent(context=...)`: PraisonAI's own path to its model, with what it sends made to fit once a turn."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from praisonaiagents import Agent
from praisonaiagents.config.feature_configs import OutputConfig
from praisonaiagents.session.store import DefaultSessionStore

from clew import Budget, Engine, Sessions, SQLite, run
from clew.adapters.praisonai import ClewContext
from clew.engine.settings import Settings
from clew.steps.chapters.by_model import ByModel
from clew.testing import Answer, Call, ScriptedModel, StrictProvider, write_chapter
from clew.wire import check

Body = dict[str, Any]

WINDOW = 6_000
NAMED = re.compile(r"recall [0-9a-f]{10}")


def dump(path: str) -> str:
    """Read a very large file."""
    return "\n".join(f"{path} line {n}: row {n * 13}" for n in range(5_000))


def saying(n: int) -> str:
    return f"Fact {n}: port {8000 + n} is taken. " + f"filler {n} " * 60


def answers(count: int) -> list[Answer]:
    return [Answer(f"Noted {n}. " + f"reply {n} " * 60) for n in range(count)]


def kept(tmp_path: Path, **more: Any) -> ClewContext:
    engine = Engine(SQLite(tmp_path / "clew.db"), Budget(window=WINDOW), Settings(**more.pop("engine", {})))
    return ClewContext(engine, session="work", **more)


def agent(context: ClewContext, *tools: Any, **more: Any) -> Agent:
    given = {"output": "silent", **more}
    return Agent(name="noter", instructions="You take notes.", context=context, tools=[*tools, *context.tools], **given)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Any:
    with StrictProvider(answers(40), window=WINDOW) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        yield provider


def test_a_chat_grows_past_the_window_and_nothing_is_lost(tmp_path: Path, provider: StrictProvider) -> None:
    context = kept(tmp_path)
    noter = agent(context)
    for n in range(18):
        assert noter.chat(saying(n))
    assert max(h.spent.input for h in provider.heard) <= WINDOW
    sent = provider.heard[-1].body
    assert check(sent, "openai_chat") == []
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["recall", "search_history"]
    assert sent["tools"][0]["function"]["parameters"]["required"] == ["id"]
    assert NAMED.search(str(sent["messages"]))
    _recall, search = context.tools
    for n in (3, 8, 14):
        assert f"port {8000 + n}" in search(query=f"Fact {n}: port")
    chain = run(Sessions(context.engine).lineage("work"))
    assert len(chain) > 1


async def test_an_agent_that_is_awaited_needs_a_hook(tmp_path: Path, provider: StrictProvider) -> None:
    context = kept(tmp_path, engine={"method": "llm"})
    noter = agent(context, hooks=context.hooks)
    for n in range(14):
        assert await noter.achat(saying(n))
    assert max(h.spent.input for h in provider.heard) <= WINDOW
    assert provider.heard[-1].body["messages"][-1]["content"].startswith("<context_status>")
    assert "port 8002" in context.tools[2](query="Fact 2: port")
    assert NAMED.search(str(provider.heard[-1].body["messages"]))


def test_an_agent_without_its_tools_is_shown_no_ids(tmp_path: Path, provider: StrictProvider) -> None:
    noter = Agent(name="noter", instructions="You take notes.", context=kept(tmp_path), output="silent")
    for n in range(18):
        assert noter.chat(saying(n))
    sent = str(provider.heard[-1].body["messages"])
    assert "port 8000" not in sent or "work log" in sent
    assert not NAMED.search(sent)


async def test_turns_at_the_same_time_do_not_hold_each_other_back(tmp_path: Path, provider: StrictProvider) -> None:
    writer = ByModel(ScriptedModel(write_chapter, seconds=1))
    context = kept(tmp_path, engine={"author": writer, "patience": 0.2})
    noter = agent(context, hooks=context.hooks)
    noter.chat_history = [{"role": "user", "content": saying(n)} for n in range(20)]
    answers = await asyncio.gather(*(noter.achat(f"Question {n}") for n in range(4)))
    assert all(answer.startswith("Noted") for answer in answers)


def test_with_the_hook_nothing_is_done_twice(tmp_path: Path, provider: StrictProvider) -> None:
    context = kept(tmp_path, engine={"method": "llm"})
    noter = agent(context, hooks=context.hooks)
    noter.chat(saying(0))
    assert str(provider.heard[0].body["messages"]).count("<context_status>") == 1


def test_a_large_result_is_put_aside_and_recalled(tmp_path: Path, provider: StrictProvider) -> None:
    seen: list[str] = []

    def script(body: Body) -> Answer:
        result = next((m["content"] for m in reversed(body["messages"]) if m["role"] == "tool"), "")
        seen.append(result)
        if len(seen) == 1:
            return Answer(calls=(Call("dump", {"path": "big.csv"}),))
        if len(seen) == 2:
            return Answer(calls=(Call("recall", {"id": result.split("recall ")[1][:10], "lines": "4321-4321"}),))
        return Answer("Row 56160.")

    provider.script = script
    context = kept(tmp_path)
    context.set_tool_budget("dump", 500)
    noter = agent(context, dump, output=OutputConfig(tool_output_limit=10**9, verbose=False))
    assert noter.chat("What is in row 4320?") == "Row 56160."
    assert len(seen[1]) < 4_000
    assert "big.csv line 4320: row 56160" in seen[2]


def test_the_agent_may_begin_a_new_session(tmp_path: Path, provider: StrictProvider) -> None:
    provider.script = [
        Answer("Noted."),
        Answer(calls=(Call("new_session", {"summary": "Port 8000 is taken."}),)),
        Answer("Begun."),
        Answer("Going on."),
    ]
    context = kept(tmp_path, engine={"method": "llm"}, when="50%")
    noter = agent(context)
    for text in (saying(0), "Begin anew.", "Go on."):
        assert noter.chat(text)
    offered = [tool["function"] for tool in provider.heard[0].body["tools"]]
    assert offered[0]["name"] == "new_session"
    assert "used_pct >= 50" in offered[0]["description"]
    last = provider.heard[-1].body["messages"]
    assert last[-1]["content"].startswith("<context_status>")
    assert last[-2]["content"] == "Go on."
    assert "Port 8000 is taken." in last[1]["content"]
    assert "- request 1: The user: " in last[1]["content"], "the task, word for word"
    assert "Noted." not in str(last)
    assert [s.cause for s in run(Sessions(context.engine).lineage("work"))] == ["start", "handoff"]
    assert not any("context_status" in m["content"] for m in noter.chat_history)


def test_new_objects_on_the_same_store_go_on_with_what_the_run_had(tmp_path: Path, provider: StrictProvider) -> None:
    first = agent(kept(tmp_path))
    for n in range(10):
        first.chat(saying(n))
    second = agent(kept(tmp_path))
    second.chat_history = [dict(m) for m in first.chat_history]
    second.chat(saying(10))
    before, after = (h.body["messages"] for h in provider.heard[-2:])
    assert after[: len(before)] == before
    assert any("[work log, " in m["content"] for m in after[1:])


def test_a_compaction_opens_a_child_session_in_praisons_store(tmp_path: Path, provider: StrictProvider) -> None:
    context = kept(tmp_path, sessions=DefaultSessionStore(str(tmp_path / "sessions")))
    noter = agent(context)
    for n in range(10):
        noter.chat(saying(n))
    chain = run(Sessions(context.engine).lineage("work"))
    found = DefaultSessionStore(str(tmp_path / "sessions"))
    assert found.get_session(chain[1].id).metadata == {"parent_session_id": "work", "lineage_id": "work"}
    assert found.get_chat_history(chain[1].id)[-1]["role"] == "user"


def test_an_emergency_cuts_no_pair(tmp_path: Path, talk: list[Body]) -> None:
    short = kept(tmp_path).emergency_truncate(talk, 1_500)
    assert check({"messages": short, "model": "gpt-4o"}, "openai_chat") == []
    assert short[0] == talk[0]
    assert short[-1] == talk[-1]


def test_a_failure_of_ours_leaves_the_agent_working(
    tmp_path: Path, provider: StrictProvider, caplog: pytest.LogCaptureFixture
) -> None:
    context = kept(tmp_path)
    run(context.engine.store.close())
    assert agent(context).chat("Hello.")
    assert "clew failed; the original request is sent unchanged" in caplog.text
