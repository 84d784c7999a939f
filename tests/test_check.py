"""Every rule is broken by one small body and by nothing that a provider accepts."""

from collections.abc import Iterator
from itertools import cycle
from typing import Any, get_args

import pytest
from anthropic.types.beta import BetaMessageParam
from openai.types.chat import ChatCompletionMessageParam
from typing_extensions import get_type_hints, is_typeddict

from amounts import MANY
from bodies import (
    ANTHROPIC,
    ANTHROPIC_ODD,
    GO_ON,
    HELLO,
    HI,
    LONG_MARK,
    MARK,
    OPENAI_CHAT,
    OPENAI_CHAT_ODD,
    PIXEL,
    SHELL,
    WEATHER,
    asked,
    assistant,
    call,
    chat,
    gave,
    judge_anthropic,
    judge_openai,
    result,
    served,
    strict,
    text,
    use,
    user,
)
from clew.errors import BadRequest
from clew.wire.formats import named
from clew.wire.rules.binding import compaction_signature, signature
from clew.wire.rules.check import check, source

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
JUNK: list[Any] = [None, 7, "", [], {}, [[]], [None], [{}], {"type": []}]
KIND = cycle(JUNK)  # by day each place has one of them
NO_NAME = {"id": "call_1", "type": "function", "function": {"arguments": "{}"}}
ANSWER = {"role": "tool", "tool_call_id": "call_1", "content": "15 degrees"}


def calls(*made: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(made)}


BREAKS_OPENAI: dict[str, dict[str, Any]] = {
    "has_messages": {"messages": []},
    "message_is_an_object": {"messages": ["Hi"]},
    "role_is_known": {"messages": [{"role": "ai", "content": "Hi"}]},
    "content_is_present": {"messages": [HI, {"role": "assistant", "tool_calls": None, "refusal": None}]},
    "content_is_text_or_parts": {"messages": [{"role": "user", "content": 7}]},
    "tool_calls_are_a_list": {"messages": [HI, {"role": "assistant", "content": "Hi", "tool_calls": "none"}]},
    "tool_calls_are_not_empty": {"messages": [HI, {"role": "assistant", "content": "Hi", "tool_calls": []}]},
    "call_is_complete": {"messages": [HI, calls(NO_NAME), ANSWER]},
    "arguments_are_a_string": {
        "messages": [HI, calls(call("call_1") | {"function": {"name": "get_weather", "arguments": {}}}), ANSWER]
    },
    "call_ids_differ": {"messages": [HI, calls(call("call_1"), call("call_1")), ANSWER]},
    "call_id_is_short": {"messages": [HI, calls(call("c" * 41)), ANSWER | {"tool_call_id": "c" * 41}]},
    "calls_are_answered": {"messages": [HI, calls(call("call_1"), call("call_2")), ANSWER, HI]},
    "tool_has_an_id": {"messages": [HI, calls(call("call_1")), ANSWER, {"role": "tool", "content": "16"}]},
    "tool_follows_calls": {"messages": [HI, ANSWER]},
    "tool_answers_a_call": {"messages": [HI, calls(call("call_1")), ANSWER, ANSWER | {"tool_call_id": "call_2"}]},
    "function_has_a_name": {"messages": [HI, {"role": "function", "content": "15 degrees"}]},
    "function_name_is_plain": {"messages": [HI, calls(call("call_1", "weather.get")), ANSWER]},
    "images_come_from_the_user": {
        "messages": [
            {"role": "system", "content": [{"type": "image_url", "image_url": {"url": "https://example.com"}}]}
        ]
    },
    "json_is_mentioned": chat(HI, response_format={"type": "json_object"}),
}

SIGNED = signature({"system": "You are terse.", "messages": [HELLO]})
BOUND = {"type": "thinking", "thinking": "A greeting.", "signature": SIGNED}

SUMMED = "They greeted each other."
BLOCK = {
    "type": "compaction",
    "content": SUMMED,
    "signature": compaction_signature({"messages": [HELLO]}, SUMMED),
}

BREAKS_ANTHROPIC: dict[str, dict[str, Any]] = {
    "has_messages": {"messages": []},
    "role_is_known": {"messages": [HELLO, {"role": "tool", "content": "15 degrees"}]},
    "content_is_text_or_blocks": {"messages": [user(text("Hello")), {"role": "user", "content": ["Hello"]}]},
    "message_is_not_empty": {"messages": [HELLO, assistant(), GO_ON]},
    "text_is_not_blank": {"messages": [HELLO, assistant(text(" \n"), text("Hi")), GO_ON]},
    "prefill_ends_in_a_word": {"messages": [HELLO, {"role": "assistant", "content": "The title: "}]},
    "system_message_stands_right": {"messages": [HELLO, {"role": "system", "content": "Be kind."}, GO_ON]},
    "system_message_is_text": {"messages": [HELLO, {"role": "system", "content": [IMAGE]}]},
    "thinking_is_full": {"messages": [HELLO, assistant({"type": "thinking", "thinking": "Hm."}, text("Hi")), GO_ON]},
    "thinking_is_not_last": {
        "messages": [HELLO, assistant(text("Hi"), {"type": "redacted_thinking", "data": "EqQB"}), GO_ON]
    },
    "thinking_opens_the_last_turn": {
        "messages": [HELLO, assistant(use("toolu_1")), user(result("toolu_1"))],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    },
    "thinking_is_bound": {
        "system": "You are terse, and kind.",
        "messages": [HELLO, assistant(BOUND, text("Hi")), GO_ON],
    },
    "binding_is_known": {
        "messages": [HELLO],
        "thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "forget"}},
    },
    "marks_are_at_most_four": {
        "messages": [user(*(text("Hello", cache_control=MARK) for _ in range(4)))],
        "system": [text("You are terse.", cache_control=MARK)],
    },
    "long_marks_come_first": {
        "messages": [user(text("Hello", cache_control=LONG_MARK))],
        "tools": [WEATHER | {"cache_control": MARK}],
    },
    "media_fit": {"messages": [user(*(IMAGE for _ in range(601)))]},
    "block_comes_first": {"messages": [HELLO, assistant(BLOCK, text("Hi")), GO_ON]},
    "block_is_unchanged": {"messages": [assistant(BLOCK | {"content": "They parted."}, text("Hi")), GO_ON]},
    "block_is_asked_for_alone": {"messages": [HELLO], "compaction": {"type": "summarize"}, "stop_sequences": ["END"]},
    "block_and_threshold_exclude_each_other": {
        "messages": [assistant(BLOCK, text("Hi")), GO_ON],
        "context_management": {"edits": [{"type": "compact_20260112"}]},
    },
    "tool_blocks_fit_the_role": {"messages": [HELLO, user(use("toolu_1"))]},
    "tool_ids_are_plain": {"messages": [HELLO, assistant(use("call:1")), user(result("call:1"))]},
    "tool_use_ids_differ": {
        "messages": [HELLO, *[assistant(use("toolu_1")), user(result("toolu_1"))] * 2],
    },
    "tool_uses_are_answered": {"messages": [HELLO, assistant(use("toolu_1"), use("toolu_2")), user(result("toolu_2"))]},
    "tool_results_are_expected": {"messages": [HELLO, assistant(text("Hi")), user(result("toolu_1"))]},
    "tool_results_come_first": {"messages": [HELLO, assistant(use("toolu_1")), GO_ON, user(result("toolu_1"))]},
    "tool_results_differ": {"messages": [HELLO, assistant(use("toolu_1")), user(result("toolu_1"), result("toolu_1"))]},
    "server_results_are_expected": {
        "messages": [HELLO, assistant(gave("srvtoolu_1", "web_search", []), text("Found.")), GO_ON]
    },
    "server_tools_are_answered": {
        "messages": [HELLO, assistant(served("srvtoolu_1", "web_search", query="x"), text("Found.")), GO_ON]
    },
    "tools_are_defined": asked(HELLO, assistant(use("toolu_1")), user(result("toolu_1"))),
    "tool_names_are_plain": asked(HELLO, tools=[WEATHER | {"name": "get weather"}]),
    "tool_names_differ": asked(HELLO, tools=[WEATHER, SHELL, WEATHER]),
}

BREAKS = {"openai_chat": BREAKS_OPENAI, "anthropic": BREAKS_ANTHROPIC}

MORE: list[tuple[str, str, dict[str, Any]]] = [
    ("openai_chat", "has_messages", {}),
    ("openai_chat", "tool_follows_calls", {"messages": [HI, calls(call("call_1")), ANSWER, HI, ANSWER]}),
    ("openai_chat", "call_is_complete", {"messages": [HI, calls("x")]}),
    (
        "openai_chat",
        "call_is_complete",
        {"messages": [HI, calls({"type": "function", "function": {"name": "f"}} | NO_NAME)]},
    ),
    ("anthropic", "has_messages", {"messages": None}),
    ("anthropic", "message_is_not_empty", {"messages": [{"role": "user", "content": ""}]}),
    ("anthropic", "message_is_not_empty", {"messages": [HELLO, {"role": "system", "content": ""}]}),
    ("anthropic", "text_is_not_blank", {"messages": [HELLO], "system": [text("")]}),
    ("anthropic", "system_message_stands_right", {"messages": [{"role": "system", "content": "Be kind."}, HELLO]}),
    (
        "anthropic",
        "system_message_stands_right",
        {"messages": [HELLO, assistant(text("Hi")), {"role": "system", "content": "Be kind."}]},
    ),
    ("anthropic", "tool_uses_are_answered", {"messages": [HELLO, assistant(use("toolu_1"))]}),
    ("anthropic", "tool_uses_are_answered", {"messages": [HELLO, assistant(use("toolu_1")), GO_ON]}),
    (
        "anthropic",
        "marks_are_at_most_four",
        {"messages": [user(*(text("Hi", cache_control=MARK) for _ in range(4))), HELLO], "cache_control": MARK},
    ),
]


@pytest.mark.parametrize(("format", "rule"), [(f, rule) for f, table in BREAKS.items() for rule in table])
def test_a_rule_is_broken_alone(format: str, rule: str) -> None:
    broken = check(BREAKS[format][rule], format)
    assert {b.rule for b in broken} == {rule}
    assert all(b.where and b.why and b.source for b in broken)


@pytest.mark.parametrize(("format", "rule", "body"), MORE)
def test_a_rule_is_broken_in_other_ways(format: str, rule: str, body: dict[str, Any]) -> None:
    assert rule in {b.rule for b in check(body, format)}


@pytest.mark.parametrize("format", BREAKS)
def test_every_rule_has_a_body_that_breaks_it_and_a_source(format: str) -> None:
    assert [rule.__name__ for rule in named(format).RULES] == list(BREAKS[format])
    assert all(source(rule) for rule in named(format).RULES)


@pytest.mark.parametrize("body", ANTHROPIC)
def test_anthropic_bodies_are_accepted(body: dict[str, Any]) -> None:
    assert check(body, "anthropic") == []
    assert judge_anthropic(body) == []


@pytest.mark.parametrize("body", OPENAI_CHAT)
def test_openai_bodies_are_accepted(body: dict[str, Any]) -> None:
    assert check(body, "openai_chat") == []
    assert judge_openai(body) == []


def test_what_is_unknown_breaks_no_rule_but_is_unknown_to_the_sdks() -> None:
    assert [check(body, "anthropic") for body in ANTHROPIC_ODD] == [[]] * len(ANTHROPIC_ODD)
    assert [check(body, "openai_chat") for body in OPENAI_CHAT_ODD] == [[]] * len(OPENAI_CHAT_ODD)
    assert all(map(judge_anthropic, ANTHROPIC_ODD))
    assert all(map(judge_openai, OPENAI_CHAT_ODD))


def test_the_bodies_leave_no_block_type_of_the_sdks_out() -> None:
    assert set(declared(strict(BetaMessageParam))) - set(said(ANTHROPIC)) == set()
    assert set(declared(strict(ChatCompletionMessageParam))) - set(said(OPENAI_CHAT)) == set()


def test_a_place_and_the_ids_are_named() -> None:
    (broken,) = check(BREAKS_ANTHROPIC["tool_uses_are_answered"], "anthropic")
    assert (broken.where, broken.why) == ("messages[1]", "no tool_result right after answers toolu_1")
    (broken,) = check(BREAKS_OPENAI["calls_are_answered"], "openai_chat")
    assert (broken.where, broken.why) == ("messages[1]", "no tool message right after answers call_2")


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(BadRequest, match="smoke_signals"):
        check({"messages": [HI]}, "smoke_signals")


@pytest.mark.parametrize("format", BREAKS)
def test_no_rule_raises_on_what_it_cannot_read(format: str) -> None:
    bodies = {"anthropic": ANTHROPIC + ANTHROPIC_ODD, "openai_chat": OPENAI_CHAT + OPENAI_CHAT_ODD}[format]
    small = [body for rule, body in BREAKS[format].items() if rule != "media_fit"]
    for body in [*bodies, *small]:
        for mangled in mangle(body):
            check(mangled, format)


def mangle(value: Any) -> Iterator[Any]:
    """The value with each of its parts replaced, in turn, by something that does not belong there."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from (value | {key: junk} for junk in (JUNK if MANY > 1 else [next(KIND)]))
            yield from (value | {key: other} for other in mangle(part))
    elif isinstance(value, list):
        for i, part in enumerate(value[:9]):
            yield from ([*value[:i], other, *value[i + 1 :]] for other in mangle(part))


def declared(kind: Any) -> Iterator[str]:
    """The block types that a type of an SDK declares."""
    if not is_typeddict(kind):
        for member in get_args(kind):
            yield from declared(member)
        return
    for key, value in get_type_hints(kind).items():
        if key == "type":
            yield from get_args(value)
        elif key != "definition":  # a tool, not a block
            yield from declared(value)


def said(value: Any) -> Iterator[str]:
    """The block types that a value holds."""
    if isinstance(value, dict):
        if isinstance(value.get("type"), str):
            yield value["type"]
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from said(part)
