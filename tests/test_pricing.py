"""What calls cost, checked by hand against each provider's way to charge."""

import pytest

from clew.catalog import Prices, lookup
from clew.catalog.usage import Spent, cost, spent

GPT_4O = Prices(2.5, 10, cache_read=1.25)
SONNET = Prices(3, 15, cache_read=0.3, cache_write=3.75)
GEMINI = Prices(1.25, 10, cache_read=0.125, tiers=((200_000, Prices(2.5, 15, cache_read=0.25)),))
LOCAL = Prices(1, 2)


@pytest.mark.parametrize(
    ("prices", "used", "dollars"),
    [
        pytest.param(GPT_4O, Spent(10_000, 1_000), 0.035, id="plain"),
        pytest.param(GPT_4O, Spent(10_000, 1_000, cache_read=8_000), 0.025, id="OpenAI: half price from the cache"),
        pytest.param(SONNET, Spent(10_000, 1_000, 8_000, 1_000), 0.02415, id="Anthropic: writes cost more"),
        pytest.param(GEMINI, Spent(200_000, 1_000, 100_000), 0.1475, id="Gemini: at the tier's border, below it"),
        pytest.param(GEMINI, Spent(200_001, 1_000, 100_001), 0.29000025, id="Gemini: above it, all of it costs more"),
        pytest.param(LOCAL, Spent(1_000, 100, 400, 200), 0.0012, id="no prices for a cache: it costs what input does"),
        pytest.param(GPT_4O, Spent(0), 0.0, id="nothing"),
        pytest.param(
            GPT_4O, Spent(100, 0, cache_read=200), 0.00025, id="a report that does not add up is not a refund"
        ),
    ],
)
def test_a_call_costs(prices: Prices, used: Spent, dollars: float) -> None:
    assert cost(prices, used) == dollars


def test_of_several_tiers_the_highest_below_the_prompt_counts() -> None:
    prices = Prices(1, 0, tiers=((200_000, Prices(3, 0)), (100_000, Prices(2, 0))))
    assert [cost(prices, Spent(size)) for size in (100_000, 150_000, 300_000)] == [0.1, 0.3, 0.9]


def test_a_provider_s_own_report_is_priced_by_the_catalog() -> None:
    report = {"input_tokens": 1_000, "output_tokens": 500, "cache_read_input_tokens": 50_000}
    prices = lookup("claude-sonnet-4-5").prices
    assert prices is not None
    assert cost(prices, spent(report)) == (1_000 * 3 + 50_000 * 0.3 + 500 * 15) / 1_000_000
