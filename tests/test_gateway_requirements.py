"""What a gateway must do for the clients there are, where no other test shows it: one requirement a test.

Of those without one here, test_gateway.py shows the second (upgrades to web sockets) and the ninth (what is only
counted leaves nothing), and test_gateway_clients.py the last two (sessions of all clients' shapes, Crush among them).
"""

import json
from typing import Any

import pytest

from clew.catalog.usage import spent
from clew.gateway.settings import GatewaySettings
from clew.testing import Answer, Call, StrictProvider
from serving import Served, serving

CHAT, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/messages", "/v1/responses"
ANTHROPIC = {"anthropic-version": "2026-10-21"}
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def long(n: int) -> str:
    return f"Part {n}: " + " ".join(f"word-{n}-{k}" for k in range(500))


def claude(*said: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": [*said], **more}


GEMINI = "/v1beta/models/gemini-2.5-pro"
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/messages?beta=true", claude(user("hi"))),
        ("/v1/messages/count_tokens?beta=true", claude(user("hi"))),
        (RESPONSES, {"model": "gpt-5", "input": "hi"}),
        ("/v1/responses/compact", {"model": "gpt-5", "input": [user("hi")]}),
        ("/v1/responses/input_tokens", {"model": "gpt-5", "input": "hi"}),
        (CHAT, {"model": "gpt-5", "messages": [user("hi")]}),
        (f"{GEMINI}:generateContent", CONTENTS),
        (f"{GEMINI}:streamGenerateContent?alt=sse", CONTENTS),
        (f"{GEMINI}:countTokens", CONTENTS),
        ("/v1/v1beta/models/gemini-2.5-pro:generateContent", CONTENTS),
        ("/responses", {"model": "gpt-5", "input": "hi"}),
        ("/messages", claude(user("hi"))),
    ],
)
def test_1_every_path_that_clients_ask_is_served(path: str, body: dict[str, Any]) -> None:
    with serving() as served:
        got = served.ask(path, body, ANTHROPIC if "messages" in path else {})
        assert got.status == 200, got.raw
        assert got.raw


async def test_3_a_sub_agent_with_its_parents_id_has_a_branch_under_it() -> None:
    with serving() as served:
        named = {**ANTHROPIC, "x-claude-code-session-id": "s"}
        tools = [{"name": "Bash", "input_schema": SCHEMA}]
        assert served.ask(MESSAGES, claude(user("work"), system="You work.", tools=tools), named).status == 200
        helper = claude(user("look"), system="You look.", tools=[{"name": "Read", "input_schema": SCHEMA}])
        assert served.ask(MESSAGES, helper, {**named, "x-claude-code-agent-id": "a1"}).status == 200
        found = await served.gateway.engine.store.sessions("default")
        parents = {known.name: known.parent for known in found}
        assert parents == {"s": None, "s/a1": next(known.id for known in found if known.name == "s")}


def test_4_a_compaction_trigger_gets_one_item_which_is_opened_when_it_comes_back() -> None:
    with serving() as served:
        headers = {"thread-id": "t", "session-id": "t"}
        said = [{"type": "message", **user("My word is heliotrope.")}]
        asked = {"model": "gpt-5", "input": [*said, {"type": "compaction_trigger"}], "stream": True}
        [item] = served.ask(RESPONSES, asked, headers).spoken("openai_responses").messages
        assert (item["type"], served.provider.heard) == ("compaction", [])
        after = {"model": "gpt-5", "input": [item, {"type": "message", **user("Which word?")}]}
        assert served.ask(RESPONSES, after, headers).status == 200
        assert b"My word is heliotrope." in served.provider.heard[-1].raw
        assert b"clew-log-" not in served.provider.heard[-1].raw


def test_5_what_sets_up_a_conversation_is_never_folded() -> None:
    tools = {"type": "namespace", "name": "shell", "tools": [{"type": "function", "name": "run", "parameters": SCHEMA}]}
    opening = [{"type": "additional_tools", "role": "developer", "tools": [tools]}]
    opening.append({"type": "message", "role": "developer", "content": "Rules of the house."})
    with serving(window=20_000) as served:
        said: list[dict[str, Any]] = []
        for n in range(18):
            said.append({"type": "message", **user(long(n))})
            asked = {"model": "gpt-6", "input": [*opening, *said, {"type": "configuration_update", "effort": "low"}]}
            assert served.ask(RESPONSES, asked, {"thread-id": "t", "session-id": "t"}).status == 200
            said.append({"type": "message", "role": "assistant", "content": "ok"})
        sent = served.provider.heard[-1].body["input"]
        assert len(json.dumps(sent)) < len(json.dumps(said)) / 2, "the rest was folded"
        assert sent[:2] == opening
        assert sent[-1]["type"] == "configuration_update"


@pytest.mark.few(1)
@pytest.mark.parametrize("redacted", [False, True])
def test_6_signed_thinking_is_valid_after_folds(redacted: bool) -> None:
    script = [Answer("I see.", reasoning="So.", redacted=redacted)]
    with serving(provider=StrictProvider(script, 20_000), window=20_000) as served:
        said: list[dict[str, Any]] = []
        sent: list[int] = []
        for n in range(40):
            said.append(user(long(n)))
            got = served.ask(MESSAGES, {**claude(*said), "model": "claude-opus-5-5"}, ANTHROPIC)
            assert got.status == 200, "what is bound to something else is refused"
            said.append(got.spoken("anthropic").messages[0])
            sent.append(served.provider.heard[-1].raw.count(b'thinking"'))
        folds = [n for n in range(1, len(sent)) if sent[n] < sent[n - 1]]
        assert folds
        assert len(served.provider.heard) == len(sent), "none was sent twice"
        assert max(sent[folds[-1] :]) > 0 or folds[-1] == len(sent) - 1, "what is thought after a fold stays"


def test_6_encrypted_reasoning_stays_with_its_call() -> None:
    script = [Answer(calls=(Call("run", {"command": "make"}),), reasoning="So.")]
    tools = [{"type": "function", "name": "run", "parameters": SCHEMA}]
    with serving(provider=StrictProvider(script, 20_000), window=20_000) as served:
        said: list[dict[str, Any]] = [{"type": "message", **user("Build.")}]
        owner: dict[str, str] = {}
        for n in range(30):
            asked = {"model": "gpt-5", "input": said, "tools": tools, "include": ["reasoning.encrypted_content"]}
            got = served.ask(RESPONSES, {**asked, "store": False}, {"thread-id": "t", "session-id": "t"})
            assert got.status == 200, got.raw
            # What is sealed is for its provider alone to read: any words will do.
            out = [
                {**i, "encrypted_content": f"of {n}"} if i["type"] == "reasoning" else i for i in got.json()["output"]
            ]
            (call,) = (item for item in out if item["type"] == "function_call")
            owner[call["call_id"]] = f"of {n}"
            said += [*out, {"type": "function_call_output", "call_id": call["call_id"], "output": long(n)}]
        sent = served.provider.heard[-1].body["input"]
        thought = [n for n, item in enumerate(sent) if item.get("type") == "reasoning"]
        assert 0 < len(thought) < 30, "some were folded, with their calls"
        assert all(owner[sent[n + 1]["call_id"]] == sent[n]["encrypted_content"] for n in thought)


def test_7_tools_are_offered_where_the_client_has_its_own() -> None:
    script = [Answer(calls=(Call("search_history", {"query": "heliotrope"}),)), Answer("It is there.")]
    with serving(provider=StrictProvider(script), settings=GatewaySettings(tools=True)) as served:
        tools = [{"functionDeclarations": [{"name": "run", "parameters": SCHEMA}]}]
        spoken = served.ask(f"{GEMINI}:generateContent", {**CONTENTS, "tools": tools}).spoken("gemini")
        assert "search_history" in json.dumps(served.provider.heard[0].body["tools"])
        assert len(served.provider.heard) == 2
        assert spoken.text == "It is there."
        assert not spoken.calls


@pytest.mark.parametrize("streamed", [False, True])
def test_7_tools_are_offered_beside_those_that_stand_in_the_input(streamed: bool) -> None:
    script = [Answer(calls=(Call("search_history", {"query": "heliotrope"}),)), Answer("It is there.")]
    with serving(provider=StrictProvider(script), settings=GatewaySettings(tools=True)) as served:
        own = {"type": "function", "name": "run", "parameters": SCHEMA}
        group = {"type": "namespace", "name": "box", "tools": [own]}
        first = {"type": "additional_tools", "role": "developer", "tools": [group]}
        body: dict[str, Any] = {
            "model": "gpt-6",
            "input": [first, {"type": "message", **user("hi")}],
            "stream": streamed,
        }
        spoken = served.ask(RESPONSES, body).spoken("openai_responses")
        for heard in served.provider.heard:
            held = heard.body["input"][0]
            assert held["tools"][0] == group
            assert "search_history" in json.dumps(held["tools"][1:])
            assert not heard.body.get("tools")
        assert len(served.provider.heard) == 2
        assert spoken.text == "It is there."
        assert not spoken.calls
        taken = {**own, "name": "recall"}
        refused = {"model": "gpt-6", "input": [{**first, "tools": [{**group, "tools": [taken]}]}, body["input"][1]]}
        assert served.ask(RESPONSES, refused).status == 200
        assert "search_history" not in json.dumps(served.provider.heard[-1].body["input"][0])


@pytest.mark.few(1)
@pytest.mark.parametrize("streamed", [False, True])
def test_8_usage_is_of_what_was_sent(streamed: bool) -> None:
    with serving(window=20_000) as served:
        said: list[dict[str, Any]] = []
        for n in range(14):
            said.append(user(long(n)))
            got = served.ask(MESSAGES, claude(*said, stream=streamed), ANTHROPIC)
            said.append({"role": "assistant", "content": "ok"})
        told = spent(got.spoken("anthropic").usage).input
        assert told == served.provider.heard[-1].spent.input < 20_000


def test_10_too_long_inside_a_stream_is_mended_before_the_client_sees_it() -> None:
    with serving(provider=StrictProvider(window=20_000), window=200_000) as served:
        said = [{"type": "message", "role": ("user", "assistant")[n % 2], "content": long(n)} for n in range(31)]
        got = served.ask(RESPONSES, {"model": "gpt-5", "input": said, "stream": True})
        assert got.status == 200
        assert b"context_length_exceeded" not in got.raw
        assert got.spoken("openai_responses").text == "Understood."


@pytest.mark.parametrize(
    ("path", "body", "headers", "key"),
    [
        (MESSAGES, claude(user("hi")), {"authorization": "Bearer mine"}, ("authorization", "Bearer mine")),
        (MESSAGES, claude(user("hi")), {"x-api-key": "mine"}, ("x-api-key", "mine")),
        (f"{GEMINI}:generateContent", CONTENTS, {"x-goog-api-key": "mine"}, ("x-goog-api-key", "mine")),
    ],
)
def test_11_a_clients_own_key_and_headers_go_on(path: str, body: Any, headers: Any, key: tuple[str, str]) -> None:
    with serving() as served:
        asked = {**ANTHROPIC, "anthropic-beta": "a-1,b-2", "x-new": "1", **headers}
        assert served.ask(path, body, asked).status == 200
        heard = served.provider.heard[-1].headers
        assert heard[key[0]] == key[1]
        assert (heard["anthropic-version"], heard["anthropic-beta"], heard["x-new"]) == ("2026-10-21", "a-1,b-2", "1")


def test_11_a_key_in_the_query_is_known_and_goes_no_further() -> None:
    with serving(settings=GatewaySettings(keys={"first-key": "one"})) as served:
        for path in (f"{GEMINI}:generateContent", f"{GEMINI}:countTokens"):
            assert served.ask(f"{path}?key=wrong", CONTENTS).status == 401
            assert served.ask(f"{path}?key=first-key&alt=json", CONTENTS).status == 200
            assert served.provider.heard[-1].query == "alt=json"
    with serving() as served:
        assert served.ask(f"{GEMINI}:generateContent?key=mine", CONTENTS).status == 200
        assert served.provider.heard[-1].query == "key=mine"


def test_12_a_body_of_33_megabytes_is_taken() -> None:
    with serving() as served:
        raw = b'{"file":"' + b"A" * (33 << 20) + b'"}'
        assert served.ask("/v1/files", raw).status == 404, "as the provider says"
        assert b"Invalid URL" in served.ask("/v1/files", raw).raw


async def test_13_a_client_without_any_name_is_known_by_its_past() -> None:
    with serving() as served:
        for word in ("amber", "beryl"):
            said: list[dict[str, Any]] = []
            for n in range(4):
                said.append(user(f"{word} {n}"))
                assert served.ask(CHAT, {"model": "gpt-5", "messages": said}).status == 200
                said.append({"role": "assistant", "content": "ok"})
        assert await _said(served) == [7, 7]


async def _said(served: Served) -> list[int]:
    engine = served.gateway.engine
    return [len((await engine.view("default", s.branch)).nodes) for s in await engine.store.sessions("default")]
