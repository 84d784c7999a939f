"""Contents of every kind, to clew and back."""

from typing import Any

from agent_framework import Content, Message

from clew.adapters.agent_framework.messages import WireMessages

PICTURE = Content.from_data(b"\x89PNG", media_type="image/png")


def messages() -> list[Message]:
    served: list[Any] = [
        Content.from_text("Searching."),
        Content.from_search_tool_call("s1", tool_name="web_search", arguments={"query": "port"}),
        Content.from_text("Meanwhile."),
        Content.from_search_tool_result("s1", tool_name="web_search", result="8080"),
        Content.from_text("Found."),
    ]
    thought = Content.from_text_reasoning(id="rs_1", text="Hm.", protected_data="c2ln")
    call = Content.from_function_call(
        "c1", "read", arguments='{"path": "a.py"}', additional_properties={"fc_id": "fc_1"}
    )
    result = Content.from_function_result("c1", result=[Content.from_text("port = 8080"), PICTURE])
    return [
        Message("system", ["You read."]),
        Message("user", ["Look:", PICTURE]),
        Message("assistant", served),
        Message("user", ["Go on."]),
        Message("assistant", [thought, Content.from_text("Let me look."), call]),
        Message("tool", [result]),
        Message("user", ["And?"]),
    ]


def test_what_is_unchanged_comes_back_as_the_same_objects() -> None:
    held = messages()
    said = WireMessages(held)
    assert all(one is other for one, other in zip(said.back(said.messages), held, strict=True))
    assert said.system == "You read."


def test_what_the_providers_tools_did_is_one_block() -> None:
    blocks = WireMessages(messages()).messages[1]["content"]
    assert [block["type"] for block in blocks] == ["text", "text", "text"]
    assert "Meanwhile." in blocks[1]["text"]


def test_results_and_words_in_one_message_become_two() -> None:
    said = WireMessages(messages())
    short = {"type": "tool_result", "tool_use_id": "c1", "content": "short"}
    sent = [*said.messages[:-2], {"role": "user", "content": [short, {"type": "text", "text": "And?"}]}]
    tool, user = said.back(sent)[-2:]
    assert (tool.role, tool.contents[0].result, tool.contents[0].call_id) == ("tool", "short", "c1")
    assert (user.role, user.text) == ("user", "And?")


def test_openai_reasoning_does_not_stay_where_something_was_replaced() -> None:
    said = WireMessages(messages())
    changed = said.messages[3]["content"]
    sent = list(said.messages)
    sent[3] = {"role": "assistant", "content": [changed[0], {"type": "text", "text": "Looking."}, changed[2]]}
    text, call = said.back(sent)[4].contents
    assert (text.text, call.call_id, call.additional_properties) == ("Looking.", "c1", {})
