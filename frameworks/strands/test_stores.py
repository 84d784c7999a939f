"""Stores and engines: whose they are, when they are let go of, and what becomes of an agent where they fail."""

from pathlib import Path
from typing import Any

import pytest
from frameworks.strands.talking import LONG, grown, read, reading
from strands.types.exceptions import ContextWindowOverflowException

import clew
from clew import Budget
from clew.adapters import strands as ours
from clew.adapters.strands import ClewAgentPlugin, ClewStrategy
from clew.engine.engine import Engine
from clew.store.places import open_store
from clew.testing import Answer

MANAGERS = ["SlidingWindowConversationManager", "SummarizingConversationManager"]


def looking(body: dict[str, Any]) -> Answer:
    """Looks at a file once in each turn."""
    return Answer("Seen.") if body["messages"][-1]["role"] == "tool" else reading()


def test_an_engine_that_is_given_stays_as_it_is(provide: Any, agent: Any) -> None:
    engine = Engine(open_store("clew.db"), Budget(window=4_000))
    step = engine.settings.step
    sliding = ours.SlidingWindowConversationManager(proactive_compression=True, engine=engine)
    unset = ours.NullConversationManager(engine=engine)
    for manager in (sliding, unset):
        talking = agent(provide(looking, 100_000), tools=[read], conversation_manager=manager)
        for n in range(8):
            talking(f"{n}: look at it. {LONG}")
        results = [b["toolResult"] for m in talking.messages for b in m["content"] if "toolResult" in b]
        assert all("line line" in str(result) for result in results)  # whole, whatever the engine's own step does
    assert sliding.removed_message_count > 0
    assert (engine.settings.step, engine.settings.threshold, engine.settings.compaction) == (step, None, "on")


def test_a_store_that_was_opened_is_closed_and_opened_again(provide: Any, agent: Any, found: Any) -> None:
    manager = ours.NullConversationManager(engine="clew.db", session="talk")
    talking = agent(provide([Answer("Noted.")]), conversation_manager=manager)
    for n in range(2):
        talking(f"The port of host{n}.example is 8080.")
        assert Path("clew.db-wal").exists()  # which goes with the last connection
        manager.close()
        assert not Path("clew.db-wal").exists()
    assert "host1.example" in found("talk", "host1.example")


def test_a_plugin_lets_go_of_its_store_and_opens_it_again(provide: Any, agent: Any, found: Any) -> None:
    plugin = ClewAgentPlugin("clew.db", session="talk")
    talking = agent(provide([Answer("Noted.")]), plugins=[plugin])
    talking("The port is 8080.")
    first = plugin.thread(talking)
    plugin.close()
    with pytest.raises(RuntimeError):
        clew.run(first.controller.engine.store.session("default", "talk"))
    talking("The host is example.org.")
    assert plugin.thread(talking) is not first
    assert "example.org" in found("talk", "example.org")


@pytest.mark.parametrize("name", MANAGERS)
def test_where_clew_fails_strands_own_way_is_taken(
    name: str, provide: Any, agent: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "broken.db").write_bytes(b"this is no database" * 100)
    provider = provide([Answer("A summary by Strands.")], 100_000)
    manager = getattr(ours, name)(proactive_compression=True, engine="broken.db")
    talking = agent(provider, conversation_manager=manager, messages=grown(15))
    talking("Go on.")  # all of it is sent, as the host had it
    assert len(provider.heard[0].body["messages"]) == 31
    assert "clew could not compress" in caplog.text
    assert "exists and is not a clew store" in caplog.text
    assert not any(record.exc_info for record in caplog.records if record.name == "clew")  # it may hold what was said
    manager.reduce_context(talking, ContextWindowOverflowException("too long"))
    assert len(talking.messages) < 32


def test_where_clew_fails_the_agent_goes_on(provide: Any, agent: Any, caplog: pytest.LogCaptureFixture) -> None:
    provider, plugin = provide([Answer("Noted.")]), ClewAgentPlugin("clew.db", session="talk")
    talking = agent(provider, tools=[read], plugins=[plugin])
    talking("Hello")
    clew.run(plugin.thread(talking).controller.engine.store.close())
    assert str(talking("Again")).strip() == "Noted."
    assert [tool["function"]["name"] for tool in provider.heard[1].body["tools"]] == ["read"]
    assert len(provider.heard[1].body["messages"]) == 3
    assert "clew could not" in caplog.text
    for _ in range(12):
        talking(LONG)  # refused at last, and then as Strands does it
    assert len(talking.messages) < 28


@pytest.mark.parametrize(
    "given",
    [{"plugins": [ClewAgentPlugin("none.db")]}, {"context_manager": {"strategies": [ClewStrategy("none.db")]}}],
    ids=str,
)
def test_without_a_store_the_agent_goes_on_and_nothing_is_told_of_what_was_said(
    given: Any, provide: Any, agent: Any, caplog: pytest.LogCaptureFixture
) -> None:
    Path("none.db").write_bytes(b"this is no database" * 100)
    talking = agent(provide([Answer("Noted.")]), **given)
    assert str(talking("The key is sk-hunter2.")).strip() == "Noted."
    warnings = [record for record in caplog.records if record.name == "clew"]
    assert "exists and is not a clew store" in str([record.getMessage() for record in warnings])
    assert "hunter2" not in caplog.text
    assert not any(record.exc_info for record in warnings)
    Path("none.db").unlink()
    talking("And now there may be one.")
    assert Path("none.db").exists()
