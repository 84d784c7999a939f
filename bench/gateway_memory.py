"""What a gateway keeps: python bench/gateway_memory.py [--requests N] [--turns N] [--memory MB]

Memory, open files and the store of `clew serve` after each tenth of many requests: talks of some turns each, one after
the other, of 8 clients at once, every second one streamed, every tenth one left in the middle. Conversations are
kept in memory up to what the setting `memory` says, and not forgotten before: with a small one all is flat. Linux
only.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

import aiohttp

import gateway
from gateway import PATH, running, wait

CLIENTS = 8
WORDS = " ".join(f"word-{n}" for n in range(100))


def held(pid: int, store: Path) -> str:
    """What a process has now."""
    status = Path(f"/proc/{pid}/status").read_text()
    rss = int(status.partition("VmRSS:")[2].split()[0]) / 1_024
    files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    size = sum(file.stat().st_size for file in store.parent.glob(f"{store.name}*")) / (1 << 20)
    return f"{rss:6.0f} MB of memory  {files:4} files  {size:6.1f} MB of store"


async def talk(http: aiohttp.ClientSession, url: str, number: int, turns: int) -> None:
    """A talk of its own, one exchange longer each time."""
    said = list[dict[str, str]]()
    for turn in range(turns):
        said += [{"role": "user", "content": f"talk {number} turn {turn} {WORDS}"}]
        asked = {"model": "gpt-4.1", "messages": said, "stream": bool(number % 2)}
        raw = json.dumps(asked, separators=(",", ":"))
        async with http.post(url + PATH, data=raw, headers={"x-clew-session": f"talk-{number}"}) as came:
            if number % 10 == 9 and turn == turns - 1:
                came.close()
                return
            await came.read()
            assert came.status == 200, await came.text()
        said += [{"role": "assistant", "content": f"ok {turn}"}]


async def measure(url: str, pid: int, store: Path, requests: int, turns: int) -> None:
    talks, done = iter(range(requests // turns)), 0

    async def client(http: aiohttp.ClientSession) -> None:
        nonlocal done
        for number in talks:
            await talk(http, url, number, turns)
            done += turns
            if done % (requests // 10) < turns:
                print(f"{done:7,} requests  {held(pid, store)}", flush=True)

    async with aiohttp.ClientSession() as http:
        print(f"{0:7,} requests  {held(pid, store)}", flush=True)
        await asyncio.gather(*(client(http) for _ in range(CLIENTS)))


def main() -> None:
    told = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    told.add_argument("--requests", type=int, default=10_000)
    told.add_argument("--turns", type=int, default=10, help="of one talk")
    told.add_argument("--memory", type=int, default=16, help="megabytes of conversations kept")
    told.add_argument("--port", type=int, default=18_477)
    given = told.parse_args()
    up, gate = f"http://127.0.0.1:{given.port}", f"http://127.0.0.1:{given.port + 1}"
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "clew.db"
        (Path(folder) / "clew").mkdir()
        (Path(folder) / "clew" / "config.toml").write_text(
            f'[gateway.upstreams.bench]\nurl = "{up}"\nkind = "openai"\n'
        )
        env = {
            "CLEW_STORE": str(store),
            "XDG_CONFIG_HOME": folder,
            "CLEW_PROBE": "false",
            "CLEW_MEMORY": str(given.memory),
        }
        serve = (sys.executable, "-m", "clew.cli", "serve", "--port", str(given.port + 1))
        provider = (sys.executable, str(gateway.__file__), "--provider", str(given.port))
        with running(*provider), running(*serve, env=env) as pid:
            asyncio.run(wait(up, gate))
            asyncio.run(measure(gate, pid, store, given.requests, given.turns))


if __name__ == "__main__":
    main()
