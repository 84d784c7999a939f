"""The strict provider as clients of Gemini see it, and its counts of tokens."""

import json
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from asking import MODEL, anthropic_of, openai_of, request
from clew.catalog.usage import Spent, spent
from clew.exchange.answers import AnswerReader
from clew.llm.streaming import Spoken
from clew.testing import Answer, Call, StrictProvider
from clew.wire import check
from clew.wire.overflow import Overflow, overflow
from made_clients import session

Body = dict[str, Any]

WAYS = ("generateContent", "streamGenerateContent", "streamGenerateContent?alt=sse")
each_way = pytest.mark.parametrize("way", WAYS)
KEY = {"x-goog-api-key": "none"}
HELLO: Body = {"contents": [{"role": "user", "parts": [{"text": "Why does it fail?"}]}]}

PARALLEL = (
    Call("read", {"path": "späte/Züge.py", "lines": [1, 40]}),
    Call("read", {"path": "b.py"}, "c1"),
    Call("bash"),
)
ANSWERS = {
    "text": Answer("It fails at line 42: „größer“ is no number."),
    "nothing": Answer(),
    "parallel calls": Answer(calls=PARALLEL),
    "thoughts, text and calls": Answer("Let me look.", PARALLEL, "Which file was it? Perhaps two of them."),
    "thoughts and text": Answer("Green.", reasoning="Hm."),
    "cut short": Answer("It fails at", stop="length"),
    "filtered": Answer("I can", stop="filter"),
    "blocked": Answer(stop="filter"),
    "in odd packets": Answer("größer, 大きい, 🧵", PARALLEL, "später", packet=7, piece=1),
}


def post(
    provider: StrictProvider, way: str, body: Body | bytes = HELLO, model: str = "gemini-3-pro", **more: Any
) -> Any:
    """What comes over the wire."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **more.get("headers", KEY)}
    with urlopen(Request(f"{provider.url}/v1beta/models/{model}:{way}", content, headers)) as response:
        return response.headers["Content-Type"], response.read()


def asked(provider: StrictProvider, way: str, body: Body = HELLO) -> Spoken:
    reader = AnswerReader("gemini")
    reader.hear(post(provider, way, body)[1])
    reader.hear(b"")
    spoken = reader.spoken()
    assert spoken is not None
    return spoken


def refused(provider: StrictProvider, way: str, body: Body | bytes = HELLO, **more: Any) -> tuple[int, Body, str]:
    """The status, the error and all that was said."""
    with pytest.raises(HTTPError) as caught:
        post(provider, way, body, **more)
    text = caught.value.read().decode()
    said = json.loads(text)
    [error] = said if isinstance(said, list) else [said]
    assert isinstance(said, list) is (way == WAYS[1])
    return caught.value.code, error["error"], text


# --- what is said ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_a_stream_says_what_one_piece_says(answer: Answer) -> None:
    said = []
    for way in WAYS:
        with StrictProvider([answer]) as provider:
            said.append(asked(provider, way))
            assert provider.heard[0].streamed is (way != WAYS[0])
            assert provider.heard[0].body == {**HELLO, "model": "gemini-3-pro"}
    assert said[0] == said[1] == said[2]
    assert said[0].text == answer.text
    assert [(c.name, c.arguments) for c in said[0].calls] == [(c.name, c.arguments) for c in answer.calls]
    assert spent(said[0].usage).input == provider.heard[0].spent.input


@each_way
def test_an_answer_can_be_sent_back_with_results(way: str) -> None:
    with StrictProvider([ANSWERS["thoughts, text and calls"], Answer("Done.")]) as provider:
        said = asked(provider, way)
        back = [
            {
                "functionResponse": {
                    **({"id": c.id} if c.id == "c1" else {}),
                    "name": c.name,
                    "response": {"output": "x"},
                }
            }
            for c in said.calls
        ]
        contents = [*HELLO["contents"], *said.messages, {"role": "user", "parts": back}]
        assert asked(provider, way, {"contents": contents}).text == "Done."
    assert [c.id for c in said.calls] == ["read~0", "c1", "bash~0"]
    assert provider.moved == []
    assert provider.heard[1].spent.cache_read > 0
    assert provider.heard[1].shared == len(provider.heard[0].prompt)


def test_a_stream_to_the_byte() -> None:
    with StrictProvider([Answer("Hello", (Call("read", {"path": "a"}, "c1"),), piece=3, output=9)]) as provider:
        kind, said = post(provider, WAYS[2], model="gemini-2.5-pro")
        listed, chunks = post(provider, WAYS[1], model="gemini-2.5-pro")
        read = provider.heard[0].spent.input
    assert (kind, listed) == ("text/event-stream; charset=utf-8", "application/json; charset=UTF-8")
    about = '"modelVersion":"gemini-2.5-pro","responseId":"'
    usage = f'"usageMetadata":{{"promptTokenCount":{read},'
    text = f'"promptTokensDetails":[{{"modality":"TEXT","tokenCount":{read}}}]}}'
    heads = [
        f'{{"candidates":[{{"content":{{"parts":[{part}],"role":"model"}},"index":0}}],'
        f'{usage}"totalTokenCount":{read},{text},{about}'
        for part in ('{"text":"Hel"}', '{"text":"lo"}')
    ]
    heads.append(
        '{"candidates":[{"content":{"parts":[{"functionCall":{"id":"c1","name":"read","args":{"path":"a"}}}],'
        f'"role":"model"}},"finishReason":"STOP","index":0}}],{usage}"candidatesTokenCount":9,'
        f'"totalTokenCount":{read + 9},{text},{about}'
    )
    *events, rest = said.decode().split("\r\n\r\n")
    assert rest == ""
    assert [event.rpartition('responseId":"')[0] + 'responseId":"' for event in events] == [f"data: {h}" for h in heads]
    assert len(json.loads(chunks)) == 3


def test_usage_tells_thoughts_and_what_was_cached() -> None:
    with StrictProvider([Answer("Green.", reasoning="Hm, which colour was it?", output=20)]) as provider:
        asked(provider, WAYS[0])
        said = asked(provider, WAYS[2])
    assert said.usage is not None
    assert said.usage["thoughtsTokenCount"] == 6
    assert spent(said.usage) == Spent(provider.heard[1].spent.input, 20, provider.heard[1].spent.cache_read)
    assert provider.heard[1].spent.cache_read > 0


def test_requests_of_gemini_cli_are_served_if_they_break_no_rule() -> None:
    """Opened again, it sends every result twice, and nothing that signs its calls."""
    with StrictProvider() as provider:
        for sent in session("gemini-cli", "heron", 12):
            way = sent.path.rpartition(":")[2]
            if check({**sent.body, "model": "gemini-3-pro"}, "gemini"):
                assert refused(provider, way, sent.body)[0] == 400
            else:
                assert b"Understood." in post(provider, way, sent.body)[1]
    assert any(heard.streamed for heard in provider.heard)


# --- faults ---------------------------------------------------------------------------------------------------------


@each_way
@pytest.mark.parametrize(
    ("status", "word"),
    [
        (400, "INVALID_ARGUMENT"),
        (403, "PERMISSION_DENIED"),
        (429, "RESOURCE_EXHAUSTED"),
        (500, "INTERNAL"),
        (503, "UNAVAILABLE"),
        (504, "DEADLINE_EXCEEDED"),
    ],
)
def test_an_error_has_googles_shape(way: str, status: int, word: str) -> None:
    with StrictProvider([Answer(status=status)]) as provider:
        got, error, said = refused(provider, way)
    assert (got, error["code"], error["status"]) == (status, status, word)
    assert overflow(said) is None
    delays = [detail["retryDelay"] for detail in error.get("details", ())]
    assert delays == (["1s"] if status == 429 else [])


@pytest.mark.parametrize("way", WAYS[1:])
def test_an_error_may_come_late_in_a_stream(way: str) -> None:
    with StrictProvider([Answer("It fails", status=503, late=True)]) as provider:
        _, said = post(provider, way)
        assert refused(provider, WAYS[0])[0] == 503
    if way == WAYS[1]:
        *chunks, error = json.loads(said)
        assert chunks
    else:
        error = json.loads(said.decode().rpartition("\n")[2])
        assert said.startswith(b"data: ")
    assert error["error"]["status"] == "UNAVAILABLE"
    assert b"It fails" in said
    assert b"finishReason" not in said


@each_way
def test_a_connection_may_break(way: str) -> None:
    with StrictProvider([Answer("It fails at line 42.", cut=100)]) as provider, pytest.raises(HTTPException):
        post(provider, way)


@each_way
def test_what_is_too_long_is_an_overflow_with_its_numbers(way: str) -> None:
    long = {"contents": [{"role": "user", "parts": [{"text": "word " * 4_000}]}]}
    with StrictProvider(window=4_096) as provider:
        status, error, said = refused(provider, way, long)
        asked = provider.heard[0].spent.input
    assert (status, error["status"]) == (400, "INVALID_ARGUMENT")
    assert overflow(said) == overflow(error) == Overflow(4_096, asked, "gemini")


def test_what_real_ones_refuse_is_refused() -> None:
    call = {"functionCall": {"name": "read", "args": {}}}
    answer = {"functionResponse": {"name": "read", "response": {"output": "x"}}}
    unsigned = [*HELLO["contents"], {"role": "model", "parts": [call]}, {"role": "user", "parts": [answer]}]
    with StrictProvider() as provider:
        for body, words in [
            ({"contents": []}, "GenerateContentRequest.contents: the list is empty"),
            ({"contents": unsigned[:2] + HELLO["contents"]}, "1 functions are called, 0 responses"),
            ({"contents": unsigned}, "has no thoughtSignature"),
            ({**HELLO, "stream": True}, 'Unknown name "stream": Cannot find field.'),
            (b"[]", "Invalid JSON payload received"),
        ]:
            status, error, _ = refused(provider, WAYS[2], body)  # type: ignore[arg-type]
            assert (status, words in error["message"]) == (400, True), error
        post(provider, WAYS[2], {"contents": unsigned}, model="gemini-2.5-pro")


def test_a_key_comes_in_a_header_or_in_the_query() -> None:
    with StrictProvider() as provider:
        status, error, _ = refused(provider, WAYS[2], headers={})
        assert (status, error["status"]) == (403, "PERMISSION_DENIED")
        post(provider, f"{WAYS[2]}&key=none", headers={})
        post(provider, f"{WAYS[0]}?key=none", headers={})
        post(provider, WAYS[2], headers={"Authorization": "Bearer none"})


def test_models_are_listed_with_their_windows() -> None:
    with StrictProvider(models={"one": 8_000, "two": 4_000}) as provider:
        with urlopen(f"{provider.url}/v1beta/models") as response:
            listed = json.loads(response.read())["models"]
        with urlopen(f"{provider.url}/v1beta/models/two") as response:
            assert json.loads(response.read()) == listed[1]
        with pytest.raises(HTTPError, match="404") as caught:
            urlopen(f"{provider.url}/v1beta/models/three")
        assert json.loads(caught.value.read())["error"]["status"] == "NOT_FOUND"
        assert [(m["name"], m["inputTokenLimit"]) for m in listed] == [("models/one", 8_000), ("models/two", 4_000)]
        assert post(provider, WAYS[0], model="one")
        status, error, _ = refused(provider, WAYS[0], model="three")
    assert (status, "models/three is not found" in error["message"]) == (404, True)


# --- counts ---------------------------------------------------------------------------------------------------------


def test_gemini_counts() -> None:
    with StrictProvider([Answer("Done.")], window=10) as provider:
        plain = json.loads(post(provider, "countTokens")[1])
        inner = {"generateContentRequest": {"model": "models/gemini-3-pro", **HELLO, "tools": [{"googleSearch": {}}]}}
        more = json.loads(post(provider, "countTokens", inner)[1])
        assert [plain["totalTokens"], more["totalTokens"]] == [heard.spent.input for heard in provider.heard]
        assert more["totalTokens"] > plain["totalTokens"] > 10
        assert refused(provider, "countTokens", {"contents": []})[0] == 400
        assert len(provider.script) == 1  # type: ignore[arg-type]


async def test_openai_and_anthropic_count() -> None:
    said = {"role": "user", "content": "Why does it fail?"}
    with StrictProvider([Answer("One."), Answer("Two.")]) as provider:
        async with openai_of(provider) as client, anthropic_of(provider) as other:
            one = await client.responses.input_tokens.count(model=MODEL, input="Why does it fail?")
            two = await other.messages.count_tokens(model=MODEL, messages=[said])  # type: ignore[list-item]
            answer = await other.messages.create(**request("anthropic", said))
        counted = [heard.spent.input for heard in provider.heard]
    assert [one.input_tokens, two.input_tokens] == counted[:2]
    assert "One." in answer.to_json()  # a count takes nothing from the script
    assert provider.heard[2].before is None
