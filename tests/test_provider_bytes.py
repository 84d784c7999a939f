"""Streams of the strict provider to the byte, as recordings of the real ones have them."""

import json
from typing import Any
from urllib.request import Request, urlopen

from asking import MODEL, request
from clew.testing import Answer, Call, StrictProvider

Body = dict[str, Any]


def sent(provider: StrictProvider, path: str, body: Body) -> str:
    """All that comes over the wire after the headers."""
    headers = {"Content-Type": "application/json", "anthropic-version": "2023-06-01"}
    with urlopen(Request(provider.url + path, json.dumps(body).encode(), headers)) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        return str(answer.read().decode())


def test_a_chat_to_the_byte() -> None:
    answer = Answer("Hello", piece=3, output=9)
    with StrictProvider([answer]) as provider:
        body = request("openai_chat", stream=True, stream_options={"include_usage": True})
        said = sent(provider, "/v1/chat/completions", body)
        asked = provider.heard[0].spent.input
    id = json.loads(said.split("\n")[0].removeprefix("data: "))["id"]
    head = (
        f'data: {{"id":"{id}","object":"chat.completion.chunk","created":1760000000,"model":"{MODEL}",'
        '"service_tier":"default","system_fingerprint":"fp_a1b2c3d4e5","choices":['
    )

    def chunk(delta: str, why: str = "null") -> str:
        return f'{head}{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{why}}}],"usage":null}}\n\n'

    usage = (
        f'{{"prompt_tokens":{asked},"completion_tokens":9,"total_tokens":{asked + 9},'
        '"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,'
        '"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}'
    )
    assert said == (
        chunk('{"role":"assistant","content":"","refusal":null}')
        + chunk('{"content":"Hel"}')
        + chunk('{"content":"lo"}')
        + chunk("{}", '"stop"')
        + f'{head}],"usage":{usage}}}\n\n'
        + "data: [DONE]\n\n"
    )


def test_a_chat_that_asks_for_no_usage_gets_none() -> None:
    with StrictProvider() as provider:
        said = sent(provider, "/v1/chat/completions", request("openai_chat", stream=True))
    assert "usage" not in said
    assert said.endswith("data: [DONE]\n\n")


def test_calls_of_a_chat_come_in_fragments() -> None:
    with StrictProvider(
        [Answer(calls=(Call("read", '{"path":"a"}', "c1"), Call("bash", "", "c2")), piece=6)]
    ) as provider:
        said = sent(provider, "/v1/chat/completions", request("openai_chat", stream=True))
    chunks = [json.loads(line[6:]) for line in said.split("\n") if line.startswith("data: {")]
    assert [chunk["choices"][0]["delta"] for chunk in chunks] == [
        {"role": "assistant", "content": None, "refusal": None},
        {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "read", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"path'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '":"a"}'}}]},
        {"tool_calls": [{"index": 1, "id": "c2", "type": "function", "function": {"name": "bash", "arguments": ""}}]},
        {},
    ]


def test_messages_to_the_byte() -> None:
    answer = Answer("Hello", (Call("read", '{"path":"a"}', "toolu_1"),), piece=6, output=9)
    with StrictProvider([answer]) as provider:
        said = sent(provider, "/v1/messages", request("anthropic", stream=True))
        asked = provider.heard[0].spent.input
    id = json.loads(said.split("\n")[1].removeprefix("data: "))["message"]["id"]
    caches = '"cache_creation_input_tokens":0,"cache_read_input_tokens":0'
    usage = (
        f'{{"input_tokens":{asked},{caches},"cache_creation":{{"ephemeral_5m_input_tokens":0,'
        '"ephemeral_1h_input_tokens":0},"output_tokens":1,"service_tier":"standard"}'
    )
    message = (
        f'{{"model":"{MODEL}","id":"{id}","type":"message","role":"assistant","content":[],"stop_reason":null,'
        f'"stop_sequence":null,"usage":{usage}}}'
    )
    tool = '{"type":"tool_use","id":"toolu_1","name":"read","input":{},"caller":{"type":"direct"}}'
    events = [
        ("message_start", f',"message":{message}'),
        ("content_block_start", ',"index":0,"content_block":{"type":"text","text":""}'),
        ("ping", ""),
        ("content_block_delta", ',"index":0,"delta":{"type":"text_delta","text":"Hello"}'),
        ("content_block_stop", ',"index":0'),
        ("content_block_start", f',"index":1,"content_block":{tool}'),
        ("content_block_delta", ',"index":1,"delta":{"type":"input_json_delta","partial_json":""}'),
        ("content_block_delta", ',"index":1,"delta":{"type":"input_json_delta","partial_json":"{\\"path"}'),
        ("content_block_delta", ',"index":1,"delta":{"type":"input_json_delta","partial_json":"\\":\\"a\\"}"}'),
        ("content_block_stop", ',"index":1'),
        (
            "message_delta",
            ',"delta":{"stop_reason":"tool_use","stop_sequence":null},'
            f'"usage":{{"input_tokens":{asked},{caches},"output_tokens":9}}',
        ),
        ("message_stop", ""),
    ]
    written = "".join(f'event: {name}\ndata: {{"type":"{name}"{rest}}}\n\n' for name, rest in events)
    assert said == written.replace('{"type":"ping"}', '{"type": "ping"}')


def test_responses_are_numbered_events_from_created_to_completed() -> None:
    with StrictProvider([Answer("Hello", (Call("read", '{"path":"a"}'),), "Hm", piece=6)]) as provider:
        said = sent(provider, "/v1/responses", request("openai_responses", stream=True))
    events = [event.split("\n") for event in said.removesuffix("\n\n").split("\n\n")]
    data = [json.loads(line.removeprefix("data: ")) for _, line in events]
    assert [name.removeprefix("event: ") for name, _ in events] == [d["type"] for d in data]
    assert [d["sequence_number"] for d in data] == list(range(len(data)))
    assert [d["type"].removeprefix("response.") for d in data] == [
        "created",
        "in_progress",
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.delta",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    done = [d["item"] for d in data if d["type"] == "response.output_item.done"]
    assert data[-1]["response"]["output"] == done
    assert (
        data[0]["response"] | {"output": done, "status": "completed", "usage": data[-1]["response"]["usage"]}
        == (data[-1]["response"])
    )


def test_responses_stream_their_refusal_of_what_is_too_long() -> None:
    with StrictProvider(window=10) as provider:
        said = sent(provider, "/v1/responses", request("openai_responses", stream=True))
    data = [json.loads(line.removeprefix("data: ")) for line in said.split("\n") if line.startswith("data: ")]
    assert [d["type"] for d in data] == ["response.created", "response.in_progress", "error", "response.failed"]
    words = "Your input exceeds the context window of this model. Please adjust your input and try again."
    assert data[2] == {
        "type": "error",
        "sequence_number": 2,
        "error": {
            "message": words,
            "type": "invalid_request_error",
            "param": "input",
            "code": "context_length_exceeded",
        },
    }
    failed = data[3]["response"]
    assert (failed["status"], failed["output"]) == ("failed", [])
    assert failed["error"] == {"code": "context_length_exceeded", "message": words}
