"""What the secrets policy forbids is nowhere: in no store of clew's, in no session of PraisonAI's, in no warning."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from praisonaiagents import Agent
from praisonaiagents.session.store import DefaultSessionStore

from clew import Budget, Engine, Sessions, SQLite, configured, run
from clew.adapters.praisonai import ClewBackend, ClewContext, ContextCompressor
from clew.core.view import View
from clew.engine.settings import Settings
from clew.events import Event, Secret
from clew.store.records import Method
from clew.testing import Answer, Call, ScriptedModel, StrictProvider, write_chapter

Message = dict[str, Any]

WINDOW = 4_000
KEY = "ghp_" + "aK3v9Xm2Q7w8Z1r5T4b6" + "aK3v9Xm2Q7w8Z1r5"  # in two parts, or scanners take it for a leak


def read(path: str) -> str:
    """Read a file."""
    return "\n".join([f"{path} has {KEY}", *(f"line {n}: setting_{n} = {n * 7}" for n in range(40))])


def working() -> Iterator[Answer]:
    for n in range(100):
        yield Answer(calls=(Call("read", {"path": f"a{n}.py"}),))
        yield Answer(f"I read a{n}.py and saw {KEY}.")


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    said = working()
    with StrictProvider(lambda _: next(said), window=WINDOW) as provider:
        yield provider


def holders(folder: Path, text: str) -> list[str]:
    """The files that hold a text."""
    return [f.name for f in folder.rglob("*") if f.is_file() and text.encode() in f.read_bytes()]


async def texts(engine: Engine) -> list[str]:
    """All that was said, as the store has it: in its file most of it is compressed."""
    traces = [await engine.store.load("default", branch.id) for branch in await engine.store.branches("default")]
    said = [place.id for trace in traces for place in trace.said]
    return [node.item.text for node in (await engine.store.nodes("default", said)).values()]


def leaking(turns: int) -> list[Message]:
    said: list[Message] = []
    for n in range(turns):
        said += [
            {"role": "user", "content": f"Question {n} about {KEY}: " + "why is it slow? " * 5},
            {"role": "assistant", "content": f"Answer {n}: port {8000 + n} is taken, says {KEY}."},
        ]
    return [*said, {"role": "user", "content": f"And now, with {KEY}?"}]


async def test_a_compressor_keeps_what_its_engine_would_keep(tmp_path: Path) -> None:
    heard = list[Event]()
    engine = Engine(SQLite(tmp_path / "c.db"), settings=Settings(secrets="redact", listeners=[heard.append]))
    model = ScriptedModel(write_chapter)
    compressor = ContextCompressor(model, engine=engine, sessions=DefaultSessionStore(str(tmp_path / "s")))
    talk = leaking(30)
    result = await compressor.compress(talk, protect_last_n_tokens=300, parent_session_id="work")
    assert result.messages[-1] == talk[-1]
    assert result.tokens_saved > 0
    assert KEY not in str([m for m in result.messages if "summary" in m["content"]])
    assert KEY not in model.prompts[0].text
    assert holders(tmp_path, result.session_id or "?")
    assert holders(tmp_path, KEY) == []
    assert any(isinstance(event, Secret) for event in heard)


async def test_a_compressor_obeys_what_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLEW_SECRETS", "redact")
    engine = configured(tmp_path / "c.db")
    await ContextCompressor(engine=engine).compress(leaking(30), protect_last_n_tokens=300)
    kept = await texts(engine)
    assert any("port 8017" in text for text in kept)
    assert not any(KEY in text for text in kept)
    assert holders(tmp_path, KEY) == []


@pytest.mark.parametrize("method", ["auto", "llm"])
def test_an_agent_leaves_no_secret_and_no_status_behind(
    tmp_path: Path, provider: StrictProvider, method: Method
) -> None:
    engine = Engine(SQLite(tmp_path / "c.db"), Budget(window=WINDOW), Settings(secrets="redact", method=method))
    sessions = DefaultSessionStore(str(tmp_path / "s"))
    backend = ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{provider.url}/v1", sessions=sessions)
    worker = Agent(name="w", instructions="Read.", model=backend, tools=[read], output="silent", context=False)
    for n in range(8):
        worker.chat(f"Turn {n}: my key is {KEY}.")
    assert len(provider.heard) == 16
    assert all(KEY in json.dumps(heard.body) for heard in provider.heard)  # what the agent sends is its own affair
    assert len(run(Sessions(engine).lineage("work"))) > 1
    assert holders(tmp_path / "s", "my key is ")
    assert holders(tmp_path / "s", "context_status") == []
    run(engine.store.close())
    assert holders(tmp_path, KEY) == []


def test_what_must_not_go_out_does_not(tmp_path: Path, provider: StrictProvider) -> None:
    engine = Engine(SQLite(tmp_path / "c.db"), Budget(window=WINDOW), Settings(secrets="refuse"))
    backend = ClewBackend("gpt-4o-mini", engine, base_url=f"{provider.url}/v1")
    worker = Agent(name="w", instructions="Read.", model=backend, tools=[read], output="silent", context=False)
    assert worker.chat(f"My key is {KEY}.") is None
    assert provider.heard == []
    assert worker.chat("Hello.") is None  # it read a file that has one
    assert len(provider.heard) == 1


async def test_a_hook_holds_back_what_must_not_go_out(
    tmp_path: Path, provider: StrictProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    context = ClewContext(Engine(SQLite(tmp_path / "c.db"), settings=Settings(secrets="refuse")))
    noter = Agent(name="n", instructions="Note.", context=context, hooks=context.hooks, output="silent")
    assert "contains secrets" in await noter.achat(f"My key is {KEY}.")
    assert provider.heard == []


def test_a_warning_tells_nothing_of_what_was_said(
    tmp_path: Path, provider: StrictProvider, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(view: View, budget: Budget) -> View:
        raise RuntimeError(f"cannot make less of {view.nodes[0].item.text}")

    engine = Engine(SQLite(tmp_path / "c.db"), Budget(window=WINDOW), Settings(step=fail))
    backend = ClewBackend("gpt-4o-mini", engine, base_url=f"{provider.url}/v1")
    worker = Agent(name="w", instructions="Read.", model=backend, tools=[read], output="silent", context=False)
    for n in range(4):
        worker.chat(f"Turn {n}: my key is {KEY}.")
    assert "clew failed; the original request is sent unchanged: RuntimeError" in caplog.text
    assert KEY not in "".join(r.getMessage() for r in caplog.records if r.name == "clew")
