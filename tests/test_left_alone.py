"""Which parts of a history steps leave alone, and from what size on they do not."""

import json
from collections.abc import Sequence
from typing import Any

from clew import Budget
from clew.core.items import Item
from clew.core.view import View
from clew.steps import places
from clew.steps.shares import verbatim
from clew.testing import view_of
from clew.tokens.target import Target

Message = dict[str, Any]
BUDGET = Budget(window=10_500, reserve=500)  # 10,000 for a request, and a goal of half of it


def target_of(view: View) -> Target:
    return Target.of(BUDGET).around(view.frame)


def asked(text: str) -> Message:
    return {"role": "user", "content": text}


def answered(text: str) -> Message:
    return {"role": "assistant", "content": text}


def called(id: str, arguments: Any, result: str) -> list[Message]:
    made = {"id": id, "type": "function", "function": {"name": "read", "arguments": json.dumps(arguments)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [made]},
        {"role": "tool", "tool_call_id": id, "content": result},
    ]


def view(messages: Sequence[Message]) -> View:
    return view_of({"model": "gpt-4o", "messages": [*messages]})


def words(number: int) -> str:
    return "word " * number


def test_what_the_user_asked_last_is_told_by_a_log_only_if_it_is_long_and_was_read() -> None:
    for tokens, read, may in ((4_000, True, True), (4_000, False, False), (1_000, True, False)):
        after = [answered("I have read it."), *called("c1", {"path": "a"}, "done")] if read else []
        seen = view([asked("Hello."), answered("Hi."), asked(words(tokens)), *after])
        assert [*places.turn_to_fold(seen, target_of(seen))] == ([2] if may else []), (tokens, read)


def test_results_that_just_came_crowd_the_rest_out_only_where_all_of_the_room_is_the_goal() -> None:
    seen = view([asked("Read it."), *called("c1", {"path": "a"}, words(6_000))])
    target = target_of(seen)
    came = target.meter.node(seen.nodes[-1]).tokens
    assert target.goal.tokens < target.limit.tokens
    assert places.crowding(seen, target) == 0
    assert places.crowding(seen, target.to(target.limit.tokens)) == came - target.room // 3
    small = view([asked("Read it."), *called("c1", {"path": "a"}, words(1_000))])
    assert places.crowding(small, target.to(target.limit.tokens)) == 0


def test_a_call_that_was_just_made_is_shortened_only_at_the_limit() -> None:
    long = {"path": "a", "content": words(2_000)}
    seen = view([asked("Write it."), *called("c1", long, "ok"), *called("c2", long, "ok")])
    target = target_of(seen)
    assert places.long_calls(seen, target) == []
    assert places.long_calls(seen, target.to(target.limit.tokens)) == [3], "the newest one: the first one was read"
    brief = view([asked("Write it."), *called("c1", {"path": "a"}, "ok")])
    assert places.long_calls(brief, target.to(target.limit.tokens)) == []


def test_the_newest_turn_is_a_persons_where_there_is_one() -> None:
    typed, made = asked("Do it."), asked("<system-reminder>Be brief.</system-reminder>")
    assert places.newest_turn(view([typed, answered("Yes."), made]).nodes) == (0, 1)
    assert places.newest_turn(view([made, answered("Yes.")]).nodes) == (0, 1)
    assert places.newest_turn(view([answered("Yes.")]).nodes) == (0, 0)


def test_the_first_exchange_ends_with_the_first_answer_in_words() -> None:
    assert places.first_exchange(view([asked("a"), asked("b"), answered("c"), asked("d")]).nodes) == (0, 3)
    assert places.first_exchange(view([asked("a"), *called("c1", {}, "r"), answered("c")]).nodes) == (0, 1)
    assert places.first_exchange(view([answered("c"), asked("a")]).nodes) == (0, 0)


def test_the_tail_begins_at_a_cut_and_never_reaches_into_a_log() -> None:
    seen = view([asked("Go."), *(m for n in range(8) for m in called(f"c{n}", {"path": n}, words(100)))])
    target = target_of(seen)
    start = places.tail_start(seen, target)
    assert start in seen.cuts()
    assert 0 < target.meter.span(seen, start, len(seen.nodes)).tokens <= verbatim(target)
    folded = seen.replace(0, 15, Item("summary", "user", "What was done."), by="test")
    assert places.tail_start(folded, target) == 1
