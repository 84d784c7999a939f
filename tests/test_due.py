"""Which rule decides whether a history is compacted: each where it applies, and beside what it does not count."""

import json
from dataclasses import replace
from typing import Any

from clew import Budget, Engine, SQLite
from clew.core.limits import Size
from clew.core.view import View
from clew.engine.branch import Branch
from clew.engine.due import Due, due, part, settled
from clew.recognition.last_body import Known
from clew.steps.worklog.tasks import is_done
from clew.store.records import Place
from clew.store.trace import Fold, Trace
from clew.testing import view_of
from clew.tokens.target import Target

Body = dict[str, Any]
WINDOW = 20_000
SYSTEM = "You help. " * 600


def talk(words: int, system: str = "", model: str = "gpt-4o") -> Body:
    """Some messages of so many words in all."""
    said = [{"role": ("user", "assistant")[n % 2], "content": "word " * (words // 9)} for n in range(9)]
    lead = [{"role": "system", "content": system}] if system else []
    return {"model": model, "messages": [*lead, *said]}


async def of(view: View, budget: Budget, trace: Trace | None = None) -> tuple[Branch, Target]:
    """A branch that has this view, and what it is to be compacted to."""
    store = SQLite(":memory:")
    limits = Engine(store, budget).limits
    target = await limits.target("default", view.frame)
    branch = Branch(trace or Trace("a branch"), Known(view.frame.format), view)
    await limits.weigh("default", branch.ledger.size, target, view.frame)
    await store.close()
    return branch, target


def budget(**more: Any) -> Budget:
    return Budget(window=WINDOW, reserve=1_000, **more)


def said_of(view: View, calls: tuple[tuple[int, int], ...] = (), folds: tuple[Fold, ...] = ()) -> Trace:
    """The log of what is in view."""
    return Trace("a branch", said=[Place(n.id, n.content) for n in view.nodes], calls=[*calls], folds=[*folds])


async def test_what_is_asked_about_all_of_it_is_sent_whole_while_it_fits() -> None:
    for words, why in ((17_000, "asked about all of it"), (30_000, "limit"), (1_000, "asked about all of it")):
        view = view_of(talk(words))
        branch, target = await of(view, budget(high=0.5))
        branch.keeps_all = True
        assert due(branch, view, target).why == why, words


async def test_an_open_turn_is_waited_for_only_where_its_thinking_is_bound() -> None:
    for model, why in (("claude-fable-5-1", "thinking"), ("claude-sonnet-4-5", "threshold")):
        thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
        use = {"type": "tool_use", "id": "t1", "name": "bash", "input": {}}
        back = {"type": "tool_result", "tool_use_id": "t1", "content": "ok"}
        said = [
            *talk(9_500)["messages"],
            {"role": "assistant", "content": [thought, use]},
            {"role": "user", "content": [back]},
        ]
        view = view_of({"model": model, "max_tokens": 100, "messages": said}, "anthropic")
        branch, target = await of(view, budget(high=0.5), said_of(view))
        assert due(branch, view, target).why == why, model


async def test_a_fold_has_to_pay_only_where_nobody_said_when_and_no_client_would_do_it() -> None:
    view = view_of(talk(17_500))
    for more, why in (({}, "would not pay"), ({"high": 0.7}, "threshold"), ({"start": 12_000}, "threshold")):
        branch, target = await of(view, budget(**more), said_of(view))
        assert due(branch, view, target).why == why, more
    branch, target = await of(view, budget(), said_of(view))
    assert due(branch, view, replace(target, ceiling=14_000)).why == "threshold"


async def test_a_fold_that_frees_too_little_to_pay_is_made_where_its_client_would_compact_else() -> None:
    before, after = view_of(talk(17_500)), view_of(talk(15_500))
    branch, target = await of(before, budget(), said_of(before, ((1, 1),)))
    forecast = due(branch, before, target).forecast
    assert settled(Due("threshold", target, forecast), branch, before, after).why == "would not pay"
    soon = replace(target, ceiling=14_000)
    assert settled(Due("threshold", soon, forecast), branch, before, after).why == "threshold"


async def test_a_fold_has_to_pay_in_as_many_calls_as_there_were_since_the_last_one() -> None:
    view = view_of(talk(17_500))
    fold = Fold("a session", 4, 4, 3)
    for calls, folds, counted in (
        (((1, 1), (3, 3), (6, 5), (8, 7)), (), 4),
        (((1, 1), (3, 3), (6, 5), (8, 7)), (fold,), 2),
        (((1, 1), (3, 3), (6, 5), (8, 5)), (fold,), 1),  # what is sent once more is no other call
        (((1, 1), (3, 3), (6, 5), (8, 9)), (fold,), 1),  # nor is this one itself, which a client sends again
    ):
        branch, target = await of(view, budget(), said_of(view, calls, folds))
        forecast = due(branch, view, target).forecast
        assert forecast
        assert forecast.calls == counted


async def test_what_is_long_and_nobody_has_read_is_read_before_a_fold_that_would_leave_it_whole() -> None:
    told = [*talk(24_000)["messages"], {"role": "user", "content": "word " * 8_000}]
    view = view_of({"model": "gpt-4o", "messages": told})
    calls = tuple((n, n) for n in range(2, 10))
    budget = Budget(window=40_000, reserve=2_000)
    for given, ceiling, read, why in (
        (budget, None, 9, "unread"),
        (budget, None, 10, "threshold"),
        (replace(budget, high=0.7), None, 9, "threshold"),
        (replace(budget, low=0.5), None, 9, "threshold"),  # it has room in what is left
        (budget, 30_000, 9, "threshold"),
    ):
        branch, target = await of(view, given, said_of(view, (*calls, (10, read))))
        assert due(branch, view, replace(target, ceiling=ceiling)).why == why, (given, ceiling, read)
    longer = view_of({"model": "gpt-4o", "messages": [*told, {"role": "user", "content": "word " * 8_000}]})
    branch, target = await of(longer, budget, said_of(longer, calls))
    assert due(branch, longer, target).why == "limit", "it would not fit"


async def test_a_fold_that_was_undone_is_not_the_last_one() -> None:
    view = view_of(talk(15_500))
    for made, why in ((view.nodes[0].id, "just compacted"), ("what nobody sees any more", "threshold")):
        fold = Fold("a session", 4, 4, len(view.nodes), [made])
        branch, target = await of(view, budget(high=0.5), said_of(view, folds=(fold,)))
        assert due(branch, view, target).why == why


async def test_what_a_fold_frees_is_of_the_history_and_not_of_its_system_prompt() -> None:
    before, after = view_of(talk(4_000, SYSTEM * 5)), view_of(talk(3_600, SYSTEM * 5))
    little = view_of(talk(3_900, SYSTEM * 5))
    branch, target = await of(before, budget(high=0.5))
    found = Due("threshold", target)
    assert target.frame > 6_000
    assert settled(found, branch, before, after) == found
    assert settled(found, branch, before, little).why == "frees little"
    assert settled(Due("limit", target), branch, before, little).why == "limit", "whatever it frees"


async def test_a_list_that_is_done_is_a_good_moment_by_what_was_said_beside_the_system_prompt() -> None:
    plan = {"plan": [{"step": "all of it", "status": "completed"}]}
    call = {"id": "c1", "type": "function", "function": {"name": "update_plan", "arguments": json.dumps(plan)}}
    done = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
    ]
    for words, why in ((2_000, "fits"), (7_000, "done")):
        body = talk(words, SYSTEM * 5)
        view = view_of({**body, "messages": [*body["messages"], *done]})
        assert is_done(view)
        branch, target = await of(view, budget(high=0.9, done=0.5), said_of(view))
        assert due(branch, view, target).why == why, words


async def test_what_somebody_asks_for_is_a_part_of_what_was_said_and_of_the_window() -> None:
    view = view_of(talk(2_000))
    for more, said, left in (
        ({"low": 0.3}, 60_000, 0.3 * (WINDOW - 1_000)),
        ({"low": 0.1}, 2_000, 0.1 * 2_000),  # what was asked for goes before what is wise of so little
    ):
        _, target = await of(view, budget(**more))
        goal = part(target, Size(said + target.frame)).goal.tokens - target.frame
        assert goal <= 1.01 * left, more
