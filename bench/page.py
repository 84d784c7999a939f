"""What the page costs: python bench/page.py [--conversations N] [--turns N] [--long N]

CPU of the server's process for the list of many conversations, for the first paint of a long one, and for what it loads
after that; and how long after a turn a browser is told of it. The best of some rounds.
"""

import argparse
import asyncio
import http.client
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from clew import Budget, Engine, Request, open_store
from clew.core.items import new_id
from clew.store.records import Batch, Call

ROUNDS = 7


async def fill(path: str, conversations: int, turns: int, long: int) -> tuple[str, str]:
    """A store with many conversations and a long one; and the ids of that one, and of one with very many calls."""
    store = open_store(path)
    engine = Engine(store, Budget(window=16_000))
    for n in range(conversations):
        said = [{"role": "system", "content": "You are opencode."}, {"role": "user", "content": f"Task {n}: fix it."}]
        await engine.prepare(Request({"model": "gpt-4o", "messages": said}, session=f"run-{n}"))
    said = [{"role": "user", "content": "The long task."}]
    for n in range(turns):
        view = await engine.prepare(Request({"model": "gpt-4o", "messages": said}, session="long"))
        await engine.observe(view, {"input_tokens": 5_000, "output_tokens": 50})
        words = " ".join(f"word{n}x{k}" for k in range(40))
        said += [{"role": "assistant", "content": f"Done {n}. {words}"}, {"role": "user", "content": f"Next {n}."}]
    branch = view.branch
    trace = await store.load("default", branch)
    many = new_id()
    seq = 0
    while seq < long:
        calls = tuple(
            Call(many, seq + k, trace.frame, "gpt-4o", "openai_chat", "", 1, 4_000 + (seq + k) % 900, 12_000, True)
            for k in range(2_000)
        )
        await store.write("default", Batch(many, seq, calls, opened=not seq, session="very long" if not seq else None))
        seq += len(calls)
    await store.close()
    return branch, many


def get(line: http.client.HTTPConnection, path: str) -> int:
    line.request("GET", path, headers={"accept": "text/html"})
    return len(line.getresponse().read())


def spent(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    told = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    told.add_argument("--conversations", type=int, default=1_000)
    told.add_argument("--turns", type=int, default=1_000)
    told.add_argument("--long", type=int, default=100_000)
    given = told.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/clew.db"
        branch, many = asyncio.run(fill(path, given.conversations, given.turns, given.long))
        command = [sys.executable, "-m", "clew.cli", "open", "--no-browser", "--store", path]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "HOME": folder})
        try:
            assert server.stdout
            url = server.stdout.readline().split()[0]
            line = http.client.HTTPConnection(urlsplit(url).netloc)
            for name, at in [
                (f"list of {given.conversations:,} conversations", "/"),
                (f"first paint of {given.turns:,} turns", f"/clew/c/{branch}"),
                ("  its window", f"/clew/c/{branch}/window"),
                ("  its window in the middle", f"/clew/c/{branch}/window?call={given.turns // 2}"),
                ("  its chart", f"/clew/c/{branch}/chart.json"),
                ("  its figures", f"/clew/savings?branch={branch}"),
                (f"first paint of {given.long:,} turns", f"/clew/c/{many}"),
                ("  its window", f"/clew/c/{many}/window"),
                ("  its window in the middle", f"/clew/c/{many}/window?call={given.long // 2}"),
                ("search", "/clew/search?q=word700x3"),
            ]:
                best, size = 1e9, get(line, at)
                for _ in range(ROUNDS):
                    before, times = spent(server.pid), 5
                    for _ in range(times):
                        get(line, at)
                    best = min(best, (spent(server.pid) - before) / times)
                print(f"{name:40} {1e3 * best:8.1f} ms CPU  {size:12,} bytes", flush=True)
            asyncio.run(lateness(path, urlsplit(url).netloc))
        finally:
            server.terminate()
            server.wait()


async def lateness(path: str, address: str) -> None:
    """Turns by another process, the hardest case: nobody tells the page of them."""
    store = open_store(path)
    engine = Engine(store, Budget(window=16_000))
    line = http.client.HTTPConnection(address, timeout=30)
    line.request("GET", "/clew/live")
    came = line.getresponse()
    came.readline(), came.readline()
    took = []
    for n in range(10):
        await asyncio.sleep(0.7)
        said = [{"role": "user", "content": f"Live {n}."}]
        await engine.prepare(Request({"model": "gpt-4o", "messages": said}, session=f"live-{n}"))
        began = time.perf_counter()
        await asyncio.to_thread(came.readline)
        took.append(time.perf_counter() - began)
        came.readline(), came.readline()
    await store.close()
    print(
        f"told of another process's turn: {1e3 * sorted(took)[5]:.0f} ms in the middle, {1e3 * max(took):.0f} at worst"
    )


if __name__ == "__main__":
    main()
