"""Tools that a wrapped client answers itself: the model uses them, and the caller never sees it."""

import json
import re
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

import clew
from amounts import combined
from asking import FORMATS, MODEL, request
from clew import Sessions
from clew.testing import Answer, Call, StrictProvider
from clients import (
    WINDOW,
    Body,
    accumulated,
    behind,
    called,
    create,
    engine,
    page,
    plain_of,
    results,
    said,
    text_of,
    user,
)


def tools_of(body: Body) -> list[str]:
    return [tool.get("function", tool)["name"] for tool in body.get("tools", ())]


def answer_of(client: Any, format: str, body: Body, streams: bool) -> Any:
    """The SDK's own object for an answer."""
    return accumulated(client, format, body) if streams else create(client, format)(**body)


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("format", FORMATS)
def test_the_model_recalls_and_the_caller_sees_only_the_answer(tmp_path: Path, format: str, streams: bool) -> None:
    script = [
        Answer("Let me think.", calls=(Call("search_history", {"query": "door"}), Call("recall", {"id": "nonsense"}))),
        Answer("Once more.", calls=(Call("search_history", {"query": "colour of the door"}),), reasoning="Hm."),
        Answer("It is green."),
        Answer("You are welcome."),
    ]
    with StrictProvider(script, conversation=lambda _: 0) as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        history = [user("The door is green. Which colour has it?")]
        answer = answer_of(client, format, request(format, *history), streams)
        # What was said in a stream was said; of a whole answer only the last one is told.
        seen = ["Let me think.", "Once more.", "It is green."] if streams else ["It is green."]
        assert "".join(text_of(format, answer).split()) == "".join("".join(seen).split())
        assert called(format, answer) == []
        history += [*said(format, answer), user("Thanks.")]
        assert text_of(format, answer_of(client, format, request(format, *history), streams)) == "You are welcome."
    assert len(provider.heard) == 4
    assert {"recall", "search_history"} < {*tools_of(provider.heard[0].body), "read"}
    assert b"Error: " in provider.heard[1].raw
    assert provider.heard[2].raw.count(b"door is green") > 1
    assert provider.moved == []  # what was asked aside is still there, in the same place


async def test_so_it_is_with_a_client_that_awaits(tmp_path: Path) -> None:
    script = [Answer(calls=(Call("search_history", {"query": "door"}),)), Answer("Green."), Answer("Bye.")]
    with StrictProvider(script, conversation=lambda _: 0) as provider:
        async with plain_of(provider, "anthropic", blocking=False) as plain:
            client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
            history = [user("The door is green. Which colour has it?")]
            async with client.messages.stream(**request("anthropic", *history)) as stream:
                history += said("anthropic", await stream.get_final_message())
            assert history[-1] == {"role": "assistant", "content": [{"text": "Green.", "type": "text"}]}
            answer = await client.messages.create(**request("anthropic", *history, user("Thanks.")))
            assert text_of("anthropic", answer) == "Bye."
    assert len(provider.heard) == 3
    assert provider.moved == []


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("format", FORMATS)
def test_of_parallel_calls_the_caller_gets_his_own(tmp_path: Path, format: str, streams: bool) -> None:
    mixed = (
        Call("read", {"path": "a"}, "call_a"),
        Call("search_history", {"query": "the door"}, "call_s"),
        Call("read", {"path": "b"}, "call_b"),
    )
    script = [Answer("Both at once.", calls=mixed), Answer("Done."), Answer("Bye.")]
    with StrictProvider(script, conversation=lambda _: 0) as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        history = [user("The door is green.")]
        answer = answer_of(client, format, request(format, *history), streams)
        assert text_of(format, answer) == "Both at once."
        assert called(format, answer) == [("call_a", "read"), ("call_b", "read")]
        history += [*said(format, answer), *results(format, {"call_a": "A is fine.", "call_b": "B is fine."})]
        assert text_of(format, create(client, format)(**request(format, *history))) == "Done."
        history += [{"role": "assistant", "content": "Done."}, user("Thanks.")]
        # Another process, which knows only what the log has.
        again = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        assert text_of(format, create(again, format)(**request(format, *history))) == "Bye."
    assert not provider.heard[2].moved
    for heard in provider.heard[1:]:
        assert all(id in heard.raw for id in (b"call_a", b"call_b", b"call_s", b"A is fine.", b"B is fine."))
        assert b"not orders" in heard.raw  # what clew gave back


@pytest.mark.few(2)
@pytest.mark.parametrize("session", [None, "work"])
@pytest.mark.parametrize("format", FORMATS)
def test_the_agent_begins_a_new_session_and_the_caller_goes_on(
    tmp_path: Path, format: str, session: str | None
) -> None:
    summary = "Task: read all pages. Done: the first ten. Next: page 11."
    script = [
        *(Answer(f"Read {n}.") for n in range(10)),
        Answer(calls=(Call("new_session", {"summary": summary}),)),
        Answer("Going on with page 11."),
        Answer("Good."),
    ]
    made = engine(tmp_path / "clew.db", window=20_000)
    with StrictProvider(script, window=20_000) as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, made, session=session, method="llm", when="60%")
        history: list[Body] = []
        for n in range(12):
            history.append(user(page(n)))
            answer = create(client, format)(**request(format, *history))
            assert called(format, answer) == []
            history += [{"role": "assistant", "content": text_of(format, answer)}]
        # Another process, which knows only what the log has.
        again = clew.wrap(plain, engine(tmp_path / "clew.db", window=20_000), session=session, method="llm", when="60%")
        create(again, format)(**request(format, *history, user("And now?")))
    assert b"used_pct" in provider.heard[0].raw
    assert "new_session" in tools_of(provider.heard[0].body)
    for heard in provider.heard[11:]:
        assert summary.encode() in heard.raw
        assert b"mark-0001" not in heard.raw  # of the requests the first and the newest stand
    [child, parent] = clew.run(Sessions(made).all())
    assert (parent.ended_by, child.cause) == ("handoff", "handoff")
    assert all(f"mark-{n:04d}" in behind(again) for n in range(12))


def test_the_child_of_a_client_that_several_use_looks_into_none_of_their_conversations(tmp_path: Path) -> None:
    def script(sent: Body) -> Answer:
        looks = "look back" in sent["messages"][-1].get("content", "")
        return Answer(calls=(Call("search_history", {"query": "salary"}),)) if looks else Answer("Done.")

    with StrictProvider(script) as provider, plain_of(provider, "openai_chat") as plain:
        for users, found in (("Alice",), True), (("Alice", "Bob"), False):
            client = clew.wrap(plain, engine(tmp_path / f"{found}.db"), tools=True)
            for name in users:
                create(client, "openai_chat")(**request("openai_chat", user(f"I am {name}, my salary is 50 {name}s.")))
            create(client.clew.child("reader"), "openai_chat")(**request("openai_chat", user("Please look back.")))
            assert ("50 " in json.dumps(provider.heard[-1].body["messages"][-1])) is found


def test_what_was_asked_aside_stays_with_its_system_prompt(tmp_path: Path) -> None:
    script = [Answer(calls=(Call("search_history", {"query": "of Alice"}),)), Answer("Hello."), Answer("Fine.")]
    hello = [user("Hello"), {"role": "assistant", "content": "Hello."}, user("What do you know of me?")]
    with StrictProvider(script) as provider, plain_of(provider, "openai_chat") as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        for name, said in (("Alice", hello[:1]), ("Bob", hello)):
            prompt = {"role": "system", "content": f"You serve {name}."}
            create(client, "openai_chat")(**request("openai_chat", prompt, *said))
        assert b"of Alice" in provider.heard[1].raw
        assert b"of Alice" not in provider.heard[2].raw


def test_conversations_that_begin_alike_know_nothing_of_each_other(tmp_path: Path) -> None:
    script = [
        Answer(calls=(Call("search_history", {"query": "aside-of-one"}),)),
        Answer("Green."),
        Answer("Blue."),
        Answer("Bye."),
    ]
    with StrictProvider(script) as provider, plain_of(provider, "openai_chat") as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        answers = [client.chat.completions.create(**request("openai_chat", user("Which colour?"))) for _ in range(2)]
        assert [text_of("openai_chat", answer) for answer in answers] == ["Green.", "Blue."]
        for answer in answers:
            body = request("openai_chat", user("Which colour?"), *said("openai_chat", answer), user("Thanks."))
            client.chat.completions.create(**body)
    assert [b"aside-of-one" in heard.raw for heard in provider.heard] == [False, True, False, True, False]


def whims(random: Random) -> Callable[[Body], Answer]:
    """An agent that calls whatever it is offered, often several tools at once."""
    numbers = count()
    given = {"read": {"path": "a"}, "search_history": {"query": "mark"}, "recall": {"id": "abc"}}

    def call(tools: list[str]) -> Call:
        name = random.choice([*tools, "read", "read"])
        return Call(name, given.get(name, {"summary": "We read pages."}), f"call_{next(numbers)}")

    def answer(body: Body) -> Answer:
        calls = tuple(call(tools_of(body)) for _ in range(random.choice([0, 1, 1, 2, 3])))
        return Answer(random.choice(["", "Well."]), calls)

    return answer


@pytest.mark.few(1)
@pytest.mark.parametrize(("method", "streams"), combined(["auto", "llm"], [False, True]))
@pytest.mark.parametrize("format", FORMATS)
def test_whatever_a_model_calls_the_provider_takes_what_it_is_sent(
    tmp_path: Path, format: str, method: Any, streams: bool
) -> None:
    random = Random(f"{format} {method}")
    with StrictProvider(whims(random), window=WINDOW) as provider, plain_of(provider, format) as plain:
        history = [user(f"Begin. {page(0)}")]
        for n in range(24):
            if n % 8 == 0:  # another process
                client = clew.wrap(plain, engine(tmp_path / "clew.db"), session="work", method=method, tools=True)
            sent = json.dumps(history)
            answer = answer_of(client, format, request(format, *history), streams)
            calls = called(format, answer)
            assert {name for _, name in calls} <= {"read"}
            history += [m for m in said(format, answer) if m.get("content") or m.get("tool_calls") or m.get("type")]
            history += results(format, {id: page(n) for id, _ in calls}) if calls else [user(f"On. {page(n)}")]
        assert set(re.findall(r"mark-\d{4}", sent)) <= set(re.findall(r"mark-\d{4}", behind(client)))
    assert len(provider.heard) > 30


def test_a_caller_with_a_tool_of_that_name_keeps_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    body = {"model": MODEL, "messages": [user(page(0)), {"role": "assistant", "content": "Go on."}] * 20 + [user("hi")]}
    tool = {"type": "function", "function": {"name": "recall", "parameters": {"type": "object", "properties": {}}}}
    provider = StrictProvider([Answer(calls=(Call("recall", {}, "call_1"),))], window=WINDOW)
    with provider, plain_of(provider, "openai_chat") as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), method="llm")
        answer = client.chat.completions.create(**body, tools=[tool])
    assert called("openai_chat", answer) == [("call_1", "recall")]
    assert "rename them, or do not offer clew's" in caplog.text
    assert provider.heard[0].body["tools"] == [tool]
    assert len(provider.heard) == 1  # and it fits


@pytest.mark.parametrize("more", [{"n": 2}, {"background": True}], ids=str)
def test_no_tool_is_offered_where_its_call_could_not_be_answered(tmp_path: Path, more: Body) -> None:
    format = "openai_chat" if "n" in more else "openai_responses"
    with StrictProvider() as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db"), tools=True)
        create(client, format)(**request(format), **more)
        assert client.clew.last is not None
    assert provider.heard[0].body == {**request(format), **more}


@pytest.mark.parametrize("format", FORMATS)
def test_an_error_in_between_does_not_make_a_model_ask_again(tmp_path: Path, format: str) -> None:
    made = engine(tmp_path / "clew.db")
    script = [
        Answer("Let me look.", calls=(Call("search_history", {"query": "door"}),)),
        Answer(status=500),
        Answer("Green."),
        Answer("Bye."),
    ]
    provider = StrictProvider(script, conversation=lambda _: 0)
    with provider, plain_of(provider, format, retries=1) as plain:
        client = clew.wrap(plain, made, tools=True)
        history = [user("The door is green. Which colour has it?")]
        answer = create(client, format)(**request(format, *history))
        assert text_of(format, answer) == "Green."
        history += [*said(format, answer), user("Thanks.")]
        assert text_of(format, create(client, format)(**request(format, *history))) == "Bye."
    assert len(provider.heard) == 4
    assert provider.heard[1].raw == provider.heard[2].raw
    assert provider.moved == []
    assert len(clew.run(Sessions(made).all())) == 1


def test_a_model_that_asks_without_end_is_cut_short(tmp_path: Path) -> None:
    script = [Answer("Again.", calls=(Call("search_history", {"query": "x"}),))]
    with StrictProvider(script) as provider, plain_of(provider, "openai_chat") as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db", window=100_000), tools=True)
        answer = client.chat.completions.create(**request("openai_chat"))
    assert (answer.choices[0].finish_reason, called("openai_chat", answer)) == ("stop", [])
    assert len(provider.heard) == 21
