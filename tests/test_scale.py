"""What a request is by the provider's own count: predicted before the call, learned from what it reports after it."""

from collections.abc import AsyncIterator
from statistics import mean
from typing import Any

import pytest

import clew
from clew import Budget, Engine, Request, SQLite, wire
from clew.core.items import Frame
from clew.core.view import View
from clew.engine.settings import Settings
from clew.engine.windows import SCOPES, ModelWindows
from clew.screens.demo import sample
from clew.store.records import Call
from clew.tokens import counter_for
from clew.tokens.meter import Meter

HIDDEN = 346  # tokens a provider puts before every request, unseen
UNKNOWN = "somebodys-new-model"  # its vocabulary is not known: counts are an estimate
FRAME = Frame("openai_chat", UNKNOWN)
TRUTHS = ("gemma-3", "qwen3", "mistral-nemo", "llama-3.1", "deepseek-v3", "gpt-4o")
TURNS = 40


class Provider:
    """Counts with a tokenizer of its own, and says no more than how much it counted."""

    def __init__(self, model: str) -> None:
        self.meter = Meter(counter_for(model))

    def __call__(self, body: dict[str, Any]) -> dict[str, int]:
        frame, items = wire.decode(body)
        tokens = HIDDEN + self.meter.frame(frame).plus(self.meter.items(items)).tokens + 3 * len(body["messages"])
        return {"prompt_tokens": tokens, "completion_tokens": 0}


async def calls(engine: Engine, provider: Provider, messages: list[dict[str, Any]]) -> AsyncIterator[tuple[View, Call]]:
    """A session of forty turns, each reported."""
    ends = [i for i, m in enumerate(messages) if m["role"] == "assistant" and i][:TURNS]
    for end in ends:
        view = await engine.prepare(Request({"model": UNKNOWN, "messages": messages[:end]}))
        await engine.observe(view, provider(clew.body(view)))
        yield view, (await engine.store.calls("default", view.branch))[-1]


def errors(made: list[Call]) -> list[float]:
    return [abs(c.predicted - c.usage["input"]) / c.usage["input"] for c in made if c.usage]


@pytest.mark.few(1)
@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("window", [16_000, 200_000])
async def test_the_next_request_is_predicted_with_a_tokenizer_that_is_not_known(truth: str, window: int) -> None:
    store = SQLite(":memory:")
    engine = Engine(store, Budget(window=window))
    made = [c async for _, c in calls(engine, Provider(truth), sample())]
    found = sorted(errors(made)[5:])
    assert len(found) == TURNS - 5
    assert mean(found) <= 0.015, f"{mean(found):.3%}"
    assert found[int(0.95 * len(found))] <= 0.05
    await store.close()


@pytest.mark.few(2)
@pytest.mark.parametrize("truth", TRUTHS)
async def test_a_window_is_kept_though_its_tokens_are_larger_than_ours(truth: str) -> None:
    """The provider counts more than we do: compaction begins in time all the same."""
    store = SQLite(":memory:")
    budget = Budget(window=12_000, reserve=1_000)
    async for _, call in calls(Engine(store, budget), Provider(truth), sample()):
        assert call.usage is not None
        assert call.usage["input"] <= 12_000, (call.seq, call.predicted)
    await store.close()


async def test_what_was_learned_of_a_model_is_kept() -> None:
    store = SQLite(":memory:")
    provider = Provider("gemma-3")
    first = [c async for _, c in calls(Engine(store), provider, sample())]
    again = [{**m, "content": f"Again. {m['content']}"} if m["role"] == "user" else m for m in sample()]
    other = Engine(store)
    view = await other.prepare(Request({"model": UNKNOWN, "messages": again[:30]}))
    predicted = (await store.calls("default", view.branch))[-1].predicted
    reported = provider(clew.body(view))["prompt_tokens"] - HIDDEN
    fresh = Engine(SQLite(":memory:"))
    untaught = await fresh.prepare(Request({"model": UNKNOWN, "messages": again[:30]}))
    blind = (await fresh.store.calls("default", untaught.branch))[-1].predicted
    assert abs(predicted - reported) < abs(blind - reported)
    assert errors(first)[-1] < 0.01
    await store.close()


@pytest.mark.few(1)
@pytest.mark.parametrize("hidden", [-600, 1_500])  # tools that somebody drops on the way, a prompt that he puts before
async def test_after_a_restart_as_much_is_sent_as_without_one(hidden: int) -> None:
    """What reports proved of a conversation is in the log: nothing is compacted before its time, nothing too late."""
    tools = [{"type": "function", "function": {"name": "note", "description": "Notes. " * 400, "parameters": {}}}]
    told = [{"role": role, "content": f"{n} {'detail ' * 200}"} for n in range(30) for role in ("user", "assistant")]
    provider = Provider("llama-3.1")

    async def sizes(lives: int) -> list[int]:
        store, sent = SQLite(":memory:"), list[int]()
        for turn in range(30):
            if turn % lives == 0:
                engine = Engine(store, Budget(window=12_000))
            request = {"model": UNKNOWN, "messages": told[: 2 * turn + 1], "tools": tools}
            view = await engine.prepare(Request(request))
            sent.append(provider(clew.body(view))["prompt_tokens"] - HIDDEN + hidden)
            await engine.observe(view, {"prompt_tokens": sent[-1], "completion_tokens": 0})
        await store.close()
        return sent

    unbroken = await sizes(30)
    assert min(unbroken[1:]) < 0.7 * max(unbroken)  # it was compacted
    assert await sizes(1) == pytest.approx(unbroken, rel=0.02)


async def test_an_overflow_error_is_learned_from_and_remembered() -> None:
    store = SQLite(":memory:")
    engine = Engine(store)
    request = Request({"model": UNKNOWN, "messages": sample()[:58]})
    view = await engine.prepare(request)
    assert not view.edits
    error = "This model's maximum context length is 8192 tokens. However, your messages resulted in 30000 tokens."
    assert await engine.refused(view, "429: rate limit reached, retry after 2 s") is None
    found = await engine.refused(view, error)
    assert found is not None
    assert found.limit == 8192
    view = await engine.prepare(request)
    assert view.edits
    assert (await store.calls("default", view.branch))[-1].limit < 8192
    model = await Engine(store).limits.windows.model("default", FRAME)
    assert (model.window, model.source) == (8192, "learned")
    assert (await Engine(store).limits.windows.model("another", FRAME)).source == "default"
    await store.close()


async def test_a_refusal_without_a_number_still_makes_the_next_request_smaller() -> None:
    store = SQLite(":memory:")
    engine = Engine(store)
    request = Request({"model": UNKNOWN, "messages": sample()})
    sizes = []
    for _ in range(3):
        view = await engine.prepare(request)
        sizes.append((await engine.limits.target("default", view.frame)).size(view).tokens)
        assert await engine.refused(view, "the request exceeds the available context size, try increasing it")
    assert sizes[0] > sizes[1] > sizes[2]
    await engine.observe(view, {"prompt_tokens": sizes[0], "completion_tokens": 1})  # so much went well after all
    assert (await engine.limits.windows.model("default", FRAME)).source == "default"
    await store.close()


async def test_as_many_refusals_without_a_number_as_names_somebody_invents_are_not_all_remembered() -> None:
    store = SQLite(":memory:")
    windows = ModelWindows(store)
    for n in range(SCOPES + 1):
        windows.guess("default", Frame("openai_chat", f"model {n}"), 10_000)
    first, last = (Frame("openai_chat", f"model {n}") for n in (0, SCOPES))
    assert (await windows.model("default", first)).source == "default"
    assert (await windows.model("default", last)).window == 9_000
    await store.close()


async def test_the_users_word_is_above_what_an_error_taught() -> None:
    store = SQLite(":memory:")
    own = clew.catalog.Model(UNKNOWN, 50_000, source="given")
    engine = Engine(store, settings=Settings(models={UNKNOWN: own}))
    await engine.limits.windows.learn("default", FRAME, "tokens", 8_192)
    view = await engine.prepare(Request({"model": UNKNOWN, "messages": [{"role": "user", "content": "hello"}]}))
    assert (await engine.limits.target("default", view.frame)).window == 50_000
    await store.close()
