"""A conversation goes over to another format: all that can be read, and nothing that would be refused."""

import copy
import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import islice, product
from operator import getitem
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import cases
from bodies import (
    ANTHROPIC,
    ANTHROPIC_ODD,
    OPENAI_CHAT,
    OPENAI_CHAT_ODD,
    PDF,
    PIXEL,
    judge_anthropic,
    judge_openai,
)
from bodies_bedrock import BEDROCK, BEDROCK_BAD, BEDROCK_ODD
from bodies_gemini import GEMINI, GEMINI_BAD, GEMINI_ODD
from bodies_responses import RESPONSES, RESPONSES_ODD
from bodies_responses import judge as judge_responses
from clew import wire
from clew.core.items import Item
from clew.errors import BadRequest
from clew.testing import conversation
from clew.wire.convert import convert, convert_frame, convert_item, convert_items
from conftest import conversations

Body = dict[str, Any]

BODIES: dict[str, list[Body]] = {
    "openai_chat": [*OPENAI_CHAT, *OPENAI_CHAT_ODD],
    "anthropic": [*ANTHROPIC, *ANTHROPIC_ODD],
    "openai_responses": [*RESPONSES, *RESPONSES_ODD],
    "bedrock": [*BEDROCK, *BEDROCK_ODD, *BEDROCK_BAD],
    "gemini": [*GEMINI, *GEMINI_ODD, *GEMINI_BAD],
}
MODELS = {"gemini": "gemini-3-pro", "anthropic": "claude-opus-4-8"}
JUDGES: dict[str, Callable[[Body], list[str]]] = {
    "openai_chat": judge_openai,
    "anthropic": judge_anthropic,
    "openai_responses": judge_responses,
}
SEALS = frozenset(
    "signature thoughtSignature thought_signature redactedContent encrypted_content encrypted_index "
    "encrypted_stdout".split()
)
PAIRS = list(product(wire.FORMATS, wire.FORMATS))
MADE = {"seed": st.integers(0, 10_000), "turns": st.integers(0, 8)}


def bodies(format: str) -> Iterator[Body]:
    yield from BODIES[format]
    yield from (conversation(seed, 5, format, wordy=8) for seed in range(6))


def arguments(call: Item) -> str:
    """What a tool is called with, as one object; free text counts as its `input`."""
    given: Any = call.text
    if (call.wire or {}).get("type") not in ("custom", "custom_tool_call"):
        try:
            given = json.loads(call.text or "{}")
        except ValueError:
            given = call.text
    return json.dumps(given if isinstance(given, dict) else {"input": given}, sort_keys=True)


def told(body: Body, format: str) -> list[tuple[str, ...]]:
    """What a body says, in order: texts, calls, results; a result that answers nothing counts as text."""
    said: list[tuple[str, ...]] = []
    called: set[str] = set()
    for item in wire.decode(body, format)[1]:
        if item.kind == "call":
            called.add(item.call_id)
            said.append(("call", item.name, arguments(item)))
        elif item.kind == "result" and item.call_id in called:
            said.append(("result", item.text))
        elif item.kind in ("text", "summary", "result") and item.text.strip():
            said.append(("text", item.text.strip()))
    return said


def pairs(body: Body, format: str) -> list[tuple[str, str, str]]:
    """Calls with what came back, in the order in which it came."""
    waiting: dict[str, Item] = {}
    found = []
    for item in wire.decode(body, format)[1]:
        if item.kind == "call":
            waiting[item.call_id] = item
        elif item.kind == "result" and (call := waiting.pop(item.call_id, None)):
            found.append((call.name, arguments(call), item.text))
    return found


def is_within(few: Sequence[tuple[str, ...]], many: Sequence[tuple[str, ...]]) -> bool:
    """Whether the few are among the many in the same order; words may have others around them."""
    rest = iter(many)
    return all(any(len(a) == len(b) and all(x in y for x, y in zip(a, b, strict=True)) for b in rest) for a in few)


def assert_all_is_told(body: Body, was: str, out: Body, to: str) -> None:
    before, after = told(body, was), told(out, to)
    for kind in ("text", "call", "result"):
        # OpenAI's chat has no place for text behind a call, so the kinds are held apart.
        few, many = ([t for t in some if t[0] == kind] for some in (before, after))
        assert is_within(few, many), (kind, few, many)
    assert is_within(pairs(body, was), pairs(out, to))


def clean(format: str) -> list[Body]:
    return [body for body in bodies(format) if not wire.check(body, format)]


def seals(value: Any) -> Iterator[str]:
    """What only its own provider can read."""
    if isinstance(value, dict):
        hidden = value.get("type") in ("redacted_thinking", "reasoning.encrypted")
        for key, inner in value.items():
            if key in SEALS or (hidden and key == "data"):
                yield b64encode(inner).decode() if isinstance(inner, bytes) else str(inner)
            else:
                yield from seals(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from seals(inner)


@pytest.mark.few(4)
@pytest.mark.parametrize(("was", "to"), PAIRS)
def test_what_one_provider_accepts_the_other_accepts(was: str, to: str) -> None:
    assert len(clean(was)) >= 15
    for body in clean(was):
        assert wire.check(convert(body, to, was, MODELS.get(to) if was != to else None), to) == []


@pytest.mark.few(6)
@pytest.mark.parametrize(("was", "to"), [(was, to) for was, to in PAIRS if was != to and to in JUDGES])
def test_what_comes_out_satisfies_the_official_types(was: str, to: str) -> None:
    for body in clean(was):
        assert JUDGES[to](convert(body, to, was)) == []


@pytest.mark.few(6)
@pytest.mark.parametrize(("was", "to"), PAIRS)
def test_all_that_can_be_read_goes_over_and_comes_back(was: str, to: str) -> None:
    for body in clean(was):
        over = convert(body, to, was)
        assert_all_is_told(body, was, over, to)
        assert_all_is_told(body, was, convert(over, was, to), was)


@given(**MADE, was=st.sampled_from(sorted(wire.FORMATS)), to=st.sampled_from(sorted(wire.FORMATS)))
@settings(max_examples=cases(60))
def test_a_conversation_is_told_word_for_word(seed: int, turns: int, was: str, to: str) -> None:
    body = conversation(seed, turns, was, wordy=10)
    over = convert(body, to, was, MODELS.get(to) if was != to else None)
    assert wire.check(over, to) == []
    assert told(over, to) == told(body, was)
    assert pairs(over, to) == pairs(body, was)
    assert told(convert(over, was, to), was) == told(body, was)
    pictures = [sum(item.kind == "media" for item in wire.decode(b, f)[1]) for b, f in ((body, was), (over, to))]
    assert pictures[0] == pictures[1]


JUNK: list[Any] = [None, 7, "", "x", [], {}, [[]], [None], [{}], {"type": []}, True, b"\xff"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to everything in a body."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, held in inner:
        yield (*path, key)
        yield from places(held, (*path, key))


@given(st.data(), st.sampled_from(sorted(wire.FORMATS)), st.sampled_from(JUNK))
@settings(max_examples=cases(150))
def test_a_body_with_junk_in_it_is_refused_or_goes_over(data: st.DataObject, was: str, junk: Any) -> None:
    body = copy.deepcopy(data.draw(st.sampled_from(BODIES[was])))
    *way, last = data.draw(st.sampled_from(list(places(body))))
    reduce(getitem, way, body)[last] = junk
    for to in wire.FORMATS:
        try:
            over = convert(body, to, was)
        except BadRequest:
            continue
        assert wire.check(body, was) or not wire.check(over, to)


def test_real_conversations_go_over_and_come_back() -> None:
    seen = 0
    for row in islice(conversations(), 3):
        body = {"model": "gpt-4o", "messages": row["messages"]}
        if wire.check(body, "openai_chat"):
            continue
        seen += 1
        for to in wire.FORMATS:
            over = convert(body, to, "openai_chat")
            assert wire.check(over, to) == []
            assert_all_is_told(body, "openai_chat", over, to)
            assert_all_is_told(body, "openai_chat", convert(over, "openai_chat", to), "openai_chat")
    assert seen >= 1


def test_nothing_sealed_goes_over() -> None:
    cases = 0
    for was, to in PAIRS:
        for body in bodies(was):
            hidden = [seal for seal in seals(body) if len(seal) > 3]
            if was != to and hidden:
                cases += 1
                out = json.dumps(convert(body, to, was))
                assert [seal for seal in hidden if seal in out] == []
    assert cases >= 100


def test_no_reasoning_goes_over() -> None:
    cases = 0
    for was, to in PAIRS:
        for body in bodies(was):
            items = wire.decode(body, was)[1]
            spoken = "\n".join(item.text for item in items if item.kind != "reasoning")
            thoughts = [i.text for i in items if i.kind == "reasoning" and len(i.text) > 5 and i.text not in spoken]
            if was != to and thoughts:
                cases += 1
                out = json.dumps(convert(body, to, was), ensure_ascii=False)
                assert [t for t in thoughts if json.dumps(t, ensure_ascii=False)[1:-1] in out] == []
    assert cases >= 60


@pytest.mark.few(10)
@pytest.mark.parametrize(("was", "to"), PAIRS)
def test_what_goes_in_is_not_touched_and_the_same_format_is_the_same_body(was: str, to: str) -> None:
    for body in bodies(was):
        before = copy.deepcopy(body)
        out = convert(body, to, was)
        assert body == before
        assert out == body or was != to
        frame, items = wire.decode(body, was)
        assert was != to or (convert_frame(frame, to) is frame and convert_items(items, was, to) == items)


@pytest.mark.parametrize(("was", "to"), PAIRS)
def test_one_item_by_itself_becomes_what_it_becomes_among_others(was: str, to: str) -> None:
    for seed in range(8):
        items = wire.decode(conversation(seed, 4, was, wordy=8), was)[1]
        alone = [new for item in items if (new := convert_item(item, was, to)) is not None]
        together = convert_items(items, was, to)
        assert [(i.kind, i.role, i.text, i.call_id) for i in alone] == [
            (i.kind, i.role, i.text, i.call_id) for i in together
        ]


DATA = {"type": "base64", "media_type": "image/png", "data": PIXEL}
SOURCE: Body = {
    "model": "claude-opus-4-8",
    "max_tokens": 500,
    "temperature": 0.5,
    "top_p": 0.9,
    "stop_sequences": ["END"],
    "stream": True,
    "thinking": {"type": "enabled", "budget_tokens": 100},
    "system": [{"type": "text", "text": "Be terse.", "cache_control": {"type": "ephemeral"}}],
    "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image", "source": DATA}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Let me see.", "signature": "c2ln"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "it"}},
                {"type": "tool_use", "id": "t2", "name": "look", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "image", "source": DATA}]},
                {"type": "tool_result", "tool_use_id": "t2", "content": "too dark", "is_error": True},
                {"type": "text", "text": "And?", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
            ],
        },
    ],
}
TAKES = {"type": "object", "properties": {}}
URL = f"data:image/png;base64,{PIXEL}"
INLINE = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
SKIP = {"thoughtSignature": "skip_thought_signature_validator"}
EXPECTED: dict[str, Body] = {
    "openai_chat": {
        "model": "new",
        "max_completion_tokens": 500,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["END"],
        "stream": True,
        "tools": [
            {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": TAKES}},
        ],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "messages": [
            {"role": "system", "content": "Be terse."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": URL}},
                ],
            },
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at":"it"}'}},
                    {"id": "t2", "type": "function", "function": {"name": "look", "arguments": "{}"}},
                ],
            },
            {"role": "tool", "tool_call_id": "t1", "content": "[image, not shown to this model]"},
            {"role": "tool", "tool_call_id": "t2", "content": "too dark"},
            {"role": "user", "content": "And?"},
        ],
    },
    "openai_responses": {
        "model": "new",
        "max_output_tokens": 500,
        "temperature": 0.5,
        "top_p": 0.9,
        "stream": True,
        "store": False,
        "instructions": "Be terse.",
        "tools": [
            {"type": "function", "name": "look", "description": "Looks.", "parameters": TAKES, "strict": False},
        ],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": URL, "detail": "auto"},
                ],
            },
            {"role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "t1", "name": "look", "arguments": '{"at":"it"}'},
            {"type": "function_call", "call_id": "t2", "name": "look", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "t1",
                "output": [{"type": "input_image", "image_url": URL, "detail": "auto"}],
            },
            {"type": "function_call_output", "call_id": "t2", "output": "too dark"},
            {"role": "user", "content": "And?"},
        ],
    },
    "bedrock": {
        "modelId": "new",
        "inferenceConfig": {"maxTokens": 500, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]},
        "system": [{"text": "Be terse."}],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "look", "description": "Looks.", "inputSchema": {"json": TAKES}}}],
            "toolChoice": {"any": {}},
        },
        "messages": [
            {
                "role": "user",
                "content": [{"text": "What is this?"}, {"image": {"format": "png", "source": {"bytes": PIXEL}}}],
            },
            {
                "role": "assistant",
                "content": [
                    {"text": "I look."},
                    {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"at": "it"}}},
                    {"toolUse": {"toolUseId": "t2", "name": "look", "input": {}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "t1",
                            "content": [{"image": {"format": "png", "source": {"bytes": PIXEL}}}],
                        }
                    },
                    {"toolResult": {"toolUseId": "t2", "content": [{"text": "too dark"}], "status": "error"}},
                    {"text": "And?"},
                    {"cachePoint": {"type": "default"}},
                ],
            },
        ],
    },
    "gemini": {
        "model": "new",
        "generationConfig": {"maxOutputTokens": 500, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]},
        "systemInstruction": {"parts": [{"text": "Be terse."}]},
        "tools": [
            {"functionDeclarations": [{"name": "look", "description": "Looks.", "parametersJsonSchema": TAKES}]},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "contents": [
            {"role": "user", "parts": [{"text": "What is this?"}, INLINE]},
            {
                "role": "model",
                "parts": [
                    {"text": "I look."},
                    {"functionCall": {"id": "t1", "name": "look", "args": {"at": "it"}}, **SKIP},
                    {"functionCall": {"id": "t2", "name": "look", "args": {}}, **SKIP},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "t1", "name": "look", "response": {"result": ""}, "parts": [INLINE]}},
                    {"functionResponse": {"id": "t2", "name": "look", "response": {"error": "too dark"}}},
                    {"text": "And?"},
                ],
            },
        ],
    },
}


@pytest.mark.parametrize("to", EXPECTED)
def test_a_body_of_anthropic_as_others_have_it(to: str) -> None:
    assert convert(SOURCE, to, model="new") == EXPECTED[to]


@pytest.mark.parametrize("was", ["bedrock", "gemini"])
def test_what_others_have_goes_back_whole(was: str) -> None:
    back = convert(EXPECTED[was], "anthropic", was, "claude-opus-4-8")
    expected = copy.deepcopy(SOURCE)
    for key in ("thinking", "stream"):
        del expected[key]
    expected |= {"system": "Be terse.", "tool_choice": {"type": "any"}}
    expected["tools"][0]["input_schema"] = TAKES
    del expected["messages"][1]["content"][0]
    del expected["messages"][2]["content"][2]["cache_control"]
    if was == "bedrock":
        expected["messages"][2]["content"][2]["cache_control"] = {"type": "ephemeral"}
    assert back == expected


def test_an_older_gemini_sees_pictures_beside_its_results() -> None:
    contents = convert(SOURCE, "gemini", model="gemini-2.5-pro")["contents"]
    assert contents[2]["parts"][:2] == [
        {"functionResponse": {"id": "t1", "name": "look", "response": {"result": ""}}},
        INLINE,
    ]
    assert wire.check({"contents": contents}, "gemini") == []


def test_ids_are_legal_short_and_unique_over_the_whole_conversation() -> None:
    def exchange(n: int, *extra: str) -> list[Body]:
        calls = [{"functionCall": {"name": "a.b", "args": {"n": n}}}]
        calls += [{"functionCall": {"id": i, "name": "a.b", "args": {"n": i}}} for i in extra]
        given = [{"functionResponse": {"name": "a.b", "response": {"result": f"r{n}"}}}]
        given += [{"functionResponse": {"id": i, "name": "a.b", "response": {"result": i}}} for i in extra]
        return [{"role": "model", "parts": calls}, {"role": "user", "parts": given}]

    long = "x" * 90
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}, *exchange(1), *exchange(2, "c:1", long), *exchange(3)]
    body = convert({"contents": contents}, "anthropic", model="claude")
    assert wire.check(body, "anthropic") == []
    uses = [b for m in body["messages"] if m["role"] == "assistant" for b in m["content"]]
    assert [u["id"] for u in uses] == ["a_b_0", "a_b_0_2", "c_1", uses[3]["id"], "a_b_0_3"]
    assert len(uses[3]["id"]) == 40
    assert {u["name"] for u in uses} == {"a_b"} == {t["name"] for t in body["tools"]}
    assert [p[2] for p in pairs(body, "anthropic")] == ["r1", "r2", "c:1", long, "r3"]


def test_results_move_behind_their_calls_and_half_a_pair_becomes_text() -> None:
    def call(i: str) -> Body:
        return {"type": "function_call", "call_id": i, "name": "f", "arguments": "{}"}

    def output(i: str) -> Body:
        return {"type": "function_call_output", "call_id": i, "output": f"of {i}"}

    said = {"role": "user", "content": "Wait."}
    body = {"model": "m", "input": [output("0"), call("1"), call("2"), output("2"), said, call("3"), output("1")]}
    assert convert(body, "openai_chat")["messages"] == [
        {"role": "user", "content": "[data: the result of a call that is not here]\nof 0\n[end of data]"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in "12"],
        },
        {"role": "tool", "tool_call_id": "2", "content": "of 2"},
        {"role": "tool", "tool_call_id": "1", "content": "of 1"},
        {"role": "user", "content": "Wait."},
        {"role": "assistant", "content": "[called f {}: no result]"},
    ]


def test_what_a_provider_ran_itself_is_told_in_words() -> None:
    search = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "who"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s1",
            "content": [{"type": "web_search_result", "title": "He", "url": "https://e.com", "encrypted_content": "E"}],
        },
    ]
    items = wire.decode({"messages": [{"role": "assistant", "content": search}]}, "anthropic")[1]
    assert [item.text for item in convert_items(items, "anthropic", "gemini")] == [
        "[web_search: who]",
        '[web_search_tool_result: {"type":"web_search_result","title":"He","url":"https://e.com"}]',
    ]


def test_what_stands_beside_the_content_of_a_chat_message_is_told_too() -> None:
    body = {
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "refusal": "I would rather not."},
            {"role": "user", "content": "And?"},
            {"role": "assistant", "content": "I look.", "function_call": {"name": "look", "arguments": '{"at":1}'}},
            {"role": "function", "name": "look", "content": "It is dark."},
        ]
    }
    assert [text for _, text in told(convert(body, "gemini"), "gemini")] == [
        "Hi",
        "I would rather not.",
        "And?",
        'I look.\n[called look {"at":1}]',
        "[data: what a tool gave]\n[look gave: It is dark.]\n[end of data]",
    ]


def test_system_messages_on_the_way_keep_their_voice_where_there_is_one() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}, {"role": "developer", "content": "Be kind."}]}
    assert convert(body, "openai_responses")["input"][1] == {"role": "system", "content": "Be kind."}
    for to in ("anthropic", "bedrock", "gemini"):
        assert told(convert(body, to), to) == [("text", "Hi"), ("text", "[system] Be kind.")]


def test_tools_that_were_called_are_declared_where_they_must_be() -> None:
    body = conversation(3, 4, "openai_chat")
    assert "tools" not in body
    out = convert(body, "anthropic")
    description = "Called earlier, and not on offer now."
    assert out["tools"] == [{"name": "bash", "description": description, "input_schema": TAKES}]
    assert out["tool_choice"] == {"type": "none"}
    assert "tools" not in convert(body, "gemini")


def test_marks_go_to_claude_alone_and_are_few() -> None:
    parts = [{"type": "text", "text": str(n), "cache_control": {"type": "ephemeral", "ttl": "1h"}} for n in range(6)]
    body = {"model": "m", "messages": [{"role": "user", "content": parts}]}
    blocks = convert(body, "anthropic")["messages"][0]["content"]
    assert [b.get("cache_control") for b in blocks] == [None, None, *[{"type": "ephemeral"}] * 4]
    assert convert(body, "bedrock")["messages"][0]["content"].count({"cachePoint": {"type": "default"}}) == 4
    for to in ("openai_responses", "gemini"):
        assert "cache" not in json.dumps(convert(body, to))


def test_converse_gets_few_documents_under_names_of_their_own() -> None:
    file = {"type": "file", "file": {"filename": "a b_c.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}}
    body = convert({"model": "m", "messages": [{"role": "user", "content": [file] * 7}]}, "bedrock")
    assert wire.check(body, "bedrock") == []
    content = body["messages"][0]["content"]
    assert [b.get("text") or b["document"]["name"] for b in content] == [
        *["[document a b c, not shown to this model]"] * 2,
        *["a b c", "a b c 2", "a b c 3", "a b c 4", "a b c 5"],
    ]
    alone = convert({"model": "m", "messages": [{"role": "user", "content": [file]}]}, "bedrock")
    assert alone["messages"][0]["content"][1] == {"text": "[the document above]"}


@pytest.mark.parametrize(
    ("part", "to", "becomes"),
    [
        ({"image_url": {"url": "https://e.com/a.png"}}, "anthropic", {"source": {"url": "https://e.com/a.png"}}),
        ({"image_url": {"url": "https://e.com/a.png"}}, "gemini", {"fileData": {"fileUri": "https://e.com/a.png"}}),
        ({"image_url": {"url": "https://e.com/a.png"}}, "bedrock", {"text": "[image https://e.com/a.png, not shown"}),
        ({"image_url": {"url": URL, "detail": "low"}}, "openai_responses", {"image_url": URL, "detail": "low"}),
        ({"input_audio": {"data": "UklG", "format": "wav"}}, "anthropic", {"text": "[audio, not shown to this model]"}),
        ({"input_audio": {"data": "UklG", "format": "wav"}}, "gemini", {"inlineData": {"mimeType": "audio/wav"}}),
        ({"file": {"file_id": "file-1"}}, "anthropic", {"text": "[document, not shown to this model]"}),
        ({"file": {"filename": "a.txt", "file_data": "SGk="}}, "anthropic", {"text": "Hi"}),
        ({"file": {"filename": "a.pdf", "file_data": PDF}}, "anthropic", {"type": "document", "source": {"data": PDF}}),
    ],
)
def test_media_are_shown_or_named(part: Body, to: str, becomes: Body) -> None:
    body = {
        "messages": [{"role": "user", "content": [{"type": next(iter(part)), **part}, {"type": "text", "text": "?"}]}]
    }
    out = convert(body, to)
    message = out[wire.FORMATS[to].LIST][0]
    first = message.get("content", message.get("parts"))[0]
    for key, value in becomes.items():
        if isinstance(value, dict):
            assert {k: first[key][k] for k in value} == value
        else:
            assert str(first[key]).startswith(value)


CHOICES: dict[str, list[Any]] = {
    "openai_chat": ["auto", "none", "required", {"type": "function", "function": {"name": "f"}}],
    "openai_responses": ["auto", "none", "required", {"type": "function", "name": "f"}],
    "anthropic": [{"type": "auto"}, {"type": "none"}, {"type": "any"}, {"type": "tool", "name": "f"}],
    "bedrock": [{"auto": {}}, None, {"any": {}}, {"tool": {"name": "f"}}],
    "gemini": [{"mode": "AUTO"}, {"mode": "NONE"}, {"mode": "ANY"}, {"mode": "ANY", "allowedFunctionNames": ["f"]}],
}
TOOLS: dict[str, Any] = {
    "openai_chat": [{"type": "function", "function": {"name": "f", "parameters": TAKES}}],
    "openai_responses": [{"type": "function", "name": "f", "parameters": TAKES, "strict": False}],
    "anthropic": [{"name": "f", "input_schema": TAKES}],
    "bedrock": [{"toolSpec": {"name": "f", "inputSchema": {"json": TAKES}}}],
    "gemini": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": TAKES}]}],
}


def offer(format: str, choice: Any) -> Body:
    if format == "bedrock":
        return {"toolConfig": {"tools": TOOLS[format]} | ({"toolChoice": choice} if choice else {})}
    if format == "gemini":
        return {"tools": TOOLS[format], "toolConfig": {"functionCallingConfig": choice}}
    return {"tools": TOOLS[format], "tool_choice": choice}


@pytest.mark.parametrize(("was", "to"), [(was, to) for was, to in PAIRS if was != to])
def test_tools_and_which_to_call_are_said_as_the_other_says_it(was: str, to: str) -> None:
    for mine, theirs in zip(CHOICES[was], CHOICES[to], strict=True):
        if mine is not None:
            frame = wire.decode({**offer(was, mine), wire.FORMATS[was].LIST: []}, was)[0]
            out = convert_frame(frame, to)
            keys = ("tools", "tool_choice", "toolConfig")
            assert {k: v for k, v in out.body.items() if k in keys} == offer(to, theirs)
            assert wire.decode(wire.encode(out, []), to)[0] == out


def test_gemini_schemas_become_json_schemas() -> None:
    own = {
        "type": "OBJECT",
        "properties": {
            "type": {"type": "STRING", "nullable": True, "enum": ["A"]},
            "all": {"type": "ARRAY", "items": {"anyOf": [{"type": "NUMBER"}, {"type": "BOOLEAN"}]}},
        },
        "propertyOrdering": ["type", "all"],
        "required": ["type"],
    }
    body = {"contents": [], "config": {"tools": [{"function_declarations": [{"name": "f", "parameters": own}]}]}}
    assert convert_frame(wire.decode(body)[0], "anthropic").tools[0]["input_schema"] == {
        "type": "object",
        "properties": {
            "type": {"type": ["string", "null"], "enum": ["A"]},
            "all": {"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "boolean"}]}},
        },
        "required": ["type"],
    }


def test_parameters_are_found_where_googles_sdk_puts_them_and_fit_their_target() -> None:
    config = {"max_output_tokens": 9, "temperature": 1.5, "top_p": 0.5, "stop_sequences": ["a", "b", "c", "d", "e"]}
    frame = wire.decode({"contents": [], "config": config})[0]
    assert convert_frame(frame, "anthropic").body == {
        "max_tokens": 9,
        "temperature": 1,
        "top_p": 0.5,
        "stop_sequences": ["a", "b", "c", "d"],
    }
    assert convert_frame(frame, "openai_responses").body["temperature"] == 1.5
    assert convert_frame(wire.decode({"messages": []}, "openai_chat")[0], "anthropic").body == {"max_tokens": 8192}


def test_another_model_of_the_same_format_is_only_named() -> None:
    body = conversation(3, 4, "bedrock")
    assert convert(body, "bedrock", model="new") == body | {"modelId": "new"}


def test_an_unknown_format_is_told_the_known_ones() -> None:
    item = Item("text", "user", "Hi")
    for act in (
        lambda: convert({"messages": []}, "cobol"),
        lambda: convert_item(item, "anthropic", "cobol"),
        lambda: convert_items([item], "cobol", "anthropic"),
        lambda: convert_frame(wire.decode({"messages": []})[0], "cobol"),
    ):
        with pytest.raises(BadRequest, match="unknown format 'cobol': use one of openai_chat"):
            act()


def test_an_id_that_is_used_again_means_the_newest_call() -> None:
    calls = [Item("call", "assistant", f'{{"n":{n}}}', "f", "c") for n in (1, 2)]
    said = convert_items([*calls, Item("result", "tool", "of 2", call_id="c")], "openai_chat", "anthropic")
    assert [(item.kind, item.text) for item in said] == [
        ("text", '[called f {"n":1}: no result]'),
        ("call", '{"n":2}'),
        ("result", "of 2"),
    ]


def test_what_the_assistant_began_to_say_ends_in_a_word() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "It is "}]}
    assert wire.check(convert(body, "anthropic", "openai_chat"), "anthropic") == []


def test_pictures_of_the_model_and_files_at_google_are_named_only() -> None:
    file = {"fileData": {"mimeType": "image/png", "fileUri": "https://generativelanguage.googleapis.com/files/1"}}
    body = {"contents": [{"role": "user", "parts": [file]}, {"role": "model", "parts": [INLINE]}]}
    assert told(convert(body, "openai_chat"), "openai_chat") == [("text", "[image, not shown to this model]")] * 2


def test_older_and_freer_ways_to_declare_tools_are_understood() -> None:
    body = {
        "messages": [],
        "max_tokens": 7,
        "functions": [{"name": "old", "parameters": TAKES}],
        "tools": [{"type": "custom", "custom": {"name": "free"}}, {"type": "web_search"}],
        "tool_choice": {"type": "function", "function": {"name": "gone"}},
    }
    free = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    assert convert_frame(wire.decode(body, "openai_chat")[0], "anthropic").body == {
        "max_tokens": 7,
        "tools": [{"name": "free", "input_schema": free}, {"name": "old", "input_schema": TAKES}],
        "tool_choice": {"type": "auto"},
    }
