"""The strategy SUMMARIZE with a model behind it, alone and in an agent."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from praisonaiagents import Agent
from praisonaiagents.context.models import ContextConfig, OptimizerStrategy
from praisonaiagents.context.optimizer import OPTIMIZER_REGISTRY, SummarizeOptimizer, get_optimizer
from praisonaiagents.context.tokens import estimate_messages_tokens

from clew.adapters.praisonai import register
from clew.testing import Answer, ScriptedModel, StrictProvider, write_chapter
from clew.wire import check

Message = dict[str, Any]

SUMMARIZE = OptimizerStrategy.SUMMARIZE


def test_summarize_asks_the_model_and_differs_from_truncate(talk: list[Message]) -> None:
    model = ScriptedModel(write_chapter)
    with register(llm=model):
        out, result = get_optimizer(SUMMARIZE, preserve_recent=5, llm_summarize_fn=None).optimize(talk, 4_000)
    cut, _ = get_optimizer(OptimizerStrategy.TRUNCATE).optimize(talk, 4_000)
    assert len(model.prompts) == 1
    assert out != cut
    assert estimate_messages_tokens(out) == result.optimized_tokens <= 4_000
    assert result.tokens_saved == result.original_tokens - result.optimized_tokens > 0
    assert result.strategy_used is SUMMARIZE
    assert result.summary_added
    assert result.messages_removed == len(talk) - len(out)
    assert check({"messages": out, "model": "gpt-4o"}, "openai_chat") == []


def test_it_is_taken_off_again() -> None:
    with register():
        assert OPTIMIZER_REGISTRY[SUMMARIZE] is not SummarizeOptimizer
    assert OPTIMIZER_REGISTRY[SUMMARIZE] is SummarizeOptimizer
    held = register()
    held.close()
    assert OPTIMIZER_REGISTRY[SUMMARIZE] is SummarizeOptimizer


def test_what_fits_stays_as_it_is(talk: list[Message]) -> None:
    model = ScriptedModel(write_chapter)
    with register(llm=model):
        out, result = get_optimizer(SUMMARIZE).optimize(talk, 1_000_000)
    assert out is talk
    assert not result.summary_added
    assert model.prompts == []


def test_a_failure_of_ours_leaves_the_messages(talk: list[Message], caplog: pytest.LogCaptureFixture) -> None:
    with register(llm=42):
        out, result = get_optimizer(SUMMARIZE).optimize(talk, 1_000)
    assert out is talk
    assert result.tokens_saved == 0
    assert not result.summary_added
    assert "clew failed; the original request is sent unchanged" in caplog.text


def test_an_agent_uses_it_in_its_own_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScriptedModel(
        lambda prompt: "\n".join(
            f"{fact} The person reported it with much filler, and the assistant said again and again that it sees."
            for fact in re.findall(r"Fact \d+: port \d+ is taken\.", prompt.text)
        )
    )
    script = [Answer(f"I see {n}. " * 160) for n in range(12)]
    with StrictProvider(script, window=8_192) as provider, register(llm=model):
        monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
        context = ContextConfig(strategy=SUMMARIZE, output_reserve=1_000)
        agent = Agent(name="porter", instructions="You port.", model="gpt-4", context=context, output="silent")
        for n in range(12):
            assert agent.chat(f"Fact {n}: port {8000 + n} is taken. " + f"filler {n} " * 120)
    sent = provider.heard[-1].body["messages"]
    told = [m["content"] for m in sent if m["content"].startswith("[Context summary]\n")]
    assert told
    assert model.prompts
    assert sent[1]["content"].startswith("Fact 0")
    assert sent[-1]["content"].startswith("Fact 11")
    missing = [n for n in range(12) if f"port {8000 + n}" not in str(sent)]
    assert len(missing) <= 3, missing


@pytest.mark.parametrize("target", [600, 1_500, 3_000])
def test_the_target_is_kept_as_praisonai_counts(target: int) -> None:
    """Its estimate of Japanese is another than a tokenizer's."""
    said = [{"role": "user", "content": "京都の宿を探して。"}, {"role": "assistant", "content": "はい。"}]
    for n in range(60):
        said += [
            {"role": "user", "content": f"{n}番目の質問です。京都の宿{n}号はいくらですか。"},
            {"role": "assistant", "content": f"宿{n}号は{8000 + n * 130}円で、予約しました。朝食は別料金です。"},
        ]
    said.append({"role": "user", "content": "残りは?"})
    with register():
        out, result = get_optimizer(SUMMARIZE).optimize(said, target)
    assert result.summary_added
    assert result.optimized_tokens == estimate_messages_tokens(out) <= target


def test_results_and_calls_stay_together_whatever_the_target(talk: list[Message], call: Callable[..., Message]) -> None:
    with register():
        for target in (300, 1_000, 3_000, 6_000):
            out, _ = get_optimizer(SUMMARIZE).optimize(talk, target)
            assert check({"messages": out, "model": "gpt-4o"}, "openai_chat") == []
