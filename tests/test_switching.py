"""A session that changes its provider: the client writes the same history down in another format, and goes on."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clew
from amounts import cases
from clew import Budget, Engine, Request, SQLite, wire
from clew.core.limits import MEMORY
from clew.core.view import View
from clew.engine.settings import Settings
from clew.testing import conversation
from clew.wire import check
from clew.wire.convert import convert
from test_engine import time_travel, turns

FORMATS = sorted(wire.FORMATS)


def rendered(seed: int, count: int, wordy: int = 40) -> dict[str, list[dict[str, Any]]]:
    """The requests of one script, as a client of each format would make them."""
    return {f: turns(conversation(seed, count, f, wordy), f) for f in FORMATS}


async def play(
    engine: Engine, requests: dict[str, list[dict[str, Any]]], route: list[str], name: str | None
) -> list[View]:
    """One session along a route of formats, as many requests in each."""
    total = len(requests[route[0]])
    assert {len(r) for r in requests.values()} == {total}
    views: list[View] = []
    for n in range(total):
        format = route[n * len(route) // total]
        body = json.dumps(requests[format][n]).encode()
        view = await engine.prepare(Request(body, format, session=name))
        assert view.frame.format == format
        assert check(clew.body(view), format) == []
        views.append(view)
    return views


def stand_ins(view: View) -> set[str]:
    made = {n.id for e in view.edits for n in e.stand_ins}
    return {n.id for n in view.nodes if n.id in made}


@settings(max_examples=cases(8, dear=True), suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32),
    route=st.lists(st.sampled_from(FORMATS), min_size=4, max_size=4).filter(
        lambda r: all(a != b for a, b in pairwise(r))
    ),
    named=st.booleans(),
    hot=st.booleans(),
)
async def test_three_changes_of_provider_cost_neither_validity_nor_folds(
    seed: int, route: list[str], named: bool, hot: bool
) -> None:
    requests = rendered(seed, 8)
    store = SQLite(":memory:")
    engine = Engine(store, Budget(window=4_000, reserve=200), Settings(memory=MEMORY if hot else 0))
    views = await play(engine, requests, route, "trip" if named else None)
    assert len({v.branch for v in views}) == 1, "one conversation"
    for before, after in pairwise(views):
        if after.frame.format != before.frame.format:
            kept = stand_ins(before) & {n.id for e in after.edits for n in e.stand_ins}
            assert kept == stand_ins(before), "every fold is still known"
            shown = stand_ins(after) | {id for e in after.edits[len(before.edits) :] for id in e.old}
            assert stand_ins(before) <= shown, "and still stands, or was folded further"
    await time_travel(store, engine, views)
    await store.close()


@pytest.mark.parametrize("there", [f for f in FORMATS if f != "anthropic"])
async def test_a_foreign_signature_is_not_sent_and_not_lost(there: str) -> None:
    store = SQLite(":memory:")
    engine = Engine(store, Budget(window=100_000))
    seed = next(s for s in range(100) if '"signature"' in json.dumps(conversation(s, 4, "anthropic")))
    body = conversation(seed, 4, "anthropic")
    first = await engine.prepare(Request(body, "anthropic"))
    signed = [n for n in first.nodes if n.item.kind == "reasoning"]
    assert signed
    second = await engine.prepare(Request(convert(body, there), there))
    assert second.branch == first.branch
    assert not any(n.item.wire["signature"] in json.dumps(clew.body(second)) for n in signed if n.item.wire)
    for node in signed:
        (found,) = await engine.recall("default", node.id)
        assert found.item == node.item
    third = await engine.prepare(Request(body, "anthropic"))
    assert third.branch == first.branch
    assert clew.body(third) == body
    await store.close()


async def test_a_retry_with_another_model_keeps_the_folds_of_its_past() -> None:
    """The user disliked an answer, went back before it, and asked another provider."""
    store = SQLite(":memory:")
    engine = Engine(store, Budget(window=4_000, reserve=200))
    requests = rendered(3, 8)
    views = [await engine.prepare(Request(json.dumps(r).encode(), "openai_chat")) for r in requests["openai_chat"]]
    earlier = len(views) - 3
    retried = await engine.prepare(Request(requests["gemini"][earlier], "gemini"))
    assert retried.branch != views[-1].branch
    assert check(clew.body(retried), "gemini") == []
    assert stand_ins(views[earlier])
    shown = stand_ins(retried) | {id for e in retried.edits for id in e.old}
    assert stand_ins(views[earlier]) <= shown
    await store.close()


@pytest.mark.few(2)
@pytest.mark.parametrize("there", FORMATS)
async def test_a_host_may_keep_its_format_and_send_to_another(there: str) -> None:
    store = SQLite(":memory:")
    engine = Engine(store, Budget(window=4_000, reserve=200))
    for request in turns(conversation(5, 8)):
        view = await engine.prepare(Request(request))
        sent = clew.body(view, there, "some-model")
        assert check(sent, there) == []
        assert wire.detect(sent) == there or there == "anthropic"
    assert stand_ins(view)
    await store.close()
