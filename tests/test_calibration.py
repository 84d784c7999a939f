"""The provider's own count, foreseen. The sessions and the providers are those of `bench/calibration.py`."""

import asyncio
import json
import math

import pytest

from calibration import (
    BASES,
    PROVIDERS,
    Call,
    Measured,
    Provider,
    errors,
    foreseen,
    held,
    measure,
    session,
    slack,
    stretches,
)
from clew.tokens.calibration import Anchor, Calibration, Traits, traits
from conftest import conversations

SHIPPED = 3  # sessions in the sample, which comes first
EVERY = 40  # of the other sessions, if they are here

TURN = Traits(tokens=1_000, digits=100, signs=500, wide=20, items=3)
FRESH = Calibration.fresh(exact=False)


@pytest.fixture(scope="module")
def sessions() -> list[list[Call]]:
    bodies = [body for conversation in conversations() for body in stretches(conversation)]
    return [asyncio.run(session(body)) for body in [*bodies[:SHIPPED], *bodies[SHIPPED::EVERY]]]


@pytest.fixture(scope="module")
def measured(sessions: list[list[Call]]) -> dict[str, list[Measured]]:
    return {base: measure(sessions, base) for base in BASES}


@pytest.mark.few(2)
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda p: p.name)
def test_the_next_request_is_foreseen_whatever_the_tokenizer(
    sessions: list[list[Call]], measured: dict[str, list[Measured]], provider: Provider, base: str
) -> None:
    for some in (slice(SHIPPED), slice(None)):
        guesses = foreseen(sessions[some], measured[base][some], provider)
        assert any(g.edited for g in guesses)
        found = errors(guesses, lambda g: g.expected)
        assert found.mean <= 0.0075
        assert found.high <= 0.04
        assert found.mean < errors(guesses, lambda g: g.ratio).mean < errors(guesses, lambda g: g.quarter).mean
        assert held(guesses) >= 0.95
        assert slack(guesses) <= 0.035


def counted(turns: int) -> int:
    """Some provider's count of so many turns: by the token and the digit, with a hidden prompt."""
    return 700 + turns * (1_400 + 60)


def whole(turns: int) -> Traits:
    return Traits(*(turns * n for n in TURN))


def after(turns: int, calibration: Calibration = FRESH) -> tuple[Anchor, Calibration]:
    """What is known after so many good reports."""
    anchor = Anchor()
    for n in range(1, turns + 1):
        anchor, calibration = anchor.reported(calibration, whole(n), counted(n))
    return anchor, calibration


@pytest.mark.parametrize("factor", [10, 2, 0.5, 0.01, 0, -1, math.nan, math.inf])
@pytest.mark.parametrize("turns", [2, 5, 20])
def test_one_absurd_report_moves_little_and_is_soon_forgotten(factor: float, turns: int) -> None:
    anchor, calibration = after(turns)
    good = anchor.expected(calibration, whole(turns + 2))
    anchor, calibration = anchor.reported(calibration, whole(turns + 1), counted(turns + 1) * factor)
    assert anchor.expected(calibration, whole(turns + 2)) == pytest.approx(good, rel=0.25)
    for n in (turns + 2, turns + 3):
        anchor, calibration = anchor.reported(calibration, whole(n), counted(n))
    assert anchor.expected(calibration, whole(turns + 4)) == pytest.approx(counted(turns + 4), rel=0.01)


@pytest.mark.parametrize("factor", [1.24, 0.81])
def test_a_believable_error_moves_no_more_than_itself(factor: float) -> None:
    anchor, calibration = after(10)
    anchor, calibration = anchor.reported(calibration, whole(11), counted(11) * factor)
    assert anchor.expected(calibration, whole(12)) == pytest.approx(counted(12), rel=0.25)
    for n in range(12, 16):
        anchor, calibration = anchor.reported(calibration, whole(n), counted(n))
    assert anchor.expected(calibration, whole(16)) == pytest.approx(counted(16), rel=0.01)


def test_two_surprising_reports_that_agree_are_believed() -> None:
    anchor, calibration = after(10)
    for n in (11, 12):
        anchor, calibration = anchor.reported(calibration, whole(n), counted(n) + 50_000)
    assert anchor.expected(calibration, whole(13)) == pytest.approx(counted(13) + 50_000, rel=0.01)


def test_what_is_hidden_is_still_counted_after_an_edit() -> None:
    anchor, calibration = after(20)
    assert anchor.expected(calibration, whole(4)) == pytest.approx(counted(4), rel=0.02)


def test_a_report_without_news_teaches_nothing() -> None:
    anchor, calibration = after(5)
    assert anchor.reported(calibration, whole(5), counted(5))[1] == calibration
    assert FRESH.learned(TURN, math.nan) == FRESH
    assert FRESH.learned(Traits(), 10) == FRESH


def test_an_exact_vocabulary_is_trusted_from_the_start() -> None:
    exact = Calibration.fresh(exact=True)
    assert exact.expected(TURN) == FRESH.expected(TURN) == TURN.tokens
    assert exact.upper(TURN) < 1.25 * TURN.tokens < FRESH.upper(TURN)
    assert after(30, exact)[0].expected(after(30, exact)[1], whole(31)) == pytest.approx(counted(31), rel=0.01)


def test_doubt_shrinks_with_what_is_learned() -> None:
    bounds = [after(n)[1].upper(TURN) / after(n)[1].expected(TURN) for n in (0, 2, 5, 20)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < 1.2 < bounds[0]


def test_text_unlike_any_before_is_never_less_than_nothing() -> None:
    _, calibration = after(20)
    rule = traits("=" * 10_000, 160)
    assert 0 < calibration.expected(rule) <= 4 * rule.tokens


def test_traits_add_up_over_any_text() -> None:
    assert traits("año 2026: 人, \ud800", 9) == Traits(9, digits=4, signs=2, wide=3, items=1)
    assert traits("", 0) == Traits(items=1)
    assert traits("a1", 2).plus(traits("-", 1)) == traits("a1-", 3)._replace(items=2)
    assert TURN.plus(TURN).less(TURN) == TURN


def test_what_was_learned_survives_a_store() -> None:
    _, calibration = after(7)
    assert Calibration.from_json(json.loads(json.dumps(calibration.to_json())), exact=False) == calibration


GOOD = after(7)[1].to_json()


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        "1",
        GOOD | {"weights": [1.0]},
        GOOD | {"weights": [1.0, 0, 0, 0, math.nan]},
        GOOD | {"weights": ["1", 0, 0, 0, 0]},
        GOOD | {"doubt": GOOD["doubt"][:4]},
        GOOD | {"doubt": [[1.0] * 5] * 5},
        GOOD | {"doubt": [[-1.0 if i == j else 0.0 for j in range(5)] for i in range(5)]},
        GOOD | {"doubt": 1},
        GOOD | {"noise": 0},
        GOOD | {"noise": math.inf},
    ],
)
def test_foreign_data_gives_a_fresh_one(value: object) -> None:
    assert Calibration.from_json(value, exact=False) == FRESH
    assert Calibration.from_json(value, exact=True) == Calibration.fresh(exact=True)
