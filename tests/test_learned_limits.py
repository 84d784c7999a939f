"""What a refusal teaches: enough for the call that was refused, and no more than evidence for all others."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from clew import Engine, Request, SQLite
from clew.core.items import Frame
from clew.engine.windows import AGE, DOUBTED, PROBED, LearnedLimit, ModelWindows
from clew.testing import Answer, StrictProvider
from serving import Served, serving

CHAT = "/v1/chat/completions"
KNOWN, UNKNOWN = "gpt-4o", "my-local"  # the catalog has the window of the first: 128,000
TOO_LONG = "This model's maximum context length is 16000 tokens. However, your messages resulted in {} tokens."
WITHOUT_NUMBER = "Your input exceeds the context window of this model."


def history(turns: int, mark: str = "") -> list[dict[str, Any]]:
    """About 700 tokens a turn."""
    said: list[dict[str, Any]] = [{"role": "system", "content": "You are an agent."}]
    for n in range(turns):
        said.append({"role": "user", "content": f"question {n}{mark} " + f"lorem ipsum dolor sit amet {n} " * 60})
        said.append({"role": "assistant", "content": f"answer {n} " + f"consectetur adipiscing elit {n} " * 40})
    return [*said, {"role": "user", "content": "next?"}]


def ask(served: Served, turns: int, model: str = UNKNOWN, mark: str = "") -> int:
    """The tokens that reached the provider in the end."""
    got = served.ask(CHAT, {"model": model, "messages": history(turns, mark)})
    assert got.status == 200, got.raw[:300]
    return served.provider.heard[-1].spent.input


async def taught(refusals: int, frame: Frame, at: float = 0) -> int:
    """The window of a model after refusals that named 16,000, so many seconds ago."""
    store = SQLite(":memory:")
    windows = ModelWindows(store, now=lambda: 1_000_000.0)
    for _ in range(refusals):
        await windows.learn("default", frame, "tokens", 16_000)
    later = ModelWindows(store, now=lambda: 1_000_000.0 + at)
    window = (await later.model("default", frame)).window
    await store.close()
    return window


async def test_one_refusal_teaches_where_nobody_knows_and_two_against_the_catalog_for_a_day() -> None:
    known, unknown = Frame("openai_chat", KNOWN), Frame("openai_chat", UNKNOWN)
    assert await taught(1, unknown) == 16_000
    assert [await taught(n, known) for n in (1, DOUBTED)] == [128_000, 16_000]
    assert await taught(DOUBTED, known, AGE - 1) == 16_000
    assert await taught(DOUBTED, known, AGE) == 128_000
    assert await taught(1, unknown, AGE) > 16_000


async def test_a_refusal_counts_for_one_upstream_and_until_somebody_forgets_it(tmp_path: Path) -> None:
    here, there = (Frame("openai_chat", UNKNOWN, served=name) for name in ("near", "far"))
    store = SQLite(tmp_path / "log.db")
    windows = ModelWindows(store)
    await windows.learn("default", here, "tokens", 16_000)
    assert (await windows.model("default", here)).source == "learned"
    assert (await windows.model("default", there)).source == "default"
    other = ModelWindows(store)  # another process
    assert list(await other.all_learned("default")) == [f"{UNKNOWN} at near"]
    await other.forget("default", f"{UNKNOWN} at near")
    assert await other.all_learned("default") == {}
    assert (await windows.model("default", here)).source == "default"
    await store.close()


async def test_what_an_older_version_learned_for_ever_counts_no_more() -> None:
    store = SQLite(":memory:")
    await store.learn("default", "limit", KNOWN, {"tokens": 16_000})
    assert LearnedLimit.from_json({"tokens": 16_000}) == LearnedLimit(16_000)
    assert (await ModelWindows(store).model("default", Frame("openai_chat", KNOWN))).window == 128_000
    await store.close()


@pytest.mark.parametrize("error", [TOO_LONG.format(30_000), WITHOUT_NUMBER])
def test_after_one_refusal_the_next_request_is_what_it_would_have_been(error: str) -> None:
    refused = StrictProvider([Answer(status=400, error=error), Answer("Understood.")])
    with serving(provider=refused, window=None) as served:
        ask(served, 60, KNOWN)
        ask(served, 61, KNOWN, "another")
        assert json.loads(json.dumps(refused.heard[-1].body))["messages"] == history(61, "another")


def refusals(served: Served, window: int) -> int:
    return sum(heard.spent.input > window for heard in served.provider.heard)


async def test_a_server_that_is_started_anew_with_a_longer_context_is_found_out_within_three_calls() -> None:
    provider = StrictProvider(window=16_000)
    with serving(provider=provider, window=None) as served:
        sizes = [ask(served, turns) for turns in (10, 30, 40, 50, 60)]
        assert max(sizes) < 16_000
        assert refusals(served, 16_000) <= 1 + len(sizes) // PROBED
        provider.window = 64_000
        sizes = [ask(served, turns) for turns in (70, 80, 90)]
        assert 16_000 < max(sizes) < 64_000
        frame = Frame("openai_chat", UNKNOWN, served="openai")
        assert (await served.gateway.engine.limits.windows.model("default", frame)).window == 64_000


def test_a_server_that_stays_as_it_is_refuses_no_more_than_every_third_call() -> None:
    with serving(provider=StrictProvider(window=16_000), window=None) as served:
        counts = [ask(served, turns) for turns in range(20, 200, 6)]
        assert max(counts) < 16_000
        heard = len(served.provider.heard)
        assert heard - len(counts) <= 1 + len(counts) // PROBED


@pytest.mark.parametrize("error", [TOO_LONG.format(300_000), ""])
def test_a_gateway_refuses_nothing_for_its_size_that_its_upstream_did_not_refuse(error: str) -> None:
    """What cannot be made shorter goes on as it came: its provider may count otherwise, or know more."""
    script = [Answer(status=400, error=error)] if error else [Answer("Understood.")]
    with serving(provider=StrictProvider(script), window=8_000) as served:
        messages = [{"role": "system", "content": "rule " * 20_000}, {"role": "user", "content": "hi"}]
        body = json.dumps({"model": KNOWN, "messages": messages})
        got = served.ask(CHAT, body.encode())
        assert got.status == (400 if error else 200)
        assert error in got.raw.decode()
        assert [h.body["messages"] for h in served.provider.heard] == [messages]
        assert "clew_not_fitted_total 1" in served.gateway.metrics.text()
        assert "clew_failed_open_total 0" in served.gateway.metrics.text()


async def test_the_call_that_was_refused_is_made_for_the_window_that_was_named() -> None:
    store = SQLite(":memory:")
    engine = Engine(store)
    request = Request({"model": KNOWN, "messages": history(60)})
    view = await engine.prepare(request)
    await engine.refused(view, TOO_LONG.format(45_000))
    sizes: Sequence[int] = [
        (await engine.limits.target("default", view.frame)).size(await engine.prepare(request)).tokens for _ in range(2)
    ]
    assert max(sizes) < 16_000  # what was folded for it stays folded
    other = await engine.prepare(Request({"model": KNOWN, "messages": history(60, " of another kind")}))
    assert not other.edits
    await store.close()
