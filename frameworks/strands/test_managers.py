import re

"""Our conversation managers in the place of Strands' own: the same where nothing is wanted, better where it is."""

import logging
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from frameworks.strands.talking import LONG, grown, read, reading, said, texts
from strands import Agent, tool
from strands.agent import conversation_manager as theirs
from strands.hooks import BeforeModelCallEvent, HookRegistry
from strands.models.anthropic import AnthropicModel
from strands.types.exceptions import ContextWindowOverflowException

from clew import Budget
from clew.adapters import strands as ours
from clew.engine.engine import Engine
from clew.engine.settings import Settings
from clew.steps.chapters import questions
from clew.steps.chapters.by_model import ByModel
from clew.store.places import open_store
from clew.testing import Answer, Call, ScriptedModel, StrictProvider

MANAGERS = ["SlidingWindowConversationManager", "SummarizingConversationManager"]


def talkative(body: dict[str, Any]) -> Answer:
    """Calls tools when it is asked to look at something, one or two at once."""
    last = body["messages"][-1]
    words = str(last["content"])
    if last["role"] == "user" and "look" in words:
        return reading(1 + len(words) % 2, f"{len(words)}.py")
    return Answer(f"Noted: {len(body['messages'])}.")


@pytest.mark.parametrize("name", MANAGERS)
def test_growth_past_the_window_is_never_refused_and_loses_nothing(
    name: str, provide: Any, agent: Any, model: Any, found: Any
) -> None:
    provider, aux = provide([Answer("Noted.")]), model(provide([Answer("")]))
    few = {"preserve_recent_messages": 2} if name == "SummarizingConversationManager" else {}
    manager = getattr(ours, name)(proactive_compression=True, engine="clew.db", session="talk", **few)
    talking = agent(provider, conversation_manager=manager, aux_model=aux)
    for n in range(14):
        talking(f"Turn {n}: the port of host{n}.example is {9000 + n}. {LONG}")
    assert len(provider.heard) == 14  # it never refused, so nothing was asked twice
    assert max(heard.spent.input for heard in provider.heard) < 0.85 * 4_000
    assert len(talking.messages) < 28
    assert "recall" in "".join(texts(provider.heard[-1].body))
    assert "host2.example is 9002" in found("talk", "host2.example")


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_cuts_are_rare_also_with_a_low_threshold(share: float, provide: Any, agent: Any) -> None:
    provider = provide([Answer("Noted.")], 32_000)
    given = {"compression_threshold": share}
    manager = ours.SlidingWindowConversationManager(1_000, proactive_compression=given, engine="clew.db")
    talking = agent(provider, window=32_000, conversation_manager=manager)
    for n in range(40):
        talking(f"Turn {n}: {3 * LONG}")
    sent = [heard.body["messages"] for heard in provider.heard]
    cuts = sum(after[: len(before)] != before for before, after in pairwise(sent))
    assert 2 <= cuts <= 12  # between two of them, each request is the last one and what is new


@pytest.mark.parametrize("name", MANAGERS)
@pytest.mark.parametrize("value", [0, -0.5, 1.5])
def test_a_threshold_out_of_range_is_refused(name: str, value: float) -> None:
    with pytest.raises(ValueError, match="compression_threshold must be"):
        getattr(ours, name)(proactive_compression={"compression_threshold": value})


async def test_a_higher_threshold_is_reached_later_and_true_is_strands_own(provide: Any, agent: Any) -> None:
    async def reached(given: Any) -> int:
        """The least number of turns that is too much."""
        for turns in range(1, 20):
            manager = ours.SlidingWindowConversationManager(proactive_compression=given, engine=f"{given}{turns}.db")
            registry = HookRegistry()
            manager.register_hooks(registry)
            talking = agent(provide([]), messages=grown(turns))
            await registry.invoke_callbacks_async(BeforeModelCallEvent(talking, projected_input_tokens=1))
            if len(talking.messages) < 2 * turns:
                return turns
        raise AssertionError("never")

    low, own, high = [await reached({"compression_threshold": share}) for share in (0.3, 0.7, 1.0)]
    assert low < own <= high
    assert await reached(True) == own
    assert await reached({"buffer_tokens": 2_000}) < own  # of the 3,000 that may be sent
    assert ours.DEFAULT_COMPRESSION_THRESHOLD == 0.7
    assert ours.ProactiveCompressionConfig is theirs.ProactiveCompressionConfig


@pytest.mark.parametrize("given", [None, False])
async def test_the_hook_is_always_there_and_does_nothing_unset(given: Any, provide: Any, agent: Any) -> None:
    manager = ours.SlidingWindowConversationManager(proactive_compression=given)
    registry = HookRegistry()
    manager.register_hooks(registry)
    talking = agent(provide([]), messages=[{"role": "user", "content": [{"text": LONG * 50}]}])
    event = BeforeModelCallEvent(talking, projected_input_tokens=1_000_000)
    assert list(registry.get_callbacks_for(event))
    await registry.invoke_callbacks_async(event)
    assert said(talking.messages) == [("user", [{"text": LONG * 50}])]
    assert not list(Path.home().rglob("*.db"))  # nor is a store made


async def test_an_unknown_size_is_left_alone(provide: Any, agent: Any) -> None:
    manager = ours.SlidingWindowConversationManager(proactive_compression=True, engine="clew.db")
    registry = HookRegistry()
    manager.register_hooks(registry)
    talking = agent(provide([]), messages=grown(30))
    await registry.invoke_callbacks_async(BeforeModelCallEvent(talking, projected_input_tokens=None))
    assert len(talking.messages) == 60
    await registry.invoke_callbacks_async(BeforeModelCallEvent(talking, projected_input_tokens=1))
    assert len(talking.messages) < 60


# --- the contract of reduce_context -------------------------------------------------------------------------------


def test_null_raises_what_it_is_given_and_else_does_nothing(provide: Any, agent: Any) -> None:
    talking, error = agent(provide([]), messages=grown(3)), ContextWindowOverflowException("too long")
    manager = ours.NullConversationManager(engine="clew.db")
    manager.reduce_context(talking)
    with pytest.raises(ContextWindowOverflowException) as raised:
        manager.reduce_context(talking, error)
    assert raised.value is error
    assert said(talking.messages) == said(grown(3))


@pytest.mark.parametrize("name", MANAGERS)
def test_what_cannot_be_reduced_raises_the_error_as_its_cause_or_is_told(
    name: str, provide: Any, agent: Any, caplog: pytest.LogCaptureFixture
) -> None:
    only = [{"role": "user", "content": [{"text": "Hello"}]}]
    talking, error = agent(provide([]), messages=only), ContextWindowOverflowException("too long")
    manager = getattr(ours, name)(engine="clew.db")
    with pytest.raises(ContextWindowOverflowException) as raised:
        manager.reduce_context(talking, error)
    assert raised.value.__cause__ is error
    with caplog.at_level(logging.WARNING, "clew"):
        manager.reduce_context(talking)
    assert "nothing to compress" in caplog.text
    assert said(talking.messages) == [("user", [{"text": "Hello"}])]


def test_sliding_shortens_results_only_after_a_refusal(provide: Any, agent: Any) -> None:
    whole = "line " * 250
    held: list[Any] = [{"role": "user", "content": [{"text": "Look at the logs."}]}]
    for n in range(12):
        use = {"toolUseId": f"t{n}", "name": "read", "input": {"path": f"{n}.log"}}
        result = {"toolUseId": f"t{n}", "content": [{"text": whole}], "status": "success"}
        held += [{"role": "assistant", "content": [{"toolUse": use}]}]
        held += [{"role": "user", "content": [{"toolResult": result}]}]
    held.append({"role": "assistant", "content": [{"text": "They fail."}]})
    error = ContextWindowOverflowException("too long")

    def reduced(error: Exception | None, **given: Any) -> list[str]:
        talking = agent(provide([]), messages=[dict(m) for m in held], tools=[read])
        ours.SlidingWindowConversationManager(engine=f"{given} {error}.db", **given).reduce_context(talking, error)
        blocks = [block for message in talking.messages for block in message["content"]]
        return [block["toolResult"]["content"][0]["text"] for block in blocks if "toolResult" in block]

    assert any(text.startswith("[result of read") for text in reduced(error))
    for kept in (reduced(None), reduced(error, should_truncate_results=False)):
        assert 0 < len(kept) < 12
        assert set(kept) == {whole}


def test_after_a_refusal_strands_own_way_is_the_last_resort(provide: Any, agent: Any) -> None:
    use = {"toolUseId": "t1", "name": "read", "input": {}}
    result = {"toolUseId": "t1", "content": [{"text": "A" * 900}], "status": "success"}
    held: list[Any] = [
        {"role": "assistant", "content": [{"toolUse": use}]},
        {"role": "user", "content": [{"toolResult": result}]},
    ]
    talking = agent(provide([]), messages=held, window=100_000)  # in which it is nothing
    manager = ours.SlidingWindowConversationManager(engine="clew.db")
    manager.reduce_context(talking, ContextWindowOverflowException("too long"))
    assert len(str(said(talking.messages)[1])) < 700


@tool
def dump() -> str:
    """Dump everything."""
    return "\n".join(f"row {n} is {n * 7}" for n in range(3_000))


@pytest.mark.parametrize("shortens", [True, False])
def test_a_result_too_large_for_the_window_is_shortened_after_a_refusal_only(
    shortens: bool, provide: Any, agent: Any
) -> None:
    def script(body: dict[str, Any]) -> Answer:
        return Answer("Seen.") if body["messages"][-1]["role"] == "tool" else Answer(calls=(Call("dump"),))

    provider = provide(script)
    manager = ours.SlidingWindowConversationManager(
        should_truncate_results=shortens, proactive_compression=True, engine="clew.db"
    )
    talking = agent(provider, tools=[dump], conversation_manager=manager)
    if shortens:
        assert str(talking("Dump it.")).strip() == "Seen."
        asked, refused, short = provider.heard
        assert "row 2999 is 20993" in str(short.body["messages"][-1])
        assert "out of view; recall" in str(short.body["messages"][-1])
    else:
        with pytest.raises(ContextWindowOverflowException):
            talking("Dump it.")
        asked, refused = provider.heard
        assert said(talking.messages)[0] == ("user", [{"text": "Dump it."}])
        assert talking.messages[2]["content"][0]["toolResult"]["content"] == [{"text": dump()}]
    assert len(asked.body["messages"]) == 1
    assert dump() in refused.body["messages"][-1]["content"]


# --- summaries ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [Answer(status=500), Answer(""), Answer("$#!? " * 300), Answer("late", seconds=3)],
    ids=["error", "empty", "garbage", "slow"],
)
def test_a_summariser_that_fails_loses_nothing(bad: Answer, provide: Any, agent: Any, model: Any, found: Any) -> None:
    main, aux = provide([Answer("Noted.")]), provide([bad])
    kind, store = ours.SummarizingConversationManager, open_store("clew.db")
    if bad.seconds:  # nobody waits longer than they said
        slow = ByModel(ScriptedModel(lambda _: "late", seconds=3), seconds=0.1)
        manager = kind(
            0.3,
            2,
            proactive_compression=True,
            engine=Engine(store, Budget(window=4_000), Settings(author=slow, patience=0.1)),
            session="talk",
        )
    else:
        manager = kind(0.3, 2, proactive_compression=True, engine="clew.db", session="talk")
    talking = agent(main, conversation_manager=manager, aux_model=model(aux))
    for n in range(12):
        talking(f"Turn {n}: host{n}.example has port {9000 + n}. {LONG}")
    assert len(main.heard) == 12
    assert "host1.example has port 9001" in found("talk", "host1.example")
    assert "host1.example" in "".join(texts(main.heard[-1].body))  # code wrote the summary


@pytest.mark.usefixtures("as_shipped")
def test_the_auxiliary_model_writes_by_the_users_prompt(provide: Any, agent: Any, model: Any) -> None:

    def write(body: Any) -> Answer:
        hosts = dict.fromkeys(re.findall(r"host\d+\.example has port \d+", str(body)))
        return Answer("\n".join(f"{host}." for host in hosts) + "\nMallory lives in Atlantis-7.")

    main, aux = provide([Answer("Noted.")]), provide(write)
    told = {"preserve_recent_messages": 2, "summarization_system_prompt": "Mind the ports."}
    manager = ours.SummarizingConversationManager(**told, engine="clew.db", proactive_compression=True)
    talking = agent(main, conversation_manager=manager, aux_model=model(aux))
    for n in range(12):
        talking(f"Turn {n}: host{n}.example has port {9000 + n}. {LONG}")
    assert len(main.heard) == 12
    assert aux.heard
    asked = aux.heard[0].body["messages"]
    assert "Mind the ports." in str(asked)
    assert questions.instruction("chapter")[:60] not in str(asked), "it is taken as it is"
    sent = "".join("".join(texts(heard.body)) for heard in main.heard)
    assert r"  host1.example has port 9001.\n  host2.example has port 9002.\n" in sent, "word for word"
    assert "Not found in the originals: Atlantis-7" in sent, "nobody said that"


@pytest.mark.usefixtures("as_shipped")
def test_an_agent_may_write_the_chapters_and_keeps_its_own_messages(provide: Any, agent: Any) -> None:
    def told(body: dict[str, Any]) -> Answer:
        heard = [n for n in range(60) if f"user {n} detail" in str(body)]
        lines = [f"In message {n} the user gave every detail of it." for n in heard]
        return Answer("\n".join([*lines, "Zorro-77 helped."]))

    writing = provide(told, 100_000)
    writer = agent(writing, system_prompt="You write chapters.", messages=grown(1), window=100_000)
    manager = ours.SummarizingConversationManager(summarization_agent=writer, engine="clew.db")
    talking = agent(provide([]), messages=grown(60), window=20_000)
    manager.reduce_context(talking, ContextWindowOverflowException("too long"))
    assert len(talking.messages) < 120
    assert writing.heard
    assert "Not found in the originals: Zorro-77" in str(talking.messages), "nobody said that"
    assert said(writer.messages) == said(grown(1))
    with pytest.raises(ValueError, match="summarization_agent and summarization_system_prompt"):
        ours.SummarizingConversationManager(summarization_agent=writer, summarization_system_prompt="Be brief.")


def test_recent_messages_are_preserved_while_it_fits(provide: Any, agent: Any) -> None:
    talking = agent(provide([]), messages=grown(8), window=20_000)
    manager = ours.SummarizingConversationManager(preserve_recent_messages=4, engine="clew.db")
    manager.reduce_context(talking, ContextWindowOverflowException("too long"))
    assert said(talking.messages)[-3:] == said(grown(8))[-3:]
    assert talking.messages[-4]["content"][-1] == grown(8)[-4]["content"][0]  # after the summary, in one message
    assert len(talking.messages) < 16


# --- other providers -----------------------------------------------------------------------------------


def test_anthropic_with_parallel_calls(provide: Any) -> None:
    def script(body: dict[str, Any]) -> Answer:
        return Answer("Seen.") if "tool_result" in str(body["messages"][-1]) else reading(3)

    provider: StrictProvider = provide(script)
    args = {"base_url": provider.url, "api_key": "none", "max_retries": 0}
    model = AnthropicModel(client_args=args, model_id="claude-sonnet-4-5", max_tokens=500, context_window_limit=4_000)
    manager = ours.SlidingWindowConversationManager(proactive_compression=True, engine="clew.db")
    talking = Agent(model=model, tools=[read], conversation_manager=manager, callback_handler=None)
    for n in range(12):
        talking(f"{n}: look at these. {LONG}")
    assert len(provider.heard) == 24
    assert manager.removed_message_count > 0
