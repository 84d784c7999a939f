"""Crush's server: a conversation goes on in a session of its own, from what clew wrote down of the one before."""

import http.client
import json
import os
import socket
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from clew import wire
from clew.clients.voices import OWN_COMMAND
from clew.core.items import Scope
from clew.engine.engine import Engine, Request
from clew.errors import BadRequest, NotFound
from clew.gateway.compacting import Compactions
from clew.sessions.about import hold
from clew.sessions.transcripts.source import mapping, objects, string

SERVER_SECONDS = 30  # for one answer of a server on this machine
TITLE = "goes on from"


class CrushServer:
    """A running `crush server`, at http://HOST:PORT or unix:///PATH."""

    def __init__(self, address: str) -> None:
        self.address = address

    def get(self, path: str) -> Any:
        """What is at a path. Raises `BadRequest`."""
        return self._ask("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """What comes of a request. Raises `BadRequest`."""
        return self._ask("POST", path, body)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        connection = _connection(self.address)
        try:
            headers = {"Content-Type": "application/json"}
            connection.request(method, f"/v1{path}", json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            data = answer.read()
        except OSError as error:
            why = error.strerror or str(error)
            raise BadRequest(
                f"no Crush server at {self.address} ({why}): start crush server, or give --server"
            ) from None
        finally:
            connection.close()
        if answer.status >= 300:
            raise BadRequest(f"Crush refused {method} {path}: {answer.status} {data[:200].decode('utf-8', 'replace')}")
        return json.loads(data) if data.strip() else None


def usual_address(env: Mapping[str, str]) -> str:
    """Where a server of this user listens, unless it was told otherwise."""
    folder = env.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    name = f"crush-{os.getuid()}.sock" if hasattr(os, "getuid") else "crush.sock"
    return f"unix://{Path(folder) / name}"


class _SocketConnection(http.client.HTTPConnection):
    """HTTP by the socket file that Crush listens on."""

    def __init__(self, file: str) -> None:
        super().__init__("localhost", timeout=SERVER_SECONDS)
        self._file = file

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._file)


def _connection(address: str) -> http.client.HTTPConnection:
    parts = urlsplit(address)
    if parts.scheme == "unix":
        return _SocketConnection(parts.path)
    if parts.scheme in ("http", "tcp") and parts.hostname and parts.port:
        return http.client.HTTPConnection(parts.hostname, parts.port, timeout=SERVER_SECONDS)
    raise BadRequest(f"{address} is no address of a Crush server: expected unix:///PATH or http://HOST:PORT")


async def continued(
    server: CrushServer, folder: Path, session: str, engine: Engine, scope: Scope, summary: str = ""
) -> str:
    """Write a session to the log, and begin a new one with a summary of it; the id of the new one.

    Without a session, that in which something was said last. The summary is clew's own unless one is given.
    """
    workspace = _workspace(server, folder)
    old = _session(server, workspace, session)
    said = objects(server.get(f"{workspace}/sessions/{old['id']}/messages"))
    name = f"crush-{old['id']}"
    body = {"model": _model(said), "messages": chat_messages(said)}
    if not body["messages"]:
        raise NotFound(f"nothing was said in session {old['id']} yet")
    await hold(engine.store, scope, name, str(folder))
    await engine.keep(Request(body, "openai_chat", scope, name))
    frame, _ = wire.decode({**body, "messages": []}, "openai_chat")
    text = summary or await Compactions(engine).of(scope, name, frame)
    new = mapping(server.post(f"{workspace}/sessions", {"title": f"{TITLE} {old.get('title') or old['id']}"}))
    server.post(f"{workspace}/agent", {"session_id": new["id"], "prompt": text})
    return string(new["id"])


def _workspace(server: CrushServer, folder: Path) -> str:
    """The path of the workspace that a folder is in, the innermost."""
    there = [(string(w.get("path")), string(w.get("id"))) for w in objects(server.get("/workspaces"))]
    known = [(path, id) for path, id in there if path and folder.is_relative_to(path)]
    if not known:
        raise NotFound(f"Crush has no workspace for {folder}: open it in Crush first")
    return f"/workspaces/{max(known)[1]}"


def _session(server: CrushServer, workspace: str, session: str) -> Mapping[str, Any]:
    """A session by the beginning of its id, or the newest that no other session leads."""
    known = [s for s in objects(server.get(f"{workspace}/sessions")) if not s.get("parent_session_id")]
    found = [s for s in known if string(s.get("id")).startswith(session)]
    if not found or (session and len(found) > 1):
        raise NotFound(f"{session or 'a session'}: {len(found)} sessions of Crush fit; give more of the id")
    return max(found, key=lambda s: s.get("updated_at") or 0)


def _model(said: Sequence[Mapping[str, Any]]) -> str:
    return next((model for message in reversed(said) if (model := string(message.get("model")))), "")


def chat_messages(said: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Crush's messages in the form of Chat Completions."""
    return [made for message in said for made in _chat(message)]


def _chat(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    parts = [(part.get("type"), mapping(part.get("data"))) for part in objects(message.get("parts"))]
    text = "\n".join(string(data.get("text")) for kind, data in parts if kind == "text")
    ran = [data for kind, data in parts if kind == "shell_command"]
    text += "".join(f"{OWN_COMMAND}{data.get('command')}]\n{data.get('output')}" for data in ran)
    made: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": string(data.get("tool_call_id")), "content": string(data.get("content"))}
        for kind, data in parts
        if kind == "tool_result"
    ]
    calls = [
        {
            "id": string(data.get("id")),
            "type": "function",
            "function": {"name": string(data.get("name")), "arguments": string(data.get("input")) or "{}"},
        }
        for kind, data in parts
        if kind == "tool_call"
    ]
    role = "assistant" if message.get("role") == "assistant" else "user"
    if calls:
        made.append({"role": role, "content": text or None, "tool_calls": calls})
    elif text and message.get("role") == "tool":
        made.append({"role": "function", "name": "tool", "content": text})
    elif text:
        made.append({"role": role, "content": text})
    return made
