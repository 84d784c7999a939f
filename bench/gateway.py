"""What a gateway costs: python bench/gateway.py [--requests N] [--also NAME=URL=PID]

CPU of the gateway's own process per request, and requests a second, beside asking the provider directly: small bodies,
streams of 41 events, 800 kB, and hot turns of 350 kB; with 1 client and with 64. Another proxy that runs already,
before the provider whose address is printed, is measured beside with --also. Linux only.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web

TICK = os.sysconf("SC_CLK_TCK")
ANSWER = {"id": "x", "object": "chat.completion", "created": 1, "model": "gpt-5"}
USAGE = {"prompt_tokens": 10, "completion_tokens": 40, "total_tokens": 50}
PATH = "/v1/chat/completions"


class Target(NamedTuple):
    """What is asked, and the process whose CPU counts; none: only the time."""

    name: str
    url: str
    pid: int | None


def provider() -> None:
    """A provider that costs as little as can be: whole answers, and streams of 41 events."""
    whole = json.dumps(
        {**ANSWER, "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}}], "usage": USAGE}
    )
    events = [{**ANSWER, "choices": [{"index": 0, "delta": {"content": f"word {n} "}}]} for n in range(40)]
    told = [f"data: {json.dumps(event)}\n\n".encode() for event in [*events, {**ANSWER, "choices": [], "usage": USAGE}]]

    async def answer(request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        if b'"stream":true' not in raw[-200:]:
            return web.Response(text=whole, content_type="application/json")
        reply = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await reply.prepare(request)
        for event in told:
            await reply.write(event)
        await reply.write(b"data: [DONE]\n\n")
        return reply

    app = web.Application(client_max_size=1 << 30)
    app.router.add_post(PATH, answer)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[2]), print=lambda *_: None, access_log=None)


def cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def body(size: int, stream: bool, word: str) -> bytes:
    said: list[Any] = []
    for n in count():
        said.append(
            {"role": "user" if n % 2 == 0 else "assistant", "content": f"{word} {n} " + "some words of a talk " * 40}
        )
        if len(said) % 2 and sum(len(m["content"]) for m in said) >= size:
            break
    return json.dumps({"model": "gpt-5", "messages": said, "stream": stream}, separators=(",", ":")).encode()


async def ask(http: aiohttp.ClientSession, url: str, raw: bytes) -> None:
    headers = {"content-type": "application/json", "authorization": "Bearer key"}
    async with http.post(url + PATH, data=raw, headers=headers) as came:
        await came.read()
        assert came.status == 200, await came.text()


async def load(target: Target, size: int, stream: bool, clients: int, requests: int, hot: bool) -> tuple[float, float]:
    """CPU milliseconds of a request, and requests a second."""
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as http:

        async def talk(n: int, many: int, measured: bool) -> None:
            raw = body(size, stream, f"client {n} {target.name}") if hot else small
            said = json.loads(raw) if hot else None
            for turn in range(many):
                if said:  # one exchange more each time, as in a real talk
                    more = [
                        {"role": "assistant", "content": f"ok {turn}"},
                        {"role": "user", "content": f"go on {turn}"},
                    ]
                    said["messages"] += more if measured or turn else []
                    raw = json.dumps(said, separators=(",", ":")).encode()
                await ask(http, target.url, raw)

        small = body(size, stream, "the same")
        await asyncio.gather(*(talk(n, 3, False) for n in range(clients)))
        began, spent = time.perf_counter(), cpu(target.pid) if target.pid else 0.0
        each = max(1, requests // clients)
        await asyncio.gather(*(talk(n, each, True) for n in range(clients)))
        took = time.perf_counter() - began
        used = (cpu(target.pid) - spent if target.pid else 0.0) * 1_000 / (each * clients)
        return used, each * clients / took


@contextmanager
def running(*command: str, env: dict[str, str] | None = None) -> Iterator[int]:
    process = subprocess.Popen(command, env={**os.environ, **(env or {})}, stdout=subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    told = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    told.add_argument("--requests", type=int, default=2_000)
    told.add_argument("--port", type=int, default=18_377)
    told.add_argument("--also", action="append", default=[], metavar="NAME=URL=PID")
    given = told.parse_args()
    up, gate = f"http://127.0.0.1:{given.port}", f"http://127.0.0.1:{given.port + 1}"
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "clew.toml"
        env = {"CLEW_STORE": f"{folder}/clew.db", "XDG_CONFIG_HOME": folder, "CLEW_PROBE": "false"}
        (Path(folder) / "clew").mkdir()
        config = Path(folder) / "clew" / "config.toml"
        config.write_text(f'[gateway.upstreams.bench]\nurl = "{up}"\nkind = "openai"\n')
        serve = (sys.executable, "-m", "clew.cli", "serve", "--port", str(given.port + 1))
        with running(sys.executable, __file__, "--provider", str(given.port)), running(*serve, env=env) as pid:
            targets = [Target("direct", up, None), Target("clew", gate, pid)]
            for also in given.also:
                name, url, number = also.rsplit("=", 2)
                targets.append(Target(name, url, int(number)))
            asyncio.run(wait(up, gate))
            print(f"provider at {up}, clew at {gate}")
            asyncio.run(measure(targets, given.requests))


async def wait(*urls: str) -> None:
    for url in urls:
        for _ in range(600):
            try:
                async with aiohttp.ClientSession() as http, http.get(url):
                    break
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)


async def measure(targets: list[Target], requests: int) -> None:
    kinds = {
        "small": (200, False, 1.0, False),
        "small, streamed": (200, True, 0.5, False),
        "800 kB": (800_000, False, 0.1, False),
        "hot turns, 350 kB": (350_000, False, 0.1, True),
    }
    for name, (size, stream, share, hot) in kinds.items():
        for clients in (1, 64):
            for target in targets:
                many = max(2 * clients, int(requests * share))
                used, rate = await load(target, size, stream, clients, many, hot)
                print(
                    f"{name:20} {clients:3} clients  {target.name:10} {used:8.2f} ms CPU  {rate:8.0f} requests/s",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--provider"]:
        provider()
    else:
        main()
