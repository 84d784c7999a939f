"""Gemini behind clew: calls of clew's tools are answered on the way, and whoever asked gets one valid answer."""

import json
from pathlib import Path
from typing import Any

import openai
import pytest

from asking import SCHEMA
from clew.adapters.wrapping.lines import relayed
from clew.control import ContextController
from clew.core import rawjson
from clew.core.items import Digests
from clew.exchange.answers import AnswerReader
from clew.exchange.asides import Asides
from clew.exchange.exchange import Caller, Exchange
from clew.exchange.thread import Thread
from clew.exchange.transport import Transport
from clew.llm.streaming import Spoken
from clew.testing import Answer, Call, StrictProvider
from clew.wire.formats import named
from clew.wire.formats.base import CallResult
from clients import engine

Body = dict[str, Any]

MODEL = "gemini-3-pro"  # which refuses calls that are not signed
WAYS = ("generateContent", "streamGenerateContent", "streamGenerateContent?alt=sse")
each_way = pytest.mark.parametrize("way", WAYS)

ASKS = Call("search_history", {"query": "door"})
READS = Call("read", {"path": "a"})


class Client:
    """What calls Gemini behind clew, and keeps its own list of contents."""

    def __init__(self, provider: StrictProvider, place: Path, window: int = 20_000) -> None:
        self._provider = provider
        made = engine(place, window)
        self._controller = ContextController(made, offer=True)
        self._asides = Asides(Digests(made.store.secret, "default"))
        self._http = relayed(openai.DefaultHttpxClient(verify=False), self._ask)
        self.contents: list[Body] = []

    async def _ask(self, line: Transport, request: Any) -> Any:
        body = {**rawjson.loads(request.read()), "model": MODEL}
        caller = Caller(lambda _: None, lambda error: error)
        return await Exchange(Thread(self._controller), self._asides, line, request, "gemini", body, caller).run()

    def post(self, way: str) -> Any:
        tool = {"functionDeclarations": [{"name": "read", "description": "Read a file.", "parameters": SCHEMA}]}
        url = f"{self._provider.url}/v1beta/models/{MODEL}:{way}"
        return self._http.post(url, json={"contents": self.contents, "tools": [tool]}, headers={"x-goog-api-key": "k"})

    def say(self, way: str, *parts: Body) -> Spoken:
        """Say something, and put the answer into the list."""
        self.contents.append({"role": "user", "parts": list(parts)})
        response = self.post(way)
        assert response.status_code == 200, response.text
        reader = AnswerReader("gemini")
        reader.hear(response.content)
        reader.hear(b"")
        spoken = reader.spoken()
        assert spoken is not None, response.text
        self.contents += spoken.messages
        return spoken


def text(words: str) -> Body:
    return {"text": words}


def read(call: Call = READS, words: str = "A is fine.") -> Body:
    id = {"id": call.id} if call.id else {}
    return {"functionResponse": {**id, "name": call.name, "response": {"output": words}}}


@each_way
@pytest.mark.parametrize("reasoning", ["", "Hm."])
def test_several_answers_are_one(tmp_path: Path, way: str, reasoning: str) -> None:
    script = [
        Answer("Let me think.", (ASKS,), reasoning),
        Answer("Once more.", (Call("recall", {"id": "x"}, "c1"),), reasoning),
        Answer("I read on.", (READS,), reasoning),
        Answer("Done."),
        Answer("Bye."),
    ]
    with StrictProvider(script, conversation=lambda _: 0) as provider:
        client = Client(provider, tmp_path / "clew.db")
        said = client.say(way, text("The door is green. Which colour has it?"))
        told = "Let me think.Once more.I read on." if way.endswith("sse") else "I read on."
        assert said.text.replace("\n\n", "") == told
        assert [(c.id, c.name) for c in said.calls] == [("read~0", "read")]
        assert (said.stop, said.usage and said.usage["promptTokenCount"]) == ("calls", provider.heard[2].spent.input)
        assert client.say(way, read()).text == "Done."
        # Another process, which knows only what the log has.
        again = Client(provider, tmp_path / "clew.db")
        again.contents = client.contents
        assert again.say(way, text("Thanks.")).text == "Bye."
    assert provider.moved == []
    for heard in provider.heard[3:]:
        assert heard.raw.count(b"Let me think.") == 1
        names = [p["functionCall"]["name"] for c in heard.body["contents"] for p in c["parts"] if "functionCall" in p]
        assert names == ["search_history", "recall", "read"]


CALLS = {
    "at the beginning": (ASKS, READS),
    "at the end": (READS, ASKS),
    "in the middle": (READS, ASKS, Call("read", {"path": "b"})),
    "around": (ASKS, READS, Call("recall", {"id": "x"})),
    "with ids": (Call(ASKS.name, ASKS.arguments, "c1"), Call(READS.name, READS.arguments, "c2")),
}


@pytest.mark.few(10)
@each_way
@pytest.mark.parametrize("calls", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("words", ["", "I look."])
def test_clews_calls_stand_anywhere_among_others(tmp_path: Path, way: str, calls: tuple[Call, ...], words: str) -> None:
    with StrictProvider([Answer(words, calls), Answer("Done."), Answer("Bye.")], conversation=lambda _: 0) as provider:
        client = Client(provider, tmp_path / "clew.db")
        said = client.say(way, text("Read it."))
        theirs = [call for call in calls if call.name == "read"]
        assert [c.arguments for c in said.calls] == [call.arguments for call in theirs]
        first = next(part for part in client.contents[-1]["parts"] if "functionCall" in part)
        assert first["thoughtSignature"]  # he could send it back by himself
        assert client.say(way, *map(read, theirs)).text == "Done."
        again = Client(provider, tmp_path / "clew.db")
        again.contents = client.contents
        assert again.say(way, text("Thanks.")).text == "Bye."
    assert provider.moved == []
    for heard in provider.heard[1:]:
        made = [p["functionCall"]["name"] for c in heard.body["contents"] for p in c["parts"] if "functionCall" in p]
        assert sorted(made) == sorted(call.name for call in calls)
        signed = [p["functionCall"]["name"] for c in heard.body["contents"] for p in c["parts"] if _signs_call(p)]
        assert signed == [calls[0].name]  # where the model put it
        assert "search_history" not in made or (made[0] == "search_history") is (calls[0].name == "search_history")


def _signs_call(part: Body) -> bool:
    return "functionCall" in part and "thoughtSignature" in part


def test_an_error_after_words_is_told_in_the_stream(tmp_path: Path) -> None:
    with StrictProvider([Answer("I look.", (ASKS,)), Answer(status=503), Answer("Green.")]) as provider:
        client = Client(provider, tmp_path / "clew.db")
        client.contents = [{"role": "user", "parts": [text("Which colour?")]}]
        response = client.post(WAYS[-1])
        events, _, error = response.text.rstrip().rpartition("\n")
        assert response.status_code == 200
        assert "I look." in events
        assert json.loads(error)["error"]["status"] == "UNAVAILABLE"
        client.contents = []
        assert client.say(WAYS[-1], text("Which colour?")).text == "Green."
    assert provider.heard[1].body == provider.heard[2].body  # the model did not have to ask again


@each_way
def test_an_error_before_any_words_is_a_status(tmp_path: Path, way: str) -> None:
    with StrictProvider([Answer(calls=(ASKS,)), Answer(status=429), Answer("Green.")]) as provider:
        client = Client(provider, tmp_path / "clew.db")
        client.contents = [{"role": "user", "parts": [text("Which colour?")]}]
        response = client.post(way)
        assert response.status_code == 429
        assert "RESOURCE_EXHAUSTED" in response.text


def test_an_error_that_comes_late_reaches_who_asked(tmp_path: Path) -> None:
    with StrictProvider([Answer("A word.", (ASKS, READS), status=503, late=True), Answer("Green.")]) as provider:
        client = Client(provider, tmp_path / "clew.db")
        client.contents = [{"role": "user", "parts": [text("Which colour?")]}]
        told = client.post(WAYS[-1]).text
        assert "A word." in told
        assert "search_history" not in told
        assert json.loads(told.rstrip().rpartition("\n")[2])["error"]["code"] == 503


@pytest.mark.parametrize("cut", [400, 700, 900])
def test_a_stream_that_is_cut_is_no_answer(tmp_path: Path, cut: int) -> None:
    script = [Answer("A word.", (Call(ASKS.name, {"query": "long " * 500}),), cut=cut, piece=40), Answer("Green.")]
    with StrictProvider(script) as provider:
        client = Client(provider, tmp_path / "clew.db")
        client.contents = [{"role": "user", "parts": [text("Which colour?")]}]
        with pytest.raises(Exception, match=r"peer|complete"):
            client.post(WAYS[-1])
        client.contents = []
        assert client.say(WAYS[-1], text("Which colour?")).text == "Green."
    assert provider.heard[0].body == provider.heard[1].body


@pytest.mark.few(1)
@each_way
def test_what_is_too_long_is_folded_and_asked_again(tmp_path: Path, way: str) -> None:
    with StrictProvider([Answer("Green.")], window=6_000) as provider:
        client = Client(provider, tmp_path / "clew.db", window=60_000)
        for n in range(30):
            client.contents += [
                {"role": "user", "parts": [text(f"Page {n}. " + "All is well here. " * 80)]},
                {"role": "model", "parts": [text(f"Seen page {n}.")]},
            ]
        assert client.say(way, text("Which colour?")).text == "Green."
    assert len(provider.heard) > 1
    assert provider.heard[0].spent.input > 6_000 >= provider.heard[-1].spent.input


def test_results_say_what_went_wrong() -> None:
    [content] = named("gemini").results(
        [CallResult("recall~0", "recall", "It."), CallResult("c1", "recall", "No.", True)]
    )
    assert content == {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "recall", "response": {"result": "It."}}},
            {"functionResponse": {"id": "c1", "name": "recall", "response": {"error": "No."}}},
        ],
    }
