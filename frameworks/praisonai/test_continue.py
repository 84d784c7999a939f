"""`--continue`: PraisonAI gives a new agent the whole of a session that it kept, and what is sent fits all the same."""

from typing import Any

import pytest
from praisonaiagents import Agent
from praisonaiagents.config.feature_configs import MemoryConfig

from clew import Budget, Engine, SQLite
from clew.adapters.praisonai import ClewBackend, ClewContext
from clew.testing import Answer, StrictProvider

WINDOW = 8_000
TURNS = 24
WORDS = "unremarkable words of a long report " * 20


def agent(kind: str, log: str, monkeypatch: pytest.MonkeyPatch, url: str) -> Any:
    """As PraisonAI's command makes one: its own store keeps what was said under the name of the session."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
    memory = MemoryConfig(session_id="work", history=True, history_limit=1_000)
    given: dict[str, Any] = {"instructions": "You port.", "memory": memory, "output": "silent"}
    engine = Engine(SQLite(log), Budget(window=WINDOW))
    if kind == "backend":
        return Agent(model=ClewBackend("gpt-4o-mini", engine, session="work", base_url=f"{url}/v1"), **given)
    context = ClewContext(engine, session="work", model="gpt-4o-mini")
    return Agent(model="gpt-4o-mini", context=context, tools=context.tools, **given)


@pytest.mark.parametrize("kind", ["backend", "context"])
@pytest.mark.parametrize("log", ["clew.db", "another.db"], ids=["its own log", "a log that never saw it"])
def test_a_session_that_goes_on_fits(kind: str, log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with StrictProvider([Answer("Noted.")], window=WINDOW) as provider:
        first = agent(kind, "clew.db", monkeypatch, provider.url)
        for n in range(TURNS):
            first.chat(f"Module {n} listens on {8000 + n}. {WORDS}")
        before = len(provider.heard)
        second = agent(kind, log, monkeypatch, provider.url)
        assert second.chat("Go on.") == "Noted."
        assert len(second.chat_history) == 2 * TURNS + 2  # all of it was there
        assert len(provider.heard) == before + 1  # and nothing was refused
        assert provider.heard[-1].spent.input < WINDOW
        if kind == "backend":  # with a context, PraisonAI's memory is in the system prompt, which is new each time
            last, now = (heard.body["messages"][1:] for heard in provider.heard[-2:])
            assert (now[: len(last)] == last) is (log == "clew.db")  # as if it had never stopped
