"""The SDKs of OpenAI and Anthropic through the gateway, with the loop that people write around them."""

from itertools import count
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from driving import KEY, Model, Stage, stage

from asking import FORMATS, MODEL, request
from clew.testing import Answer
from clew.testing.provider import Call
from clients import accumulated, called, create, results, said, text_of, user

Body = dict[str, Any]
READ = Call("read", {"path": "amber"})
LONG = "\n".join(f"line {n}" for n in range(1_500))


def sdk(on: Stage, format: str) -> Any:
    if format == "anthropic":
        return anthropic.Anthropic(api_key=KEY, base_url=on.url)
    return openai.OpenAI(api_key=KEY, base_url=f"{on.url}/v1")


def work(client: Any, format: str, history: list[Body], text: str, streamed: bool) -> str:
    """One turn: ask, read what is called for, ask again; each page begins with a fact."""
    history.append(user(text))
    pages = count()
    while True:
        body = request(format, *history)
        answer = accumulated(client, format, body) if streamed else create(client, format)(**body)
        history += said(format, answer)
        given = {id: f"fact-{next(pages)}\n{LONG}" for id, _ in called(format, answer)}
        if not given:
            return text_of(format, answer)
        history += results(format, given)


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("format", FORMATS)
async def test_hi_a_tool_and_a_restart(format: str, streamed: bool, tmp_path: Path) -> None:
    model = Model({"say hi": [], "read amber": [READ], "and again": [READ]})
    history: list[Body] = []
    with stage(tmp_path, model) as on:
        with on.serving():
            assert work(sdk(on, format), format, history, "say hi", streamed) == "Done: say-hi."
            assert work(sdk(on, format), format, history, "read amber", streamed) == "Done: read-amber."
        with on.serving():
            assert work(sdk(on, format), format, history, "and again", streamed) == "Done: and-again."
    on.check()
    [main] = await on.conversations()
    assert all(word in main.text for word in ("say hi", "read amber", "fact-0", "and again"))


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("format", FORMATS)
async def test_far_past_the_window(format: str, streamed: bool, tmp_path: Path) -> None:
    with stage(tmp_path, Model({"read amber": [READ] * 20}), window=20_000) as on, on.serving():
        assert work(sdk(on, format), format, [], "read amber", streamed) == "Done: read-amber."
    on.check()
    [main] = await on.conversations()
    assert all(f"fact-{n}\n" in main.text for n in range(20))


@pytest.mark.parametrize("format", FORMATS)
async def test_too_long_is_mended_before_it_is_seen(format: str, tmp_path: Path) -> None:
    model = Model({"read amber": [READ] * 12})
    with stage(tmp_path, model, window=200_000, models={MODEL: 20_000}) as on, on.serving():
        assert work(sdk(on, format), format, [], "read amber", streamed=True) == "Done: read-amber."
    on.check()


@pytest.mark.parametrize("fault", [Answer(status=429, retry_after=0.1), Answer(status=500)], ids=["429", "500"])
@pytest.mark.parametrize("format", FORMATS)
def test_faults_are_tried_again(format: str, fault: Answer, tmp_path: Path) -> None:
    with stage(tmp_path, Model({"say hi": []}, first=[fault])) as on, on.serving():
        assert work(sdk(on, format), format, [], "say hi", streamed=False) == "Done: say-hi."
    on.check(refused=True)


@pytest.mark.parametrize("format", FORMATS)
def test_a_cut_stream_is_met_no_worse_than_alone(format: str, tmp_path: Path) -> None:
    cut = Answer("Some words that are cut.", cut=500)
    seen = list[object]()
    for alone in (True, False):
        with (
            stage(tmp_path / str(alone), Model({"say hi": []}, first=[cut])) as on,
            on.alone() if alone else on.serving(),
        ):
            try:
                seen.append(work(sdk(on, format), format, [], "say hi", streamed=True))
            except Exception as error:
                seen.append(type(error))
    # Cut before its first event, the gateway says so instead of an answer, and the SDK asks again.
    assert seen[1] in (seen[0], "Done: say-hi."), seen


async def test_counts_leave_nothing(tmp_path: Path) -> None:
    with stage(tmp_path, Model()) as on, on.serving():
        counted = sdk(on, "anthropic").messages.count_tokens(model=MODEL, messages=[user("How long is this?")])
        assert counted.input_tokens > 0
        asked = sdk(on, "openai_responses").responses.input_tokens.count(model=MODEL, input="How long is this?")
        assert asked.input_tokens > 0
    assert await on.conversations() == []


async def test_responses_that_the_provider_keeps_pass_through(tmp_path: Path) -> None:
    with stage(tmp_path, Model({"say hi": [], "and again": []})) as on, on.serving():
        client = sdk(on, "openai_responses")
        first = client.responses.create(**request("openai_responses", user("say hi"), store=True))
        more = request("openai_responses", user("and again"), previous_response_id=first.id)
        assert client.responses.create(**more).output_text == "Done: and-again."
    assert on.provider.heard[-1].body["previous_response_id"] == first.id
    assert len(on.provider.heard[-1].body["input"]) == 1


async def test_a_history_is_compacted_from_the_log(tmp_path: Path) -> None:
    history: list[Body] = []
    with stage(tmp_path, Model({"read amber": [READ] * 6, "and again": []})) as on, on.serving():
        client = sdk(on, "openai_responses")
        work(client, "openai_responses", history, "read amber", streamed=False)
        heard = len(on.provider.heard)
        compacted = client.responses.compact(model=MODEL, input=history)
        assert len(on.provider.heard) == heard
        assert [item.type for item in compacted.output] == ["compaction"]
        kept = [item.model_dump(exclude_none=True) for item in compacted.output]
        assert work(client, "openai_responses", kept, "and again", streamed=True) == "Done: and-again."
    on.check()
    assert on.answered == 1
    assert "read amber" in str(on.provider.heard[-1].body["input"])
    first, later = await on.conversations()
    assert (later.session.cause, later.session.parent is not None) == ("compaction", True)
    assert "fact-5\n" in first.text
