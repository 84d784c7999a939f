"""The session files of Gemini CLI, Qwen Code and Copilot CLI, of the shape that these programs write."""

import json
from pathlib import Path
from typing import Any

import pytest

from clew import wire
from clew.config import engine, load
from clew.mcp.indexing import Indexer
from clew.sessions.session_files import folder_of, session_files
from clew.sessions.transcripts import Transcript, read, read_all
from clew.store import open_store

AT = "2026-01-01T00:00:00.000Z"


def lines(*values: Any) -> bytes:
    return "\n".join(map(json.dumps, values)).encode()


def gemini_user(id: str, *parts: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": AT, "type": "user", "content": list(parts)}


CONTEXT = gemini_user(
    "c0", {"text": "<session_context>\n- **Workspace Directories:**\n  - /home/me/shop\n</session_context>"}
)
RESPONSE = {"functionResponse": {"id": "t1", "name": "run", "response": {"output": "a.py"}}}
TOOL = {"id": "t1", "name": "run", "args": {"command": "ls"}, "result": [RESPONSE], "status": "success"}
GEMINI: list[dict[str, Any]] = [
    {"sessionId": "g1", "projectHash": "h", "startTime": AT, "lastUpdated": AT, "kind": "main"},
    {"$set": {"messages": [CONTEXT], "lastUpdated": AT}},
    gemini_user("u1", {"text": "List the files."}),
    {"$set": {"lastUpdated": AT}},
    {"id": "m1", "timestamp": AT, "type": "gemini", "content": "", "model": "gemini-2.5-flash"},
    {"id": "m1", "timestamp": AT, "type": "gemini", "content": "", "model": "gemini-2.5-flash", "toolCalls": [TOOL]},
    gemini_user("u2", RESPONSE),
    {"id": "m2", "timestamp": AT, "type": "gemini", "content": "There is a.py.", "model": "gemini-2.5-flash"},
]
SNAPSHOT = gemini_user("s1", {"text": "<state_snapshot>a file was listed</state_snapshot>"})
COMPRESSED: list[dict[str, Any]] = [
    {"$set": {"messages": [CONTEXT, SNAPSHOT, {"id": "s2", "type": "gemini", "content": [{"text": "Got it."}]}]}},
    gemini_user("u3", {"text": "And now?"}),
]


def qwen_line(id: str, above: str | None, kind: str, **given: Any) -> dict[str, Any]:
    head = {"uuid": id, "parentUuid": above, "sessionId": "q1", "timestamp": AT, "cwd": "/home/me/shop"}
    return {**head, "type": kind, "version": "0.24.4", **given}


def qwen_said(role: str, *parts: Any) -> dict[str, Any]:
    return {"message": {"role": role, "parts": list(parts)}}


QWEN: list[dict[str, Any]] = [
    qwen_line("a", None, "user", **qwen_said("user", {"text": "List the files."})),
    qwen_line("b", "a", "system", subtype="ui_telemetry", systemPayload={"uiEvent": {}}),
    qwen_line(
        "c",
        "b",
        "assistant",
        model="qwen3-coder-plus",
        **qwen_said("model", {"functionCall": {"id": "t1", "name": "run", "args": {"command": "ls"}}}),
    ),
    qwen_line("d", "c", "tool_result", **qwen_said("user", RESPONSE)),
    qwen_line("e", "d", "assistant", model="qwen3-coder-plus", **qwen_said("model", {"text": "There is a.py."})),
]
QWEN_COMPRESSED = qwen_line(
    "f",
    "e",
    "system",
    subtype="chat_compression",
    systemPayload={
        "info": {"originalTokenCount": 23_699, "triggerReason": "manual"},
        "compressedHistory": [{"role": "user", "parts": [{"text": "a file was listed"}]}],
    },
)


def event(id: str, kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": data, "id": id, "timestamp": AT, "parentId": None}


REQUEST = {"toolCallId": "t1", "name": "bash", "arguments": {"command": "ls"}, "type": "function"}
COPILOT: list[dict[str, Any]] = [
    event("1", "session.start", sessionId="p1", selectedModel="gpt-5.4", context={"cwd": "/home/me/shop"}),
    event("2", "user.message", content="List the files.", transformedContent="<current_datetime/>List the files."),
    event("3", "system.message", role="system", content="You are GitHub Copilot."),
    event("4", "assistant.message", model="gpt-5.4", content="", toolRequests=[REQUEST]),
    event("5", "tool.execution_start", toolCallId="t1", toolName="bash"),
    event("6", "assistant.message", content="in a sub-agent", parentToolCallId="t1"),
    event("7", "tool.execution_complete", toolCallId="t1", success=True, result={"content": "a.py"}),
    event("8", "assistant.message", model="gpt-5.4", content="There is a.py.", toolRequests=[]),
]
COPILOT_COMPACTED = event(
    "9", "session.compaction_complete", success=True, summaryContent="a file was listed", preCompactionTokens=27_365
)
FILES = {
    "gemini-cli": (".gemini/tmp/shop/chats/session-g1.jsonl", GEMINI, COMPRESSED[0], "<state_snapshot>"),
    "qwen-code": (".qwen/projects/-home-me-shop/chats/q1.jsonl", QWEN, QWEN_COMPRESSED, "a file was listed"),
    "copilot-cli": (".copilot/session-state/p1/events.jsonl", COPILOT, COPILOT_COMPACTED, "a file was listed"),
}


def texts(told: Transcript) -> list[str]:
    _, items = wire.decode(told.body(), told.format)
    return [item.text for item in items if item.kind in ("text", "result") and "session_context" not in item.text]


def test_what_gemini_cli_says_first_of_where_it_runs_is_no_compaction_when_it_has_changed() -> None:
    moved = gemini_user("c9", {"text": "<session_context>\nThe date is another one. docs/STYLE.md\n</session_context>"})
    said = [GEMINI[2], GEMINI[5], GEMINI[6], GEMINI[7]]
    [session] = read_all(lines(*GEMINI, {"$set": {"messages": [moved, *said]}}, COMPRESSED[1]), "g.jsonl")
    assert session.compactions == []
    assert session.messages[-1] == {"role": "user", "parts": [{"text": "And now?"}]}


@pytest.mark.parametrize("agent", FILES)
def test_a_session_is_read(agent: str) -> None:
    told = read(lines(*FILES[agent][1]), "file")
    assert (told.agent, told.cwd) == (agent, "/home/me/shop")
    assert told.model
    assert texts(told) == ["List the files.", "a.py", "There is a.py."]
    assert wire.check(told.body(), told.format) == []


@pytest.mark.parametrize("agent", FILES)
def test_a_compaction_is_found_and_nothing_before_it_is_lost(agent: str) -> None:
    _, said, compacted, summary = FILES[agent]
    told = read(lines(*said, compacted), "file")
    [(place, why)] = told.compactions
    assert place == len(told.messages)
    assert summary in (why.summary or "")
    assert "There is a.py." in texts(told)


def test_what_follows_a_compaction_of_gemini_is_said_once() -> None:
    told = read(lines(*GEMINI, *COMPRESSED), "file")
    again = {"$set": {"messages": [*COMPRESSED[0]["$set"]["messages"], gemini_user("u9", {"text": "And now?"})]}}
    assert read(lines(*GEMINI, *COMPRESSED, again), "file").messages == told.messages
    assert texts(told)[-1] == "And now?"
    assert len(told.compactions) == 1


def test_two_equal_summaries_of_gemini_are_two_and_going_back_is_none() -> None:
    set_to = COMPRESSED[0]["$set"]["messages"]
    anew = [set_to[0], {**set_to[1], "id": "s8"}, {**set_to[2], "id": "s9"}]
    told = read(lines(*GEMINI, *COMPRESSED, {"$set": {"messages": anew}}), "file")
    assert len(told.compactions) == 2
    assert "And now?" in texts(told), "what was said between them stays"
    back = read(lines(*GEMINI, *COMPRESSED, {"$set": {"messages": set_to}}), "file")
    assert len(back.compactions) == 1
    assert "And now?" not in texts(back)


def test_answers_that_only_stand_with_their_call_are_told() -> None:
    assert texts(read(lines(*GEMINI[:6], GEMINI[7]), "file")) == ["List the files.", "a.py", "There is a.py."]


def test_a_file_of_gemini_in_which_nothing_was_said_is_none() -> None:
    assert read_all(lines(*GEMINI[:2]), "file") == []


def test_a_branch_that_was_left_is_a_fork_of_qwen() -> None:
    other = qwen_line("x", "a", "assistant", **qwen_said("model", {"text": "Another answer."}))
    told = read(lines(*QWEN[:1], other, *QWEN[1:]), "file")
    [fork] = told.children
    assert texts(fork)[-1] == "Another answer."


async def test_they_are_found_on_the_disk_and_read_as_they_grow(tmp_path: Path) -> None:
    for where, said, _, _ in FILES.values():
        path = tmp_path / where
        path.parent.mkdir(parents=True)
        path.write_bytes(lines(*said[:3]))
    (tmp_path / ".gemini/tmp/shop/.project_root").write_text("/home/me/shop")
    env = {"HOME": str(tmp_path)}
    found = session_files(env)
    assert {folder_of(file) for file in found} == {"/home/me/shop"}
    assert len(found) == len(FILES)

    def made() -> Any:
        return engine(load(env, tmp_path), open_store(str(tmp_path / "log.db")), compaction="off")

    indexer = Indexer(made, "default", None, env)
    await indexer.look()
    for where, said, compacted, _ in FILES.values():
        (tmp_path / where).write_bytes(lines(*said, compacted))
    await indexer.look()
    assert indexer.faults == {}
    store = open_store(str(tmp_path / "log.db"))
    for name in ("g1", "q1", "p1"):
        branch = await store.session("default", name)
        assert branch is not None
        trace = await store.load("default", branch)
        nodes = await store.nodes("default", [place.id for place in trace.said])
        assert any(node.item.text == "There is a.py." for node in nodes.values())
    await store.close()
    if indexer._engine is not None:
        await indexer._engine.store.close()
