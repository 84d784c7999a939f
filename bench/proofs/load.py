"""What a gateway adds to a call, beside asking the provider directly and beside LiteLLM's proxy, on this machine.

Every client holds a conversation of its own that grows by an exchange each call. A gateway is one process. The provider
is on loopback and answers at once, so that all the time between is the gateway's. Linux only."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from benchmark.peers import Peer
from clew.core.bridge import run
from clew.store import SQLite
from gateway import WIDE, Kind, Target, load, running, wait
from proofs import Figures, Missing, Settings
from proofs.tables import table

KINDS = {"4 kB": Kind(4_000, hot=True), "350 kB": Kind(350_000, hot=True)}
AT_ONCE = 1, 16, 64
CALLS = {1: 60, 16: 320, 64: 640}  # of small bodies; a quarter of them of large ones
PORT = 18_500
WARMING = 3  # calls of each client before the clock runs, in `load`
KEY = "sk-bench"
PROXY = Peer("LiteLLM", "litellm", "litellm_proxy", "", "`litellm`, one process")


def measure(settings: Settings) -> Figures:
    """Each of them under each load, in turn."""
    if not Path("/proc/self/stat").exists():
        raise Missing("memory and CPU are read from /proc: Linux only")
    sizes = {"4 kB": KINDS["4 kB"]} if settings.quick else KINDS
    at_once = AT_ONCE[:1] if settings.quick else AT_ONCE
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        targets = list(stack.enter_context(started(folder, quick=settings.quick)))
        idle = {target.name: memory(target.pid) for target in targets if target.pid}
        todo = [(size, clients, target) for size in sizes for clients in at_once for target in targets]
        for done, (size, clients, target) in enumerate(todo):
            settings.heard(f"{target.name}, {size}, {clients} clients", done, len(todo))
            calls = max(
                clients, (20 if settings.quick else settings.some(CALLS[clients])) // (1 if size == "4 kB" else 4)
            )
            alone = target._replace(name=f"{target.name} {size} {clients}")  # conversations of their own
            row: dict[str, Any] = {"target": target.name, "size": size, "clients": clients}
            try:
                cpu, rate, first = asyncio.run(load(alone, sizes[size], clients, calls))
                row |= {"cpu_ms": cpu, "per_second": rate, "first_ms": first}
                row["calls"] = calls // clients * clients + WARMING * clients
            except (AssertionError, OSError, aiohttp.ClientError) as error:
                row["failed"] = str(error) or type(error).__name__
            rows.append(row)
        busy = {target.name: memory(target.pid) for target in targets if target.pid}
        stack.close()  # the gateway writes the last of its log
        kept, faults = run(logged(folder / "clew.db"))
    sent = sum(row.get("calls", 0) for row in rows if row["target"] == "clew")
    return {
        "rows": rows,
        "megabytes": {name: [idle[name], busy[name]] for name in idle},
        "log": {"calls answered": sent, "calls in the log": kept, "faults found": faults},
        "litellm": PROXY.version() or "",
        "missing": PROXY.missing(),
        "cores": os.cpu_count(),
    }


@contextmanager
def started(folder: Path, quick: bool) -> Iterator[list[Target]]:
    """The provider, and the gateways before it."""
    up, ours, theirs = (f"http://127.0.0.1:{PORT + n}" for n in range(3))
    (folder / "clew").mkdir()
    (folder / "clew" / "config.toml").write_text(f'[gateway.upstreams.bench]\nurl = "{up}"\nkind = "openai"\n')
    env = {"CLEW_STORE": f"{folder}/clew.db", "XDG_CONFIG_HOME": str(folder), "CLEW_PROBE": "false"}
    gateway = str(Path(__file__).parent.parent / "gateway.py")
    with ExitStack() as stack:
        stack.enter_context(running(sys.executable, gateway, "--provider", str(PORT)))
        pid = stack.enter_context(running(sys.executable, "-m", "clew.cli", "serve", "--port", str(PORT + 1), env=env))
        targets, urls = [Target("direct", up, None), Target("clew", ours, pid)], [up, ours]
        if not quick and PROXY.version():
            config = folder / "litellm.yaml"
            config.write_text(LITELLM.format(model=WIDE, url=up, key=KEY))
            serve = (
                str(PROXY.python.parent / "litellm"),
                "--config",
                str(config),
                "--port",
                str(PORT + 2),
                "--host",
                "127.0.0.1",
            )
            local = {
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it asks the network for prices
                "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # on loopback, as clew is here
            }
            targets.append(Target("LiteLLM", theirs, stack.enter_context(running(*serve, env=local))))
            urls.append(theirs)
        asyncio.run(wait(*urls))
        yield targets


LITELLM = """model_list:
  - model_name: {model}
    litellm_params: {{model: openai/{model}, api_base: "{url}/v1", api_key: {key}}}
"""


def memory(pid: int | None) -> int:
    """Megabytes that a process holds; none if it ended."""
    status = Path(f"/proc/{pid}/status").read_text()
    held = status.partition("VmRSS:")[2].split()
    return int(held[0]) // 1024 if held else 0


async def logged(path: Path) -> tuple[int, int]:
    """Calls in a log, and what a check of it finds wrong."""
    store = SQLite(path)
    try:
        branches = await store.branches("default")
        return sum(info.calls for info in branches), len(await store.check())
    finally:
        await store.close()


# --- what the documents say -------------------------------------------------------------------------------------------


def blocks(figures: Figures) -> dict[str, str]:
    """A table of loads, and what is said of memory and of the log."""
    rows = {(r["size"], r["clients"], r["target"]): r for r in figures["rows"]}
    names = list(dict.fromkeys(r["target"] for r in figures["rows"]))
    gateways = [name for name in names if name != "direct"]
    head = ["body", "clients", "direct, calls/s"]
    head += [f"{name}, {what}" for name in gateways for what in ("calls/s", "ms added", "ms CPU")]
    told = []
    for size, clients in dict.fromkeys((r["size"], r["clients"]) for r in figures["rows"]):
        direct = rows[size, clients, "direct"]
        line = [size, str(clients), f"{direct['per_second']:,.0f}"]
        for name in gateways:
            line += cells(rows[size, clients, name], direct)
        told.append(line)
    held = [
        f"{name} {idle} MB idle, {busy} MB after the last load" for name, (idle, busy) in figures["megabytes"].items()
    ]
    log = figures["log"]
    answered, kept, faults = log["calls answered"], log["calls in the log"], log["faults found"]
    lost = (
        f"{answered:,} calls were answered through clew; its log has {kept:,}, and a check of it found {faults} faults."
    )
    beside = f"LiteLLM {figures['litellm']}" if figures["litellm"] else f"LiteLLM's proxy: {figures['missing']}"
    return {"load": f"{table(head, told)}\n\n{beside}. Memory: {'; '.join(held)}. {lost}"}


def cells(row: dict[str, Any], direct: dict[str, Any]) -> list[str]:
    if "failed" in row:
        return [f"failed: {row['failed']}", "", ""]
    added = row["first_ms"] - direct["first_ms"]
    return [f"{row['per_second']:,.0f}", f"{added:,.1f}", f"{row['cpu_ms']:,.1f}"]


def behind(figures: Figures) -> Iterator[str]:
    """What the gateway costs beside none, and where another one costs less."""
    rows = {(r["size"], r["clients"], r["target"]): r for r in figures["rows"] if "failed" not in r}
    slower = [
        (r["per_second"] / ours["per_second"], size, clients)
        for (size, clients, name), r in rows.items()
        if name == "direct" and (ours := rows.get((size, clients, "clew")))
    ]
    if slower:
        times, size, clients = max(slower)
        direct = f"asking the provider directly is {times:.1f} times as fast"
        yield f"A gateway is never free: with {clients} clients and bodies of {size}, {direct} as through clew."
    for row in figures["rows"]:
        if row["target"] == "clew" and "failed" in row:
            yield f"With {row['clients']} clients and bodies of {row['size']} clew's gateway failed: {row['failed']}."
    for (size, clients, name), row in rows.items():
        ours = rows.get((size, clients, "clew"), {"per_second": 0.0})
        if name == "LiteLLM" and row["per_second"] > ours["per_second"]:
            yield f"With {clients} clients and bodies of {size} LiteLLM's proxy answers more calls a second than clew."
    held = figures["megabytes"]
    if "LiteLLM" in held and held["clew"][1] > held["LiteLLM"][1]:
        yield f"After the last load clew holds {held['clew'][1]} MB, LiteLLM's proxy {held['LiteLLM'][1]} MB."
