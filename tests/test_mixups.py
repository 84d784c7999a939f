"""What a client changed is seen, and what somebody else said is not: conversations that were once taken for others."""

import copy
import http.server
import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

import clew
from amounts import combined
from clew import Budget, Engine, Request
from clew.core.view import View
from clew.recognition.continuation import Recognition
from clew.recognition.recognise import _only
from clew.store.records import ClientEdit, Place
from clew.store.sql import SQLStore
from clew.store.trace import Trace
from tagging import Body, Calls, Message, Results, Text, written

PROMPT = "Check every server and report."
FORMS = ("dict", "bytes")
RUNS = ("warm", "cold")


def as_sent(body: Body, form: str) -> Body | bytes:
    return json.dumps(body).encode() if form == "bytes" else copy.deepcopy(body)


def rollout(who: str, turns: int, id: str = "call_{}") -> list[Message]:
    """An agent that calls and says nothing; its ids count up as everybody's do."""
    said: list[Message] = [Text("user", PROMPT)]
    for n in range(1, turns + 1):
        secret = f"error: {who}-host-{n}: password of {who} is {who}SECRET{n}\n" * 12
        said += [Calls(((id.format(n), f"{who}-host-{n}"),)), Results(((id.format(n), secret),))]
    return said


async def recalled(engine: Engine, view: View) -> str:
    return "\n".join([o.item.text for node in view.nodes for o in await engine.recall("default", node.id)])


async def holds(engine: Engine, view: View, who: str) -> list[str]:
    """Where a view has words of somebody."""
    places = {"body": json.dumps(clew.body(view)), "recall": await recalled(engine, view)}
    return [where for where, text in places.items() if who in text]


# --- what a client changed ------------------------------------------------------------------------------------------


def pages(count: int) -> list[Message]:
    said: list[Message] = [Text("user", "Deploy the service to the cluster in Frankfurt.")]
    for n in range(count):
        result = f"page {n}: OLDRESULT{n} all is well\n" * 20
        said += [
            Calls(((f"c{n}", f"page {n}"),)),
            Results(((f"c{n}", result),)),
            Text("assistant", f"I read page {n}."),
        ]
        said += [Text("user", f"please go on with the next page, number {n}")]
    return said


@pytest.mark.few(2)
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("format", ["openai_chat", "anthropic", "gemini"])
async def test_what_a_client_changed_under_a_fold_is_seen(store: SQLStore, format: str, form: str, run: str) -> None:
    engine, said = Engine(store, Budget(window=2_500)), pages(30)
    for end in range(5, len(said) + 1, 4):
        await engine.prepare(Request(as_sent(written(format, said[:end]), form), format))
    ordered, result = said[8], said[6]
    assert isinstance(ordered, Text)
    assert isinstance(result, Results)
    said[8] = Text("user", f"{ordered.text} But NEVER touch the database VAULT-77.")
    said[6] = Results((("c1", "CORRECTED: page 1 was wrong, the limit is 4711."),))
    engine = engine if run == "warm" else Engine(store, Budget(window=2_500))
    view = await engine.prepare(Request(as_sent(written(format, said), form), format))
    reached = json.dumps(clew.body(view)) + await recalled(engine, view)
    assert "VAULT-77" in reached
    assert "4711" in reached
    assert "OLDRESULT1 " not in json.dumps(clew.body(view))
    assert await engine.find("default", "VAULT-77", view.branch)
    assert await engine.find("default", "4711", view.branch)


VALUES = (1, 1.0, True, 0, False, 0.0, -0.0)


@pytest.mark.few(1)
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("form", FORMS)
async def test_one_and_true_are_told_apart(store: SQLStore, form: str, run: str) -> None:
    def asked(value: object, turns: int) -> Body:
        use = {"type": "tool_use", "id": "a", "name": "f", "input": {"x": value}}
        said: list[Body] = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [use]}]
        said += [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "r"}]}]
        for n in range(turns):
            said += [{"role": "assistant", "content": f"a{n}"}, {"role": "user", "content": f"u{n}"}]
        return {"model": "claude-sonnet-4-5", "max_tokens": 10, "messages": said}

    wrong = []
    for n, (was, now) in enumerate(itertools.permutations(VALUES, 2)):
        engine = Engine(store, Budget(window=100_000))
        await engine.prepare(Request(as_sent(asked(was, 1), form), scope=f"{n}"))
        engine = engine if run == "warm" else Engine(store, Budget(window=100_000))
        view = await engine.prepare(Request(as_sent(asked(now, 2), form), scope=f"{n}"))
        sent = clew.body(view)["messages"][1]["content"][0]["input"]
        if json.dumps(sent) != json.dumps({"x": now}):
            wrong.append((was, now, sent))
    assert wrong == []


# --- what somebody else said ----------------------------------------------------------------------------------------


HELLO = [Text("user", "hello"), Text("assistant", "Hi! How can I help you today?")]


@pytest.mark.parametrize("run", RUNS)
async def test_two_people_who_are_greeted_alike_have_two_branches(store: SQLStore, run: str) -> None:
    engine = Engine(store, Budget(window=100_000))
    taxes: list[Message] = [*HELLO, Text("user", "My SSN is 123-45-6789, file my taxes.")]
    ann = await engine.prepare(Request(written("openai_chat", taxes)))
    engine = engine if run == "warm" else Engine(store, Budget(window=100_000))
    weather = [Text("user", "What is the weather in Paris?"), Text("assistant", "Sunny."), Text("user", "Any rain?")]
    bob = await engine.prepare(Request(written("openai_chat", [*HELLO, *weather])))
    assert ann.branch != bob.branch
    assert "SSN" not in json.dumps(clew.body(bob))
    assert await engine.find("default", "SSN taxes number", bob.branch) == []
    more = [*taxes, Text("assistant", "Done."), Text("user", "Great.")]
    again = await engine.prepare(Request(written("openai_chat", more)))
    assert again.branch == ann.branch
    assert await engine.find("default", "weather Paris", again.branch) == []


@pytest.mark.few(3)
@pytest.mark.parametrize("turns", [[30], [1, 30], [5, 30]], ids=str)
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("format", ["openai_chat", "gemini"])
async def test_who_comes_late_sees_nothing_of_who_began_alike(
    store: SQLStore, format: str, run: str, turns: list[int]
) -> None:
    engine = Engine(store, Budget(window=4_000))
    for n in range(1, 31):
        await engine.prepare(Request(written(format, rollout("ALICE", n), ids=False), format))
    engine = engine if run == "warm" else Engine(store, Budget(window=4_000))
    for n in turns:
        view = await engine.prepare(Request(written(format, rollout("BOB", n), ids=False), format))
        assert await holds(engine, view, "ALICE") == []
    assert (await recalled(engine, view)).count("BOBSECRET") == 30 * 12


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("format", "id", "session"),
    [
        ("openai_chat", "call_{}", False),
        ("anthropic", "call_{}", False),
        ("gemini", "call_{}", False),
        ("openai_chat", "random", False),
        ("openai_chat", "call_{}", True),
        ("gemini", "call_{}", True),
    ],
)
@pytest.mark.parametrize(("observed", "engines"), combined([False, True], [1, 2]))
async def test_rollouts_side_by_side_see_nothing_of_each_other(
    store: SQLStore, format: str, id: str, session: bool, engines: int, observed: bool
) -> None:
    made = [Engine(store, Budget(window=4_000)) for _ in range(engines)]
    for n in range(26):
        for place, who in enumerate(("ALICE", "BOB")):
            said = rollout(who, n, id.replace("random", f"call_{who}x9f{{}}"))
            engine = made[place % engines]
            asked = Request(written(format, said, ids=False), format, session=who if session else None)
            view = await engine.prepare(asked)
            if observed:
                await engine.observe(view, {"input_tokens": len(json.dumps(clew.body(view))) // 3})
            assert await holds(engine, view, "BOB" if who == "ALICE" else "ALICE") == [], f"turn {n}"


@pytest.mark.few(1)
@pytest.mark.parametrize("session", [None, "named"])
async def test_a_second_try_sees_nothing_of_the_first(store: SQLStore, session: str | None) -> None:
    engine = Engine(store, Budget(window=4_000))
    for who in ("FIRST", "SECOND"):
        for n in range(31):
            view = await engine.prepare(Request(written("openai_chat", rollout(who, n)), session=session))
            assert who == "FIRST" or "FIRST" not in json.dumps(clew.body(view))


class Counting(http.server.BaseHTTPRequestHandler):
    """A server whose call ids count up in every conversation, as those of small ones do."""

    protocol_version = "HTTP/1.1"
    heard: list[tuple[str, str]]

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["content-length"])).decode()
        who, n = self.headers["x-who"], self.headers["x-turn"]
        self.heard.append((who, raw))
        function = {"name": "check", "arguments": json.dumps({"host": f"{who}-host-{n}"})}
        call = {"id": f"call_{n}", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        size = len(raw) // 3
        usage = {"prompt_tokens": size, "completion_tokens": 5, "total_tokens": size + 5}
        whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
        answer = json.dumps({**whole, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


@contextmanager
def counting() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Its address, and what it hears of whom."""
    Counting.heard = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counting) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/v1", Counting.heard
        server.shutdown()
        thread.join()


def test_through_a_wrapped_client_rollouts_see_nothing_of_each_other(tmp_path: Path) -> None:
    with counting() as (url, heard):
        plain = openai.OpenAI(api_key="none", base_url=url, http_client=openai.DefaultHttpxClient(verify=False))
        engine = Engine(clew.SQLite(tmp_path / "clew.db"), Budget(window=4_000))
        with plain:
            client: Any = clew.wrap(plain, engine)
            said: dict[str, list[Body]] = {w: [{"role": "user", "content": PROMPT}] for w in ("ALICE", "BOB")}
            for n in range(1, 26):
                for who, messages in said.items():
                    told = {"x-who": who, "x-turn": str(n)}
                    answer = client.chat.completions.create(model="m", messages=messages, extra_headers=told)
                    [call] = answer.choices[0].message.tool_calls
                    secret = f"error: {who}-host-{n}: password is {who}SECRET{n}\n" * 12
                    messages.append({"role": "assistant", "content": None, "tool_calls": [call.model_dump()]})
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": secret})
    assert len(heard) == 50
    assert [who for who, raw in heard if ("BOB" if who == "ALICE" else "ALICE") in raw] == []


def test_what_may_have_been_taken_from_either_of_two_conversations_was_taken_from_none() -> None:
    def lacks(branch: str, *ids: str) -> Recognition:
        trace = Trace(branch, said=[Place(id, "") for id in ids])
        return Recognition(trace, events=[ClientEdit(0, len(ids), ())])

    newest, earlier, another = lacks("newest", "a", "b", "c"), lacks("earlier", "a", "b"), lacks("another", "a", "x")
    assert _only([earlier, newest]) is newest
    assert _only([newest, another]) is None
    assert _only([]) is None
