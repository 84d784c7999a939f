"""What the strict provider refuses and how it fails, as the official SDKs see it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest

from asking import FORMATS, MODEL, anthropic_of, ask, events, openai_of, request
from clew.testing import Answer, StrictProvider
from clew.wire.overflow import Overflow, overflow

Body = dict[str, Any]

WAYS = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
STATUSES: list[tuple[int, type[openai.APIStatusError], type[anthropic.APIStatusError]]] = [
    (400, openai.BadRequestError, anthropic.BadRequestError),
    (401, openai.AuthenticationError, anthropic.AuthenticationError),
    (403, openai.PermissionDeniedError, anthropic.PermissionDeniedError),
    (404, openai.NotFoundError, anthropic.NotFoundError),
    (429, openai.RateLimitError, anthropic.RateLimitError),
    (500, openai.InternalServerError, anthropic.InternalServerError),
    (503, openai.InternalServerError, anthropic.InternalServerError),
    (529, openai.InternalServerError, anthropic.InternalServerError),
]


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    with StrictProvider() as provider:
        yield provider


async def failure(provider: StrictProvider, format: str, streamed: bool, body: Body | None = None) -> Any:
    with pytest.raises((openai.APIError, anthropic.APIError)) as caught:
        await ask(provider, format, streamed, body)
    return caught.value


# --- errors ---------------------------------------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("status", "of_openai", "of_anthropic"), STATUSES, ids=lambda value: str(value))
async def test_a_status_is_the_error_that_the_sdk_has_for_it(
    status: int, of_openai: type[Any], of_anthropic: type[Any], format: str, streamed: bool
) -> None:
    with StrictProvider([Answer(status=status)]) as provider:
        error = await failure(provider, format, streamed)
    assert isinstance(error, of_anthropic if format == "anthropic" else of_openai)
    assert error.status_code == status
    assert overflow(error) is None
    named = ("request-id", "retry-after") if format == "anthropic" else ("x-request-id", "retry-after")
    assert [name in error.response.headers for name in named] == [True, status == 429]


@pytest.mark.parametrize(
    ("format", "status", "said"),
    [
        ("openai_chat", 429, {"type": "tokens", "code": "rate_limit_exceeded"}),
        ("openai_responses", 500, {"type": "server_error", "code": None}),
        ("anthropic", 429, {"type": "rate_limit_error"}),
        ("anthropic", 500, {"type": "api_error", "message": "Internal server error"}),
        ("anthropic", 529, {"type": "overloaded_error", "message": "Overloaded"}),
    ],
)
async def test_an_error_has_its_providers_shape(format: str, status: int, said: Body) -> None:
    with StrictProvider([Answer(status=status)]) as provider:
        body = (await failure(provider, format, streamed=False)).body
    assert body.get("error", body).items() >= said.items()


async def test_an_sdk_comes_again_when_it_was_told_to() -> None:
    with StrictProvider([Answer(status=429, retry_after=0.01), Answer("Now.")]) as provider:
        client = openai_of(provider).with_options(max_retries=1)
        said = await client.chat.completions.create(**request("openai_chat"))
        await client.close()
        assert len(provider.heard) == 2
    assert said.choices[0].message.content == "Now."


@pytest.mark.parametrize("format", FORMATS)
async def test_an_error_may_come_late_in_a_stream(format: str) -> None:
    status = 529 if format == "anthropic" else 500
    said: list[str] = []

    with StrictProvider([Answer("It fails", status=status, late=True)]) as provider:

        async def listen() -> None:
            async for event in events(provider, format):
                said.append(str(event))  # noqa: PERF401 - what came before the error counts

        with pytest.raises((openai.APIError, anthropic.APIError)) as caught:
            await listen()
        plain = await failure(provider, format, streamed=False)
    assert "It fails" in "".join(said)
    assert ("Overloaded" if format == "anthropic" else "The server had an error") in str(caught.value)
    assert plain.status_code == status, "a request that is not streamed gets it at once"


@pytest.mark.parametrize("format", FORMATS)
async def test_a_connection_may_break(format: str) -> None:
    with StrictProvider([Answer("It fails at line 42.", cut=300)]) as provider:
        for streamed in (True, False):
            with pytest.raises(Exception, match=r"(?i)connection|peer closed|incomplete|JSON") as caught:
                await ask(provider, format, streamed, request(format, {"role": "user", "content": "word " * 400}))
            assert not isinstance(caught.value, openai.APIStatusError | anthropic.APIStatusError)


# --- refusals -------------------------------------------------------------------------------------------------------

LONG = {"role": "user", "content": "word " * 4_000}


@WAYS
@pytest.mark.parametrize("format", FORMATS)
async def test_what_is_too_long_is_an_overflow_with_its_numbers(format: str, streamed: bool) -> None:
    with StrictProvider(window=4_096) as provider:
        error = await failure(provider, format, streamed, request(format, LONG))
        asked = provider.heard[0].spent.input
    assert asked > 4_096
    if format == "openai_responses":  # which names none, and streams its refusal
        assert overflow(error) == Overflow(None, None, "openai")
        assert isinstance(error, openai.APIStatusError) is not streamed
    else:
        assert overflow(error) == Overflow(4_096, asked, "anthropic" if format == "anthropic" else "openai")
        assert error.status_code == 400
    if format != "anthropic":
        assert error.code == "context_length_exceeded"


@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])
async def test_the_answer_needs_room_too(format: str) -> None:
    with StrictProvider(window=8_192) as provider:
        error = await failure(provider, format, False, request(format, LONG, max_tokens=6_000))
        asked = provider.heard[0].spent.input
    found = overflow(error)
    assert asked < 8_192
    assert found is not None
    assert (found.limit, found.asked) == (8_192, asked + 6_000)


def broken(format: str) -> Body:
    """A request with a call that nothing answers."""
    ask = {"role": "user", "content": "Why?"}
    go_on = {"role": "user", "content": "Go on."}
    if format == "anthropic":
        call: Body = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
        return request(format, ask, {"role": "assistant", "content": [call]}, go_on)
    if format == "openai_chat":
        call = {"id": "t1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        return request(format, ask, {"role": "assistant", "content": None, "tool_calls": [call]}, go_on)
    return request(format, ask, {"type": "function_call", "call_id": "t1", "name": "read", "arguments": "{}"}, go_on)


@WAYS
@pytest.mark.parametrize("format", FORMATS)
async def test_a_call_without_its_result_is_refused(format: str, streamed: bool, provider: StrictProvider) -> None:
    error = await failure(provider, format, streamed, broken(format))
    assert isinstance(error, openai.BadRequestError | anthropic.BadRequestError)
    assert "t1" in str(error)
    assert overflow(error) is None


@pytest.mark.parametrize(
    ("format", "more", "said"),
    [
        ("openai_chat", {"model": None}, "Missing required parameter: 'model'."),
        ("openai_chat", {"stream_options": {"include_usage": True}}, "only allowed when 'stream' is enabled"),
        ("openai_responses", {"model": None}, "Missing required parameter: 'model'."),
        ("anthropic", {"model": None}, "model: Field required"),
        ("anthropic", {"max_tokens": None, "timeout": 60}, "max_tokens: Field required"),
        (
            "anthropic",
            {"extra_headers": {"anthropic-version": anthropic.omit}},
            "anthropic-version: header is required",
        ),
    ],
)
async def test_what_stands_beside_the_messages_counts(
    format: str, more: Body, said: str, provider: StrictProvider
) -> None:
    error = await failure(provider, format, False, request(format, **more))
    assert (error.status_code, said in str(error)) == (400, True)


async def test_models_are_listed_with_what_each_provider_says_of_them() -> None:
    with StrictProvider(models={"one": 8_000, "two": 4_000}) as provider:
        async with openai_of(provider) as client, anthropic_of(provider) as other:
            assert [m.id for m in (await client.models.list()).data] == ["one", "two"]
            listed = [(m.id, m.max_input_tokens) for m in (await other.models.list()).data]
            assert (await client.models.retrieve("two")).id == "two"
            with pytest.raises(anthropic.NotFoundError):
                await other.models.retrieve("three")
        assert listed == [("one", 8_000), ("two", 4_000)]
        for format in FORMATS:
            error = await failure(provider, format, False)
            assert (error.status_code, MODEL in str(error)) == (404, True)
        error = await failure(provider, "openai_chat", False, request("openai_chat", LONG, model="two"))
        assert overflow(error) == Overflow(4_000, provider.heard[-1].spent.input, "openai")


async def test_another_path_is_not_found(provider: StrictProvider) -> None:
    async with openai_of(provider) as client:
        with pytest.raises(openai.NotFoundError, match="/v1/embeddings"):
            await client.embeddings.create(model=MODEL, input="x")


# --- many at once ---------------------------------------------------------------------------------------------------


async def test_many_clients_each_get_their_own_answer() -> None:
    def echo(body: Body) -> Answer:
        return Answer(str((body.get("messages") or body["input"])[0]["content"]) * 20, piece=5, pause=0.001)

    with StrictProvider(echo) as provider:

        async def talk(n: int) -> str:
            format = FORMATS[n % 3]
            said = await ask(provider, format, n % 2 == 0, request(format, {"role": "user", "content": f"<{n}>"}))
            return str(said.model_dump(warnings=False))

        answers = await asyncio.gather(*map(talk, range(24)))
    assert [f"<{n}>" * 20 in answer for n, answer in enumerate(answers)] == [True] * 24
    assert len(provider.heard) == 24


@pytest.mark.parametrize("format", FORMATS)
async def test_a_client_that_goes_away_in_a_stream_is_not_missed(format: str) -> None:
    with StrictProvider([Answer("word " * 9_000, pause=0.001), Answer("Short.")]) as provider:
        stream = events(provider, format)
        await anext(stream)
        await stream.aclose()
        said = await ask(provider, format, streamed=True)
    assert "Short." in str(said)


async def test_the_end_waits_for_no_stream() -> None:
    with StrictProvider([Answer("word " * 9_000, pause=3_600)]) as provider:
        stream = events(provider, "openai_chat")
        await anext(stream)
    await stream.aclose()


async def test_an_error_in_a_script_comes_out() -> None:
    def script(body: Body) -> Answer:
        raise AssertionError(f"{body['model']} was asked")

    with pytest.raises(AssertionError, match=f"{MODEL} was asked"), StrictProvider(script) as provider:
        assert "was asked" in str(await failure(provider, "openai_chat", streamed=False))
