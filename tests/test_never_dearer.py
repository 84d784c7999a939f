"""When a fold pays, what is kept free for an answer, and who compacts first: what clew costs beside no clew."""

from collections.abc import Sequence
from typing import Any

import pytest

from benchmark.driven import driven
from clew import Budget, Engine, Request, SQLite, catalog
from clew.clients.known import CLIENTS
from clew.core.items import Item, Node
from clew.engine.answers import AGE, ENOUGH, AnswerLengths, KnownAnswers
from clew.engine.cache_marks import anchor
from clew.engine.due import Forecast
from clew.engine.engine import body
from clew.steps.worklog.blocks import OPENING
from clew.store.records import Call
from clew.tokens.target import UNKNOWN, CacheRates, Target

SONNET = "claude-sonnet-4-5"
Body = dict[str, Any]


def history(turns: int, words: int) -> list[Body]:
    """So many questions of about so many tokens, and answers to all but the last."""
    said: list[Body] = []
    for n in range(turns):
        said.append({"role": "user", "content": f"question {n} " + f"lorem ipsum {n} " * (words // 4)})
        said.append({"role": "assistant", "content": f"answer {n}"})
    return said[:-1]


async def calls_of(budget: Budget, turns: Sequence[int], words: int) -> list[Call]:
    store = SQLite(":memory:")
    engine = Engine(store, budget)
    for many in turns:
        view = await engine.prepare(Request({"model": SONNET, "messages": history(many, words)}, session="s"))
    calls = await store.calls("default", view.branch)
    await store.close()
    return list(calls)


# --- whether a fold pays ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("calls", "rates", "pays"),
    [
        (7, UNKNOWN, True),  # 7 times 70,000 read at a tenth, for 30,000 written at 1.25
        (4, UNKNOWN, False),
        (4, CacheRates(0.1, 1.0), True),
        (1, CacheRates(1.0, 1.0), True),  # what nobody keeps is no loss
    ],
)
def test_a_fold_pays_if_as_many_calls_as_before_save_more_than_it_writes(
    calls: int, rates: CacheRates, pays: bool
) -> None:
    assert Forecast(100_000, 30_000, 1_000, calls, rates).pays is pays


def test_rates_are_those_of_the_model_or_of_the_dearest_cache() -> None:
    assert CacheRates.of(catalog.lookup(SONNET).prices) == pytest.approx((0.1, 1.25))
    assert CacheRates.of(catalog.lookup("gpt-5").prices) == pytest.approx((0.1, 1.0))
    assert CacheRates.of(None) == CacheRates.of(catalog.Prices(1.0, 2.0)) == UNKNOWN


async def test_a_fold_that_cannot_pay_waits_until_the_request_would_not_fit_and_the_call_says_why() -> None:
    held, full = [await calls_of(Budget(40_000), turns, 4_000) for turns in ((4, 5), (4, 5, 6, 7))]
    assert held[-1].due == {"why": "would not pay", **(held[-1].due or {})}
    assert (held[-1].due or {}).keys() == {"why", "before", "after", "kept", "calls", "read", "write"}
    assert ((held[-1].due or {})["calls"], (held[-1].due or {})["write"]) == (1, 1.25)
    assert (full[-1].due or {})["why"] == "limit"
    assert full[-1].predicted < held[-1].predicted < held[-1].limit


async def test_who_says_when_is_obeyed_whether_it_pays_or_not() -> None:
    *_, last = await calls_of(Budget(40_000, high=0.7), (4, 5), 4_000)
    assert last.due == {"why": "threshold"}
    *_, last = await calls_of(Budget(40_000), (2,), 1_000)
    assert last.due is None, "nothing was weighed"


# --- room for the answer ----------------------------------------------------------------------------------------------


def test_room_for_an_answer_is_what_nearly_all_answers_take() -> None:
    lengths = AnswerLengths()
    for n in range(ENOUGH * 10):
        assert lengths.longest() is None or n >= ENOUGH
        lengths.add(3_000 if n % 10 == 9 else 200)
    longest = lengths.longest()
    assert longest is not None
    assert 3_000 <= longest <= 5_000
    assert AnswerLengths.from_json(lengths.to_json()).longest() == longest


async def test_a_provider_that_adds_what_is_asked_for_is_obeyed_for_a_day() -> None:
    store, now = SQLite(":memory:"), [1_000_000.0]
    answers = KnownAnswers(store, lambda: now[0])
    for _ in range(ENOUGH):
        await answers.took("default", "m", 900)
    asked, taken = await answers.room("default", "m", 32_000)
    assert (asked, taken is not None and 900 <= taken <= 1_500) == (0, True)
    assert await answers.room("default", "m", 500) == (0, 500), "no answer is longer than was asked for"
    await answers.refused("default", "m")
    assert await KnownAnswers(store, lambda: now[0]).room("default", "m", 32_000) == (32_000, None), (
        "another process, too"
    )
    now[0] += AGE
    assert (await answers.room("default", "m", 32_000))[0] == 0
    await store.close()


async def test_what_is_refused_for_its_answer_alone_is_sent_with_room_for_all_of_it() -> None:
    engine, asked = Engine(SQLite(":memory:")), {"model": "gpt-4o", "max_tokens": 16_000}
    request = Request({**asked, "messages": history(114, 1_000)})
    view = await engine.prepare(request)
    sent = await engine.expected(view)
    assert sent + 16_000 > 128_000, "it goes on as it came"
    told = f"This model's maximum context length is 128000 tokens. However, you requested {sent + 16_000} tokens"
    await engine.refused(view, f"{told} ({sent} in the messages, 16000 in the completion).")
    again = await engine.prepare(request)
    assert await engine.expected(again) + 16_000 <= 128_000
    assert (await engine.limits.target("default", again.frame)).kept_free == 16_000
    await engine.close()


@pytest.mark.few(1)
@pytest.mark.parametrize("counted", [115_000, 125_000])
async def test_the_same_where_its_provider_counts_otherwise_than_clew(counted: int) -> None:
    """By clew's own count both would have fitted, or neither: what the provider counted says what was wrong."""
    engine, asked = Engine(SQLite(":memory:")), {"model": "gpt-4o", "max_tokens": 16_000}
    request = Request({**asked, "messages": history(100 if counted < 120_000 else 120, 1_000)})
    view = await engine.prepare(request)
    said = f"input length and `max_tokens` exceed context limit: {counted} + 16000 > 128000"
    await engine.refused(view, said)
    assert (await engine.limits.target("default", view.frame)).kept_free == 16_000
    await engine.close()


def test_a_small_window_keeps_what_answers_take() -> None:
    budget = Budget(64_000)
    assert [budget.kept_free(taken=n) for n in (100, 6_000, 60_000)] == [4_000, 6_000, 32_000]
    assert Target.of(Budget(64_000, reserve=500)).kept_free == 500


# --- the client, and its provider's cache -----------------------------------------------------------------------------


def test_a_client_that_compacts_by_itself_does_not_get_there_and_pays_less() -> None:
    prices = catalog.lookup(SONNET).prices
    assert prices is not None
    alone, ours = (driven("claude-2.1.197", 200_000, prices, with_clew) for with_clew in (False, True))
    assert (alone.compactions, ours.compactions) == (2, 0)
    assert 0 < ours.folds <= 0.05 * ours.calls
    assert ours.filled >= 0.7
    assert ours.dollars < alone.dollars


@pytest.mark.parametrize(
    ("client", "window", "answer", "at"),
    [  # as measured with the real programs: tests/clients/thresholds.py
        ("Claude Code", 100_000, 32_000, 67_000),
        ("Claude Code", 100_000, 8_000, 79_000),
        ("Codex", 272_000, 0, 244_800),
        ("opencode", 100_000, 4_000, 96_000),
        ("pi", 200_000, 4_000, 183_616),
        ("Qwen Code", 70_000, 0, 37_000),
        ("Qwen Code", 400_000, 0, 340_000),
        ("Qwen Code", 30_000, 0, 25_500),
    ],
)
def test_where_clients_compact_by_themselves(client: str, window: int, answer: int, at: int) -> None:
    assert next(one for one in CLIENTS if one.name == client).threshold(window, answer) == at


async def test_where_a_client_compacts_is_learned_once_it_did() -> None:
    store = SQLite(":memory:")
    engine = Engine(store)
    messages = [{"role": "system", "content": "You are Claude Code."}, {"role": "user", "content": "hi"}]
    frame = (await engine.prepare(Request({"model": "gpt-4o", "messages": messages}))).frame
    ceilings = []
    for tokens in (20_000, 80_000):  # the first is a person's wish
        await engine.limits.client_compacted("default", frame, tokens)
        ceilings.append((await engine.limits.target("default", frame)).ceiling)
    assert ceilings == [128_000 - 33_000, 80_000]
    assert (await Engine(store).limits.target("default", frame)).ceiling == 80_000
    await store.close()


async def test_below_the_threshold_what_a_client_says_goes_on_as_it_came_marks_and_all() -> None:
    engine, marked = Engine(SQLite(":memory:"), Budget(200_000)), {"cache_control": {"type": "ephemeral"}}
    said: list[Body] = []
    for n in range(12):
        text = {"type": "text", "text": f"question {n} " + "lorem ipsum " * 2_000}
        said.append({"role": "user", "content": [text]})
        messages = [*said[:-1], {"role": "user", "content": [{**text, **marked}]}]
        given = {"model": SONNET, "max_tokens": 32_000, "system": "You are Claude Code.", "messages": messages}
        assert body(await engine.prepare(Request(given, "anthropic", session="s"))) == given
        said.append({"role": "assistant", "content": [{"type": "text", "text": f"answer {n}"}]})
    await engine.close()


def test_a_mark_stands_before_the_newest_block_of_the_log_on_what_may_have_one() -> None:
    def node(kind: Any, text: str = "") -> Node:
        return Node(kind + text, kind + text, Item(kind, "user", text))

    first, thought, block, newer = node("text", "a"), node("reasoning"), node("summary", OPENING), node("text", "b")
    assert anchor([first, thought, newer]) is None
    assert anchor([first, thought, block, newer]) == 0
    assert anchor([first, block, newer, block, newer]) == 2
    assert anchor([block, newer]) is None


def test_a_client_with_a_smaller_window_than_its_model_compacts_until_clew_knows_that_and_no_longer() -> None:
    """What a call brings is counted as the provider counts: it is what the client goes by."""
    prices = catalog.lookup("gpt-5").prices
    assert prices is not None
    assert driven("pi", 80_000, prices, with_clew=True).compactions <= 2
