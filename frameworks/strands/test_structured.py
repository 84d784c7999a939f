"""`agent.structured_output()`, whose request no hook before a model's call sees, fits as well."""

from typing import Any

import pytest
from frameworks.strands.talking import LONG, grown, said, texts
from pydantic import BaseModel
from strands import Agent
from strands.hooks import BeforeInvocationEvent
from strands.types.exceptions import ContextWindowOverflowException

from clew.adapters import strands as ours
from clew.adapters.strands import ClewAgentPlugin
from clew.testing import Answer

MANAGERS = ["SlidingWindowConversationManager", "SummarizingConversationManager"]


class Found(BaseModel):
    """What is to be found."""

    port: int


def answering(body: dict[str, Any]) -> Answer:
    return Answer('{"port": 9002}' if "response_format" in body else "Noted.")


def talked(talking: Agent) -> list[tuple[str, Any]]:
    """What an agent holds after a talk that is longer than its window."""
    for n in range(14):
        talking(f"Turn {n}: the port of host{n}.example is {9000 + n}. {LONG}")
    return said(talking.messages)


def test_alone_it_overflows(provide: Any, agent: Any) -> None:
    talking = agent(provide(answering), messages=grown(12))
    with pytest.raises(ContextWindowOverflowException):
        talking.structured_output(Found, "Which port?")


@pytest.mark.parametrize("method", ["auto", "llm"])
def test_with_the_plugin_it_fits_and_the_messages_stay_whole(provide: Any, agent: Any, method: Any) -> None:
    provider = provide(answering)
    talking = agent(provider, plugins=[ClewAgentPlugin("clew.db", method=method)])
    whole, held = talked(talking), talking.messages
    assert len(whole) == 28
    for _ in range(2):
        assert talking.structured_output(Found, "Which port?") == Found(port=9002)
        assert talking.messages is held
        assert said(held) == whole
    first, second = (heard.body for heard in provider.heard[-2:])
    assert first["messages"] == second["messages"]
    assert texts(first)[-1] == str([{"text": "Which port?", "type": "text"}])
    assert "recall" in str(first["messages"])
    assert not first.get("tools")
    talking("And now?")
    assert said(talking.messages)[:-2] == whole


def test_with_the_plugin_what_is_short_is_sent_as_it_is(provide: Any, agent: Any) -> None:
    provider = provide(answering)
    talking = agent(provider, messages=grown(2), plugins=[ClewAgentPlugin("clew.db")])
    talking.structured_output(Found, "Which port?")
    assert [m["role"] for m in provider.heard[0].body["messages"]] == ["user", "assistant", "user", "assistant", "user"]


@pytest.mark.parametrize("name", MANAGERS)
def test_with_a_manager_that_compresses_before_calls_it_fits(
    name: str, provide: Any, agent: Any, model: Any, found: Any
) -> None:
    few = {"preserve_recent_messages": 2} if name == "SummarizingConversationManager" else {}
    manager = getattr(ours, name)(proactive_compression=True, engine="clew.db", session="talk", **few)
    talking = agent(
        provide(answering), messages=grown(8), conversation_manager=manager, aux_model=model(provide([Answer("")]))
    )
    assert talking.structured_output(Found, "Which port?") == Found(port=9002)
    assert len(talking.messages) < 16
    assert f"user 2 {LONG}".strip() in found("talk", "user 2")


def test_whoever_stops_it_leaves_the_messages_whole(provide: Any, agent: Any) -> None:
    def stop(event: BeforeInvocationEvent) -> None:
        if event.messages is None:
            raise InterruptedError("not now")

    talking = agent(provide(answering), plugins=[ClewAgentPlugin("clew.db")])
    talking.add_hook(stop, BeforeInvocationEvent)
    whole = talked(talking)
    with pytest.raises(InterruptedError):
        talking.structured_output(Found, "Which port?")
    assert said(talking.messages) == whole
