"""PraisonAI's own agents, their real loops against a provider that refuses what real ones refuse."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from praisonaiagents import Agent
from praisonaiagents.config.feature_configs import OutputConfig
from praisonaiagents.session.store import DefaultSessionStore

from clew import Budget, Engine, Sessions, SQLite, run
from clew.adapters.praisonai import ClewBackend
from clew.engine.settings import Settings
from clew.steps.chapters.by_model import ByModel
from clew.testing import Answer, Call, ScriptedModel, StrictProvider, write_chapter

Body = dict[str, Any]

WINDOW = 8_000


def read(path: str) -> str:
    """Read a file."""
    return "\n".join(f"{path} line {n}: setting_{n} = {n * 7}" for n in range(60))


def dump(path: str) -> str:
    """Read a very large file."""
    return "\n".join(f"{path} line {n}: row {n * 13}" for n in range(5_000))


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(SQLite(tmp_path / "clew.db"), Budget(window=WINDOW))


def working(turns: int, calls: Callable[[int], tuple[Call, ...]]) -> Callable[[Body], Answer]:
    """A script for an agent that answers each user turn after so many rounds of calls."""
    rounds: Iterator[int] = iter(range(10_000))

    def script(_: Body) -> Answer:
        n = next(rounds)
        if n % (turns + 1) == turns:
            return Answer(f"Round {n} is done.")
        return Answer(f"Round {n}.", calls=calls(n))

    return script


def two_files(n: int) -> tuple[Call, ...]:
    return Call("read", {"path": f"a{n}.py"}), Call("read", {"path": f"b{n}.py"})


def agent(model: Any, *tools: Any) -> Agent:
    return Agent(
        name="worker", instructions="You read files.", model=model, tools=list(tools), output="silent", context=False
    )


def refusals(provider: StrictProvider) -> list[int]:
    return [h.spent.input for h in provider.heard if h.spent.input > WINDOW]


def texts(body: Body) -> str:
    return json.dumps(body["messages"])


def test_a_loop_grows_past_the_window_and_nothing_is_lost(engine: Engine) -> None:
    with StrictProvider(working(4, two_files), window=WINDOW) as provider:
        backend = ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{provider.url}/v1")
        worker = agent(backend, read)
        for n in range(3):
            assert worker.chat(f"Turn {n}: look around") == f"Round {5 * n + 4} is done."
    assert len(provider.heard) == 15
    assert refusals(provider) == []
    assert all(len(m["tool_calls"]) == 2 for m in provider.heard[-1].body["messages"] if m.get("tool_calls"))
    thread = backend.conversation.thread
    for n in (0, 5, 13):
        told = run(thread.answer("search_history", {"query": f"a{n}.py line 33"})).text
        assert f"a{n}.py line 33: setting_33 = 231" in told
    chain = run(Sessions(engine).lineage("work"))
    assert len(chain) > 2
    assert {s.cause for s in chain[1:]} == {"compaction"}
    assert {s.branch for s in chain} == {chain[0].branch}


async def test_agents_that_are_awaited(engine: Engine) -> None:
    with StrictProvider(working(4, two_files), window=WINDOW) as provider:
        worker = agent(ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{provider.url}/v1"), read)
        for n in range(3):
            assert await worker.achat(f"Turn {n}") == f"Round {5 * n + 4} is done."
    assert refusals(provider) == []
    assert len(run(Sessions(engine).lineage("work"))) > 1


def test_an_oversized_result_becomes_a_preview_and_is_recalled(engine: Engine) -> None:
    seen: list[str] = []

    def script(body: Body) -> Answer:
        result = next((m["content"] for m in reversed(body["messages"]) if m["role"] == "tool"), "")
        seen.append(result)
        if len(seen) == 1:
            return Answer(calls=(Call("dump", {"path": "big.csv"}),))
        if len(seen) == 2:
            found = result.split("recall ")[1][:10]
            return Answer(calls=(Call("recall", {"id": found, "lines": "4321-4321"}),))
        return Answer("Row 56160.")

    with StrictProvider(script, window=WINDOW) as provider:
        backend = ClewBackend("gpt-4o-mini", engine, base_url=f"{provider.url}/v1")
        whole = OutputConfig(tool_output_limit=10**9, verbose=False)  # or PraisonAI cuts it before anybody sees it
        worker = Agent(name="w", instructions="Look.", model=backend, tools=[dump], output=whole, context=False)
        assert worker.chat("What is in row 4320?") == "Row 56160."
    assert len(seen[1]) < 20_000
    assert "big.csv line 4320: row 56160" in seen[2]


@pytest.mark.parametrize(
    "model",
    [
        ScriptedModel(lambda _: RuntimeError("down")),
        ScriptedModel(lambda _: ""),
        ScriptedModel(lambda _: "what? " * 5),
        ScriptedModel(write_chapter, seconds=30),
    ],
    ids=["error", "empty", "garbage", "slow"],
)
def test_a_failing_summariser_fails_nobody(tmp_path: Path, model: ScriptedModel) -> None:
    writer = ByModel(model, seconds=0.05)
    engine = Engine(SQLite(tmp_path / "clew.db"), Budget(window=WINDOW), Settings(author=writer, patience=0.1))
    with StrictProvider(working(5, two_files), window=WINDOW) as provider:
        worker = agent(ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{provider.url}/v1"), read)
        for n in range(2):
            assert worker.chat(f"Turn {n}") == f"Round {6 * n + 5} is done."
    run(engine.close())
    assert model.prompts
    assert refusals(provider) == []
    assert "[work log, " in texts(provider.heard[-1].body)


def test_a_window_that_is_smaller_than_thought_is_learned_from_the_refusal(tmp_path: Path) -> None:
    engine = Engine(SQLite(tmp_path / "clew.db"))  # by the catalog, the model has 128,000 tokens
    with StrictProvider(working(8, two_files), window=WINDOW) as provider:
        worker = agent(ClewBackend("gpt-4o-mini", engine, base_url=f"{provider.url}/v1"), read)
        assert worker.chat("Read all of it.") == "Round 8 is done."
    assert len(refusals(provider)) == 1
    assert len(provider.heard) == 10


def test_new_session_in_the_method_llm(tmp_path: Path) -> None:
    engine = Engine(SQLite(tmp_path / "clew.db"), Budget(window=WINDOW), Settings(method="llm"))
    script = [
        Answer("Reading.", calls=two_files(0)),
        Answer(calls=(Call("new_session", {"summary": "Read a0 and b0; b0 must be read again."}),)),
        Answer("Begun anew."),
    ]
    with StrictProvider(script, window=WINDOW) as provider:
        worker = agent(ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{provider.url}/v1"), read)
        assert worker.chat("Read, and never write to b0.py.") == "Begun anew."
        worker.chat("Go on.")
    first, second, third, fourth = (h.body for h in provider.heard)
    offered = [tool["function"]["name"] for tool in first["tools"]]
    assert offered[:2] == ["read", "new_session"]
    for body in (first, second, third, fourth):
        assert body["messages"][-1]["content"].startswith("<context_status>")
    assert "Read a0 and b0; b0 must be read again." in third["messages"][1]["content"]
    assert "never write to b0.py" in third["messages"][1]["content"]
    assert "setting_33" not in texts(third)
    assert "setting_33" not in texts(fourth)
    assert fourth["messages"][-2] == {"role": "user", "content": "Go on."}
    assert [s.cause for s in run(Sessions(engine).lineage("work"))] == ["start", "handoff"]


def test_new_objects_on_the_same_store_go_on_where_the_old_ones_stood(tmp_path: Path) -> None:
    def worker(provider: StrictProvider) -> tuple[Agent, Engine]:
        engine = Engine(SQLite(tmp_path / "clew.db"), Budget(window=WINDOW, high=0.7, low=0.5))
        return agent(ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{provider.url}/v1"), read), engine

    with StrictProvider(working(4, two_files), window=WINDOW) as provider:
        first, _ = worker(provider)
        for n in range(3):
            first.chat(f"Turn {n}")
        second, engine = worker(provider)
        second.chat_history = [dict(m) for m in first.chat_history]  # as any of PraisonAI's stores gives it back
        second.chat("Turn 3")
    before, after = provider.heard[14].body["messages"], provider.heard[15].body["messages"]
    assert after[: len(before)] == before
    new = [m["content"] for m in after[len(before) :]]
    assert [text for text in new if not text.startswith("[data: from earlier")] == ["Round 14 is done.", "Turn 3"]
    assert len({s.branch for s in run(Sessions(engine).lineage("work"))}) == 1


def test_a_sub_agent_hangs_under_its_parent(engine: Engine) -> None:
    with StrictProvider([Answer("Found it.")]) as provider:
        backend = ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{provider.url}/v1")
        agent(backend).chat("Find the bug.")
        agent(backend.child("finder")).chat("Look in a.py.")
    parent, child = sorted(run(Sessions(engine).all()), key=lambda s: s.name or "")
    assert child.cause == "subagent"
    assert child.parent == parent.id
    assert parent.name == "work"


def test_each_compaction_is_a_child_session_in_praisons_store(engine: Engine, tmp_path: Path) -> None:
    with StrictProvider(working(4, two_files), window=WINDOW) as provider:
        sessions = DefaultSessionStore(str(tmp_path / "sessions"))
        backend = ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{provider.url}/v1", sessions=sessions)
        worker = agent(backend, read)
        for n in range(3):
            worker.chat(f"Turn {n}")
    chain = run(Sessions(engine).lineage("work"))
    found = DefaultSessionStore(str(tmp_path / "sessions"))  # after a restart
    parents = ["work", *(s.id for s in chain[1:])]
    for parent, session in zip(parents, chain[1:], strict=False):
        assert found.get_session(session.id).metadata == {"parent_session_id": parent, "lineage_id": "work"}
    assert len(chain) > 2
    newest = _sent(found.get_chat_history(chain[-1].id))
    assert newest in [h.body["messages"][1:] for h in provider.heard]


def _sent(messages: list[Body]) -> list[Body]:
    """Messages of PraisonAI's store as a provider gets them."""
    return [{**m, "content": m["content"] or None} if m.get("tool_calls") else m for m in messages]


def test_a_failure_of_ours_leaves_the_agent_working(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine(SQLite(tmp_path / "clew.db"), Budget(window=WINDOW))
    run(engine.store.close())
    with StrictProvider(working(1, two_files)) as provider:
        backend = ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{provider.url}/v1")
        assert agent(backend, read).chat("Read.") == "Round 1 is done."
    assert "clew failed; the original request is sent unchanged" in caplog.text
