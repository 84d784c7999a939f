"""clew mcp over HTTP, on this machine only, asked by the SDK's own client and by others who must not be answered."""

import asyncio
import http.client
import json
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client

from clew.errors import BadRequest
from clew.mcp.serving import listen
from mcping import Asked, Machine, until
from shell import Shell


@asynccontextmanager
async def served(machine: Machine, *arguments: str) -> AsyncIterator[int]:
    """A server on a free port."""
    command = machine.command("--http", "--port", "0", *arguments)
    process = await asyncio.create_subprocess_exec(
        command.command, *command.args, cwd=command.cwd, env=command.env, stdin=-1, stdout=-1, stderr=-1
    )
    assert process.stderr
    try:
        told = (await process.stderr.readline()).decode()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", told)
        assert found, told
        yield int(found[1])
    finally:
        process.send_signal(signal.SIGINT)
        out, _ = await process.communicate()
        assert out == b""


async def test_a_client_is_answered_over_http(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    await machine.logged("mine", ["hello", "hi", "the first word is LARCH-1"])
    await machine.logged("theirs", ["the vault code is ORCHID-77"], machine.other)
    machine.file("gate", ["Paint the gate MALACHITE-9.", "It is painted."])
    async with served(machine) as port, Client(f"http://127.0.0.1:{port}/mcp") as client:
        ask = Asked(client)
        assert len((await client.list_tools()).tools) == 6
        assert "LARCH-1" in await ask("search", text="LARCH-1")
        assert "Nothing was said" in await ask("search", text="ORCHID-77")
        await until(lambda: ask.either("search", text="MALACHITE-9"), "Paint the gate")
        assert len((await client.list_resources()).resources) == 2
        assert (await client.get_prompt("resume", {"conversation": "mine"})).messages
        async with Client(f"http://localhost:{port}/mcp", mode="legacy") as other:
            assert "mine" in await Asked(other)("status")


async def test_nobody_else_is_answered(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    await machine.logged("mine", ["hello"])

    def status(port: int, headers: dict[str, str]) -> int:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        usual = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            line.request("POST", "/mcp", body, {**usual, **headers})
            return line.getresponse().status
        finally:
            line.close()

    async with served(machine, "--no-index") as port:
        for headers, wanted in (
            ({}, 200),
            ({"origin": f"http://127.0.0.1:{port}"}, 200),
            ({"host": "evil.example"}, 421),
            ({"host": f"evil.example:{port}"}, 421),
            ({"host": "127.0.0.1:1"}, 421),
            ({"origin": "http://evil.example"}, 403),
            ({"origin": f"http://127.0.0.1:{port}.evil.example"}, 403),
            ({"origin": "null"}, 403),
        ):
            assert await asyncio.to_thread(status, port, headers) == wanted, headers


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.com", ""])
def test_beyond_this_machine_nothing_is_served(host: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="can be reached from elsewhere"):
        listen(host, 0)
    came = Shell(tmp_path)("mcp", "--http", "--host", host, "--no-index")
    assert came.exit_code == 1
    assert "can be reached from elsewhere" in came.stderr


def test_what_excludes_each_other_is_refused(tmp_path: Path) -> None:
    came = Shell(tmp_path)("mcp", "--all", "--conversation", "x")
    assert came.exit_code == 2
    assert "--all" in came.stderr
