"""MCP servers in the chat: declared, allowed, started, called, ended."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st

from chatting import Hand, chatting
from clew.chat.choosing import Choosing
from clew.chat.permitting import Permitting
from clew.chat.reading import ReadingScreen
from clew.chat.servers.declared import ServerDeclaration, read_servers
from clew.chat.servers.naming import tool_name
from clew.chat.servers.starting import AskServers
from clew.chat.servers.tools import ChatServers
from clew.errors import ToolError
from clew.store.protocol import Store
from clew.testing.provider import Answer, Call, StrictProvider
from mcp_servers import well_behaved

SCRIPT = str(Path(__file__).with_name("mcp_servers.py"))


def declare(file: Path, **servers: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": servers}))


def local(*args: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [SCRIPT, *args], **more}


async def test_a_server_of_the_project_is_asked_about_called_and_ended(store: Store, tmp_path: Path) -> None:
    declare(
        tmp_path / ".mcp.json",
        reports=local(env={"PID_FILE": "${PIDS:-reports.pid}"}),
        broken=local("broken"),
        gone={"command": "no-such-program-here"},
    )
    shout, fail = Call("mcp__reports__shout", {"text": "paper"}), Call("mcp__reports__fail", {})
    script = [Answer("", (shout,)), Answer("Once."), Answer("", (shout, fail)), Answer("Twice.")]
    with StrictProvider(script) as provider:
        async with chatting(store, tmp_path, provider.url) as hand:
            await hand.sees(AskServers)
            assert "reports: " in "\n".join(hand.screen)
            await hand.press("y")
            await hand.hears("MCP server reports: 2 tools")
            assert "MCP server broken failed: Connection closed (the reports are on paper)" in hand.shown
            assert "MCP server gone failed: " in hand.shown
            await hand.enter("Shout.")
            await hand.sees(Permitting)
            assert '"text": "paper"' in "\n".join(hand.screen)
            await hand.press("t")
            await hand.hears("Once.")
            assert "PAPER" in hand.shown
            assert "\x1b" not in "\n".join(hand.screen)
            assert "[bold]loud[/bold]" in "\n".join(hand.screen)
            await hand.until(lambda: not hand.chat.busy)
            await hand.enter("Again, and the other.")
            await hand.sees(Permitting)  # the first is allowed by now
            assert "fail of the MCP server reports" in "\n".join(hand.screen)
            await hand.press("y")
            await hand.hears("Twice.")
            await hand.until(lambda: not hand.chat.busy)
            assert "Error executing tool fail" in hand.shown
            await lists(hand, "mcp__reports__shout  Say it loudly.")
            assert running(tmp_path / "reports.pid")
        assert not running(tmp_path / "reports.pid")
        kept = json.loads((tmp_path / "home/.local/share/clew/allowed.json").read_text())[str(tmp_path)]
        assert [kind for _, kind in kept] == ["servers", "tool"]


async def test_an_answer_about_a_file_holds_until_the_file_changes(store: Store, tmp_path: Path) -> None:
    declare(tmp_path / ".mcp.json", gone={"command": "no-such-program-here"})
    async with chatting(store, tmp_path, "http://127.0.0.1:9") as hand:
        await hand.sees(AskServers)
        await hand.press("n")
        await hand.hears("are not started")
    async with chatting(store, tmp_path, "http://127.0.0.1:9") as hand:
        await hand.until(hand.chat._prepared.is_set)
        assert not hand.chat.backend.servers.all
        await hand.enter("/allowed")
        await hand.sees(Choosing)
        await hand.press("enter")
        await hand.hears("No longer a rule here: none of the servers")
        await hand.enter("/mcp")
        await hand.sees(AskServers)
        await hand.press("y")
        await hand.hears("MCP server gone failed")
        await hand.press("escape")
    declare(tmp_path / ".mcp.json", gone={"command": "no-such-program-either"})
    async with chatting(store, tmp_path, "http://127.0.0.1:9") as hand:
        await hand.sees(AskServers)
        await hand.press("escape")


async def test_a_server_over_http_and_one_that_behaves_badly(tmp_path: Path) -> None:
    servers = ChatServers(tmp_path, {"PORT": "1"})
    async with served() as port:
        declare(
            tmp_path / "mcp.json", web={"url": f"http://127.0.0.1:{port}/mcp"}, bad=local("bad", env={"PID_FILE": "p"})
        )
        told = await servers.start(read_servers(tmp_path / "mcp.json", "mcp.json").servers)
        assert told[0] == "MCP server web: 2 tools"
        assert told[1] == "MCP server bad: 3 tools; 2 left out, because they are too many, too long or listed twice"
        by_name = {tool.name: tool for tool in servers.tools}
        assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,62}", name) for name in by_name), by_name
        assert (await by_name["mcp__web__shout"].run({"text": "paper"})).startswith("PAPER")
        *_, odd = servers.tools
        assert odd.parameters == {"type": "object", "properties": {}}
        assert len(odd.description) < 9_000
        assert len(await odd.run({})) < 31_000
        os.kill(int((tmp_path / "p").read_text()), signal.SIGKILL)
        with pytest.raises(ToolError, match="the MCP server bad did not answer"):
            await odd.run({})
        await servers.close()


async def test_a_server_that_does_not_answer_is_ended_with_the_chat(tmp_path: Path) -> None:
    servers = ChatServers(tmp_path, {})
    silent = ServerDeclaration("silent", "f", sys.executable, (SCRIPT, "silent"), {"PID_FILE": "p"})
    starting = asyncio.create_task(servers.start([silent]))
    while not (tmp_path / "p").exists() or not (tmp_path / "p").read_text():
        await asyncio.sleep(0.01)
    await servers.close()
    assert await starting == ["MCP server silent failed: it was ended"]
    assert not running(tmp_path / "p")


@asynccontextmanager
async def served() -> AsyncIterator[int]:
    """The well-behaved server over HTTP, in this process."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        app = well_behaved().streamable_http_app()
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", ws="none", timeout_graceful_shutdown=1))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        yield listener.getsockname()[1]
        server.should_exit = True
        await running


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "cannot be read"),
        ("[]", 'there is no "mcpServers"'),
        ('{"mcpServers": []}', 'there is no "mcpServers"'),
        ('{"mcpServers": {"a": 1}}', "must be an object"),
        ('{"mcpServers": {"a": {}}}', 'either a "command" or a "url"'),
        ('{"mcpServers": {"a": {"command": "x", "url": "http://x"}}}', 'either a "command" or a "url"'),
        ('{"mcpServers": {"a": {"command": "x", "args": "y"}}}', '"args" must be a list'),
        ('{"mcpServers": {"a": {"command": "x", "env": {"A": 1}}}}', '"env" must be an object with texts'),
        ('{"mcpServers": {"a": {"url": "file:///etc/passwd"}}}', "must begin with http"),
        ('{"mcpServers": {"a": {"type": "sse", "url": "http://x"}}}', "'sse' is not supported"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "mcp.json").write_text(text)
    read = read_servers(tmp_path / "mcp.json", "mcp.json")
    assert not read.servers
    assert fault in read.faults[0]


def test_variables_are_filled_in_and_missing_ones_named() -> None:
    declared = ServerDeclaration("a", "f", url="http://${HOST:-localhost}/", headers={"Authorization": "Bearer ${KEY}"})
    filled = declared.filled({"KEY": "k"})
    assert (filled.url, filled.headers) == ("http://localhost/", {"Authorization": "Bearer k"})
    assert "${KEY}" in declared.headers["Authorization"]
    with pytest.raises(ValueError, match="KEY is not set"):
        declared.filled({})


@settings(max_examples=30)
@given(st.lists(st.tuples(st.text("a_-. é", min_size=1), st.text("a_-. é", min_size=1)), unique=True))
def test_names_of_tools_fit_every_provider_and_never_clash(pairs: list[tuple[str, str]]) -> None:
    names = [tool_name(*pair) for pair in pairs]
    assert len(set(names)) == len(pairs)
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,62}", name) for name in names)
    assert tool_name("git", "log") == "mcp__git__log"


def running(file: Path) -> bool:
    """Whether the process runs that wrote its id to a file."""
    try:
        os.kill(int(file.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


async def lists(hand: Hand, words: str) -> None:
    await hand.enter("/mcp")
    await hand.sees(ReadingScreen)
    assert words in "\n".join(hand.screen)
    await hand.press("escape")
