"""Every Python example in the docs of a framework runs, word for word, and again in another process.

As a program, this file runs the examples of one framework: of its page, or of its part of frameworks.md.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from clew import Engine, Sessions, SQLite, run
from clew.engine.windows import KIND
from clew.store.records import Session
from clew.testing import Answer, Call, StrictProvider

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
WINDOW = 6_000  # tokens
QUIET = (
    *("CREWAI_DISABLE_TELEMETRY", "CREWAI_TESTING", "OTEL_SDK_DISABLED", "DO_NOT_TRACK"),
    *("LITELLM_LOCAL_MODEL_COST_MAP", "OPENAI_AGENTS_DISABLE_TRACING"),
)
LONG = " ".join(f"Finding {n}: line {n} of the parser is off." for n in range(60))
SHORT = "Sixty lines are off."

Body = dict[str, Any]
Ran = Callable[[str, int], list[list[Body]]]

PARTS = {  # of frameworks.md, by their headings
    "adk": "Google ADK",
    "agent_framework": "Microsoft Agent Framework",
    "hermes": "Hermes",
    "inspect_ai": "Inspect AI",
    "langchain": "LangChain, LangGraph and deepagents",
    "litellm": "LiteLLM",
    "openai_agents": "OpenAI Agents SDK",
    "pydantic_ai": "Pydantic AI",
}


def text_of(page: str) -> str:
    """What the docs say of a framework."""
    if page not in PARTS:
        return (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    every = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
    return every.split(f"\n## {PARTS[page]}\n")[1].split("\n## ")[0]


def examples(page: str) -> None:
    """Each block alone, unless it says that it continues the one before."""
    names: dict[str, object] = {}
    for block in BLOCK.findall(text_of(page)):
        if not block.startswith("# Continues the block above."):
            names = {"__name__": "docs"}
        exec(compile(block, page, "exec"), names)


def script(body: Body) -> Answer:
    """Of a model that looks things up and has parts of its work done, once a turn."""
    if "contents" in body:
        return Answer(LONG)
    if "messages" not in body:
        submits = any(tool.get("name") == "submit" for tool in body.get("tools") or ())
        return Answer(calls=(Call("submit", {"answer": "42"}),)) if submits else responded(body)
    last = body["messages"][-1]
    tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
    if "hands to the tasks that come after it" in str(body["messages"][0]):
        return Answer(SHORT)
    if last["role"] != "tool" and "find" in tools:
        return Answer(calls=(Call("find", {"question": "Look in a.conf."}),))
    if last["role"] != "tool" and "delegate_work_to_coworker" in tools:
        given = {"task": "Count the books.", "context": "All of them.", "coworker": "Clerk"}
        return Answer(calls=(Call("delegate_work_to_coworker", given),))
    if last["role"] != "tool" and "Go on with the parser" in str(last) and "search_history" in tools:
        return Answer(calls=(Call("search_history", {"query": "parser"}),))
    return Answer(LONG)


def responded(body: Body) -> Answer:
    """Of a model that is asked by OpenAI's Responses: it has things found where somebody can find them."""
    if "find" in [tool["name"] for tool in body.get("tools") or ()] and body["input"][-1].get("role") == "user":
        return Answer(calls=(Call("find", {"input": "Look in a.conf."}),))
    return Answer(LONG)


async def told_that_windows_are_small(path: Path) -> None:
    """As if the models had refused what was longer, often and just now: pages say nothing of windows."""
    store = SQLite(path)
    for model in ("gpt-4o", "gpt-4o-mini", "gemini-3-pro"):
        await store.learn("default", KIND, model, {"tokens": WINDOW, "refusals": 100, "at": int(time.time())})
    await store.close()


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    """Runs a page in one process after another, in one folder; what the provider heard from each."""

    def start(page: str, times: int) -> list[list[Body]]:
        heard = []
        run(told_that_windows_are_small(tmp_path / "agent.db"))
        for _ in range(times):
            with StrictProvider(script) as provider:
                served = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "none", "HOME": str(tmp_path)}
                served |= {"GOOGLE_GEMINI_BASE_URL": provider.url, "GOOGLE_API_KEY": "none"}
                env = {**os.environ, **dict.fromkeys(QUIET, "true"), **served}
                done = subprocess.run(
                    [sys.executable, __file__, page], cwd=tmp_path, env=env, capture_output=True, text=True
                )
            assert done.returncode == 0, done.stderr
            assert "clew could not" not in done.stderr
            heard.append([one.body for one in provider.heard])
        return heard

    return start


@pytest.fixture
def sessions(tmp_path: Path) -> Callable[[], list[Session]]:
    """All sessions in the store that the pages write to."""
    return lambda: run(Sessions(Engine(SQLite(tmp_path / "agent.db"))).all())


def going_on(heard: list[Body]) -> list[list[Body]]:
    """What was sent where a page shows how to go on after a restart."""
    return [body["messages"] for body in heard if "Go on with the parser." in json.dumps(body["messages"])]


def has(module: str) -> pytest.MarkDecorator:
    found = find_spec(module.partition(".")[0]) and find_spec(module)
    return pytest.mark.skipif(not found, reason=f"{module} has an environment of its own")


@has("praisonaiagents")
def test_praisonai(ran: Ran, sessions: Callable[[], list[Session]], tmp_path: Path) -> None:
    from praisonaiagents.session.store import DefaultSessionStore

    first, second, *_ = (going_on(heard) for heard in ran("praisonai", 4))
    said = first[-1][:4]  # and what PraisonAI says in the end of a turn, to have its answer
    assert [m["role"] for m in said] == ["system", "user", "assistant", "tool"]
    assert second[0][: len(said)] == said  # the call and its result, too
    every = sessions()
    assert {"port", "parser", "notes"} <= {session.name for session in every}
    chain = sorted((s for s in every if s.name == "parser"), key=lambda s: s.number)
    assert [s.cause for s in chain[:2]] == ["start", "compaction"]
    assert len({s.branch for s in chain}) == 1
    kept = DefaultSessionStore(str(tmp_path / "sessions")).get_session(chain[1].id)
    assert kept.metadata == {"parent_session_id": "parser", "lineage_id": "parser"}
    found = next(s for s in every if s.cause == "subagent")
    assert found.parent in {s.id for s in every if s.name == "ports"}


@has("strands")
def test_strands(ran: Ran, sessions: Callable[[], list[Session]]) -> None:
    before, after = (going_on(heard) for heard in ran("strands", 2))
    assert after[0][: len(before[-1])] == before[-1]
    every = sessions()
    assert len({s.branch for s in every if s.name == "port"}) == 1
    children = [s for s in every if s.cause == "subagent"]
    assert len(children) == 2
    assert {s.parent for s in children} <= {s.id for s in every}


@has("langchain")
def test_langchain(ran: Ran, sessions: Callable[[], list[Session]]) -> None:
    (heard,) = ran("langchain", 1)
    turns = going_on([body for body in heard if "messages" in body])
    assert len(turns[-1]) < 12
    every = sessions()
    assert "port" in {s.name for s in every}
    (child,) = (s for s in every if s.cause == "subagent")
    assert "-finder-" in str(child.name)
    assert child.parent in {s.id for s in every}


@has("pydantic_ai")
def test_pydantic_ai(ran: Ran, sessions: Callable[[], list[Session]]) -> None:
    (heard,) = ran("pydantic_ai", 1)
    assert len(heard) == 17  # seven turns of a search and an answer, and three requests for the delegation
    assert len(heard[13]["messages"]) < 27
    every = sessions()
    assert len({s.branch for s in every if s.name == "port"}) == 1
    (child,) = (s for s in every if s.cause == "subagent")
    assert child.parent in {s.id for s in every}


@has("google.adk")
def test_adk(ran: Ran, sessions: Callable[[], list[Session]]) -> None:
    (heard,) = ran("adk", 1)
    assert len(heard) == 6
    assert len(heard[-1]["contents"]) < 11
    assert {s.name for s in sessions()} == {"porting/me/port"}


@has("agent_framework")
def test_agent_framework(ran: Ran, sessions: Callable[[], list[Session]]) -> None:
    (heard,) = ran("agent_framework", 1)
    assert len(heard) == 15  # six turns of a search and an answer, three requests for the delegation
    assert len(heard[11]["messages"]) < 23
    every = sessions()
    assert len({s.branch for s in every if s.name == "port"}) == 1
    (child,) = (s for s in every if s.cause == "subagent")
    assert child.parent in {s.id for s in every}


@has("hermes_cli")
def test_hermes(ran: Ran, sessions: Callable[[], list[Session]]) -> None:
    (heard,) = ran("hermes", 1)
    assert not heard  # it only says what Hermes is to load: its own tests load the plugin
    assert not sessions()


@has("litellm")
def test_litellm(ran: Ran, sessions: Callable[[], list[Session]]) -> None:
    (heard,) = ran("litellm", 1)
    assert len(heard) == 6
    assert len(heard[-1]["messages"]) < 11
    assert {s.name for s in sessions()} == {"port"}


@has("agents")
def test_openai_agents(ran: Ran, sessions: Callable[[], list[Session]]) -> None:
    first, second = ([body["input"] for body in heard] for heard in ran("openai_agents", 2))
    assert any(item.get("type") == "function_call_output" for item in first[-1])  # what another agent found
    assert 0 < len(second[0]) < 2 * 6 + 3  # the session goes on, and fits
    every = sessions()
    assert len({s.branch for s in every if s.name == "port"}) == 1
    assert {s.parent for s in every if s.cause == "subagent"} <= {s.id for s in every}
    assert any(s.cause == "subagent" for s in every)


@has("inspect_ai")
def test_inspect_ai(ran: Ran) -> None:
    (heard,) = ran("inspect_ai", 1)
    offered = [tool["name"] for body in heard for tool in body.get("tools") or ()]
    assert {"recall", "search_history", "submit"} <= set(offered)


@has("crewai")
def test_crewai(ran: Ran, sessions: Callable[[], list[Session]]) -> None:
    for heard in ran("crewai", 2):
        (letter,) = (str(b["messages"]) for b in heard if "Current Task: Write to the board." in str(b["messages"]))
        assert SHORT in letter
        assert LONG not in letter
    every = sessions()
    children = [s for s in every if s.cause == "subagent"]
    assert len(children) == 2
    assert {s.parent for s in children} <= {s.id for s in every}


if __name__ == "__main__":
    examples(sys.argv[1])
