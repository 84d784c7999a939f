"""Streams of a wrapped client that break, are refused in between, or are not heard to their end."""

from pathlib import Path

import anthropic
import openai
import pytest

import clew
from asking import FORMATS, request
from clew.testing import Answer, Call, StrictProvider
from clients import Body, accumulated, create, engine, plain_of, said, text_of, user

ASKS = Call("search_history", {"query": "door"}, "call_s")
READS = Call("read", {"path": "a"}, "call_r")
THINKS = Answer("Let me think.", calls=(ASKS,), reasoning="Hm.")


@pytest.mark.parametrize("format", FORMATS)
def test_an_error_after_words_is_told_in_the_stream(tmp_path: Path, format: str) -> None:
    script = [THINKS, Answer(status=500), Answer("Green."), Answer("Bye.")]
    provider = StrictProvider(script, conversation=lambda _: 0)
    with provider, plain_of(provider, format, retries=3) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        with pytest.raises((openai.APIError, anthropic.APIError)):
            accumulated(client, format, request(format))
        assert len(provider.heard) == 2  # an SDK cannot try again what it has begun to tell
        answer = accumulated(client, format, request(format))
        assert text_of(format, answer) == "Green."
        asked: list[Body] = request(format).get("messages") or request(format)["input"]
        history = [*asked, *said(format, answer)]
        assert text_of(format, accumulated(client, format, request(format, *history, user("Thanks.")))) == "Bye."
    assert provider.heard[1].raw == provider.heard[2].raw  # the model did not have to ask again
    assert provider.moved == []


@pytest.mark.parametrize("format", FORMATS)
def test_an_error_before_any_words_is_one_that_an_sdk_tries_again(tmp_path: Path, format: str) -> None:
    script = [Answer(calls=(ASKS,)), Answer(status=500), Answer("Green.")]
    provider = StrictProvider(script, conversation=lambda _: 0)
    with provider, plain_of(provider, format, retries=1) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        assert text_of(format, accumulated(client, format, request(format))) == "Green."
    assert len(provider.heard) == 3
    assert provider.heard[1].raw == provider.heard[2].raw


BROKEN = {
    "an error in the stream": Answer("A word.", calls=(ASKS, READS), status=500, late=True),
    "cut in a call": Answer(
        "A word.", calls=(Call(ASKS.name, {"query": "long " * 1_600}, "call_s"),), cut=9_000, piece=40
    ),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=list(BROKEN))
@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_that_breaks_leaves_nothing_behind(tmp_path: Path, format: str, answer: Answer) -> None:
    made = engine(tmp_path / "clew.db")
    with StrictProvider([answer, Answer("Green.")]) as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, made, tools=True)
        heard: list[str] = []
        with pytest.raises(Exception, match=r"server|peer|complete|error"):
            heard.extend(e.to_json() for e in create(client, format)(**request(format), stream=True))
        assert "A word" in "".join(heard)
        assert "call_s" not in "".join(heard)
        assert "long long" not in "".join(heard)
        assert text_of(format, accumulated(client, format, request(format))) == "Green."
        assert plain._client._transport._pool.connections == []
    assert provider.heard[0].body == provider.heard[1].body
    assert len(clew.run(clew.Sessions(made).all())) == 1


@pytest.mark.parametrize("format", FORMATS)
async def test_who_stops_listening_hangs_up(tmp_path: Path, format: str) -> None:
    script = [Answer("Well.", calls=(ASKS,)), Answer("A long answer. " * 5_000)]
    with StrictProvider([*script, *script, *script]) as provider:
        with plain_of(provider, format) as plain:
            client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
            with create(client, format)(**request(format), stream=True) as stream:
                while "long" not in next(stream).to_json():
                    pass
            assert plain._client._transport._pool.connections == []
        async with plain_of(provider, format, blocking=False) as plain:
            client = clew.wrap(plain, engine(tmp_path / "other.db"), tools=True)
            async with await create(client, format)(**request(format), stream=True) as events:
                while "long" not in (await anext(aiter(events))).to_json():
                    pass
            async with await create(client, format)(**request(format, user("Else?")), stream=True):
                pass
            assert plain._client._transport._pool.connections == []
