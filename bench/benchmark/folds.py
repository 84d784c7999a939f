"""Fold after fold: what is left of early facts when a session outgrows its window again and again."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from benchmark.judging import MODEL, RECALLED, Heard, Need, Words, shown
from benchmark.planting import Fact, Planted
from clew.core.limits import Budget
from clew.core.view import View
from clew.engine.engine import Engine, Request, body
from clew.store import SQLite
from clew.tokens import counter_for
from clew.tokens.target import Target

SCOPE = "bench"
STRIDE = 1_500  # tokens between two calls: not every turn of the session, but several to a fold


@dataclass(frozen=True)
class Fold:
    """How things stand after a fold."""

    number: int
    said: int  # tokens until now
    tokens: int  # of the view
    goal: int
    planted: int  # facts said until now
    in_view: int
    recallable: int  # of those out of view, by one call
    drifted: int  # in view after the fold before, and no longer


@dataclass(frozen=True)
class Folds:
    """One session, folded again and again."""

    rows: tuple[Fold, ...]


async def fold_often(planted: Planted, window: int, most: int, heard: Heard) -> Folds:
    """The session sent to an engine as it grows, until it was folded so many times or is over."""
    store = SQLite(":memory:")
    budget = Budget(window, model=MODEL)
    engine, target = Engine(store, budget), Target.of(budget)
    found: list[Fold] = []
    before: set[str] = set()
    try:
        async for end, said, view in _folded(engine, planted):
            heard("fold", len(found), most)
            facts = [f for f in planted.facts if f.places[0] < end]
            text = shown(body(view)["messages"])
            there = {f.value for f in facts if Words().kept(text, Need(f.value, ""))}
            back = [await _recalled(engine, view, f) for f in facts if f.value not in there]
            tokens, goal = target.size(view).tokens, target.goal.tokens
            drifted = len(before - there)
            found.append(Fold(len(found) + 1, said, tokens, goal, len(facts), len(there), sum(back), drifted))
            before = there
            if len(found) == most:
                break
    finally:
        await store.close()
    return Folds(tuple(found))


async def _folded(engine: Engine, planted: Planted) -> AsyncIterator[tuple[int, int, View]]:
    """Each call in which something was folded: messages and tokens said until then, and the view."""
    count = counter_for(MODEL).text
    said = sent = edits = 0
    for end, message in enumerate(planted.messages, 1):
        said += count(shown([message]))
        if message["role"] == "assistant" or said - sent < STRIDE:
            continue
        sent = said
        view = await engine.prepare(Request({"model": MODEL, "messages": planted.messages[:end]}, scope=SCOPE))
        if len(view.edits) > edits:
            yield end, said, view
        edits = len(view.edits)


async def _recalled(engine: Engine, view: View, fact: Fact) -> bool:
    back = await engine.answer(view.scope, fact.question, view.branch, RECALLED)
    return Words().kept(back[:RECALLED], Need(fact.value, ""))
