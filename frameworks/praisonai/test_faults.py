"""Faults of PraisonAI 1.7.17, each in a pair: how it is there, and how it is with clew.

A first half that fails is good news: the fault is mended, and its pair can go.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from praisonaiagents import Agent
from praisonaiagents.compaction import ContextCompactor
from praisonaiagents.compaction.strategy import CompactionStrategy
from praisonaiagents.context.compressor import ContextCompressor as Theirs
from praisonaiagents.context.manager import ContextManager, SessionDeduplicationCache
from praisonaiagents.context.models import ContextConfig, OptimizerStrategy
from praisonaiagents.context.optimizer import LLMSummarizeOptimizer, get_optimizer
from praisonaiagents.session.store import DefaultSessionStore

from clew import Budget, Engine, SQLite, run
from clew.adapters.praisonai import ClewBackend, ClewContext, ContextCompressor, register
from clew.engine.settings import Settings
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Prompt
from clew.testing import Answer, Call, ScriptedModel, StrictProvider, write_chapter
from clew.wire import check

Body = dict[str, Any]
Message = dict[str, Any]
Made = Callable[..., Message]


def noting(body: Body) -> Answer:
    return Answer(write_chapter(Prompt(body["messages"][-1]["content"], 1_000)))


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[StrictProvider]:
    with StrictProvider(noting) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        yield provider


@pytest.fixture
def client(provider: StrictProvider) -> openai.OpenAI:
    return openai.OpenAI(api_key="none", base_url=f"{provider.url}/v1", max_retries=0)


def broken(messages: list[Message]) -> bool:
    return check({"messages": messages, "model": "gpt-4o"}, "openai_chat") != []


def facts(messages: list[Message]) -> int:
    """How many of the fifty errors of `talk` are still told."""
    return sum(f"E{1000 + n}" in str(messages) for n in range(50))


# --- SUMMARIZE has no model -------------------------------------------------------------------------------------------


def test_summarize_asks_nobody_alone(talk: list[Message], provider: StrictProvider) -> None:
    get_optimizer(OptimizerStrategy.SUMMARIZE, preserve_recent=5).optimize(talk, 3_000)
    assert provider.heard == []


def test_summarize_asks_a_model_with_clew(talk: list[Message], provider: StrictProvider, client: openai.OpenAI) -> None:
    with register(llm=client):
        get_optimizer(OptimizerStrategy.SUMMARIZE, preserve_recent=5).optimize(talk, 3_000)
    assert len(provider.heard) == 1


def test_the_preset_summarize_breaks_alone(
    provider: StrictProvider, caplog: pytest.LogCaptureFixture, talk: list[Message]
) -> None:
    agent = Agent(name="a", instructions="Help.", model="gpt-4", context="summarize", output="silent")
    agent.chat_history = talk[1:] * 2
    agent.chat("Go on.")
    assert "'str' object has no attribute 'value'" in caplog.text


def test_the_strategy_works_with_clew(provider: StrictProvider, talk: list[Message]) -> None:
    context = ContextConfig(strategy=OptimizerStrategy.SUMMARIZE, output_reserve=1_000)
    agent = Agent(name="a", instructions="Help.", model="gpt-4", context=context, output="silent")
    agent.chat_history = talk[1:]
    with register():
        agent.chat("Go on.")
    assert any(str(m["content"]).startswith("[Context summary]\n") for m in provider.heard[0].body["messages"])


# --- the compressor ---------------------------------------------------------------------------------------------------


async def test_no_client_is_ever_asked_alone(
    talk: list[Message], provider: StrictProvider, client: openai.OpenAI
) -> None:
    result = await Theirs(llm=client).compress(talk, protect_last_n_tokens=300)
    assert provider.heard == []
    assert "[Fallback Summary]" in str(result.messages)


async def test_clients_are_asked_with_clew(
    talk: list[Message], provider: StrictProvider, client: openai.OpenAI
) -> None:
    result = await ContextCompressor(llm=client).compress(talk, protect_last_n_tokens=300)
    assert len(provider.heard) == 1
    assert result.faults == ()


class Completing:
    """The one kind of model that theirs can ask."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    async def complete(self, prompt: str, **_: Any) -> dict[str, str]:
        self.prompts.append(prompt)
        return {"content": "Things were done."}


async def test_twenty_messages_are_shown_alone(talk: list[Message]) -> None:
    model = Completing()
    await Theirs(llm=model).compress(talk, protect_last_n_tokens=300)
    assert sum(f"E{1000 + n}" in model.prompts[0] for n in range(50)) < 10
    assert "src/module_1.py" not in model.prompts[0]


async def test_all_messages_are_shown_with_clew(talk: list[Message]) -> None:
    model = ScriptedModel(write_chapter)
    await ContextCompressor(llm=model).compress(talk, protect_last_n_tokens=300)
    shown = "".join(prompt.text for prompt in model.prompts)
    assert sum(f"E{1000 + n}" in shown for n in range(50)) >= 45
    assert "src/module_1.py" in shown


async def test_the_head_has_a_call_without_its_result_alone(talk: list[Message]) -> None:
    assert broken((await Theirs().compress(talk, protect_last_n_tokens=300)).messages)


async def test_the_head_is_whole_with_clew(talk: list[Message]) -> None:
    result = await ContextCompressor().compress(talk, protect_last_n_tokens=300)
    assert not broken(result.messages)
    assert result.messages[:4] == talk[:4]


async def test_a_second_system_message_is_dropped_alone(talk: list[Message]) -> None:
    second = {"role": "system", "content": "Answer in English."}
    result = await Theirs().compress([talk[0], second, *talk[1:]], protect_last_n_tokens=300)
    assert second not in result.messages


async def test_a_second_system_message_stays_with_clew(talk: list[Message]) -> None:
    second = {"role": "system", "content": "Answer in English."}
    result = await ContextCompressor().compress([talk[0], second, *talk[1:]], protect_last_n_tokens=300)
    assert result.messages[:2] == [talk[0], second]


async def test_a_tail_begins_with_a_result_alone(talk: list[Message]) -> None:
    tails = [(await Theirs().compress(talk, protect_last_n_tokens=n)).messages for n in range(100, 400, 50)]
    assert any(tail[4]["role"] == "tool" for tail in tails)


async def test_no_tail_begins_with_a_result_with_clew(talk: list[Message]) -> None:
    for n in range(100, 400, 50):
        assert not broken((await ContextCompressor().compress(talk, protect_last_n_tokens=n)).messages)


async def test_the_newest_turn_vanishes_alone(talk: list[Message]) -> None:
    ask = {"role": "user", "content": "Explain this: " + "word " * 2_000}
    result = await Theirs().compress([*talk, ask], protect_last_n_tokens=300)
    assert ask not in result.messages
    assert result.tail_preserved_count == 0


async def test_the_newest_turn_stays_with_clew(talk: list[Message]) -> None:
    ask = {"role": "user", "content": "Explain this: " + "word " * 2_000}
    assert (await ContextCompressor().compress([*talk, ask], protect_last_n_tokens=300)).messages[-1] == ask


# --- the context manager ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("context", [True, {"llm_summarize": True}])
def test_a_context_has_a_model_that_it_does_not_use_alone(context: Any) -> None:
    manager = Agent(name="a", instructions="Help.", model="gpt-4", context=context, output="silent").context_manager
    assert manager._llm_summarize_fn is not None
    assert manager.config.llm_summarize is False


def test_a_context_uses_its_model_with_clew(tmp_path: Path, talk: list[Message]) -> None:
    model = ScriptedModel(write_chapter)
    engine = Engine(SQLite(tmp_path / "c.db"), Budget(window=6_000), Settings(author=ByModel(model)))
    context = ClewContext(engine)
    for n in range(9, len(talk), 4):
        context.process(talk[:n])
    run(engine.close())
    assert model.prompts


def test_a_failed_summary_loses_turns_alone(
    talk: list[Message], provider: StrictProvider, client: openai.OpenAI
) -> None:
    provider.script = [Answer(status=500)]
    out, result = LLMSummarizeOptimizer(llm_client=client).optimize(talk, 3_000)
    assert result.summary_added
    assert facts(out) < 5
    assert not any("ummary" in str(m["content"]) for m in out)


def test_a_failed_summary_loses_nothing_with_clew(
    talk: list[Message], provider: StrictProvider, client: openai.OpenAI
) -> None:
    provider.script = [Answer(status=500)]
    with register(llm=client):
        out, _ = get_optimizer(OptimizerStrategy.SUMMARIZE).optimize(talk, 4_000)
    assert "[work log, " in str(out)
    assert facts(out) > 28


def test_non_destructive_sends_all_of_it_alone(talk: list[Message]) -> None:
    out, result = get_optimizer(OptimizerStrategy.NON_DESTRUCTIVE).optimize(talk, 1_000)
    assert len(out) == len(talk)
    assert result.tokens_saved > 0


def test_less_is_sent_and_all_can_come_back_with_clew(tmp_path: Path, talk: list[Message]) -> None:
    context = ClewContext(Engine(SQLite(tmp_path / "c.db"), Budget(window=6_000)))
    result = context.process(talk)
    assert len(result["messages"]) < len(talk) / 2
    assert result["tokens_saved"] > 0
    search = context.tools[1]
    assert "port 8003" in search(query="module_3 port")


@pytest.fixture
def polling(call: Made, result: Made) -> list[Message]:
    """Twelve calls that had the same result."""
    said: list[Message] = [{"role": "user", "content": "Wait until it is ready."}]
    for n in range(12):
        said += [call(f"status_{n}"), result(f"status_{n}", "still starting; try again in a moment " * 5)]
    return said


def test_equal_results_are_dropped_alone(polling: list[Message]) -> None:
    out = ContextManager(model="gpt-4o")._deduplicate_messages(polling)
    assert sum(m["role"] == "tool" for m in out) == 1
    assert broken(out)


def test_equal_results_stay_with_clew(tmp_path: Path, polling: list[Message]) -> None:
    context = ClewContext(Engine(SQLite(tmp_path / "c.db")))
    assert context.process(polling)["messages"] == polling


def test_an_agent_loses_its_own_turns_alone(talk: list[Message]) -> None:
    manager = ContextManager(model="gpt-4o", session_cache=SessionDeduplicationCache())
    long = [{**m, "content": m["content"] * 5} for m in talk if m["role"] == "user"]
    assert manager._deduplicate_messages(long) == long
    assert manager._deduplicate_messages([*long, {"role": "user", "content": "And now?"}]) != [
        *long,
        {"role": "user", "content": "And now?"},
    ]


def test_an_agent_keeps_its_own_turns_with_clew(tmp_path: Path, talk: list[Message]) -> None:
    context = ClewContext(Engine(SQLite(tmp_path / "c.db")))
    for n in (9, 13, 17):
        assert context.process(talk[:n])["messages"] == talk[:n]


# --- compaction and resume --------------------------------------------------------------------------------------------


def test_five_messages_are_told_of_alone(talk: list[Message]) -> None:
    compactor = ContextCompactor(max_tokens=2_000, target_tokens=1_500, strategy=CompactionStrategy.SUMMARIZE)
    out, _ = compactor.compact(talk)
    assert facts(out) <= 10


def test_all_of_it_is_told_of_with_clew(tmp_path: Path, talk: list[Message]) -> None:
    context = ClewContext(Engine(SQLite(tmp_path / "c.db"), Budget(window=6_000)))
    assert facts(context.process(talk)["messages"]) > 40


def test_a_resumed_session_has_lost_its_tail_alone(tmp_path: Path) -> None:
    store = DefaultSessionStore(str(tmp_path))
    for n in range(20):
        store.add_message("work", "user", f"Turn {n}")
    store.append_compaction_checkpoint("work", "Turns 0 to 9 were about ports.")
    store.add_message("work", "user", "Turn 20")
    resumed = DefaultSessionStore(str(tmp_path)).get_working_history("work")
    assert [m["content"] for m in resumed] == ["Turns 0 to 9 were about ports.", "Turn 20"]


async def test_a_resumed_session_has_what_the_run_had_with_clew(tmp_path: Path, talk: list[Message]) -> None:
    compressor = ContextCompressor(sessions=DefaultSessionStore(str(tmp_path)))
    result = await compressor.compress(talk, protect_last_n_tokens=1_000, parent_session_id="work")
    assert result.session_id
    resumed = DefaultSessionStore(str(tmp_path)).get_working_history(result.session_id)
    run_had = [m for m in result.messages if m["role"] != "system"]
    assert [m["content"] for m in resumed] == [m["content"] or "" for m in run_had]
    assert len(resumed) > 10


def reading(path: str) -> str:
    """Read a file."""
    return f"{path} holds the key 4711."


TWO_TURNS = [Answer(calls=(Call("reading", {"path": "a.py"}),)), Answer("I read it.")]


def test_calls_of_earlier_turns_are_forgotten_alone(provider: StrictProvider) -> None:
    provider.script = [*TWO_TURNS]
    agent = Agent(name="a", instructions="Help.", model="gpt-4o-mini", tools=[reading], output="silent")
    agent.chat("Read a.py.")
    agent.chat("What did it say?")
    assert "4711" in str(provider.heard[1].body)
    assert "4711" not in str(provider.heard[2].body)


def test_calls_of_earlier_turns_are_known_with_clew(tmp_path: Path, provider: StrictProvider) -> None:
    provider.script = [*TWO_TURNS]
    backend = ClewBackend("gpt-4o-mini", tmp_path / "c.db")
    agent = Agent(name="a", instructions="Help.", model=backend, tools=[reading], context=False, output="silent")
    agent.chat("Read a.py.")
    agent.chat("What did it say?")
    assert "4711" in str(provider.heard[2].body)
