"""Parts of every kind, to clew and back."""

from typing import Any

from pydantic_ai import BinaryContent, ImageUrl
from pydantic_ai.messages import (
    CachePoint,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    RetryFeedbackPart,
    RetryInfo,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from clew.adapters.pydantic_ai.messages import Converted

SEARCH = NativeToolCallPart("web_search", {"query": "port"}, "ws_1", provider_name="openai")
FOUND = NativeToolReturnPart("web_search", {"status": "completed"}, "ws_1", provider_name="openai")
CALL = ToolCallPart("read", '{"path": "a.py"}', "c1", id="fc_1", provider_name="openai")
PICTURE = BinaryContent(b"\x89PNG", media_type="image/png")
RESULT = ToolReturnPart("read", ["port = 8080", PICTURE], "c1", metadata="kept")
THOUGHT = ThinkingPart("Hm.", id="rs_1", signature="c2ln", provider_name="openai")


def messages() -> list[Any]:
    return [
        ModelRequest(
            [SystemPromptPart("You read."), UserPromptPart(["Look:", CachePoint(), ImageUrl("https://x/a.png")])]
        ),
        ModelResponse([TextPart("Searching."), SEARCH, TextPart("Meanwhile."), FOUND, TextPart("Found.")]),
        ModelRequest([RetryFeedbackPart("No.", retry=RetryInfo("model_retry", attempt=1, max_retries=1))]),
        ModelResponse([THOUGHT, TextPart("Let me look.", id="msg_1", provider_name="openai"), CALL]),
        ModelRequest([RESULT, UserPromptPart("Go on.")]),
    ]


def test_what_is_unchanged_comes_back_as_the_same_objects() -> None:
    held = messages()
    said = Converted(held)
    assert all(one is other for one, other in zip(said.back(said.messages), held, strict=True))


def test_what_the_providers_tools_did_is_one_block() -> None:
    blocks = Converted(messages()).messages[1]["content"]
    assert [block["type"] for block in blocks] == ["text", "text", "text"]
    assert "Meanwhile." in blocks[1]["text"]


def test_a_result_that_was_replaced_keeps_what_else_is_known_of_it() -> None:
    held = messages()
    said = Converted(held)
    sent = [*said.messages[:-1], {"role": "user", "content": [{**said.messages[-1]["content"][0], "content": "short"}]}]
    (result,) = said.back(sent)[-1].parts
    assert isinstance(result, ToolReturnPart)
    assert (result.content, result.metadata, result.tool_name) == ("short", "kept", "read")


def test_openai_reasoning_does_not_stay_where_something_was_replaced() -> None:
    said = Converted(messages())
    changed = said.messages[3]["content"]
    sent = list(said.messages)
    sent[3] = {"role": "assistant", "content": [changed[0], {"type": "text", "text": "Looking."}, changed[2]]}
    text, call = said.back(sent)[3].parts
    assert isinstance(text, TextPart)
    assert isinstance(call, ToolCallPart)
    assert (text.id, call.id, call.tool_call_id) == (None, None, "c1")


def test_the_system_prompt_stays_where_its_message_went() -> None:
    said = Converted(messages())
    sent = [{"role": "user", "content": "A summary."}, *said.messages[3:]]
    first, *rest = said.back(sent)
    assert [type(part) for part in first.parts] == [SystemPromptPart, UserPromptPart]
    assert len(rest) == 2
