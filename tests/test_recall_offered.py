"""A model that does what its view says gets the original, wherever a view says so; where it cannot, none does."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import clew
from asking import request
from clew.cli import app
from clew.clients.known import name_in
from clew.control import ContextController
from clew.gateway.offering import offerable
from clew.gateway.settings import GatewaySettings
from clew.testing import Answer, Call, StrictProvider
from clew.wire.formats import named
from clients import create, engine, plain_of, said, text_of, user
from serving import Served, serving

WINDOW = 20_000
NAMED = re.compile(r"([A-Za-z_]*recall) ([0-9a-f]{10})")
SHELL = {"type": "object", "properties": {"command": {"type": "string"}}}
TAKES = {"type": "object", "properties": {"id": {"type": "string"}, "lines": {}, "pattern": {}}}
PI = "You are an expert coding assistant operating inside pi, a coding agent harness."
CLIENTS = {
    "claude": ("anthropic", "claude-cli/2.1.197 (external, sdk-cli)"),
    "codex": ("openai_responses", "codex_exec/0.169.0 (Debian 12.0.0; x86_64)"),
    "opencode": ("openai_chat", "opencode/1.18.33 ai-sdk/provider-utils/4.0.23"),
    "pi": ("openai_chat", "OpenAI/JS 6.26.0"),
    "gemini": ("gemini", "GeminiCLI-tui/0.61.0/gemini-2.5-flash (linux; x64; terminal)"),
    "qwen": ("openai_chat", "QwenCode/0.15.10 (linux; x64)"),
}
PATHS = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-2.5-flash:generateContent",
}
GOT = "Here it is."
ORIGINAL = re.compile(r"first-0 first-1 |(word-[0-9]-)0 \1(1 )")  # some of what was said, in its own words
QUESTION = "What was said first? Look it up."


def obedient(body: Any) -> Answer:
    """A model that recalls the first thing that its view names, and says what it was given."""
    text = json.dumps(body, ensure_ascii=False)
    if QUESTION not in text:
        return Answer("Understood.")
    if "from earlier in this conversation" in (given := text.rpartition(QUESTION)[2]):
        return Answer(GOT if ORIGINAL.search(given) else "Nothing.")
    if not (found := NAMED.findall(text)):
        return Answer("I cannot look it up.")
    return Answer(calls=(Call(found[0][0], {"id": found[0][1]}),))


def tool_in(format: str, name: str, schema: Any) -> Any:
    match format:
        case "openai_chat":
            return {"type": "function", "function": {"name": name, "parameters": schema}}
        case "openai_responses":
            return {"type": "function", "name": name, "parameters": schema}
        case "gemini":
            return {"functionDeclarations": [{"name": name, "parametersJsonSchema": schema}]}
    return {"name": name, "input_schema": schema}


class ClientTalk:
    """A client by its headers and its format, with one tool of its own and those that are given."""

    def __init__(self, client: str, *tools: str, **more: Any) -> None:
        self.format, self.agent = CLIENTS.get(client, ("openai_chat", client))
        self.tools = [tool_in(self.format, "shell", SHELL), *(tool_in(self.format, name, TAKES) for name in tools)]
        self.system = PI if client == "pi" else "You work."
        self.more = more
        self.streamed = False
        self.said: list[Any] = []

    def body(self) -> dict[str, Any]:
        match self.format:
            case "openai_chat":
                system = {"role": "system", "content": self.system}
                made: dict[str, Any] = {"model": "gpt-5", "messages": [system, *self.said], "tools": self.tools}
            case "openai_responses":
                made = {"model": "gpt-5", "instructions": self.system, "input": self.said, "tools": self.tools}
                made |= {"store": False}
            case "gemini":
                told: Any = {"parts": [{"text": self.system}]}
                made = {"contents": self.said, "systemInstruction": told, "tools": self.tools}
            case _:
                made = {"model": "claude-sonnet-4-5", "system": self.system, "messages": self.said}
                made |= {"tools": self.tools, "max_tokens": 1_000}
        return made | self.more

    def ask(self, served: Served, text: str) -> str:
        gemini = {"role": "user", "parts": [{"text": text}]}
        self.said.append(gemini if self.format == "gemini" else {"role": "user", "content": text})
        headers = {"user-agent": self.agent, "anthropic-version": "2023-06-01"}
        path = PATHS[self.format]
        if self.streamed and self.format == "gemini":
            path = path.replace("generateContent", "streamGenerateContent?alt=sse")
        got = served.ask(path, self.body(), headers)
        assert got.status == 200, got.raw
        spoken = got.spoken(self.format)
        self.said += spoken.messages
        return spoken.text if not spoken.calls else f"a call of {spoken.calls[0].name}"


def fill(served: Served, talk: ClientTalk, turns: int = 9) -> None:
    """Say enough that the beginning leaves the window."""
    talk.ask(served, "My word is heliotrope. " + " ".join(f"first-{k}" for k in range(900)))
    for n in range(turns):
        talk.ask(served, f"Part {n}: " + " ".join(f"word-{n}-{k}" for k in range(500)))


def tools_of(body: Any) -> list[str]:
    flat = [one for tool in body.get("tools", ()) for one in tool.get("functionDeclarations", [tool])]
    return [tool.get("function", tool)["name"] for tool in flat]


@pytest.mark.few(1)
@pytest.mark.parametrize("client", CLIENTS)
def test_through_the_gateway(client: str) -> None:
    with serving(provider=StrictProvider(obedient), window=WINDOW) as served:
        talk = ClientTalk(client)
        fill(served, talk)
        assert talk.ask(served, QUESTION) == GOT
        heard = [json.dumps(h.body["tools"]) for h in served.provider.heard]
        assert len({*heard}) == 1, "the same from the first turn on"
        assert tools_of(served.provider.heard[0].body) == ["shell", "recall", "search_history"]


class Thorough:
    """A model that recalls one by one all that its view names when it is asked, and looks at what it is given."""

    def __init__(self) -> None:
        self.left: list[tuple[str, str]] | None = None
        self.asked = ""
        self.got: list[bool] = []  # whether it was an original

    def __call__(self, body: Any) -> Answer:
        text = json.dumps(body, ensure_ascii=False)
        if QUESTION not in text:
            return Answer("Understood.")
        if self.left is None:
            self.left = list(dict.fromkeys(NAMED.findall(text)))
        else:
            given = text.rpartition(QUESTION)[2].partition(self.asked)[2]  # behind the call
            self.got.append("from earlier in this conversation" in given and ORIGINAL.search(given) is not None)
        if not self.left:
            return Answer(GOT)
        name, self.asked = self.left.pop()
        return Answer(calls=(Call(name, {"id": self.asked}),))


SDKS = {  # of frameworks that talk through a gateway
    "openai_chat": "AsyncOpenAI/Python 2.7.1",
    "openai_responses": "OpenAI/Python 2.7.1",
    "anthropic": "Anthropic/Python 0.72.0",
    "gemini": "google-genai-sdk/1.49.0 gl-python/3.11.2",
}


@pytest.mark.few(2)
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("format", SDKS)
def test_every_id_that_a_view_names_brings_its_original(format: str, streamed: bool) -> None:
    model, settings = Thorough(), GatewaySettings(tools=True)
    with serving(provider=StrictProvider(model), window=WINDOW, settings=settings) as served:
        talk = ClientTalk(SDKS[format], **({"stream": True} if streamed and format != "gemini" else {}))
        talk.format, talk.streamed = format, streamed
        talk.tools = [tool_in(format, "shell", SHELL)]
        fill(served, talk)
        assert talk.ask(served, QUESTION) == GOT
    assert len(model.got) >= 2
    assert all(model.got)


@pytest.mark.few(2)
@pytest.mark.parametrize("client", sorted({*CLIENTS} - {"pi"}))
def test_a_client_that_has_it_by_mcp_is_told_its_name_there(client: str) -> None:
    name = name_in(client)
    settings = GatewaySettings(tools=False)
    with serving(provider=StrictProvider(obedient), window=WINDOW, settings=settings) as served:
        talk = ClientTalk(client, name)
        fill(served, talk)
        assert talk.ask(served, QUESTION) == f"a call of {name}"
        assert tools_of(served.provider.heard[-1].body) == ["shell", name]


def test_who_has_it_by_mcp_gets_the_gateways_own_too(tmp_path: Path) -> None:
    with serving(provider=StrictProvider(obedient), window=WINDOW) as served:
        talk = ClientTalk("gemini", name_in("gemini"))
        fill(served, talk)
        assert talk.ask(served, QUESTION) == GOT


@pytest.mark.few(1)
@pytest.mark.parametrize("format", ["openai_chat", "openai_responses", "anthropic"])
def test_through_a_wrapped_client(tmp_path: Path, format: str) -> None:
    with StrictProvider(obedient) as provider, plain_of(provider, format) as plain:
        client = clew.wrap(plain, engine(tmp_path / "clew.db", window=WINDOW))
        history = [user("My word is heliotrope. " + " ".join(f"first-{k}" for k in range(900)))]
        for n in range(9):
            history += said(format, create(client, format)(**request(format, *history)))
            history.append(user(f"Part {n}: " + " ".join(f"word-{n}-{k}" for k in range(500))))
        history += [{"role": "assistant", "content": "Well."}, user(QUESTION)]
        again = clew.wrap(plain, engine(tmp_path / "clew.db", window=WINDOW))  # another process
        assert text_of(format, create(again, format)(**request(format, *history))) == GOT
    assert len({json.dumps(h.body["tools"]) for h in provider.heard}) == 1


SCHEMA_ASKED = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SHELL}}}
FORCED = {"tool_choice": {"type": "function", "function": {"name": "shell"}}}


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("client", "tools", "more"),
    [
        ("another/1.0", "auto", {}),
        ("opencode", False, {}),
        ("opencode", "auto", {"tools": []}),
        ("opencode", "auto", SCHEMA_ASKED),
        ("opencode", "auto", FORCED),
        ("opencode", "auto", {"tool_choice": "required"}),
    ],
    ids=["unknown", "off", "no tools", "a schema", "a tool", "any tool"],
)
def test_nothing_is_offered_and_nothing_named(client: str, tools: Any, more: dict[str, Any]) -> None:
    with serving(provider=StrictProvider(obedient), window=WINDOW, settings=GatewaySettings(tools=tools)) as served:
        talk = ClientTalk(client, **more)
        fill(served, talk)
        assert talk.ask(served, QUESTION) == "I cannot look it up."
        assert {*tools_of(served.provider.heard[-1].body)} <= {"shell"}


SEVERAL: list[tuple[str, dict[str, Any], dict[str, Any]]] = [  # what asks for one answer, and for what else
    ("opencode", {"n": 1}, {"n": 2}),
    ("codex", {"background": False}, {"background": True}),
    ("gemini", {"generationConfig": {"candidateCount": 1}}, {"generationConfig": {"candidateCount": 2}}),
]


@pytest.mark.parametrize(("client", "one", "other"), SEVERAL)
async def test_nothing_is_offered_where_several_answers_come_or_none_now(
    client: str, one: dict[str, Any], other: dict[str, Any]
) -> None:
    controller, body = ContextController(engine(":memory:")), ClientTalk(client).body()
    for more, offered in (({}, True), (one, True), (other, False)):
        raw = json.dumps({**body, **more}).encode()
        assert (offerable(raw, CLIENTS[client][0], controller) is not None) is offered, more


@pytest.mark.few(2)
@pytest.mark.parametrize(("client", "tools"), [("opencode", "auto"), ("another/1.0", "auto"), ("gemini", False)])
@pytest.mark.parametrize("own", [True, False], ids=["by MCP", "without"])
def test_commands_show_what_was_sent_and_recall_takes_each_id(
    tmp_path: Path, client: str, tools: Any, own: bool
) -> None:
    path, mcp = str(tmp_path / "log.db"), [name_in(client) if client in CLIENTS else "clew_recall"] if own else []
    settings = GatewaySettings(tools=tools)
    with serving(tmp_path / "log.db", StrictProvider(obedient), WINDOW, settings=settings) as served:
        talk = ClientTalk(client, *mcp)
        fill(served, talk)
        sent = served.provider.heard[-1].body
    run = CliRunner()
    sessions = json.loads(run.invoke(app, ["sessions", "--json", "--store", path]).stdout)
    name = max(sessions, key=lambda session: session["number"])["id"]
    call = json.loads(run.invoke(app, ["show", "--calls", name, "--json", "--store", path]).stdout)[-1]["number"]
    told = ["resume", name, "--call", str(call), "--store", path]
    resumed = json.loads(run.invoke(app, told).stdout)
    list_of = named(talk.format).LIST
    assert NAMED.findall(json.dumps(resumed[list_of])) == NAMED.findall(json.dumps(sent[list_of]))
    shown = json.loads(run.invoke(app, ["show", name, "--json", "--store", path]).stdout)
    ids = {node["stands_for"]["id"] for node in shown["nodes"] if "stands_for" in node}
    assert ids
    ids |= {id for _, id in NAMED.findall(json.dumps(sent[list_of]))}
    for id in ids:
        assert run.invoke(app, ["recall", id, "--store", path]).exit_code == 0


def test_one_forced_call_between_others_does_not_end_the_conversation(tmp_path: Path) -> None:
    with serving(tmp_path / "log.db", StrictProvider(obedient), WINDOW) as served:
        talk = ClientTalk("opencode")
        fill(served, talk)
        assert talk.ask(served, QUESTION) == GOT
        talk.more = {**SCHEMA_ASKED}
        talk.ask(served, "As an object, please.")
        talk.more = {}
        talk.ask(served, "Go on.")
    with serving(tmp_path / "log.db", StrictProvider(obedient), WINDOW) as served:
        talk.ask(served, "And on.")
        assert tools_of(served.provider.heard[-1].body) == ["shell", "recall", "search_history"]


@pytest.mark.few(2)
@pytest.mark.parametrize(("client", "name"), [("claude", "recall"), ("claude", "mcp__clew__recall"), ("other", "")])
def test_an_answered_compaction_names_it_as_the_conversation_has_it(client: str, name: str) -> None:
    asks = "Your task is to create a detailed summary of the conversation so far, paying close attention to the user."
    settings = GatewaySettings(tools="auto" if name == "recall" else False)
    with serving(provider=StrictProvider(obedient), window=WINDOW, settings=settings) as served:
        talk = ClientTalk("claude", *([name] if name.startswith("mcp") else []))
        fill(served, talk)
        told = talk.ask(served, asks + " Respond with <summary>.")
        assert "[clew log " in told
        assert {n for n, _ in NAMED.findall(told)} == ({name} if name else set())
        assert (f"`{name}` with an id" in told) is bool(name)
