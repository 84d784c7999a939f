"""What the strict provider takes down of a prompt cache: hits that it reports, and prefixes that moved."""

from collections.abc import Iterator
from typing import Any

import pytest

from asking import FORMATS, ask, events, request
from clew.testing import HeardRequest, StrictProvider

Body = dict[str, Any]


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    with StrictProvider() as provider:
        yield provider


async def heard(provider: StrictProvider, format: str, *said: Body, **more: Any) -> HeardRequest:
    await ask(provider, format, False, request(format, *said, **more))
    return provider.heard[-1]


def user(text: str) -> Body:
    return {"role": "user", "content": text}


@pytest.mark.parametrize("format", FORMATS)
async def test_a_conversation_that_grows_keeps_its_prefix(format: str, provider: StrictProvider) -> None:
    first = await heard(provider, format, user("one"))
    other = await heard(provider, format, user("something else"))
    second = await heard(provider, format, user("one"), user("two"))
    assert (first.before, other.before, second.before) == (None, None, first)
    assert second.shared == len(first.prompt)
    assert provider.moved == []
    rewritten = await heard(provider, format, user("one"), user("2"), user("three"))
    assert provider.moved == [rewritten]
    assert len(first.prompt) < rewritten.shared < len(second.prompt)


@pytest.mark.parametrize("format", FORMATS)
async def test_a_clock_in_the_system_prompt_moves_all(format: str, provider: StrictProvider) -> None:
    for time in ("8:00", "8:01"):
        key = {"anthropic": "system", "openai_responses": "instructions"}.get(format)
        system = [] if key else [{"role": "system", "content": time}]
        await heard(provider, format, *system, user("one"), **({key: time} if key else {}))
    assert provider.moved == provider.heard[1:]


async def test_a_mark_that_moves_on_moves_nothing_and_other_arguments_do(provider: StrictProvider) -> None:
    def marked(text: str) -> Body:
        part = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
        return {"role": "user", "content": [part]}

    def called(arguments: Body) -> list[Body]:
        call = {"type": "tool_use", "id": "t1", "name": "read", "input": arguments}
        result = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
        return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]

    first = await heard(provider, "anthropic", marked("one"))
    second = await heard(provider, "anthropic", user("one"), *called({"a": 1, "b": 2}), marked("two"))
    assert second.before is first
    assert provider.moved == []
    await heard(provider, "anthropic", user("one"), *called({"b": 2, "a": 1}), marked("two"))
    assert provider.moved == provider.heard[2:]


async def test_whose_request_it_is_can_be_said() -> None:
    with StrictProvider(conversation=lambda body: body.get("user")) as provider:
        for text in ("one", "two"):
            await heard(provider, "openai_chat", user(text), user="kim")
        await heard(provider, "openai_chat", user("three"), user="robin")
    assert provider.moved == [provider.heard[1]]


async def test_openai_reads_what_it_saw_and_knows_models_apart(provider: StrictProvider) -> None:
    asked = user("word " * 40)
    first, again = [await heard(provider, "openai_chat", asked) for _ in range(2)]
    elsewhere = await heard(provider, "openai_chat", asked, model="other")
    assert first.spent.cache_read == elsewhere.spent.cache_read == 0
    assert again.spent.cache_read == again.spent.input


async def test_anthropic_reports_reads_and_writes_from_the_start_of_a_stream(provider: StrictProvider) -> None:
    part = {"type": "text", "text": "word " * 400, "cache_control": {"type": "ephemeral"}}
    body = request("anthropic", {"role": "user", "content": [part]})
    reports = []
    for _ in range(2):
        [start, *_, delta, _] = [event async for event in events(provider, "anthropic", body)]
        reports.append((start.message.usage, delta.usage))
    (written, _), (read, last) = reports
    assert written.cache_creation_input_tokens == read.cache_read_input_tokens == last.cache_read_input_tokens > 500
    assert written.cache_read_input_tokens == read.cache_creation_input_tokens == 0
