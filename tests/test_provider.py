"""The strict provider, as the official SDKs see it."""

import json
from typing import Any

import pytest

from asking import FORMATS, ask, openai_of, request
from clew.catalog.usage import Spent, spent
from clew.testing import Answer, Call, StrictProvider
from clew.wire.streams.writing import Stop

Body = dict[str, Any]

PARALLEL = (Call("read", {"path": "späte/Züge.py", "lines": [1, 40]}), Call("read", {"path": "b.py"}), Call("bash"))
ANSWERS = {
    "text": Answer("It fails at line 42: „größer“ is no number."),
    "nothing": Answer(),
    "a call": Answer(calls=(Call("read", {"path": "a.py"}, "call_given"),)),
    "parallel calls": Answer(calls=PARALLEL),
    "text and calls": Answer("Let me look.", PARALLEL),
    "thoughts, text and calls": Answer("Let me look.", PARALLEL, "Which file was it? Perhaps two of them."),
    "cut short": Answer("It fails at", stop="length"),
    "filtered": Answer("I can", stop="filter"),
    "one letter at a time": Answer("größer", PARALLEL[:1], piece=1),
    "in odd packets": Answer("größer, 大きい, 🧵", PARALLEL, "später", packet=7),
}


def plain(answer: Any) -> Any:
    """An answer without what only one of the two ways to an SDK's object puts there: nulls and parsed copies."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            dropped = ("parsed", "parsed_arguments", "object", "annotations", "index")
            return {k: bare(v) for k, v in value.items() if k not in dropped and v is not None and v != []}
        return [bare(v) for v in value] if isinstance(value, list) else value

    return bare(answer.model_dump(warnings=False))


# --- what is said ---------------------------------------------------------------------------------------------------


@pytest.mark.few(10)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_a_stream_says_what_one_piece_says(format: str, answer: Answer) -> None:
    with StrictProvider([answer]) as provider:
        whole = plain(await ask(provider, format, streamed=False))
    with StrictProvider([answer]) as provider:
        streamed = plain(await ask(provider, format, streamed=True))
        assert provider.heard[0].streamed
    assert streamed == whole


async def test_chat_says_calls_thoughts_and_usage() -> None:
    answer = ANSWERS["thoughts, text and calls"]
    with StrictProvider([answer]) as provider:
        said = await ask(provider, "openai_chat", streamed=True)
    [choice] = said.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", answer.text)
    assert choice.message.reasoning_content == answer.reasoning
    calls = [(c.function.name, json.loads(c.function.arguments)) for c in choice.message.tool_calls]
    assert calls == [(c.name, c.arguments) for c in answer.calls]
    assert len({c.id for c in choice.message.tool_calls}) == 3
    assert spent(said.usage) == Spent(provider.heard[0].spent.input, said.usage.completion_tokens)
    assert said.usage.completion_tokens_details.reasoning_tokens == len(answer.reasoning) // 4


async def test_responses_says_calls_thoughts_and_usage() -> None:
    answer = ANSWERS["thoughts, text and calls"]
    with StrictProvider([answer]) as provider:
        said = await ask(provider, "openai_responses", streamed=True)
    assert [item.type for item in said.output] == ["reasoning", "message", *["function_call"] * 3]
    assert said.output[0].summary[0].text == answer.reasoning
    assert said.output_text == answer.text
    calls = [(c.name, json.loads(c.arguments)) for c in said.output[2:]]
    assert calls == [(c.name, c.arguments) for c in answer.calls]
    assert spent(said.usage) == Spent(provider.heard[0].spent.input, said.usage.output_tokens)


async def test_responses_seal_their_reasoning_where_that_is_asked_for() -> None:
    sealed: list[Any] = []
    with StrictProvider([ANSWERS["thoughts, text and calls"]]) as provider:
        for more in ({}, {"include": ["reasoning.encrypted_content"]}):
            asked: Any = request("openai_responses", **more)
            said: Any = await openai_of(provider).responses.create(**asked)
            sealed.append(said.output[0].encrypted_content)
    assert sealed[0] is None
    assert sealed[1]


async def test_messages_says_calls_thoughts_and_usage() -> None:
    answer = ANSWERS["thoughts, text and calls"]
    with StrictProvider([answer]) as provider:
        said = await ask(provider, "anthropic", streamed=True)
    assert [block.type for block in said.content] == ["thinking", "text", *["tool_use"] * 3]
    assert (said.content[0].thinking, bool(said.content[0].signature)) == (answer.reasoning, True)
    assert [(b.name, b.input) for b in said.content[2:]] == [(c.name, c.arguments) for c in answer.calls]
    assert said.stop_reason == "tool_use"
    assert spent(said.usage) == Spent(provider.heard[0].spent.input, said.usage.output_tokens)


@pytest.mark.parametrize(
    ("stop", "chat", "incomplete", "messages"),
    [
        ("end", "stop", None, "end_turn"),
        ("length", "length", "max_output_tokens", "max_tokens"),
        ("window", "length", "max_output_tokens", "model_context_window_exceeded"),
        ("filter", "content_filter", "content_filter", "refusal"),
    ],
)
async def test_each_format_has_its_word_for_a_stop(
    stop: Stop, chat: str, incomplete: str | None, messages: str
) -> None:
    with StrictProvider([Answer("It fails", stop=stop)]) as provider:
        asked = {format: await ask(provider, format, streamed=False) for format in FORMATS}
    assert asked["openai_chat"].choices[0].finish_reason == chat
    response = asked["openai_responses"]
    assert response.status == ("incomplete" if incomplete else "completed")
    assert (response.incomplete_details and response.incomplete_details.reason) == incomplete
    assert asked["anthropic"].stop_reason == messages


def answered(format: str, said: Any) -> list[Body]:
    """An answer as a client sends it back, with a result for each of its calls."""
    if format == "anthropic":
        blocks = [block.model_dump(exclude_none=True) for block in said.content]
        used = [block["id"] for block in blocks if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": id, "content": "x"} for id in used]
        return [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
    if format == "openai_chat":
        message = said.choices[0].message.model_dump(include={"role", "content", "tool_calls"})
        return [message, *({"role": "tool", "tool_call_id": c["id"], "content": "x"} for c in message["tool_calls"])]
    items = [item.model_dump(exclude_none=True) for item in said.output]
    made = [item["call_id"] for item in items if item["type"] == "function_call"]
    return [*items, *({"type": "function_call_output", "call_id": id, "output": "x"} for id in made)]


@pytest.mark.parametrize("format", FORMATS)
async def test_what_was_answered_can_be_sent_back_with_results(format: str) -> None:
    first = {"role": "user", "content": "Why does it fail?"}
    with StrictProvider([ANSWERS["thoughts, text and calls"], Answer("Done.")]) as provider:
        said = await ask(provider, format, streamed=False)
        await ask(provider, format, streamed=False, body=request(format, first, *answered(format, said)))
    assert provider.moved == []
    assert provider.heard[1].shared == len(provider.heard[0].prompt)


async def test_a_call_that_is_no_json_goes_out_as_it_is() -> None:
    with StrictProvider([Answer(calls=(Call("read", '{"path": '),))]) as provider:
        said = await ask(provider, "openai_chat", streamed=False)
    assert said.choices[0].message.tool_calls[0].function.arguments == '{"path": '
