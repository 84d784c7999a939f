"""When a compaction is worth its price: laws over all outlooks, and a few whole values."""

from dataclasses import replace as with_
from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog import Prices
from clew.catalog.usage import Spent
from clew.catalog.worthwhile import TYPICAL, Outlook, Reach, Terms, ahead, plan

SONNET = Prices(3, 15, cache_read=0.3, cache_write=3.75)
TERMS = Terms(180_000, keep=30_000)


@st.composite
def prices(draw: st.DrawFn) -> Prices:
    plain = draw(st.floats(0.05, 30))
    read = plain * draw(st.floats(0.01, 1))
    return Prices(plain, plain * 5, read, draw(st.floats(1, 2)) * plain)


@st.composite
def terms(draw: st.DrawFn) -> Terms:
    low = draw(st.floats(0.1, 0.7))
    return Terms(
        draw(st.integers(2_000, 1_000_000)),
        draw(st.floats(low, 1)),
        low,
        keep=draw(st.integers(0, 200_000)),
    )


@st.composite
def reaches(draw: st.DrawFn, size: int) -> Reach | None:
    goal = draw(st.integers(0, size + 1_000))
    helped = Spent(size, draw(st.integers(1, 5_000)), size) if draw(st.booleans()) else Spent(0)
    return draw(st.sampled_from([None, Reach(goal, draw(st.integers(0, goal)), helped)]))


@st.composite
def outlooks(draw: st.DrawFn, idle: float | None = None) -> Outlook:
    size = draw(st.integers(100, 1_200_000))
    return Outlook(
        size,
        draw(st.integers(0, 3_000)),
        draw(st.floats(0, 20_000)),
        draw(reaches(size)),
        draw(reaches(size)),
        draw(st.floats(0, 1_000)) if idle is None else idle,
    )


@given(outlooks(), st.none() | prices(), terms())
def test_what_does_not_fit_is_never_left_alone(outlook: Outlook, prices: Prices | None, terms: Terms) -> None:
    most = int(terms.high * terms.limit)
    if outlook.size > most:
        act, goal, _ = plan(outlook, prices, terms)
        assert act != "nothing"
        assert goal <= most


@given(outlooks(), st.none() | prices(), terms())
def test_a_goal_is_below_the_size_and_not_below_what_shall_be_kept(
    outlook: Outlook, prices: Prices | None, terms: Terms
) -> None:
    act, goal, predicted = plan(outlook, prices, terms)
    assert goal == outlook.size if act == "nothing" else terms.floor <= goal < outlook.size
    assert all(dollars >= 0 for dollars in predicted.values())


@given(outlooks(idle=0), prices(), terms(), st.floats(0.1, 1))
def test_cheaper_reads_never_make_it_compact_earlier(
    outlook: Outlook, prices: Prices, terms: Terms, share: float
) -> None:
    assert prices.cache_read is not None
    cheaper = with_(prices, cache_read=prices.cache_read * share)
    if plan(outlook, prices, terms).act == "nothing":
        assert plan(outlook, cheaper, terms).act == "nothing"


@given(outlooks(idle=0), prices(), terms(), st.floats(1, 10))
def test_dearer_writes_never_make_it_compact_more_often(
    outlook: Outlook, prices: Prices, terms: Terms, times: float
) -> None:
    assert prices.cache_write is not None
    dearer = with_(prices, cache_write=prices.cache_write * times)
    if plan(outlook, prices, terms).act == "nothing":
        assert plan(outlook, dearer, terms).act == "nothing"


@given(outlooks(), terms())
def test_where_prices_are_not_known_they_are_the_usual_ones(outlook: Outlook, terms: Terms) -> None:
    usual = Prices(1, 5, cache_read=0.1, cache_write=1.25)
    assert usual == TYPICAL
    assert plan(outlook, None, terms) == plan(outlook, usual, terms)


@given(outlooks(), prices(), terms())
def test_the_unit_of_money_decides_nothing(outlook: Outlook, prices: Prices, terms: Terms) -> None:
    assert prices.cache_read is not None
    assert prices.cache_write is not None
    in_eighths = Prices(prices.input * 8, prices.output * 8, prices.cache_read * 8, prices.cache_write * 8)
    assert plan(outlook, prices, terms)[:2] == plan(outlook, in_eighths, terms)[:2]


def starts(growth: float, turns: int, terms: Terms, prices: Prices | None = SONNET) -> int:
    """The size at which a session that grows evenly is folded, to the next hundred tokens."""
    fold = Reach(0, 2_000)
    sizes = range(terms.floor, terms.limit, 100)
    return next(s for s in sizes if plan(Outlook(s, turns, growth, fold=fold), prices, terms).act == "fold")


@pytest.mark.parametrize("growth", [200, 800, 2_500])
def test_a_long_session_is_folded_when_it_has_outgrown_its_goal_by_the_best_part(growth: float) -> None:
    best = sqrt(2 * growth * (30_000 - 2_000) * (3.75 - 0.3) / 0.3)
    assert starts(growth, 400, TERMS) - 30_000 == pytest.approx(best, rel=0.15)


def test_what_would_not_earn_its_price_is_not_done() -> None:
    # Folding now saves 15,000 reads in each of eight turns and rewrites 28,000 tokens.
    found = plan(Outlook(45_000, 8, 500, fold=Reach(0, 2_000)), SONNET, TERMS)
    assert found[:2] == ("nothing", 45_000)
    assert found.predicted == {"nothing": pytest.approx(0.1128), "fold": pytest.approx(0.1734)}


def test_a_session_that_has_lasted_is_folded_where_a_young_one_is_not() -> None:
    acts = [plan(Outlook(60_000, turns, 800, fold=Reach(0, 2_000)), SONNET, TERMS).act for turns in (8, 400)]
    assert acts == ["nothing", "fold"]


def test_a_cold_cache_is_the_time_to_fold() -> None:
    warm = Outlook(44_000, 30, 500, fold=Reach(0, 2_000), idle=299)
    assert plan(warm, SONNET, TERMS).act == "nothing"
    assert plan(warm._replace(idle=300), SONNET, TERMS).act == "fold"


def test_stubs_are_for_where_a_fold_takes_a_model() -> None:
    outlook = Outlook(70_000, 100, 800, stub=Reach(32_000, 31_000), fold=Reach(30_000, 2_000))
    by_code = plan(outlook, SONNET, TERMS)
    assert by_code[:2] == ("fold", 30_000)
    assert by_code.predicted["stub"] < by_code.predicted["fold"]
    by_model = Reach(30_000, 2_000, Spent(70_000, 3_000, cache_read=70_000))
    assert plan(outlook._replace(fold=by_model), SONNET, TERMS)[:2] == ("stub", 32_000)
    assert plan(outlook._replace(fold=None), SONNET, TERMS)[:2] == ("stub", 32_000)


def test_what_frees_little_is_left_alone_even_where_it_costs_nothing() -> None:
    uncached = Prices(3, 15)
    fold = Reach(0, 0)
    assert plan(Outlook(37_000, 400, 800, fold=fold), uncached, TERMS).act == "nothing"
    assert plan(Outlook(38_000, 400, 800, fold=fold), uncached, TERMS).act == "fold"


def test_nothing_is_forgotten_to_save_what_is_free() -> None:
    assert plan(Outlook(100_000, 400, 800, fold=Reach(0, 0)), Prices(0, 0), TERMS).act == "nothing"


def test_above_a_dearer_tier_it_pays_to_get_below_it() -> None:
    tiered = with_(SONNET, tiers=((200_000, Prices(6, 22.5, cache_read=0.6, cache_write=7.5)),))
    large = Outlook(205_000, 60, 1_000, fold=Reach(150_000, 2_000))
    terms = Terms(1_000_000)
    assert plan(large, SONNET, terms).act == "nothing"
    assert plan(large, tiered, terms)[:2] == ("fold", 150_000)


def test_where_nothing_is_known_to_help_a_fold_must() -> None:
    assert plan(Outlook(150_000, 10, 800), SONNET, Terms(180_000))[:2] == ("fold", 90_000)


def test_as_many_turns_are_expected_as_there_were() -> None:
    assert [ahead(turns) for turns in (0, 8, 57, 10_000)] == [8, 8, 57, 400]
