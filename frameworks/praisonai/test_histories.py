"""What an agent still knows of its earlier turns, and what is none of its business."""

import json
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from praisonaiagents import Agent
from praisonaiagents.session.store import DefaultSessionStore
from pydantic import BaseModel

from clew import Budget, Engine, Sessions, SQLite, run
from clew.adapters.praisonai import ClewBackend
from clew.testing import PICTURE, Answer, Call, StrictProvider

Body = dict[str, Any]

WINDOW = 8_000


def read(path: str) -> str:
    """Read a file."""
    return "\n".join(f"{path} line {n}: setting_{n} = {n * 7}" for n in range(60))


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine(SQLite(tmp_path / "clew.db"), Budget(window=WINDOW))


def agent(model: Any, *tools: Any, name: str | None = "worker") -> Agent:
    return Agent(name=name, instructions="You read.", model=model, tools=list(tools), output="silent", context=False)


def reading(body: Body) -> Answer:
    """Of a model that reads a file for each thing it is asked."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return Answer("I read it.")
    asked = last["content"] if isinstance(last["content"], str) else "picture"
    return Answer(calls=(Call("read", {"path": f"{asked}.py"}),))


def texts(body: Body) -> str:
    return json.dumps(body["messages"])


def test_calls_of_earlier_turns_are_still_known(engine: Engine) -> None:
    with StrictProvider(reading) as provider:
        worker = agent(ClewBackend("gpt-4o-mini", engine, base_url=f"{provider.url}/v1"), read)
        worker.chat("Read them.")
        worker.chat("And again.")
    assert [m["role"] for m in provider.heard[-1].body["messages"]] == [
        *("system", "user", "assistant", "tool", "assistant"),
        *("user", "assistant", "tool"),
    ]
    assert provider.moved == []
    assert [m["role"] for m in worker.chat_history] == ["user", "assistant"] * 2


class Report(BaseModel):
    """What an agent is to answer with."""

    lines: int


def test_calls_of_turns_with_an_answer_in_json_are_known_too(engine: Engine) -> None:
    with StrictProvider(reading) as provider:
        worker = agent(ClewBackend("gpt-4o-mini", engine, base_url=f"{provider.url}/v1"), read)
        worker.chat("Read them.", output_json=Report)
        worker.chat("And again.")
    assert "Return ONLY a valid JSON object" in provider.heard[0].body["messages"][1]["content"]
    assert [m["role"] for m in provider.heard[2].body["messages"]] == [
        *("system", "user", "assistant", "tool", "assistant", "user")
    ]


def test_pictures_of_earlier_turns_are_still_seen(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b64decode(PICTURE))
    with StrictProvider(reading) as provider:
        worker = agent(ClewBackend("gpt-4o-mini", engine, base_url=f"{provider.url}/v1"), read)
        worker.chat("What is this?", attachments=[str(tmp_path / "a.png")])
        worker.chat("And again.")
    first, third = provider.heard[0].body["messages"], provider.heard[2].body["messages"]
    assert [m["role"] for m in first] == ["system", "user"]
    assert [part["type"] for part in first[1]["content"]] == ["text", "image_url"]
    assert third[:2] == first
    assert provider.moved == []


def test_agents_that_share_a_backend_are_kept_apart(engine: Engine) -> None:
    with StrictProvider(reading, window=WINDOW) as provider:
        backend = ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{provider.url}/v1")
        workers = [agent(backend, read, name=name) for name in ("red", "green", "blue")]
        with ThreadPoolExecutor() as pool:
            for n in range(6):
                list(pool.map(Agent.chat, workers, [f"{one.name}_{n}" for one in workers]))
    assert len(provider.heard) == 36
    for name in ("red", "green", "blue"):
        own = [texts(h.body) for h in provider.heard if f"{name}_" in texts(h.body)]
        assert len(own) == 12
        assert not any(f"{other}_" in said for said in own for other in {"red", "green", "blue"} - {name})
        assert all(f"{name}_{n}.py line 0" in said for n, said in enumerate(own[2:8:2]))  # what it read a turn ago
    assert len({s.branch for s in run(Sessions(engine).all())}) == 3


@pytest.mark.parametrize("given", [{"instructions": "You read."}, {"role": "Reader", "goal": "Read."}], ids=str)
def test_agents_without_names_that_share_a_backend_are_kept_apart(
    engine: Engine, given: Body, caplog: pytest.LogCaptureFixture
) -> None:
    with StrictProvider(reading, window=WINDOW) as provider:
        backend = ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{provider.url}/v1")
        workers = [Agent(model=backend, tools=[read], output="silent", context=False, **given) for _ in range(2)]
        for n in range(8):
            for colour, worker in zip(("red", "green"), workers, strict=True):
                worker.chat(f"{colour}_{n}")
    for own, other in (("red", "green"), ("green", "red")):
        bodies = [texts(h.body) for h in provider.heard if f"{own}_" in texts(h.body)]
        assert not any(f"{other}_" in said for said in bodies)
        assert f"{own}_6.py line 0" in bodies[-1]  # what it read a turn ago
    chain = run(Sessions(engine).lineage("work"))
    assert len(chain) > 1
    assert len({s.branch for s in run(Sessions(engine).all())} - {chain[0].branch}) == 1
    assert caplog.text.count("the conversation of a backend belongs to the first agent that used it") == 1


def test_an_agent_without_a_name_has_its_session_too(tmp_path: Path) -> None:
    sessions = DefaultSessionStore(str(tmp_path / "sessions"))

    def worker(provider: StrictProvider) -> tuple[Agent, Engine]:
        engine = Engine(SQLite(tmp_path / "clew.db"), Budget(window=WINDOW))
        backend = ClewBackend("gpt-4o-mini", engine, session="work", sessions=sessions, base_url=f"{provider.url}/v1")
        return agent(backend, read, name=None), engine

    with StrictProvider(reading, window=WINDOW) as provider:
        first, engine = worker(provider)
        for n in range(6):
            first.chat(f"part_{n}")
        chain = run(Sessions(engine).lineage("work"))
        assert [s.cause for s in chain[:2]] == ["start", "compaction"]
        assert sessions.get_session(chain[1].id).metadata == {"parent_session_id": "work", "lineage_id": "work"}
        second, engine = worker(provider)  # after a restart
        second.chat_history = [dict(m) for m in first.chat_history]
        second.chat("part_6")
    before, after = (h.body["messages"] for h in provider.heard[-3:-1])
    assert after[: len(before)] == before  # calls and results included
    assert len({s.branch for s in run(Sessions(engine).lineage("work"))}) == 1


def recall(id: str) -> str:
    """Look something up."""
    return f"All about {id}."


def test_a_tool_of_the_agents_own_stays_its_own(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    with StrictProvider([Answer(calls=(Call("recall", {"id": "ports"}),)), Answer("Done.")]) as provider:
        backend = ClewBackend("gpt-4o-mini", engine, base_url=f"{provider.url}/v1")
        assert agent(backend, recall).chat("Look it up.") == "Done."
    assert provider.heard[1].body["messages"][-1]["content"] == "All about ports."
    assert "its own tools named recall: rename them" in caplog.text
