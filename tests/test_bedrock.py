"""Bedrock's bodies survive the way in and out; what is put into them is accepted; each rule is broken by one body."""

import copy
from collections.abc import Iterator
from dataclasses import replace as with_
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import cases
from bodies_bedrock import (
    BEDROCK,
    BEDROCK_BAD,
    BEDROCK_ODD,
    GO_ON,
    HELLO,
    HI,
    PIXEL,
    POINT,
    TOOLS,
    WEATHER,
    asked,
    assistant,
    document,
    result,
    text,
    thought,
    use,
    user,
)
from clew.core.items import Digests, Frame, Item
from clew.errors import BadRequest
from clew.wire.formats.bedrock import codec as bedrock
from clew.wire.formats.bedrock.rules import RULES
from clew.wire.rules.check import source
from test_check import mangle

# The members of ContentBlock in the service's own model.
BLOCKS = (
    "text image document video audio toolUse toolResult guardContent cachePoint reasoningContent citationsContent "
    "searchResult toolAddition toolRemoval"
).split()

BREAKS: dict[str, dict[str, Any]] = {
    "has_messages": {"messages": []},
    "role_is_known": {"messages": [HELLO, {"role": "tool", "content": [text("15")]}]},
    "starts_with_the_user": {"messages": [HI, HELLO]},
    "roles_alternate": {"messages": [HELLO, GO_ON]},
    "content_is_blocks": {"messages": [{"role": "user", "content": "Hello"}]},
    "block_is_one_thing": {"messages": [user(text("Hello"), {})]},
    "message_is_not_empty": {"messages": [HELLO, assistant(), GO_ON]},
    "text_is_not_blank": {"messages": [user(text("Hello"), text(" \n"))]},
    "result_text_is_not_empty": {"messages": [HELLO, assistant(use("t1")), user(result("t1", text("")))]},
    "failed_result_has_reason": {"messages": [HELLO, assistant(use("t1")), user(result("t1", status="error"))]},
    "tool_block_is_complete": {
        "messages": [HELLO, assistant({"toolUse": {"toolUseId": "t1", "input": {}}}), user(result("t1"))]
    },
    "tool_input_is_an_object": {"messages": [HELLO, assistant(use("t1", input="{}")), user(result("t1"))]},
    "tool_ids_are_plain": {"messages": [HELLO, assistant(use("t 1")), user(result("t 1"))]},
    "tool_names_are_plain": asked(HELLO, toolConfig={"tools": [{"toolSpec": WEATHER["toolSpec"] | {"name": "a.b"}}]}),
    "tool_config_is_defined": asked(HELLO, assistant(use("t1")), user(result("t1"))),
    "tool_use_ids_differ": {"messages": [HELLO, assistant(use("t1"), use("t1")), user(result("t1"))]},
    "tool_result_ids_differ": {"messages": [HELLO, assistant(use("t1")), user(result("t1"), result("t1"))]},
    "tool_uses_are_answered": {"messages": [HELLO, assistant(use("t1"), use("t2")), user(result("t2"))]},
    "tool_results_are_expected": {"messages": [HELLO, HI, user(result("t1"))]},
    "cache_point_follows_no_reasoning": {"messages": [HELLO, assistant(thought("Hm."), POINT, text("Hi")), GO_ON]},
    "documents_come_with_text": {"messages": [user(document("a"))]},
    "document_names_differ": {"messages": [user(text("Read."), document("a")), HI, user(text("And?"), document("a"))]},
    "documents_are_few": {"messages": [user(text("Read."), *(document(name) for name in "abcdef"))]},
}
MORE: list[tuple[str, dict[str, Any]]] = [
    ("has_messages", {}),
    ("role_is_known", {"messages": ["Hello"]}),
    ("content_is_blocks", {"messages": [user("Hello")]}),  # type: ignore[arg-type]
    ("block_is_one_thing", {"messages": [user({"text": "a", "image": {}})]}),
    ("text_is_not_blank", {"messages": [HELLO], "system": [text("")]}),
    ("tool_uses_are_answered", {"messages": [HELLO, assistant(use("t1"))]}),
    ("tool_uses_are_answered", {"messages": [HELLO, assistant(use("t1")), user(result("t2"))]}),
    ("tool_results_are_expected", {"messages": [user(result("t1"))]}),
    ("tool_results_are_expected", {"messages": [HELLO, assistant(use("t1")), user(result("t1"), result("t2"))]}),
]


def decode(body: dict[str, Any]) -> tuple[Frame, list[Item]]:
    frame, messages = bedrock.split(body)
    return frame, [item for i, m in enumerate(messages) for item in bedrock.read(m, f"messages[{i}]")]


def again(body: dict[str, Any]) -> dict[str, Any]:
    frame, items = decode(body)
    return bedrock.join(frame, bedrock.write(items))


def check(body: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(rule.__name__, where, why) for rule in RULES for where, why in rule(body)]


@pytest.mark.parametrize("body", BEDROCK + BEDROCK_ODD + BEDROCK_BAD)
def test_bodies_come_back_equal_and_untouched(body: dict[str, Any]) -> None:
    before = copy.deepcopy(body)
    assert again(body) == body == before


@pytest.mark.parametrize("body", BEDROCK + BEDROCK_ODD + BEDROCK_BAD)
def test_tools_of_a_frame_are_objects(body: dict[str, Any]) -> None:
    assert all(isinstance(tool, dict) for tool in decode(body)[0].tools)  # others look for their names


@pytest.mark.parametrize("body", BEDROCK + BEDROCK_ODD + BEDROCK_BAD)
def test_what_comes_out_shares_nothing_with_what_went_in(body: dict[str, Any]) -> None:
    frame, items = decode(body)
    scramble(bedrock.join(frame, bedrock.write(items)))
    assert bedrock.join(frame, bedrock.write(items)) == body
    given = copy.deepcopy(body)
    frame, items = decode(given)
    scramble(given)
    assert bedrock.join(frame, bedrock.write(items)) == body


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text() | st.sampled_from(("text", "json")), x, max_size=3),
    max_leaves=6,
)
TOOL = st.fixed_dictionaries(
    {},
    optional={
        "toolUseId": st.text(max_size=2) | JSON,
        "name": st.text(max_size=2) | JSON,
        "input": JSON,
        "content": st.lists(st.fixed_dictionaries({"text": st.text()}) | JSON, max_size=2) | JSON,
        "status": st.just("error"),
        "type": JSON,
    },
)
BLOCK = (
    st.sampled_from((POINT, text("a"), use("t"), result("t", text("b")), thought("c"), {}))
    | st.fixed_dictionaries({"toolUse": TOOL})
    | st.fixed_dictionaries({"toolResult": TOOL})
    | st.dictionaries(st.sampled_from((*BLOCKS, "x")), JSON | TOOL, max_size=2)
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(("user", "assistant", "system"))},
            optional={"content": st.none() | st.lists(BLOCK, max_size=5), "x": JSON},
        )
    )
)
@settings(max_examples=cases(150))
def test_anything_that_can_be_read_comes_back_equal(messages: list[dict[str, Any]]) -> None:
    body = {"messages": messages, "extra": 1}
    assert again(body) == body


def test_the_bodies_leave_no_block_type_out() -> None:
    said = {key for body in BEDROCK for message in body["messages"] for block in message["content"] for key in block}
    assert said == set(BLOCKS)


def test_a_frame_has_the_model_the_system_prompt_and_the_tools() -> None:
    system = [text("You are terse."), {"guardContent": {"text": {"text": "Be kind."}}}, POINT]
    frame, _ = decode(asked(HELLO, system=system, toolConfig=TOOLS))
    assert (frame.format, frame.model) == ("bedrock", "anthropic.claude-opus-4-8-v1:0")
    assert frame.system == "You are terse.\nBe kind."
    assert frame.tools == (WEATHER["toolSpec"],)


def test_blocks_become_items() -> None:
    found = {"citationsContent": {"content": [text("Green.")], "citations": []}}
    body = asked(
        user(text("Hello"), POINT, {"image": {"format": "png", "source": {"bytes": PIXEL}}}),
        assistant(thought("Hm.", signature="x"), found, use("t1")),
        user(result("t1", text("15"))),
    )
    told = [(i.kind, i.role, i.text, i.name, i.call_id, i.wire is None, i.mark) for i in decode(body)[1]]
    assert told == [
        ("text", "user", "Hello", "", "", True, POINT),
        ("media", "user", "", "", "", False, None),
        ("reasoning", "assistant", "Hm.", "", "", False, None),
        ("text", "assistant", "Green.", "", "", False, None),
        ("call", "assistant", '{"city":"Zürich"}', "get_weather", "t1", True, None),
        ("result", "tool", "15", "", "t1", True, None),
    ]


def test_a_cache_point_is_no_content() -> None:
    bare, marked = decode(asked(user(text("Hello"))))[1], decode(asked(user(text("Hello"), POINT)))[1]
    assert [Digests().content(i) for i in bare] == [Digests().content(i) for i in marked]


def test_bytes_are_the_same_object_of_bytes() -> None:
    (message,) = again(asked(user({"image": {"format": "png", "source": {"bytes": PIXEL}}})))["messages"]
    assert message["content"][0]["image"]["source"]["bytes"] == PIXEL


HISTORY = asked(
    HELLO, assistant(text("I look."), use("t1"), use("t2")), user(result("t1", text("15")), result("t2")), HI, GO_ON
)


def stand_ins() -> Iterator[list[Item]]:
    """A history, and the same with parts of it replaced as steps replace them."""
    first, said, call, other, one, two, hi, last = decode(HISTORY)[1]
    summary = Item("summary", "user", "[earlier conversation]")
    calls = [said, call, other]
    yield [first, *calls, with_(one, text="[cleared]"), with_(two, text="[cleared]", wire=None), hi, last]
    yield [
        first,
        *calls,
        Item("result", "tool", "a", call_id="t1"),
        Item("result", "tool", "b", call_id="t2"),
        hi,
        last,
    ]
    yield [first, summary, last]
    yield [summary, last]
    yield [first, summary]
    yield [first, summary, Item("text", "user", "[more]"), last]
    yield [first, summary, *calls, one, with_(two, text="x", wire=None), summary, last]
    yield [first, Item("text", "assistant", "[said]", opens=said.opens), with_(last, text="[preview]")]
    yield [first, Item("text", "assistant", "[said]"), hi, last]
    made = Item("call", "assistant", '{"a":[1,"ä",null]}', "get_weather", "t3")
    yield [first, made, Item("result", "tool", "done", call_id="t3"), summary, last]


@pytest.mark.parametrize("items", list(stand_ins()))
def test_stand_ins_are_accepted_and_recognised(items: list[Item]) -> None:
    body = {"messages": bedrock.write(items)}
    assert check(body) == []
    digests = Digests()
    assert [digests.content(i) for i in decode(body)[1]] == [digests.content(i) for i in items]


def test_only_what_we_put_there_is_merged() -> None:
    first, second = decode(asked(HELLO, GO_ON))[1]
    assert len(bedrock.write([first, second])) == 2
    assert bedrock.write([first, Item("summary", "user", "…"), second]) == [
        user(text("Hello"), text("…"), text("Go on."))
    ]


@pytest.mark.parametrize("rule", BREAKS)
def test_a_rule_is_broken_alone(rule: str) -> None:
    broken = check(BREAKS[rule])
    assert {name for name, _, _ in broken} == {rule}
    assert all(where and why for _, where, why in broken)


@pytest.mark.parametrize(("rule", "body"), MORE)
def test_a_rule_is_broken_in_other_ways(rule: str, body: dict[str, Any]) -> None:
    assert rule in {name for name, _, _ in check(body)}


def test_every_rule_has_a_body_that_breaks_it_and_a_source() -> None:
    assert [rule.__name__ for rule in RULES] == list(BREAKS)
    assert all(source(rule) for rule in RULES)


@pytest.mark.parametrize("body", BEDROCK + BEDROCK_ODD)
def test_bodies_break_no_rule(body: dict[str, Any]) -> None:
    assert check(body) == []


def test_a_place_and_the_ids_are_named() -> None:
    assert check(BREAKS["tool_uses_are_answered"]) == [
        ("tool_uses_are_answered", "messages[1]", "no toolResult right after answers t1")
    ]


def test_no_rule_raises_on_what_it_cannot_read() -> None:
    for body in [*BEDROCK, *BEDROCK_ODD, *BEDROCK_BAD, *BREAKS.values()]:
        for mangled in mangle(body):
            check(mangled)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "messages: expected a list, got NoneType"),
        ({"messages": ["hi"]}, "messages[0]: expected an object, got str"),
        ({"messages": [{"content": []}]}, "messages[0].role: expected one of"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "messages[0].content: expected a list, got str"),
        ({"messages": [{"role": "user", "content": [3]}]}, "messages[0].content[0]: expected an object, got int"),
    ],
)
def test_a_bad_body_is_told_where_and_why(body: dict[str, Any], says: str) -> None:
    with pytest.raises(BadRequest) as error:
        decode(body)
    assert says in str(error.value)


def scramble(value: Any) -> None:
    if isinstance(value, dict):
        for inner in list(value.values()):
            scramble(inner)
        value["scrambled"] = True
    elif isinstance(value, list):
        for inner in value:
            scramble(inner)
        value.append("scrambled")
