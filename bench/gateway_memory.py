"""What a gateway keeps: python bench/gateway_memory.py [--minutes N] [--memory MB] [--large MB] [--every SECONDS]

Memory, threads, open files and every cache of a gateway while 8 clients talk: some named, some not, streamed or whole,
with results, folds, searches of the model's own, models that nobody knows, answers left in the middle. In the last
quarter of the time one large request comes, then nobody says anything: what stays then is told, too. A cache that
changed says how much it holds and the most that it may: what grows beside them is a leak. Linux only.
"""

import argparse
import asyncio
import gc
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from clew.cli import serve as serving
from clew.config import load
from clew.core.caches import Recent
from clew.engine.branches import Branches
from clew.exchange.asides import Asides
from clew.gateway.app import Gateway
from clew.gateway.server import listening, server
from clew.gateway.settings import GatewaySettings
from clew.store import open_store
from clew.tokens.meter import Meter
from gateway import ANSWER, PATH, USAGE, running, wait

CLIENTS = 8
WINDOW = 12_000  # tokens: long talks are folded
SEARCH = "what did we say about"  # whoever says this is answered by a search first
TOOL = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
DEPTH = 6  # how far from a gateway its caches are


# --- a provider that costs little -------------------------------------------------------------------------------------


def provider(port: int) -> None:
    """Answers with a word, with a call of `read` now and then, and with a search where somebody asks for one."""

    async def answer(request: web.Request) -> web.Response:
        body = json.loads(await request.read())
        said: Any = {"role": "assistant", "content": "ok"}
        last, offered = body["messages"][-1], {t["function"]["name"] for t in body.get("tools") or ()}
        text = last.get("content") if isinstance(last.get("content"), str) else ""
        if last["role"] == "user" and SEARCH in text and "search_history" in offered:
            said = _call("search_history", {"query": text.rpartition(SEARCH)[2]})
        elif last["role"] == "user" and "read " in text and "read" in offered:
            said = _call("read", {"path": f"src/{text.split()[-1]}.py"})
        if not body.get("stream"):
            return web.json_response({**ANSWER, "choices": [{"index": 0, "message": said}], "usage": USAGE})
        calls = [{"index": n, **call} for n, call in enumerate(said.get("tool_calls", ()))]
        delta = {**said, "tool_calls": calls} if calls else said
        events = {"choices": [{"index": 0, "delta": delta}]}, {"choices": [], "usage": USAGE}
        told = [json.dumps({**ANSWER, **event}) for event in events]
        text = "".join(f"data: {event}\n\n" for event in [*told, "[DONE]"])
        return web.Response(text=text, content_type="text/event-stream")

    app = web.Application(client_max_size=1 << 30)
    app.router.add_post(PATH, answer)
    web.run_app(app, host="127.0.0.1", port=port, print=lambda *_: None, access_log=None)


def _call(name: str, given: Mapping[str, str]) -> dict[str, Any]:
    made = {"name": name, "arguments": json.dumps(given)}
    id = f"call_{random.getrandbits(48):012x}"
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": made}]}


# --- a gateway that tells what it holds -------------------------------------------------------------------------------


def serve(port: int, every: float) -> None:
    """A gateway as `clew serve` makes it, which prints what it holds."""
    config = load(os.environ, Path.cwd())
    store = open_store(config.store)
    gateway = serving.made(config, store, serving.upstreams(config))
    threading.Thread(target=_tell, args=(gateway, every), daemon=True).start()
    served = server(gateway, GatewaySettings.client_silence, port=port, graceful=1)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*serving.COLLECTED)
    asyncio.run(served.serve(sockets=[listening("127.0.0.1", port)]))


def _tell(gateway: Gateway, every: float) -> None:
    began, known = time.monotonic(), dict[str, str]()
    while True:
        held = _held(gateway)
        fresh = ", ".join(f"{name} {size}" for name, size in sorted(held.items()) if known.get(name) != size)
        print(f"{time.monotonic() - began:6.0f} s  {_process()}  {fresh}", flush=True)
        known = held
        time.sleep(every)


def _process() -> str:
    status = Path("/proc/self/status").read_text()
    rss, threads = (status.partition(f"{key}:")[2].split()[0] for key in ("VmRSS", "Threads"))
    return f"{int(rss) >> 10:5} MB  {threads:>3} threads  {len([*Path('/proc/self/fd').iterdir()]):3} files"


def _held(gateway: Gateway) -> dict[str, str]:
    """Every cache by name, with what it holds and the most that it may."""
    found: dict[str, str] = {}
    for name, module in [*sys.modules.items()]:
        for own, value in [*vars(module).items()] if name.startswith("clew") else ():
            if hasattr(value, "cache_info") and getattr(value, "__module__", "") == name:
                info = value.cache_info()
                found[f"{name.removeprefix('clew.')}.{own}"] = f"{info.currsize}/{info.maxsize}"
    with suppress(RuntimeError):  # something changed meanwhile: the next time
        found |= dict(_within(gateway))
    return found


def _within(root: object) -> Iterator[tuple[str, str]]:
    """The caches of an object and of those that it has."""
    seen, stack = {id(root)}, [(root, "", 0)]
    while stack:
        thing, name, depth = stack.pop()
        match thing:
            case Branches():
                yield f"{name} branches", f"{len(thing._branches)} ({thing._bytes >> 20}/{thing._most >> 20} MB)"
                continue
            case Recent():
                yield name, f"{len(thing)}/{thing._most}"
            case Asides():
                yield (
                    name,
                    " ".join(f"{key}{len(value)}" for key, value in vars(thing).items() if hasattr(value, "__len__")),
                )
                continue
            case Meter():
                yield name, f"{len(thing._sizes)}+{len(thing._older)}"
                continue
            case dict() | list() | set() if len(thing) > 50:
                yield name, str(len(thing))
                continue
        if depth >= DEPTH:
            continue
        inner = thing.items() if isinstance(thing, dict) else vars(thing).items() if hasattr(thing, "__dict__") else ()
        for key, value in [*inner]:
            ours = type(value).__module__.startswith("clew") or isinstance(value, dict | list | set)
            if ours and id(value) not in seen:
                seen.add(id(value))
                stack.append((value, f"{name}.{key}" if name else str(key), depth + 1))


# --- clients ----------------------------------------------------------------------------------------------------------


async def talk(http: aiohttp.ClientSession, url: str, number: int) -> int:
    """A talk of its own, one exchange longer each time; how many requests it was."""
    some = random.Random(number)
    turns, asked, name = some.choice((2, 2, 4, 8, 30)), 0, {"x-clew-session": f"talk-{number}"} if number % 2 else {}
    model = f"made-up-{number}" if number % 5 == 0 else "gpt-4.1"
    said: list[dict[str, Any]] = [{"role": "system", "content": "You are an agent."}]
    for turn in range(turns):
        what = some.choice(("say", "read", "search")) if turn else "say"
        words = " ".join(f"{some.getrandbits(40):x}" for _ in range(some.choice((5, 20, 100))))
        ask = {"read": f"{words} read {number}{turn}", "search": f"{SEARCH} {number} {turn - 1}"}.get(what)
        said.append({"role": "user", "content": ask or f"talk {number} turn {turn} {words}"})
        for _ in range(2):
            stream = bool(some.getrandbits(1))
            body = {"model": model, "messages": said, "tools": [TOOL], "stream": stream}
            if some.random() < 0.02:  # left in the middle
                with suppress(asyncio.TimeoutError, aiohttp.ClientError):
                    await asyncio.wait_for(http.post(url + PATH, json=body, headers=name), 0.001)
            async with http.post(url + PATH, json=body, headers=name) as came:
                raw = await came.read()
                asked += 1
                assert came.status == 200, raw
            message = _joined(raw) if stream else json.loads(raw)["choices"][0]["message"]
            said.append(message)
            if not message.get("tool_calls"):
                break
            result = "\n".join(f"{n}: def f{some.getrandbits(30)}(): pass" for n in range(some.choice((3, 150))))
            said += [{"role": "tool", "tool_call_id": c["id"], "content": result} for c in message["tool_calls"]]
    return asked


def _joined(raw: bytes) -> dict[str, Any]:
    text, calls = "", dict[int, dict[str, Any]]()
    for line in raw.split(b"\n"):
        if not line.startswith(b"data: {"):
            continue
        for choice in json.loads(line[6:]).get("choices", ()):
            text += choice["delta"].get("content") or ""
            for call in choice["delta"].get("tool_calls") or ():
                calls[call["index"]] = {key: value for key, value in call.items() if key != "index"}
    return {"role": "assistant", "content": text or None, **({"tool_calls": [*calls.values()]} if calls else {})}


async def measure(url: str, seconds: float, large: int, every: float) -> None:
    began, talks, asked = time.monotonic(), iter(range(10**9)), 0

    async def client(http: aiohttp.ClientSession) -> None:
        nonlocal asked
        while time.monotonic() - began < 0.75 * seconds:
            more = await talk(http, url, next(talks))
            asked += more

    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as http:
        await asyncio.gather(*(client(http) for _ in range(CLIENTS)))
        print(f"{asked:,} requests of {next(talks):,} talks; now one of {large} MB", flush=True)
        words = " ".join(f"{n:x}" for n in range(large << 17))
        body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": words[: large << 20]}]}
        async with http.post(url + PATH, json=body) as came:
            await came.read()
            print(f"answered {came.status}; from now on nobody says anything", flush=True)
    await asyncio.sleep(max(3 * every, seconds - (time.monotonic() - began)))


def main() -> None:
    told = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    told.add_argument("--minutes", type=float, default=10)
    told.add_argument("--memory", type=int, default=16, help="megabytes of conversations kept")
    told.add_argument("--large", type=int, default=24, help="megabytes of the large request")
    told.add_argument("--every", type=float, default=30, help="seconds between two lines")
    told.add_argument("--port", type=int, default=18_477)
    told.add_argument("--provider", type=int, help=argparse.SUPPRESS)
    told.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    given = told.parse_args()
    if given.provider:
        provider(given.provider)
    elif given.serve:
        serve(given.serve, given.every)
    else:
        run(given)


def run(given: argparse.Namespace) -> None:
    """A provider, a gateway and its clients."""
    up, gate = f"http://127.0.0.1:{given.port}", f"http://127.0.0.1:{given.port + 1}"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "clew").mkdir()
        upstream = f'[gateway.upstreams.bench]\nurl = "{up}"\nkind = "openai"\n'
        settings = f"[budget]\nwindow = {WINDOW}\n[gateway]\ntools = true\n{upstream}"
        (Path(folder) / "clew" / "config.toml").write_text(settings)
        env = {"CLEW_STORE": f"{folder}/clew.db", "XDG_CONFIG_HOME": folder, "CLEW_PROBE": "false"}
        env |= {"CLEW_MEMORY": str(given.memory)}
        own = (sys.executable, __file__)
        serving_it = (*own, "--serve", str(given.port + 1), "--every", str(given.every))
        with running(*own, "--provider", str(given.port)), running(*serving_it, env=env, told=True):
            asyncio.run(wait(up, gate))
            asyncio.run(measure(gate, 60 * given.minutes, given.large, given.every))


if __name__ == "__main__":
    main()
