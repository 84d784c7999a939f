"""Bodies survive the way in and out."""

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import cases
from bodies import ANTHROPIC, ANTHROPIC_ODD, OPENAI_CHAT, OPENAI_CHAT_ODD, judge_anthropic, judge_openai
from clew import wire
from clew.core.items import Digests, Item
from clew.errors import BadRequest
from clew.testing import conversation
from conftest import conversations

MESSAGES = ("anthropic", "openai_chat")  # the other formats have tests of their own
BODIES = [(b, "anthropic") for b in ANTHROPIC + ANTHROPIC_ODD] + [
    (b, "openai_chat") for b in OPENAI_CHAT + OPENAI_CHAT_ODD
]


@pytest.mark.parametrize(("body", "format"), BODIES)
def test_hand_made_bodies_come_back_equal_and_untouched(body: dict[str, Any], format: str) -> None:
    before = copy.deepcopy(body)
    frame, items = wire.decode(body, format)
    assert wire.encode(frame, items) == body == before


def test_real_conversations_come_back_equal() -> None:
    seen = 0
    for row in conversations():
        body = {"messages": row["messages"], **({"tools": row["tools"]} if row.get("tools") else {})}
        frame, items = wire.decode(body, "openai_chat")
        assert wire.encode(frame, items) == body, row["id"]
        seen += 1
    assert seen >= 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    max_leaves=8,
)


@given(
    st.sampled_from(("openai_chat", "anthropic")),
    st.lists(
        st.fixed_dictionaries(
            {"role": st.sampled_from(("user", "assistant"))},
            optional={
                "content": st.none()
                | st.text()
                | st.lists(
                    st.dictionaries(st.sampled_from(("type", "text", "id", "tool_use_id", "cache_control")), JSON)
                ),
                "tool_calls": st.lists(st.dictionaries(st.text(), JSON)),
                "name": st.text(),
                "x": JSON,
            },
        )
    ),
)
@settings(max_examples=cases(40, dear=True))
def test_anything_that_can_be_read_comes_back_equal(format: str, messages: list[dict[str, Any]]) -> None:
    body = {"messages": messages, "extra": 1}
    frame, items = wire.decode(body, format)
    assert wire.encode(frame, items) == body


def test_what_comes_out_shares_nothing_with_what_went_in() -> None:
    for body, format in BODIES:
        frame, items = wire.decode(body, format)
        out = wire.encode(frame, items)
        _scramble(out)
        assert wire.encode(frame, items) == body


def _scramble(value: Any) -> None:
    if isinstance(value, dict):
        for inner in list(value.values()):
            _scramble(inner)
        value["scrambled"] = True
    elif isinstance(value, list):
        for inner in value:
            _scramble(inner)
        value.append("scrambled")


@pytest.mark.parametrize("seed", range(40))
def test_made_up_conversations_satisfy_the_official_types(seed: int) -> None:
    body = conversation(seed, 4)
    for message in body["messages"]:
        message.pop("reasoning_content", None)  # what compatible servers add is not OpenAI's
    assert judge_openai(body) == []
    assert judge_anthropic(conversation(seed, 4, "anthropic")) == []


def content_digests(body: dict[str, Any], format: str) -> list[str]:
    return [Digests().content(i) for i in wire.decode(body, format)[1]]


def test_wrapping_is_not_content() -> None:
    bare = {"messages": [{"role": "user", "content": "hi"}]}
    block = {"messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}
    marked = {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
        ]
    }
    for format in MESSAGES:
        assert content_digests(bare, format) == content_digests(block, format) == content_digests(marked, format)


def test_a_result_as_text_or_as_one_block_is_the_same_result() -> None:
    def body(content: Any) -> dict[str, Any]:
        return {
            "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": content}]}]
        }

    block = {"type": "text", "text": "ok"}
    plain = content_digests(body("ok"), "anthropic")
    assert plain == content_digests(body([block]), "anthropic")
    assert plain == content_digests(body([{**block, "cache_control": {"type": "ephemeral"}}]), "anthropic")
    assert plain != content_digests(body([block, block]), "anthropic")


def test_another_scope_or_secret_gives_other_digests() -> None:
    item = Item("text", "user", "hi")
    seen = {Digests(secret, scope).content(item) for secret in (b"", b"x") for scope in ("", "a", "b")}
    assert len(seen) == 6


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "messages: expected a list, got NoneType"),
        ({"messages": "hi"}, "messages: expected a list, got str"),
        ({"messages": ["hi"]}, "messages[0]: expected an object, got str"),
        ({"messages": [{"content": "hi"}]}, "messages[0].role: expected one of"),
        ({"messages": [{"role": "king", "content": "hi"}]}, "messages[0].role: expected one of"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content: expected a list, got int"),
        ({"messages": [{"role": "user", "content": [3]}]}, "messages[0].content[0]: expected an object, got int"),
    ],
)
@pytest.mark.parametrize("format", MESSAGES)
def test_a_bad_body_is_told_where_and_why(body: dict[str, Any], says: str, format: str) -> None:
    with pytest.raises(BadRequest) as error:
        wire.decode(body, format)
    assert says in str(error.value)


def test_an_unknown_format_is_told_the_known_ones() -> None:
    with pytest.raises(
        BadRequest, match="unknown format 'cobol': use one of openai_chat, anthropic, openai_responses, bedrock, gemini"
    ):
        wire.decode({"messages": []}, "cobol")


def test_deep_nesting_is_an_error_not_a_crash() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for format in MESSAGES:
        with pytest.raises(BadRequest, match="nested too deeply"):
            wire.decode({"messages": [{"role": "user", "content": [{"type": "odd", "x": deep}]}]}, format)


def test_formats_are_told_apart() -> None:
    assert {wire.detect(b) for b in ANTHROPIC if "model" in b} == {"anthropic"}
    assert {wire.detect(b) for b in OPENAI_CHAT} == {"openai_chat"}
    for format in wire.FORMATS:
        body = conversation(3, 6, format)
        assert wire.detect(body) == format
        assert wire.detect_list(body[wire.FORMATS[format].LIST]) == format


def test_what_an_assistant_says_of_results_is_no_result() -> None:
    block = {"type": "tool_result", "tool_use_id": "a", "content": "A"}
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "assistant", "content": [block]}]}
    _, [item] = wire.decode(body, "anthropic")
    assert item.kind != "result"
