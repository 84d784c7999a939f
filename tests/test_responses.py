"""Bodies of the Responses API survive the way in and out, its rules hold, and what belongs together is not cut."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.responses.response_input_param import ResponseInputItemParam
from typing_extensions import get_type_hints, is_typeddict

from amounts import cases
from bodies import strict
from bodies_responses import (
    HELLO,
    HI,
    IMAGE,
    MARK,
    RESPONSES,
    RESPONSES_ODD,
    WEATHER,
    answer,
    body,
    call,
    judge,
    output,
    said,
    thought,
    user,
    words,
)
from clew.core.cuts import cuts
from clew.core.items import Digests, Frame, Item, Opening
from clew.core.view import View
from clew.errors import BadRequest
from clew.steps.repair import repair
from clew.wire.formats.openai_responses import codec
from clew.wire.formats.openai_responses.rules import RULES
from clew.wire.rules.check import source

Body = dict[str, Any]
JUNK: list[Any] = [None, 7, "", [], {}, [[]], [None], [{}], {"type": []}]


def decode(request: Body) -> tuple[Frame, list[Item]]:
    frame, messages = codec.split(request)
    return frame, [item for i, m in enumerate(messages) for item in codec.read(m, f"input[{i}]")]


def encode(frame: Frame, items: list[Item]) -> Body:
    return codec.join(frame, codec.write(items))


def broken(request: Body) -> list[tuple[str, str, str]]:
    return [(rule.__name__, where, why) for rule in RULES for where, why in rule(request)]


# --- in and out ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("request_", RESPONSES + RESPONSES_ODD)
def test_bodies_come_back_equal_and_untouched(request_: Body) -> None:
    before = copy.deepcopy(request_)
    assert encode(*decode(request_)) == request_ == before


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    max_leaves=6,
)
PART = st.fixed_dictionaries(
    {"type": st.sampled_from(("input_text", "output_text", "refusal", "input_image", "hologram")) | JSON},
    optional={"text": st.text() | JSON, "annotations": JSON, "prompt_cache_breakpoint": JSON},
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(tuple(codec.ROLES))},
    optional={
        "type": st.sampled_from(("message", None)),
        "content": st.none() | st.text() | st.lists(PART, max_size=3),
        "id": JSON,
        "x": JSON,
    },
)
OTHER = st.fixed_dictionaries(
    {
        "type": st.sampled_from(("function_call", "function_call_output", "custom_tool_call_output", "reasoning", "x"))
        | JSON
    },
    optional={k: st.text() | JSON for k in ("call_id", "name", "arguments", "output", "summary", "id")},
).filter(lambda item: item["type"] not in ("message", None))


@given(st.text() | st.lists(MESSAGE | OTHER, max_size=6))
@settings(max_examples=cases(150))
def test_anything_that_can_be_read_comes_back_equal(given_: Any) -> None:
    request = {"input": given_, "extra": 1}
    assert encode(*decode(request)) == request


def test_what_comes_out_shares_nothing_with_what_went_in() -> None:
    for request in RESPONSES + RESPONSES_ODD:
        frame, items = decode(request)
        scramble(encode(frame, items))
        assert encode(frame, items) == request


def scramble(value: Any) -> None:
    for inner in list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ():
        scramble(inner)
    if isinstance(value, dict):
        value["scrambled"] = True
    elif isinstance(value, list):
        value.append("scrambled")


def test_the_frame_holds_what_is_no_history() -> None:
    tools = {"type": "additional_tools", "role": "developer", "tools": [WEATHER | {"name": "late"}]}
    lead = {"role": "developer", "content": "Be kind."}
    frame, items = decode(body(lead, tools, HI, instructions="Be terse.", tools=[WEATHER], previous_response_id="r"))
    assert (frame.format, frame.model, frame.system) == ("openai_responses", "gpt-5", "Be terse.\nBe kind.")
    assert [t["name"] for t in frame.tools] == ["get_weather", "late"]
    assert (frame.lead, frame.body["previous_response_id"]) == ((lead, tools), "r")
    assert [i.text for i in items] == ["Hi"]


def test_a_string_that_has_become_a_conversation_is_a_list() -> None:
    frame, items = decode({"input": "Hi"})
    assert encode(frame, [*items, Item("text", "assistant", "Hello!")]) == {"input": [HI, HELLO]}
    assert encode(frame, [replace(items[0], text="H…")]) == {"input": "H…"}


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({}, "input: expected a list, got NoneType"),
        (body("hi"), "input[0]: expected an object, got str"),
        (body({"content": "hi"}), "input[0].role: expected one of"),
        (body({"role": "tool", "content": "hi"}), "input[0].role: expected one of"),
        (body({"role": "user", "content": 7}), "input[0].content: expected a list, got int"),
        (body({"role": "user", "content": [3]}), "input[0].content[0]: expected an object, got int"),
    ],
)
def test_a_bad_body_is_told_where_and_why(request_: Body, says: str) -> None:
    with pytest.raises(BadRequest) as error:
        decode(request_)
    assert says in str(error.value)


# --- what items say --------------------------------------------------------------------------------------------------


def digests(*items: Any) -> list[str]:
    return [Digests().content(i) for i in decode({"input": [HI, *items]})[1][1:]]


def test_items_say_what_they_are() -> None:
    _, items = decode(
        body(
            user(words("See"), IMAGE),
            thought("rs_1", summary=[{"type": "summary_text", "text": "Hm."}]),
            call("call_1"),
            output("call_1"),
            {"type": "web_search_call", "id": "ws_1"},
            {"type": "computer_call_output", "call_id": "call_2", "output": {}},
        )
    )
    assert [(i.kind, i.role, i.text, i.name, i.call_id, i.wire is None) for i in items] == [
        ("text", "user", "See", "", "", True),
        ("media", "user", "", "", "", False),
        ("reasoning", "assistant", "Hm.", "", "", False),
        ("call", "assistant", '{"city":"Zürich"}', "get_weather", "call_1", True),
        ("result", "tool", "15 degrees", "", "call_1", True),
        ("opaque", "assistant", "", "web_search_call", "", False),
        ("opaque", "tool", "", "computer_call_output", "call_2", False),
    ]


@pytest.mark.parametrize(
    "item",
    [
        Item("summary", "user", "[earlier conversation out of view]"),
        Item("text", "user", "…"),
        Item("text", "assistant", "[called get_weather {}: no result]"),
        Item("text", "system", "In French."),
        Item("call", "assistant", "{}", "get_weather", "call_1"),
        Item("result", "tool", "[out of view]", call_id="call_1"),
        Item("result", "tool", "[out of view]", call_id="call_1", opens=Opening({"type": "custom_tool_call_output"})),
    ],
    ids=lambda item: f"{item.kind} {item.role}",
)
def test_a_stand_in_that_is_sent_back_is_recognised(item: Item) -> None:
    (written,) = codec.write([item])
    (back,) = codec.read(written, "input[0]")
    assert Digests().content(back) == Digests().content(item)
    assert back.wire is None
    assert judge({"input": [written]}) == []


def test_a_stand_in_for_any_item_is_recognised() -> None:
    for request in RESPONSES:
        frame, items = decode(request)
        for i, item in enumerate(items):
            kind = item.kind if item.kind in ("text", "call", "result") else "text"
            if item.kind == "opaque" and item.role in ("tool", "system"):
                continue  # what a hosted tool gave stays or goes with its call, a setting or a compaction always stays
            made = Item(kind, item.role, "[out of view]", item.name, item.call_id, opens=item.opens)
            if kind == "text":
                made = replace(made, name="", call_id="")
            back = decode(encode(frame, [*items[:i], made, *items[i + 1 :]]))[1]
            assert Digests().content(made) == Digests().content(back[i])


def test_a_result_that_is_cleared_answers_the_same_sort_of_call() -> None:
    custom = {"type": "custom_tool_call_output", "id": "ctco_1", "call_id": "c", "output": [words("x"), IMAGE]}
    _, (item,) = decode(body(custom))
    cleared = replace(item, text="[out of view]", wire=None)
    assert codec.write([cleared]) == [{"type": custom["type"], "call_id": "c", "output": "[out of view]"}]


def test_wrapping_is_not_content() -> None:
    bare = {"role": "assistant", "content": "Hello!"}
    forms: list[Any] = [
        [{"type": "output_text", "text": "Hello!"}],
        [answer("Hello!")],
        [answer("Hello!", logprobs=[])],
        [answer("Hello!", prompt_cache_breakpoint=MARK)],
    ]
    assert all(digests(bare | {"content": form}) == digests(bare) for form in forms)
    assert digests(bare | {"content": [answer("Hello!", annotations=[{"type": "x"}])]}) != digests(bare)
    assert digests({"role": "user", "content": [words("Hi", prompt_cache_breakpoint=MARK)]}) == digests(HI)


# --- what belongs together -------------------------------------------------------------------------------------------


def cut(*items: Body) -> list[int]:
    return cuts(Digests().chain(decode(body(*items))[1]))


@pytest.mark.parametrize(
    ("items", "free"),
    [
        ((HI, thought("rs_1"), HELLO, HI), [0, 1, 3, 4]),
        ((HI, thought("rs_1"), call("a"), output("a"), HELLO), [0, 1, 4, 5]),
        ((HI, call("a"), call("b"), output("a"), output("b"), HI), [0, 1, 5, 6]),
        ((HI, thought("rs_1"), call("a"), call("b"), output("b"), output("a"), HI), [0, 1, 6, 7]),
        ((thought("rs_1"), said("msg_1", answer("I look.")), call("a"), call("b"), output("a"), output("b")), [0, 6]),
        ((HI, thought("rs_1"), {"type": "web_search_call", "id": "ws_1"}, call("a"), output("a")), [0, 1, 5]),
        ((call("a"), output("a"), call("b"), output("b")), [0, 2, 4]),
        ((thought("rs_1"), thought("rs_2"), call("a"), output("a"), HI), [0, 4, 5]),
        (
            ({"type": "computer_call", "call_id": "a"}, {"type": "computer_call_output", "call_id": "a"}, call("b")),
            [0, 2, 3],
        ),
        (
            (
                HI,
                {"type": "mcp_approval_request", "id": "mcpr_1"},
                {"type": "mcp_approval_response", "approval_request_id": "mcpr_1"},
                HI,
            ),
            [0, 1, 3, 4],
        ),
    ],
)
def test_reasoning_calls_and_their_outputs_are_not_parted(items: tuple[Body, ...], free: list[int]) -> None:
    assert cut(*items) == free


def test_what_is_in_order_is_not_mended() -> None:
    for request in RESPONSES:
        frame, items = decode(request)
        if "previous_response_id" in request or any(i.name == "item_reference" for i in items):
            continue  # a result whose call is elsewhere
        view = View(frame, tuple(Digests().chain(items)), Digests())
        assert repair(view) is view


# --- rules -----------------------------------------------------------------------------------------------------------

COMPUTER: Body = {"type": "computer_call", "call_id": "call_1"}
BREAKS: dict[str, Body] = {
    "has_input": {"input": []},
    "input_is_text_or_items": {"input": {}},
    "item_is_an_object": {"input": ["Hi"]},
    "role_is_known": body({"role": "tool", "content": "15 degrees"}),
    "content_is_text_or_parts": body({"role": "user", "content": None}),
    "part_fits_its_role": body(HI, {"role": "assistant", "content": [words("Hello!")]}),
    "item_is_complete": body(HI, {"type": "reasoning", "id": "rs_1"}, HELLO),
    "arguments_are_a_string": body(HI, call("call_1", arguments={}), output("call_1")),
    "output_is_text_or_parts": body(HI, call("call_1"), output("call_1", {"temperature": 15})),
    "ids_are_short": body(HI, call("c" * 65), output("c" * 65)),
    "id_names_its_type": body(HI, call("call_1", id="call_1"), output("call_1")),
    "ids_differ": body(HI, thought("rs_1"), HELLO, thought("rs_1"), HELLO),
    "calls_are_answered": body(HI, call("call_1"), call("call_2"), output("call_1")),
    "outputs_answer_a_call": body(HI, output("call_1")),
    "reasoning_is_followed": body(HI, thought("rs_1"), HI),
    "compaction_is_asked_for_last": body({"type": "compaction_trigger"}, HI),
    "tool_name_is_plain": body(HI, call("call_1", name="weather.get"), output("call_1")),
    "json_is_mentioned": body(HI, text={"format": {"type": "json_object"}}),
}
MORE: list[tuple[str, Body]] = [
    ("has_input", {}),
    ("part_fits_its_role", body({"role": "user", "content": [answer("Hi")]})),
    ("part_fits_its_role", body({"role": "system", "content": [{"type": "text", "text": "Hi"}]})),
    ("item_is_complete", body(HI, call("call_1", name=None), output("call_1"))),
    ("output_is_text_or_parts", body(HI, call("call_1"), output("call_1", [answer("15")]))),
    ("ids_are_short", body(HI, thought("rs_" + "1" * 62), HELLO)),
    ("id_names_its_type", body(HI, said("item_1", answer("Hello!")), HI)),
    ("calls_are_answered", body(output("call_1"), call("call_1"))),
    ("calls_are_answered", body(HI, COMPUTER)),
    ("outputs_answer_a_call", body(HI, COMPUTER, output("call_1"))),
    ("reasoning_is_followed", body(HI, call("call_1"), thought("rs_1"), output("call_1"))),
    ("reasoning_is_followed", body(HI, thought("rs_1"))),
    ("tool_name_is_plain", body(HI, tools=[WEATHER | {"name": "weather.get"}])),
    ("json_is_mentioned", {"input": "Hi", "text": {"format": {"type": "json_object"}}}),
]
ACCEPTED: list[Body] = [
    body(output("call_1"), previous_response_id="resp_1"),
    body(output("call_1"), conversation={"id": "conv_1"}),
    body({"type": "item_reference", "id": "fc_1"}, output("call_1")),
    body(HI, {"type": "reasoning", "summary": []}, HI),
    body({"role": "user", "content": "As JSON, please."}, text={"format": {"type": "json_object"}}),
    {"previous_response_id": "resp_1"},
]


@pytest.mark.parametrize("rule", BREAKS)
def test_a_rule_is_broken_alone(rule: str) -> None:
    found = broken(BREAKS[rule])
    assert {name for name, _, _ in found} == {rule}
    assert all(where and why for _, where, why in found)


@pytest.mark.parametrize(("rule", "request_"), MORE)
def test_a_rule_is_broken_in_other_ways(rule: str, request_: Body) -> None:
    assert rule in {name for name, _, _ in broken(request_)}


def test_every_rule_has_a_body_that_breaks_it_and_a_source() -> None:
    assert [rule.__name__ for rule in RULES] == list(BREAKS)
    assert all(source(rule) for rule in RULES)


@pytest.mark.parametrize("request_", RESPONSES)
def test_bodies_are_accepted(request_: Body) -> None:
    assert broken(request_) == []
    assert judge(request_) == []


def test_what_is_unknown_or_elsewhere_breaks_no_rule() -> None:
    assert [broken(request) for request in RESPONSES_ODD + ACCEPTED] == [[]] * len(RESPONSES_ODD + ACCEPTED)
    assert all(map(judge, RESPONSES_ODD))


def test_a_place_and_the_ids_are_named() -> None:
    assert broken(BREAKS["calls_are_answered"]) == [
        ("calls_are_answered", "input[2]", "no function_call_output after it answers call_2")
    ]


def test_no_rule_raises_on_what_it_cannot_read() -> None:
    for request in [*RESPONSES, *RESPONSES_ODD, *BREAKS.values()]:
        for mangled in mangle(request):
            broken(mangled)


def mangle(value: Any) -> Iterator[Any]:
    """The value with each of its parts replaced, in turn, by something that does not belong there."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from (value | {key: junk} for junk in JUNK)
            yield from (value | {key: other} for other in mangle(part))
    elif isinstance(value, list):
        for i, part in enumerate(value[:9]):
            yield from ([*value[:i], other, *value[i + 1 :]] for other in mangle(part))


def test_the_bodies_leave_no_item_type_of_the_sdk_out() -> None:
    assert set(declared(strict(ResponseInputItemParam))) - set(types(RESPONSES)) == set()


def declared(kind: Any) -> Iterator[str]:
    """The types of items and parts that a type of the SDK declares."""
    if not is_typeddict(kind):
        for member in get_args(kind):
            yield from declared(member)
        return
    for key, value in get_type_hints(kind).items():
        if key == "type":
            yield from literals(value)
        elif key != "tools":  # they are no items
            yield from declared(value)


def literals(kind: Any) -> Iterator[str]:
    if get_origin(kind) is Literal:
        yield from get_args(kind)
    else:
        for member in get_args(kind):
            yield from literals(member)


def types(value: Any) -> Iterator[str]:
    """The types that a value holds."""
    if isinstance(value, dict):
        if isinstance(value.get("type"), str):
            yield value["type"]
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from types(part)
