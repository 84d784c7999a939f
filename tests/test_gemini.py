"""Gemini's bodies survive the way in and out; what is put into them is accepted; each rule is broken by one body."""

import copy
from collections.abc import Iterator
from dataclasses import replace as with_
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import clew
from amounts import cases
from bodies_gemini import (
    GEMINI,
    GEMINI_BAD,
    GEMINI_ODD,
    GO_ON,
    HELLO,
    HI,
    SIGNATURE,
    TOOLS,
    WEATHER,
    asked,
    call,
    model,
    response,
    text,
    user,
)
from clew.core.items import Digests, Frame, Item
from clew.errors import BadRequest
from clew.store.sql import SQLStore
from clew.wire.formats.gemini import codec as gemini
from clew.wire.formats.gemini.rules import BESIDE_KEYS, DATA, RULES
from clew.wire.rules.check import source
from test_check import mangle

BREAKS: dict[str, dict[str, Any]] = {
    "has_contents": asked(),
    "contents_are_objects": {"contents": ["Hello", HELLO]},
    "role_is_known": asked(HELLO, {"role": "assistant", "parts": [text("Hi")]}),
    "parts_are_present": asked(HELLO, model(), GO_ON),
    "parts_are_objects": {"contents": [{"role": "user", "parts": ["Hello"]}]},
    "part_has_data": asked(user(text("Hello"), {"thought": True, "thoughtSignature": SIGNATURE})),
    "part_holds_one_thing": asked(user({"text": "Look.", "inline_data": {"mime_type": "image/png", "data": ""}})),
    "text_is_not_empty": asked(user(text("Hello"), text(""))),
    "single_content_is_the_users": asked(HI),
    "calls_follow_the_user": asked(model(call()), user(response())),
    "responses_follow_calls": asked(HELLO, HI, user(response())),
    "calls_are_answered": asked(HELLO, model(call(), call()), user(response())),
    "functions_are_named": asked(HELLO, model(call("")), user(response())),
    "function_names_are_plain": asked(HELLO, tools=[{"functionDeclarations": [WEATHER | {"name": "2nd"}]}]),
    "tools_hold_something": asked(HELLO, tools=[{"functionDeclarations": []}]),
    "values_are_objects": asked(HELLO, model(call()), user(response(value="15 degrees"))),
    "calls_are_signed": asked(HELLO, model(call()), user(response()), model="gemini-3-pro"),
}
MORE: list[tuple[str, dict[str, Any]]] = [
    ("has_contents", {}),
    ("has_contents", {"contents": "Hello"}),
    ("parts_are_present", asked({"role": "user"})),
    ("part_has_data", asked(user({}))),
    ("part_has_data", asked(user({"text": None}))),
    ("calls_follow_the_user", asked(HELLO, HI, model(call()), user(response()))),
    ("responses_follow_calls", asked(HELLO, model(call(), call()), user(response()), user(response()))),
    ("calls_are_answered", asked(HELLO, model(call()))),
    ("calls_are_answered", asked(HELLO, model(call()), GO_ON)),
    ("functions_are_named", asked(HELLO, model(call()), user({"function_response": {"response": {}}}))),
    ("values_are_objects", asked(HELLO, model(call(args=[])), user(response()))),
]
SIGNED = call() | {"thoughtSignature": SIGNATURE}
NEW = "models/gemini-3-flash"


def decode(body: dict[str, Any]) -> tuple[Frame, list[Item]]:
    frame, contents = gemini.split(body)
    return frame, [item for i, m in enumerate(contents) for item in gemini.read(m, f"contents[{i}]")]


def again(body: dict[str, Any]) -> dict[str, Any]:
    frame, items = decode(body)
    return gemini.join(frame, gemini.write(items))


def check(body: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(rule.__name__, where, why) for rule in RULES for where, why in rule(body)]


@pytest.mark.parametrize("body", GEMINI + GEMINI_ODD + GEMINI_BAD)
def test_bodies_come_back_equal_and_untouched(body: dict[str, Any]) -> None:
    before = copy.deepcopy(body)
    assert again(body) == body == before


@pytest.mark.parametrize("body", GEMINI + GEMINI_ODD + GEMINI_BAD)
def test_what_comes_out_shares_nothing_with_what_went_in(body: dict[str, Any]) -> None:
    frame, items = decode(body)
    scramble(gemini.join(frame, gemini.write(items)))
    assert gemini.join(frame, gemini.write(items)) == body
    given = copy.deepcopy(body)
    frame, items = decode(given)
    scramble(given)
    assert gemini.join(frame, gemini.write(items)) == body


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text() | st.just("result"), x, max_size=3),
    max_leaves=6,
)
FUNCTION = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(("a", "f~0", "~1", "")) | JSON,
        "name": st.sampled_from(("f", "")) | JSON,
        "args": JSON,
        "response": st.fixed_dictionaries({"result": st.text()}) | JSON,
        "x": JSON,
    },
)
PART = (
    st.sampled_from((text("a"), text("b", thought=True), call(), response(), SIGNED, {}))
    | st.fixed_dictionaries({"functionCall": FUNCTION})
    | st.fixed_dictionaries({"functionResponse": FUNCTION})
    | st.dictionaries(st.sampled_from((*DATA, *DATA.values(), *BESIDE_KEYS, "x")), JSON | FUNCTION, max_size=2)
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {},
            optional={
                "role": st.sampled_from(("user", "model", "function", None, "")),
                "parts": st.none() | st.lists(PART, max_size=5),
                "x": JSON,
            },
        )
    )
)
@settings(max_examples=cases(150))
def test_anything_that_can_be_read_comes_back_equal(contents: list[dict[str, Any]]) -> None:
    body = {"contents": contents, "extra": 1}
    assert again(body) == body


def test_the_bodies_leave_no_part_type_out() -> None:
    said = {key for body in GEMINI for content in body["contents"] for part in content["parts"] for key in part}
    assert {*DATA.values(), *BESIDE_KEYS.values()} - said == set()


@pytest.mark.parametrize(
    "body",
    [
        asked(HELLO, systemInstruction={"parts": [text("Be kind.")]}, tools=TOOLS, model="gemini-3-pro"),
        asked(HELLO, system_instruction={"parts": [text("Be kind.")]}, tools=TOOLS, model="gemini-3-pro"),
        asked(HELLO, config={"system_instruction": "Be kind.", "tools": TOOLS}, model="gemini-3-pro"),
    ],
)
def test_a_frame_has_the_model_the_system_prompt_and_the_tools(body: dict[str, Any]) -> None:
    frame, _ = decode(body)
    assert (frame.format, frame.model, frame.system, frame.tools) == ("gemini", "gemini-3-pro", "Be kind.", (WEATHER,))


def test_parts_become_items() -> None:
    body = asked(
        user(text("Hello"), {"inlineData": {"mimeType": "image/png", "data": ""}}),
        model(text("Hm.", thought=True), SIGNED, call(id="c1")),
        user(response(), response(id="c1", value={"a": 1, "b": 2})),
        {"parts": [text("And?")]},
    )
    told = [(i.kind, i.role, i.text, i.name, i.call_id, i.wire is None) for i in decode(body)[1]]
    assert told == [
        ("text", "user", "Hello", "", "", True),
        ("media", "user", "", "", "", False),
        ("reasoning", "assistant", "Hm.", "", "", False),
        ("call", "assistant", '{"city":"Zürich"}', "get_weather", "get_weather~0", False),
        ("call", "assistant", '{"city":"Zürich"}', "get_weather", "c1", True),
        ("result", "tool", "15 degrees", "get_weather", "get_weather~0", True),
        ("result", "tool", '{"a":1,"b":2}', "get_weather", "c1", False),
        ("text", "user", "And?", "", "", True),
    ]


def test_calls_without_ids_pair_by_name_and_order() -> None:
    body = asked(
        HELLO,
        *[model(call("f"), call("g"), call("f")), user(response("g"), response("f"), response("f"))] * 2,
    )
    ids = [i.call_id for i in decode(body)[1] if i.call_id]
    assert ids == ["f~0", "g~0", "f~1", "g~0", "f~0", "f~1"] * 2


HISTORY = asked(HELLO, model(text("I look."), call(), call()), user(response(), response(value={"n": 1})), HI, GO_ON)


def stand_ins() -> Iterator[list[Item]]:
    """A history, and the same with parts of it replaced as steps replace them."""
    first, said, one, two, got, last_got, hi, last = decode(HISTORY)[1]
    summary = Item("summary", "user", "[earlier conversation]")
    calls = [said, one, two]
    yield [first, *calls, with_(got, text="[cleared]"), with_(last_got, text="[cleared]", wire=None), hi, last]
    nameless = [Item("result", "tool", "a", call_id=i.call_id) for i in (one, two)]
    yield [first, *calls, *nameless, hi, last]
    yield [first, summary, last]
    yield [summary, last]
    yield [first, summary]
    yield [first, summary, *calls, got, with_(last_got, text="x", wire=None), summary, last]
    yield [first, Item("text", "assistant", "[said]", opens=said.opens), with_(last, text="[preview]")]
    yield [first, hi, Item("text", "assistant", "[said]"), last]
    made = Item("call", "assistant", '{"a":[1,"ä",null]}', "f", "c3")
    yield [first, made, Item("result", "tool", "done", call_id="c3"), summary, last]
    yield [first, with_(made, call_id="f~0"), Item("result", "tool", "done", call_id="f~0"), last]


@pytest.mark.parametrize("items", list(stand_ins()))
def test_stand_ins_are_accepted_and_recognised(items: list[Item]) -> None:
    body = {"contents": gemini.write(items)}
    assert check(body) == []
    digests = Digests()
    assert [digests.content(i) for i in decode(body)[1]] == [digests.content(i) for i in items]


def test_an_id_that_was_made_up_is_not_written() -> None:
    _, called, got = decode(asked(HELLO, model(call()), user(response())))[1]
    assert gemini.write([with_(called, wire=None), with_(got, name="", text="[cleared]")]) == [
        model(call()),
        user(response(value={"result": "[cleared]"})),
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


@pytest.mark.parametrize("body", GEMINI + GEMINI_ODD)
def test_bodies_break_no_rule(body: dict[str, Any]) -> None:
    assert check(body) == []


@pytest.mark.parametrize(
    "body",
    [
        asked(HELLO, model(SIGNED, call()), user(response(), response()), model=NEW),
        asked(HELLO, model(call()), user(response()), HI, GO_ON, model=NEW),
        asked(HELLO, model(call()), user(response()), model="gemini-2.5-pro"),
    ],
)
def test_only_the_first_calls_of_the_newest_turn_must_be_signed(body: dict[str, Any]) -> None:
    assert check(body) == []


def test_no_rule_raises_on_what_it_cannot_read() -> None:
    for body in [*GEMINI, *GEMINI_ODD, *GEMINI_BAD, *BREAKS.values()]:
        for mangled in mangle(body):
            check(mangled)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "contents: expected a list, got NoneType"),
        ({"contents": "hi"}, "contents: expected a list, got str"),
        ({"contents": ["hi"]}, "contents[0]: expected an object, got str"),
        ({"contents": [{"role": "king", "parts": []}]}, "contents[0].role: expected one of"),
        ({"contents": [{"parts": "hi"}]}, "contents[0].parts: expected a list, got str"),
        ({"contents": [{"parts": [3]}]}, "contents[0].parts[0]: expected an object, got int"),
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


async def test_responses_that_a_client_sends_twice_are_mended(store: SQLStore) -> None:
    """Gemini CLI does so when it resumes a session, and leaves out what signed the calls."""
    calls = [{"functionCall": {"id": f"c{n}", "name": "ls", "args": {"path": f"{n}"}}} for n in range(2)]
    back = [{"functionResponse": {"id": f"c{n}", "name": "ls", "response": {"output": f"{n}.py"}}} for n in range(2)]
    said = [
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": calls},
        {"role": "user", "parts": [*back, *back]},
        {"role": "model", "parts": [{"text": "Seen."}]},
        {"role": "user", "parts": [{"text": "Go on."}]},
    ]
    asked = {"model": "gemini-2.5-pro", "contents": said}
    assert [rule for rule, _, _ in check(asked)] == ["calls_are_answered"]
    sent = clew.body(await clew.Engine(store).prepare(clew.Request(asked)))
    assert check(sent) == []
    assert sent["contents"][2]["parts"][:2] == back


async def test_what_signs_a_call_stays_with_it_through_folds(store: SQLStore) -> None:
    said: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": "Build all of it."}]}]
    for n in range(40):
        call = {"functionCall": {"id": f"c{n}", "name": "make", "args": {"part": n}}, "thoughtSignature": f"c2ln{n:04}"}
        given = {"functionResponse": {"id": f"c{n}", "name": "make", "response": {"output": f"made part_{n} " * 60}}}
        said += [{"role": "model", "parts": [call]}, {"role": "user", "parts": [given]}]
    engine = clew.Engine(store, clew.Budget(window=6_000, reserve=500, tail=2_000))
    view = await engine.prepare(clew.Request({"model": "gemini-3-pro", "contents": said}))
    sent = clew.body(view)
    assert view.edits
    assert check(sent) == []
    kept = [p for c in sent["contents"] for p in c["parts"] if "functionCall" in p]
    assert kept
    assert all(p["thoughtSignature"] == f"c2ln{p['functionCall']['args']['part']:04}" for p in kept)
