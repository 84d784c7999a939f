"""What models thought: kept while nothing is folded, and sent only where it is valid."""

from typing import Any

import pytest
from frameworks.langchain.talking import TURNS, WINDOW, blocking, named, read, reading, role
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from clew import Budget, Engine
from clew.adapters.langchain import ClewMiddleware
from clew.adapters.langchain.messages import held, sendable, usage_of
from clew.testing import Answer, Call


def claude(url: str, model: str) -> ChatAnthropic:
    given: dict[str, Any] = {"base_url": url, "max_retries": 0, "max_tokens": 2_000, "stop": None, "timeout": None}
    thinking = {"type": "adaptive"} if "5-5" in model else {"type": "enabled", "budget_tokens": 1_024}
    return ChatAnthropic(model_name=model, thinking=thinking, **given)


def thoughts(body: dict[str, Any]) -> int:
    return sum(str(message["content"]).count("'type': 'thinking'") for message in body["messages"])


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-5-5"])
def test_claude_thinks_far_past_the_window(model: str, engine: Engine, provide: Any) -> None:
    parts = reading()

    def script(body: dict[str, Any]) -> Answer:
        answer = parts(body)
        return (
            Answer(answer.text, answer.calls, reasoning="Hm. Which are next?") if role(body["messages"][-1]) else answer
        )

    window = WINDOW + 1_500  # with room for answers, as long as they may be: nothing is refused
    provider, budget = provide(script, window), Budget(window=window, reserve=2_000)
    clew = ClewMiddleware(Engine(engine.store, budget))
    agent = create_agent(claude(provider.url, model), [read], middleware=[clew], checkpointer=InMemorySaver())
    for _ in range(TURNS):
        state = blocking(agent, "Read the next two parts.", named(model))
    sent = [one.body for one in provider.heard if one.body.get("tools")]  # the others ask for chapters
    assert len(sent) == 2 * TURNS
    assert len(sent[-1]["messages"]) < len(state["messages"])
    assert thoughts(sent[1]) == 1
    assert (thoughts(sent[-1]) > 0) is (model == "claude-sonnet-4-5")


def test_claude_is_told_in_messages_that_it_takes(engine: Engine, provide: Any) -> None:
    provider = provide(reading())
    clew = ClewMiddleware(engine, method="llm")
    agent = create_agent(
        claude(provider.url, "claude-sonnet-4-5"), [read], middleware=[clew], checkpointer=InMemorySaver()
    )
    for _ in range(2):
        blocking(agent, "Read the next two parts.", named("told"))
    assert len(provider.heard) == 4
    assert all("<context_status>" in str(one.body["messages"][-1]) for one in provider.heard)


def test_responses_with_reasoning_fit(engine: Engine, provide: Any, chat: Any) -> None:
    parts = iter(range(100))

    def script(body: dict[str, Any]) -> Answer:
        if body["input"][-1].get("type") == "function_call_output":
            return Answer("It is read.", reasoning="Well.")
        return Answer(calls=(Call("read", {"path": f"part_{next(parts)}.py"}),), reasoning="Which is next?")

    provider = provide(script)
    model = chat(provider, model="gpt-5-mini", use_responses_api=True)
    agent = create_agent(model, [read], middleware=[ClewMiddleware(engine)], checkpointer=InMemorySaver())
    for _ in range(TURNS):
        state = blocking(agent, "Read the next part.", named("responses"))
    assert len(provider.heard) == 2 * TURNS
    assert len(provider.heard[-1].body["input"]) < len(state["messages"])
    assert "reasoning" in {item.get("type") for item in provider.heard[-1].body["input"]}


def test_where_the_provider_has_the_conversation_clew_stands_aside(engine: Engine, provide: Any, chat: Any) -> None:
    provider = provide([Answer("Noted.")])
    model = chat(provider, use_responses_api=True, use_previous_response_id=True)
    agent = create_agent(model, middleware=[ClewMiddleware(engine)], checkpointer=InMemorySaver())
    for n in range(2):
        blocking(agent, f"Page {n}.", named("elsewhere"))
    assert len(provider.heard[-1].body["input"]) == 1


def test_what_a_model_thought_and_did_comes_back_as_it_was() -> None:
    blocks: list[Any] = [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
    ]
    said = AIMessage(blocks, tool_calls=[{"id": "c1", "name": "read", "args": {"path": "a"}}])
    known = held([said])
    assert sendable({"messages": known[0][1]}, known)[0] is said
    assert [call["id"] for call in known[0][1][0]["tool_calls"]] == ["c1"]
    assert "c2ln" in str(known[0][1])


def test_usage_includes_what_was_cached() -> None:
    told: Any = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12, "input_token_details": {"cache_read": 7}}
    reported = usage_of(AIMessage("Hi.", usage_metadata=told))
    assert reported is not None
    assert reported["prompt_tokens_details"] == {"cached_tokens": 7}
    assert usage_of(AIMessage("Hi.")) is None
