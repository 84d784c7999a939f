"""What plugins of coding agents are answered, and Crush, whose server is a double here: it is not to be had."""

import asyncio
import json
import os
import re
import socket
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import processes
from clew import Budget, Engine, SQLite
from clew.clients.voices import typed
from clew.config import load
from clew.core.items import Item
from clew.engine.settings import Settings
from clew.errors import BadRequest, NotFound
from clew.hooks.crush import answer_before_tool
from clew.installing.clients import opencode as opencode_client
from clew.installing.clients import pi as pi_client
from clew.mcp.reach import Reach
from clew.plugins.conversations import PluginConversations, conversations
from clew.plugins.crush import CrushServer, continued
from clew.plugins.lines import converse
from clew.store.sql import SQLStore

WINDOW = 12_000
LINES = "line of the count\n" * 300


def opencode_turn(n: int, **info: Any) -> dict[str, Any]:
    told = {"role": "assistant", "sessionID": "ses_1", "providerID": "anthropic", "modelID": "claude-sonnet-4-5"}
    state = {"status": "completed", "input": {"command": f"echo {n}"}, "output": f"fact-{n}\n{LINES}"}
    call = {"type": "tool", "callID": f"c{n}", "tool": "bash", "state": state}
    return {"info": {"id": f"a{n}", **told, **info}, "parts": [{"type": "step-start"}, call]}


def opencode_history(turns: int) -> list[dict[str, Any]]:
    asked = {"info": {"id": "u", "role": "user", "sessionID": "ses_1"}, "parts": [{"type": "text", "text": "count"}]}
    return [asked, *(opencode_turn(n) for n in range(turns))]


def pi_history(turns: int) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = [{"role": "user", "content": "count", "timestamp": 1}, {}]
    for n in range(turns):
        ids = [f"c{n}", f"d{n}"]
        calls = [{"type": "toolCall", "id": id, "name": "bash", "arguments": {"command": f"echo {id}"}} for id in ids]
        told = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5"}
        out.append({"role": "assistant", "content": calls, **told, "stopReason": "toolUse", "timestamp": n})
        for id in ids:
            text = [{"type": "text", "text": f"fact-{n}\n{LINES[:2_700]}"}]
            out.append({"role": "toolResult", "toolCallId": id, "toolName": "bash", "content": text, "isError": False})
    return out


HISTORIES = {"opencode": opencode_history, "pi": pi_history}


def talking(client: str, store: SQLStore, **given: Any) -> PluginConversations:
    windows: dict[str, int] = {}

    def budget(model: Any) -> Budget:
        return Budget(window=windows.get(model.name, 100_000))

    return PluginConversations(client, Engine(store, budget, Settings(**given)), windows)


def asking(act: str, **given: Any) -> dict[str, Any]:
    return {"act": act, "session": "ses_1", "model": "claude-sonnet-4-5", "window": WINDOW, **given}


@pytest.fixture
def log(tmp_path: Path) -> SQLite:
    return SQLite(tmp_path / "log.db")


@asynccontextmanager
async def line_to(talk: PluginConversations) -> AsyncIterator[tuple[socket.socket, asyncio.Task[None]]]:
    """A line on which a program talks, and what clew does at its end."""
    own, other = socket.socketpair()
    own.setblocking(False)
    reader, writer = await asyncio.open_connection(sock=other, limit=1 << 24)
    talked = asyncio.create_task(converse(talk.answer, reader, writer))
    yield own, talked
    await talked
    writer.close()
    own.close()


async def answers(talk: PluginConversations, *lines: bytes) -> list[Any]:
    """What a program is answered that says these lines, and ends."""
    loop, got = asyncio.get_running_loop(), b""
    async with line_to(talk) as (own, _):
        for line in lines:
            await loop.sock_sendall(own, line + b"\n")
        own.shutdown(socket.SHUT_WR)
        while got.count(b"\n") < len(lines):
            got += await loop.sock_recv(own, 1 << 20)
    return [json.loads(line) for line in got.splitlines()]


@pytest.mark.few(1)
@pytest.mark.parametrize("client", HISTORIES)
async def test_what_is_as_it_was_is_named_by_its_place(client: str, log: SQLite) -> None:
    talk, history = talking(client, log), HISTORIES[client]
    assert (await talk.answer(asking("view", messages=history(1))))["messages"] is None
    for turns in range(2, 25):
        own = history(turns)
        view = (await talk.answer(asking("view", messages=own)))["messages"]
        view = [*range(len(own))] if view is None else view
        assert view[-1] == len(own) - 1
        kept = [place for place in view if isinstance(place, int)]
        assert kept == sorted(set(kept))
    assert len(kept) < len(own)
    assert "[work log" in json.dumps([one for one in view if not isinstance(one, int)])
    found = await talk.answer(asking("tool", name="search_history", given={"query": "fact-3"}))
    assert "fact-3" in found["text"]
    await log.close()


async def test_pi_gets_calls_and_results_in_its_own_words(log: SQLite) -> None:
    own = pi_history(3)
    own[2]["content"].insert(0, {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "sealed"})
    talk = talking("pi", log)
    view = (await talk.answer(asking("view", messages=own, window=4_000)))["messages"]
    made = [one for one in view if not isinstance(one, int)]
    assert made
    assert {one["role"] for one in made} <= {"user", "assistant", "toolResult"}
    assert all(one["toolName"] == "bash" for one in made if one["role"] == "toolResult")
    await log.close()


async def test_opencode_is_not_sent_what_failed_and_knows_its_summary(log: SQLite) -> None:
    failed = opencode_turn(7, error={"name": "APIError"})
    request = {"info": {"id": "q", "role": "user", "sessionID": "ses_1"}, "parts": [{"type": "compaction"}]}
    summary = {"info": {"id": "s", "role": "assistant", "summary": True}, "parts": [{"type": "text", "text": "Done."}]}
    talk = talking("opencode", log)
    history = [request, summary, *opencode_history(1), failed]
    assert (await talk.answer(asking("view", messages=history)))["messages"] is None
    branch = await log.session("default", "opencode-ses_1")
    assert branch is not None
    said = [place.id for place in (await log.load("default", branch)).said]
    texts = [node.item.text for node in (await log.nodes("default", said)).values()]
    assert "What did we do so far?" in texts
    assert not any("fact-7" in text for text in texts)
    await log.close()


@pytest.mark.parametrize("client", HISTORIES)
async def test_who_does_not_wait_for_an_answer_is_answered_in_order_all_the_same(client: str, log: SQLite) -> None:
    talk, whole = talking(client, log), HISTORIES[client](4)
    asked = [asking("view", messages=whole[:end], folder="here") for end in range(1, len(whole) + 1)]
    told = await answers(talk, *(json.dumps({"id": n, **one}).encode() for n, one in enumerate(asked)))
    assert [line["id"] for line in told] == [*range(len(asked))]
    assert not any("failed" in line for line in told)
    assert len({session.branch for session in await log.sessions("default")}) == 1
    await log.close()


async def test_what_was_asked_by_a_program_that_has_ended_is_written_down(log: SQLite) -> None:
    talk = talking("pi", log)
    async with line_to(talk) as (own, talked):
        for n in (1, 2):
            await asyncio.get_running_loop().sock_sendall(
                own,
                json.dumps({"id": n, **asking("view", session=f"ses_{n}", messages=pi_history(1))}).encode() + b"\n",
            )
        own.close()
        await talked
    assert await log.session("default", "pi-ses_1")
    assert await log.session("default", "pi-ses_2")
    await log.close()


def test_a_client_hears_at_once_whether_small_requests_may_go_on_without_an_answer(tmp_path: Path) -> None:
    def first(*words: str, **env: str) -> str:
        given = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), **env}
        return processes.run("-m", "clew", "plugin", *words, cwd=tmp_path, env=given, check=True).stdout.partition(
            "\n"
        )[0]

    assert json.loads(first("pi")) == {"plain": True}
    assert json.loads(first("pi", CLEW_SECRETS="refuse")) == {"plain": False}
    (tmp_path / "clew").mkdir()
    (tmp_path / "clew" / "config.toml").write_text("[gateway]\nport = 9\n")
    assert json.loads(first("pi")) == {"plain": True}
    (tmp_path / "clew.toml").write_text("[budget]\nwindow = 9000\n")
    assert json.loads(first("pi")) == {"plain": False}
    assert "plain" not in first("--help")


@pytest.mark.parametrize("client", HISTORIES)
async def test_a_large_result_is_a_preview_and_its_whole_is_recalled(client: str, log: SQLite) -> None:
    talk = talking(client, log)
    assert (await talk.answer(asking("result", text="short", call="c", tool="bash")))["text"] is None
    text = "".join(f"line {n}\n" for n in range(5_000))
    assert (await talk.answer(asking("result", text=text[:12_000], call="c", tool="bash")))["text"] is None
    shown = (await talk.answer(asking("result", text=text, call="c", tool="bash", given={"command": "x"})))["text"]
    assert len(shown) < len(text) / 3
    [id, *_] = re.findall(r"recall ([0-9a-f]+)", shown)
    back = await talk.answer(asking("tool", name="recall", given={"id": id, "lines": "1001-1002"}))
    assert "line 1000\n" in back["text"]
    gone = await talk.answer(asking("tool", name="recall", given={"id": "0123456789"}))
    assert gone["text"].startswith("Error:")
    await log.close()


@pytest.mark.parametrize("client", HISTORIES)
async def test_a_summary_is_of_the_log_also_if_nothing_was_viewed_yet(client: str, log: SQLite) -> None:
    talk = talking(client, log)
    assert (await talk.answer(asking("summary")))["text"] is None
    told = (await talk.answer(asking("summary", messages=HISTORIES[client](12))))["text"]
    assert "count" in told
    assert "[clew log " in told
    await log.close()


# As pi sends its summary.
PI_SUMMARY = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n{}\n</summary>"
)


async def test_after_a_turn_that_pi_splits_every_id_that_is_named_brings_its_original(log: SQLite) -> None:
    """It sums up the beginning of a turn that is too long for its window, and keeps the end of it as it is."""
    talk, whole = talking("pi", log), pi_history(12)
    for n in (6, 12):
        await talk.answer(asking("view", messages=pi_history(n)))
    split = next(i for i in range(20, len(whole)) if whole[i].get("role") == "assistant")  # in mid-turn
    told = (await talk.answer(asking("summary", messages=whole[:split])))["text"]
    kept = [{"role": "user", "content": [{"type": "text", "text": PI_SUMMARY.format(told)}]}, *whole[split:]]
    view = (await talk.answer(asking("view", messages=kept)))["messages"]
    assert "count" in told
    assert [n for n in range(12) if f"echo c{n}" in told] == [*range(6)], "what it keeps is not told, too"
    for text in (told, json.dumps(view or kept)):
        ids = {*re.findall(r"\brecall ([0-9a-f]{10})", text)}
        assert ids
        for id in ids:
            back = (await talk.answer(asking("tool", name="recall", given={"id": id})))["text"]
            assert re.search("fact-[0-9]|count|echo", back), back[:200]
    await log.close()


@pytest.mark.parametrize("client", HISTORIES)
async def test_where_its_user_wants_that_a_client_has_its_own_model_write(client: str, log: SQLite) -> None:
    talk = PluginConversations(client, Engine(log, Budget(window=100_000), Settings()), {}, is_own=True)
    told = await talk.answer(asking("summary", messages=HISTORIES[client](4), window=100_000))
    assert told == {"own": True}
    assert await log.session("default", f"{client}-ses_1")  # and all of it is in the log
    words = "The user has many files counted, and every count was right."
    whole = (await talk.answer(asking("summary", messages=HISTORIES[client](4), words=words)))["text"]
    assert whole.startswith(words)
    assert "[clew log " in whole
    await log.close()


@pytest.mark.parametrize("client", HISTORIES)
async def test_what_its_host_says_of_its_folder_is_where_a_server_of_tools_finds_it(client: str, log: SQLite) -> None:
    said = {**asking("view", messages=HISTORIES[client](4)), "folder": "/srv/app"}
    await talking(client, log).answer(said)
    for folder, found in (("/srv/app", True), ("/srv/other", False)):
        reach = Reach(Engine(log), "default", folder.__eq__)
        assert bool(await reach.search("echo c1")) == found
    await log.close()


async def test_after_a_summary_of_its_own_model_all_that_was_said_before_is_found(log: SQLite) -> None:
    talk = PluginConversations("pi", Engine(log, Budget(window=WINDOW), Settings()), {}, is_own=True)
    said, words = pi_history(8), "The user has many files counted, and every count was right."
    await talk.answer(asking("view", messages=said))
    told = (await talk.answer(asking("summary", messages=said, words=words)))["text"]
    again = {"role": "user", "content": [{"type": "text", "text": "and what was the first?"}]}
    kept = [{"role": "user", "content": [{"type": "text", "text": PI_SUMMARY.format(told)}]}, again]
    await talk.answer(asking("view", messages=kept))
    found = (await talk.answer(asking("tool", name="search_history", given={"query": "fact-1"})))["text"]
    assert "fact-1" in found
    await log.close()


@pytest.mark.parametrize("client", HISTORIES)
async def test_the_newest_answer_which_no_view_has_had_is_in_the_summary_and_in_the_log(
    client: str, log: SQLite
) -> None:
    talk, whole = talking(client, log), HISTORIES[client](4)
    await talk.answer(asking("view", messages=whole[:-1]))
    before = (await talk.answer(asking("summary", messages=whole[:2])))["text"]
    said = len((await log.load("default", (await log.session("default", f"{client}-ses_1")) or "")).said)
    told = (await talk.answer(asking("summary", messages=whole)))["text"]
    after = (await log.load("default", (await log.session("default", f"{client}-ses_1")) or "")).said
    assert before
    assert told
    assert len(after) > said, "what is less than the log has is no news, what is more is"
    await log.close()


async def test_lines_are_answered_and_faults_are_told(log: SQLite) -> None:
    talk = talking("pi", log, secrets="refuse")
    key = "sk-ant-api03-" + "Ab1_" * 23 + "AAAA"
    lines = [{"id": 1}, {"id": 2, **asking("view", messages=pi_history(1))}]
    lines += [{"id": 3, **asking("view", messages=[{"role": "user", "content": f"my key is {key}"}])}]
    told = {line.get("id"): line for line in await answers(talk, b"not json", *(json.dumps(x).encode() for x in lines))}
    assert told[None]["failed"]
    assert "expected `act`" in told[1]["failed"]
    assert told[2] == {"id": 2, "messages": None}
    assert told[3]["refused"]
    assert key not in json.dumps(told)
    await log.close()


async def test_a_window_is_a_number_and_true_is_none(log: SQLite) -> None:
    windows = dict[str, int]()
    talk = PluginConversations("pi", Engine(log), windows)
    for window in (True, 0, -5, "200000", 2.5, None):
        await talk.answer(asking("view", messages=pi_history(1)) | {"window": window})
    assert windows == {}
    await talk.answer(asking("view", messages=pi_history(1)))
    assert windows == {"claude-sonnet-4-5": WINDOW}
    await log.close()


@pytest.mark.parametrize("client", [opencode_client, pi_client])
def test_a_script_is_told_how_clew_is_started(client: Any) -> None:
    [text, *_] = client.plugs(("/opt/py thon", "-m", "clew"))[0].values.values()
    assert 'const COMMAND: string[] = ["/opt/py thon", "-m", "clew"]' in text
    assert '"@recall"' not in text


# --- Crush ------------------------------------------------------------------------------------------------------------


def part(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data}


CRUSH_SAID = [
    {"role": "user", "parts": [part("text", text="Find the port.")]},
    {
        "role": "assistant",
        "model": "gpt-4o",
        "parts": [part("reasoning", thinking="Hm."), part("tool_call", id="t", name="bash", input='{"command": "ss"}')],
    },
    {"role": "tool", "parts": [part("tool_result", tool_call_id="t", name="bash", content="LISTEN 8443")]},
    {"role": "assistant", "model": "gpt-4o", "parts": [part("text", text="It is 8443."), part("finish", reason="end")]},
]


class CrushDouble(BaseHTTPRequestHandler):
    """Answers as the API that Crush publishes says."""

    heard: list[tuple[str, Any]]
    folder: str

    def do_GET(self) -> None:
        session = {"id": "old", "title": "ports", "updated_at": 2, "parent_session_id": ""}
        agent = {"id": "agent", "title": "", "updated_at": 3, "parent_session_id": "old"}
        known: dict[str, Any] = {
            "/v1/workspaces": [{"id": "w", "path": self.folder}],
            "/v1/workspaces/w/sessions": [agent, session],
            "/v1/workspaces/w/sessions/old/messages": CRUSH_SAID,
        }
        self._tell(200 if self.path in known else 404, known.get(self.path, {"message": "not found"}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.heard.append((self.path, body))
        if self.path.endswith("/sessions"):
            self._tell(200, {"id": "new", **body})
        else:
            self._tell(202, None)

    def _tell(self, status: int, value: Any) -> None:
        told = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *said: Any) -> None:
        """Nothing."""


@contextmanager
def crush_double(folder: Path) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    heard: list[tuple[str, Any]] = []
    handler = type("Handler", (CrushDouble,), {"heard": heard, "folder": str(folder)})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", heard
        finally:
            server.shutdown()
            thread.join()


async def test_crush_goes_on_in_a_new_session_with_a_summary_of_the_old(tmp_path: Path, log: SQLite) -> None:
    engine = Engine(log, Budget(window=100_000))
    with crush_double(tmp_path) as (url, heard):
        new = await continued(CrushServer(url), tmp_path / "deep", "", engine, "default")
        with pytest.raises(NotFound, match="no workspace"):
            await continued(CrushServer(url), Path("/elsewhere"), "", engine, "default")
        with pytest.raises(NotFound, match="0 sessions"):
            await continued(CrushServer(url), tmp_path, "none", engine, "default")
        await continued(CrushServer(url), tmp_path, "old", engine, "default", summary="In my words.")
    assert new == "new"
    [(_, made), (path, sent), _, (_, own)] = heard
    assert made["title"] == "goes on from ports"
    assert path == "/v1/workspaces/w/agent"
    assert sent["session_id"] == "new"
    assert "Find the port." in sent["prompt"]
    assert "8443" in sent["prompt"]
    assert own["prompt"] == "In my words."
    assert await log.session("default", "crush-old")
    with pytest.raises(BadRequest, match="no Crush server"):
        CrushServer(f"unix://{tmp_path / 'no.sock'}").get("/workspaces")
    await log.close()


def test_crush_is_told_how_full_the_window_is_once_it_matters(tmp_path: Path) -> None:
    file = tmp_path / ".crush" / "crush.db"
    file.parent.mkdir()
    with sqlite3.connect(file) as database:
        database.execute("create table sessions (id text, prompt_tokens integer, completion_tokens integer)")
        database.execute("create table messages (session_id text, model text, created_at integer)")
        database.executemany("insert into sessions values (?, ?, ?)", [("full", 100_000, 2_000), ("new", 900, 10)])
        database.executemany("insert into messages values (?, 'gpt-4o', 1)", [("full",), ("new",)])
    database.close()
    event = {"event": "PreToolUse", "cwd": str(tmp_path / "deep"), "tool_name": "bash"}
    told = json.loads(answer_before_tool({**event, "session_id": "full"}))
    assert told["context"].startswith('<context_status>{"used_pct":79,')
    assert answer_before_tool({**event, "session_id": "new"}) == ""
    assert answer_before_tool({**event, "session_id": "unknown"}) == ""
    assert answer_before_tool({**event, "cwd": "/", "session_id": "full"}) == ""


# --- Claude Code ------------------------------------------------------------------------------------------------------


def row(role: str, text: str = "", **more: Any) -> dict[str, Any]:
    return {"role": role, "text": text, "toolUses": [], **more}


def claude_history(turns: int) -> list[dict[str, Any]]:
    out = [row("user", "count amber", handle="h")]
    for n in range(turns):
        call = {"tool_use_id": f"c{n}", "tool": "Bash", "input": {"command": f"echo fact-{n}"}}
        result = {"tool_use_id": f"c{n}", "text": f"fact-{n}\n{LINES}", "isError": False}
        out += [row("assistant", toolUses=[call], handle=f"a{n}"), row("user", toolResults=[result], handle=f"r{n}")]
    return [*out, row("assistant", "Done.", handle="d")]


def rows(told: dict[str, Any], own: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a session goes on with, as its client has it then: all are new ones."""
    found = [own[one] if isinstance(one, int) else one for one in told["messages"]]
    return [{key: value for key, value in one.items() if key != "handle"} for one in found]


@pytest.mark.parametrize("client", ["one process", "a process an answer"])
async def test_a_mod_compacts_and_an_undo_gives_every_message_back(client: str, log: SQLite) -> None:
    talk, own = talking("claude", log), claude_history(20)
    told = await talk.answer(asking("compact", messages=own, window=100_000, folder="/w"))
    assert told["after"] * 2 < told["before"]
    after = rows(told, own)
    more = [row("user", "and then?"), row("assistant", "Well.")]
    if client != "one process":
        talk = talking("claude", log)
    found = await talk.answer(
        asking("tool", name="recall", given={"id": re.findall(r"recall (\w{10})", str(after))[0]})
    )
    assert "fact-0" in found["text"]
    undone = await talk.answer(asking("undo", messages=[*after, *more], window=100_000))
    before = [{key: value for key, value in one.items() if key != "handle"} for one in own]
    assert rows(undone, [*after, *more]) == [*before, *more]
    with pytest.raises(NotFound):
        await talk.answer(asking("undo", messages=[*before, *more], window=100_000))
    await log.close()


async def test_what_is_short_is_not_compacted_and_nothing_is_done_ahead(log: SQLite) -> None:
    talk = talking("claude", log)
    assert (await talk.answer(asking("compact", messages=claude_history(1), window=100_000)))["messages"] is None
    assert (await talk.answer(asking("compact", messages=claude_history(20), ahead=True)))["skip"]
    assert (await talk.answer(asking("compact", messages=[])))["messages"] is None
    await log.close()


async def test_what_goes_through_the_gateway_is_compacted_there(
    log: SQLite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = load({"HOME": str(tmp_path)}, tmp_path)
    for url, is_served in ((f"http://127.0.0.1:{config.gateway.port}", True), ("http://127.0.0.1:9", False)):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        talk = conversations("claude", config, log, "default")
        told = await talk.answer(asking("compact", messages=claude_history(20), window=100_000))
        assert (told["messages"] is None) == is_served
        await talk.close()
    await log.close()


def test_what_the_mod_says_for_the_user_is_not_taken_for_their_words() -> None:
    [line] = re.findall(
        r'GOES_ON = "(.*)"', (Path(opencode_client.__file__).parents[2] / "data/plugins/claude.js").read_text()
    )
    assert not typed(Item("text", "user", line))


async def test_a_second_compaction_folds_what_the_first_left(log: SQLite) -> None:
    talk, own = talking("claude", log), claude_history(20)
    after = rows(await talk.answer(asking("compact", messages=own, window=100_000)), own)
    longer = [*after, *claude_history(40)[41:]]
    again = await talk.answer(asking("compact", messages=longer, window=100_000))
    assert again["after"] < again["before"]
    assert len({session.branch for session in await log.sessions("default")}) == 1
    text = json.dumps(rows(again, longer))
    ids = set(re.findall(r"recall (\w{10})", text))
    originals = [node.item.text for id in ids for node in await Engine(log).recall("default", id)]
    shown = [result["text"] for one in rows(again, longer) for result in one.get("toolResults", ())]
    assert all(f"fact-{n}\n" in "".join([*shown, *originals]) for n in range(40))
    await log.close()


async def test_beside_a_summary_of_the_clients_model_code_tells_what_it_may_lack(log: SQLite) -> None:
    windows: dict[str, int] = {}
    talk = PluginConversations("claude", Engine(log, Budget(window=100_000), Settings()), windows, is_own=True)
    assert await talk.answer(asking("compact", messages=claude_history(20))) == {"own": True}
    summary = (
        "Continued.\nSummary:\nThe counts ran to fact-19.\n\nIf you need specific details from before compaction, …"
    )
    told = await talk.answer(asking("beside", messages=claude_history(20), words=summary))
    assert "The counts ran" not in told["text"]
    assert "If you need" not in told["text"]
    assert "[clew log " in told["text"]
    await log.close()


async def test_beside_a_summary_nothing_is_told_of_what_the_client_keeps(log: SQLite) -> None:
    windows: dict[str, int] = {}
    talk = PluginConversations("claude", Engine(log, Budget(window=100_000), Settings()), windows, is_own=True)
    newest = [row("user", "Paint the dinghy teal.", handle="n1"), row("assistant", "It is teal.", handle="n2")]
    own = [*claude_history(20), *newest, *newest]  # what is kept was said before, too
    told = await talk.answer(asking("beside", messages=own, words="Counted.", kept=[len(own) - 2, len(own) - 1]))
    assert told["text"].count("It is teal.") == 1
    told = await talk.answer(asking("beside", messages=own, words="Counted.", kept=[*range(len(own) - 4, len(own))]))
    assert "teal" not in told["text"]
    assert "fact-19" in told["text"]
    await log.close()
