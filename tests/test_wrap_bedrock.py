"""boto3's client of Bedrock, wrapped: while there is room nobody notices, and then it fits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import BotoCoreError, ClientError

import clew
from bedrocking import MODEL, BedrockDouble, Body, picture
from clients import WINDOW, engine

LONG = "all is well with the parser. " * 60
READ = {"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object", "properties": {}}}}}


def noted(_: Body) -> list[Body]:
    return [{"text": "Read it."}]


def text(role: str, said: str) -> Body:
    return {"role": role, "content": [{"text": said}]}


def whole(client: Any, messages: list[Body], **more: Any) -> str:
    answer = client.converse(modelId=MODEL, messages=messages, **more)
    assert answer["usage"]["outputTokens"] == 5
    return str(answer["output"]["message"]["content"][0]["text"])


def streamed(client: Any, messages: list[Body], **more: Any) -> str:
    stream = client.converse_stream(modelId=MODEL, messages=messages, **more)["stream"]
    events = list(stream)
    stream.close()
    assert events[-1]["metadata"]["usage"]["outputTokens"] == 5
    return "".join(e["contentBlockDelta"]["delta"].get("text", "") for e in events if "contentBlockDelta" in e)


WAYS = pytest.mark.parametrize("way", [whole, streamed])


@WAYS
def test_with_room_the_provider_hears_the_very_bytes(tmp_path: Path, way: Callable[..., str]) -> None:
    heard = []
    image = {"image": {"format": "png", "source": {"bytes": picture()}}}
    messages = [{"role": "user", "content": [{"text": "What is it?"}, image]}]
    for wrapped in (False, True):
        with BedrockDouble(noted) as bedrock:
            client = clew.wrap(bedrock.client(), engine(tmp_path / "clew.db")) if wrapped else bedrock.client()
            more = {"system": [{"text": "Be brief."}], "inferenceConfig": {"maxTokens": 99}}
            assert way(client, messages, toolConfig={"tools": [READ]}, **more) == "Read it."
            heard.append([raw for raw, _ in bedrock.heard])
    assert heard[0] == heard[1]


@pytest.mark.few(1)
@WAYS
def test_a_list_that_grows_past_the_window_fits_and_nothing_is_lost(tmp_path: Path, way: Callable[..., str]) -> None:
    messages: list[Body] = []
    with BedrockDouble(noted, WINDOW) as bedrock:
        client = clew.wrap(bedrock.client(), engine(tmp_path / "clew.db"), session="pages")
        for n in range(30):
            messages.append(text("user", f"Page {n}: the port is {8000 + n}. {LONG}"))
            assert way(client, messages) == "Read it."
            messages.append(text("assistant", "Read it."))
    assert len(bedrock.heard) == 30  # none was refused
    folded = next(node for node in client.clew.last.nodes if node.item.kind == "summary")
    originals = clew.run(client.clew.recall(folded.id))
    assert any(node.item.text.startswith("Page 1: the port is 8001.") for node in originals)
    assert [s.name for s in clew.run(clew.Sessions(client.clew.engine).all())][:1] == ["pages"]


@WAYS
def test_a_window_that_is_smaller_than_thought_is_learned_from_the_refusal(
    tmp_path: Path, way: Callable[..., str]
) -> None:
    messages = [text("user" if n % 2 == 0 else "assistant", f"Page {n}: {LONG}") for n in range(41)]
    with BedrockDouble(noted, WINDOW) as bedrock:
        client = clew.wrap(bedrock.client(), engine(tmp_path / "clew.db", window=100_000))
        assert way(client, messages) == "Read it."
        assert way(client, messages) == "Read it."
    assert [size > WINDOW for _, size in bedrock.heard] == [True, False, False]


def test_another_refusal_is_told_to_the_caller(tmp_path: Path) -> None:
    with BedrockDouble(noted) as bedrock:
        client = clew.wrap(bedrock.client(), engine(tmp_path / "clew.db"))
        with pytest.raises(ClientError, match="ValidationException"):
            client.converse(modelId=MODEL, messages=[text("assistant", "Hello.")])
    assert len(bedrock.heard) == 1


def test_a_large_result_and_parallel_calls(tmp_path: Path) -> None:
    calls = [{"toolUse": {"toolUseId": f"t{n}", "name": "read", "input": {}}} for n in range(2)]
    rows = "\n".join(f"line {n}: row {n * 13}" for n in range(2_000))
    results = [{"toolResult": {"toolUseId": f"t{n}", "content": [{"text": rows}]}} for n in range(2)]
    asked = text("user", "Read both.")
    with BedrockDouble(lambda body: calls if len(body["messages"]) == 1 else noted(body), WINDOW) as bedrock:
        client = clew.wrap(bedrock.client(), engine(tmp_path / "clew.db"))
        said = client.converse(modelId=MODEL, messages=[asked], toolConfig={"tools": [READ]})["output"]["message"]
        messages = [asked, said, {"role": "user", "content": results}]
        assert whole(client, messages, toolConfig={"tools": [READ]}) == "Read it."
    assert len(bedrock.heard) == 2


def test_usage_is_taken_note_of(tmp_path: Path) -> None:
    with BedrockDouble(noted) as bedrock:
        client = clew.wrap(bedrock.client(), engine(tmp_path / "clew.db"), session="pages")
        whole(client, [text("user", "Hello.")])
        streamed(client, [text("user", "Hello."), text("assistant", "Read it."), text("user", "Go on.")])
    (session,) = clew.run(clew.Sessions(client.clew.engine).all())
    assert session.calls == 2


def test_what_cannot_fit_is_an_error_of_the_sdk_too(tmp_path: Path) -> None:
    with BedrockDouble(noted) as bedrock:
        client = clew.wrap(bedrock.client(), engine(tmp_path / "clew.db"))
        with pytest.raises(clew.OverBudget) as caught:
            whole(client, [text("user", "Hello.")], system=[{"text": LONG * 60}])
    assert isinstance(caught.value, BotoCoreError)
    assert bedrock.heard == []


def test_a_failure_of_ours_sends_what_was_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broken = engine(tmp_path / "clew.db")
    clew.run(broken.store.close())
    with BedrockDouble(noted) as bedrock:
        assert whole(clew.wrap(bedrock.client(), broken), [text("user", "Hello.")]) == "Read it."
    assert "clew failed; the original request is sent unchanged" in caplog.text


def test_a_child_hangs_under_its_parent_and_a_client_is_left_as_it_was(tmp_path: Path) -> None:
    with BedrockDouble(noted) as bedrock:
        client = clew.wrap(bedrock.client(), engine(tmp_path / "clew.db"), session="work")
        with pytest.raises(clew.ClewError, match="needs a parent request"):
            client.clew.child("tests", bedrock.client())
        whole(client, [text("user", "Hello.")])
        child = client.clew.child("tests", bedrock.client())
        whole(child, [text("user", "Run them.")])
        with pytest.raises(clew.BadRequest, match="already wrapped"):
            clew.wrap(client)
        log, keeper = client.clew.engine, client.clew
        keeper.unwrap()
        whole(client, [text("user", "Unseen.")])
    every = clew.run(clew.Sessions(log).all())
    assert sorted(str(s.cause) for s in every) == ["start", "subagent"]
    assert not hasattr(client, "clew")


def test_no_tools_are_offered_and_no_other_service_is_wrapped(tmp_path: Path) -> None:
    with BedrockDouble(noted) as bedrock, pytest.raises(clew.BadRequest, match="offers no tools through boto3"):
        clew.wrap(bedrock.client(), engine(tmp_path / "clew.db"), tools=True)
    with pytest.raises(clew.BadRequest, match="bedrock-runtime client of boto3, got S3"):
        clew.wrap(boto3.Session("none", "none", region_name="us-east-1").client("s3"))


@pytest.mark.parametrize("way", [whole, streamed])
def test_the_same_model_writes_through_the_same_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[..., str]
) -> None:
    monkeypatch.delenv("CLEW_SUMMARY_MODEL", raising=False)
    questions: list[Body] = []

    def script(body: Body) -> list[Body]:
        said = str(body)
        if "<full>" not in said:
            return [{"text": f"All is well with parser {len(body['messages'])}."}]
        questions.append(body)
        facts = "\n".join(f"Fact {n}: its port is {9_000 + n}." for n in range(30) if f"port is {9_000 + n}" in said)
        return [{"text": f"<line>Ports.</line><short>Some ports.</short><full>\n{facts}\n</full>"}]

    messages: list[Body] = []
    with BedrockDouble(script, window=WINDOW) as bedrock:
        client = clew.wrap(bedrock.client(), engine(tmp_path / "clew.db"))
        for n in range(30):
            messages.append(text("user", f"Fact {n}: its port is {9_000 + n}. {LONG}"))
            messages.append(text("assistant", way(client, messages)))
    last = bedrock.heard[-1][0].decode()
    assert questions
    assert all("toolConfig" not in body for body in questions)
    assert "written by" in last
    assert all(f"port is {9_000 + n}" in last for n in range(30))
