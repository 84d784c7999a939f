"""The strategy, where the framework calls it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_framework import (
    EXCLUDED_KEY,
    AgentSession,
    CompactionProvider,
    InMemoryHistoryProvider,
    Message,
    apply_compaction,
)
from frameworks.agent_framework.talking import talk
from frameworks.reading import TURNS, read, reading

from clew import Engine
from clew.adapters.agent_framework import ClewCompactionStrategy

Make = Callable[..., Any]


async def test_a_long_session_fits_by_the_strategy_alone(engine: Engine, provide: Make, agent: Make) -> None:
    said = reading()
    provider = provide(lambda _: next(said))
    asking = agent(provider, tools=[read], compaction_strategy=ClewCompactionStrategy(engine, model="gpt-4o"))
    session = AgentSession()
    await talk(asking, session)
    assert len(provider.heard) == 2 * TURNS
    assert len(provider.heard[-1].body["messages"]) < 4 * TURNS


async def test_originals_stay_and_are_marked(engine: Engine) -> None:
    messages = [Message("system", ["You read."])]
    strategy = ClewCompactionStrategy(engine, model="gpt-4o")
    for n in range(30):
        messages.append(Message("user", [f"Page {n}. " + "word " * 300]))
        sent = await apply_compaction(messages, strategy=strategy)
        messages.append(Message("assistant", [f"Read page {n}."]))
        assert sent[-1].text.startswith(f"Page {n}.")
    assert sent[0].text == "You read."
    assert len(sent) < 60
    texts = [message.text for message in messages]
    assert all(any(text.startswith(f"Page {n}. word word") for text in texts) for n in range(30))
    assert sum(bool(message.additional_properties.get(EXCLUDED_KEY)) for message in messages) > 20


async def test_where_it_fails_nothing_is_changed(tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_text("no store")
    messages = [Message("user", ["Hi."])]
    assert not await ClewCompactionStrategy(tmp_path / "broken.db")(messages)
    assert [message.text for message in messages] == ["Hi."]


async def test_as_the_strategy_of_the_frameworks_own_provider(engine: Engine, provide: Make, agent: Make) -> None:
    said = reading()
    provider = provide(lambda _: next(said))
    history = InMemoryHistoryProvider()
    compaction = CompactionProvider(
        before_strategy=ClewCompactionStrategy(engine, model="gpt-4o"), history_source_id=history.source_id
    )
    await talk(agent(provider, history, compaction, tools=[read]), AgentSession())
    assert len(provider.heard) == 2 * TURNS
