"""What a gateway costs: python bench/gateway.py [--requests N] [--also NAME=URL=PID]

CPU of the gateway's own process per request, and requests a second, beside asking the provider directly, with 1 client
and with 64. Small bodies and those of 800 kB: passed through (a path that clew knows nothing of) and logged, the same
again and again; 800 kB also far past the window; streams of 41 events; hot turns of 350 kB. Another proxy that runs
already, before the provider whose address is printed, is measured beside with --also. At the end, how long `/livez` of
clew takes while another client sends a million tokens that have to be folded. Linux only.
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
from statistics import median
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web

TICK = os.sysconf("SC_CLK_TCK")
ANSWER = {"id": "x", "object": "chat.completion", "created": 1, "model": "gpt-4.1"}
USAGE = {"prompt_tokens": 10, "completion_tokens": 40, "total_tokens": 50}
PATH, UNKNOWN = "/v1/chat/completions", "/v1/embeddings"
WIDE, NARROW = "gpt-4.1", "gpt-4o"  # whose windows take 800 kB, and do not


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
    app.router.add_post(UNKNOWN, answer)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[2]), print=lambda *_: None, access_log=None)


def cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


class Kind(NamedTuple):
    """Bodies that are sent, and how many of all."""

    size: int
    stream: bool = False
    share: float = 1.0
    hot: bool = False  # each has more than the one before
    model: str = WIDE
    path: str = PATH


KINDS = {
    "passed through": Kind(200, path=UNKNOWN),
    "passed through, 800 kB": Kind(800_000, share=0.1, path=UNKNOWN),
    "small": Kind(200),
    "small, streamed": Kind(200, stream=True, share=0.5),
    "800 kB": Kind(800_000, share=0.1),
    "800 kB, past the window": Kind(800_000, share=0.1, model=NARROW),
    "hot turns, 350 kB": Kind(350_000, share=0.1, hot=True),
}


def body(kind: Kind, word: str) -> bytes:
    said: list[Any] = []
    for n in count():
        said.append(
            {"role": "user" if n % 2 == 0 else "assistant", "content": f"{word} {n} " + "some words of a talk " * 40}
        )
        if len(said) % 2 and sum(len(m["content"]) for m in said) >= kind.size:
            break
    return json.dumps({"model": kind.model, "messages": said, "stream": kind.stream}, separators=(",", ":")).encode()


async def ask(http: aiohttp.ClientSession, url: str, raw: bytes) -> float:
    """Seconds to the first bytes of the answer."""
    headers = {"content-type": "application/json", "authorization": "Bearer key"}
    began = time.perf_counter()
    async with http.post(url, data=raw, headers=headers) as came:
        await came.content.readany()
        first = time.perf_counter() - began
        await came.read()
        assert came.status == 200, came.status
        return first


async def load(target: Target, kind: Kind, clients: int, requests: int) -> tuple[float, float, float]:
    """CPU milliseconds of a request, requests a second, and milliseconds to the first bytes, in the middle."""
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as http:

        async def talk(n: int, many: int, measured: bool) -> None:
            raw = small
            for _ in range(many):
                if kind.hot:  # one exchange more each time, as in a real talk
                    said = talks.setdefault(n, json.loads(body(kind, f"client {n} {target.name}")))
                    turn = len(said["messages"])
                    said["messages"] += [
                        {"role": "assistant", "content": f"ok {turn}"},
                        {"role": "user", "content": f"go on {turn}"},
                    ]
                    raw = json.dumps(said, separators=(",", ":")).encode()
                took = await ask(http, target.url + kind.path, raw)
                firsts.extend([took] if measured else [])

        firsts: list[float] = []
        talks: dict[int, Any] = {}  # that go on
        small = body(kind, "the same")
        await asyncio.gather(*(talk(n, 3, False) for n in range(clients)))
        began, spent = time.perf_counter(), cpu(target.pid) if target.pid else 0.0
        each = max(1, requests // clients)
        await asyncio.gather(*(talk(n, each, True) for n in range(clients)))
        took = time.perf_counter() - began
        used = (cpu(target.pid) - spent if target.pid else 0.0) * 1_000 / (each * clients)
        return used, each * clients / took, median(firsts) * 1_000


@contextmanager
def running(*command: str, env: dict[str, str] | None = None, told: bool = False) -> Iterator[int]:
    """A program while a block runs; what it says is shown if it is to be told."""
    process = subprocess.Popen(command, env={**os.environ, **(env or {})}, stdout=None if told else subprocess.DEVNULL)
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    told = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    told.add_argument("--requests", type=int, default=2_000)
    told.add_argument("--port", type=int, default=18_377)
    told.add_argument("--only", default="", metavar="NAME", help="bodies whose name begins so")
    told.add_argument("--clients", type=int, action="append", help="at once; 1 and 64 unless said")
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
            asyncio.run(measure(targets, given.requests, given.only, given.clients or [1, 64]))
            asyncio.run(stall(targets[1]))


async def wait(*urls: str) -> None:
    for url in urls:
        for _ in range(600):
            try:
                async with aiohttp.ClientSession() as http, http.get(url):
                    break
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)


async def measure(targets: list[Target], requests: int, only: str, at_once: list[int]) -> None:
    for name, kind in KINDS.items():
        if not name.startswith(only):
            continue
        for clients in at_once:
            for target in targets if kind.path == PATH else targets[:2]:
                many = max(2 * clients, int(requests * kind.share))
                used, rate, first = await load(target, kind, clients, many)
                print(
                    f"{name:24} {clients:3} clients  {target.name:10} {used:8.2f} ms CPU  {rate:8.0f} requests/s"
                    f"  {first:8.1f} ms to the first byte",
                    flush=True,
                )


async def stall(target: Target) -> None:
    """The longest that others wait while a million tokens are folded, and while nothing is."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as http:
        ended = asyncio.Event()

        async def beat() -> list[float]:
            found = []
            while not ended.is_set():
                began = time.perf_counter()
                async with http.get(f"{target.url}/livez") as came:
                    await came.read()
                found.append((time.perf_counter() - began) * 1_000)
                await asyncio.sleep(0.002)
            return sorted(found)

        async def rest() -> float:
            await asyncio.sleep(3)
            return 0.0

        far = body(Kind(4_000_000, model=NARROW), "far")
        for name, act in (
            ("nothing beside", rest),
            (
                "a million tokens beside",
                lambda: ask(http, target.url + PATH, far),
            ),
        ):
            ended.clear()
            beating = asyncio.create_task(beat())
            await asyncio.sleep(0.5)
            await act()
            ended.set()
            found = await beating
            print(
                f"/livez, {name}: {found[len(found) // 2]:.1f} ms in the middle, {found[-1]:.1f} at worst", flush=True
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--provider"]:
        provider()
    else:
        main()
