"""Histories of hosts that drop what was done, and objects that hosts put into messages."""

from types import SimpleNamespace
from typing import Any

from clew import Engine, Request, SQLite
from clew.adapters.weaving import messages_in, plain, unquoted, woven

Message = dict[str, Any]


def user(text: Any) -> Message:
    return {"role": "user", "content": text}


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def work(name: str) -> list[Message]:
    call = {"id": name, "type": "function", "function": {"name": "read", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": name, "content": f"result of {name}"},
    ]


def test_calls_and_results_come_back_where_they_stood() -> None:
    told = [user("a"), *work("1"), *work("2"), said("b"), user("c"), *work("3")]
    history = [user("a"), said("b"), user("c"), said("d"), user("e")]
    assert woven(history, told) == [*told, said("d"), user("e")]


def test_what_a_host_changed_is_as_it_says() -> None:
    told = [user("a"), *work("1"), said("b"), user("c"), *work("2"), said("d")]
    assert woven([user("A"), said("b"), user("c")], told) == [user("A"), said("b"), user("c")]
    assert woven([user("a"), said("b"), user("C")], told) == [*told[:4], user("C")]
    assert woven([], told) == []
    assert woven([user("a")], []) == [user("a")]


def test_a_history_that_dropped_nothing_stays() -> None:
    told = [user("a"), said("b"), user("c")]
    assert woven([*told, said("d")], told) == [*told, said("d")]


def test_what_a_host_said_between_calls_parts_no_turn() -> None:
    for between in (user("[steering] and b"), user([{"type": "image_url", "image_url": {"url": "a picture"}}])):
        told = [user("a"), *work("1"), between, *work("2")]
        assert woven([user("a"), said("b"), user("c")], told) == [*told, said("b"), user("c")]


def test_what_a_host_said_to_have_an_answer_is_left_out() -> None:
    told = [user("a"), *work("1"), user("Stop calling tools now.")]
    assert woven([user("a"), said("b"), user("c")], told) == [*told[:3], said("b"), user("c")]


def test_a_turn_without_an_answer_takes_nothing_of_the_next() -> None:
    told = [user("a"), *work("1"), user("b"), *work("2")]
    assert woven([user("a"), user("b"), said("c")], told) == [*told, said("c")]


def test_pictures_come_back_where_a_host_keeps_only_words() -> None:
    shown = user([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "a picture"}}])
    told = [shown, *work("1")]
    assert woven([user("a"), said("b")], told) == [*told, said("b")]
    assert woven([user("A"), said("b")], told) == [user("A"), said("b")]
    other = user([{"type": "text", "text": "a"}])
    assert woven([other, said("b")], told) == [other, said("b")]


async def test_what_was_told_is_in_the_log_as_it_was_said() -> None:
    engine = Engine(SQLite(":memory:"))
    messages = [{"role": "system", "content": "You help."}, user("a"), *work("1"), said("b"), user("c")]
    await engine.prepare(Request({"model": "gpt-4o", "messages": messages}, session="talk"))
    assert await messages_in(engine, "default", "talk") == messages[1:]
    assert await messages_in(engine, "default", "another") == []
    assert await messages_in(engine, "default", None) == []


def test_calls_may_be_objects_of_an_sdk() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    made = SimpleNamespace(model_dump=lambda exclude_none: call)
    given = [{"role": "assistant", "content": None, "tool_calls": [made]}]
    assert plain(given) == [{"role": "assistant", "content": None, "tool_calls": [call]}]
    assert given[0]["tool_calls"] == [made]


def test_results_that_are_json_strings_become_text() -> None:
    def result(content: Any) -> list[Message]:
        return [{"role": "tool", "tool_call_id": "1", "content": content}]

    assert unquoted(result('"two\\nlines"')) == result("two\nlines")
    for other in ('{"a": 1}', '"cut off', "plain", '"a" and "b"', None, [{"type": "text", "text": "x"}]):
        assert unquoted(result(other)) == result(other)
    assert unquoted([user('"quoted"')]) == [user('"quoted"')]
