"""What `clew batch` costs: real sessions by one process; a made-up archive by a pool, a worker killed.

    python bench/batch.py --json bench/results/batch.json [--real DIR] [--made DIR]

--real: an archive of your own, not packed. --made: what `bench/archive.py` wrote. Figures of a part that is left out
stay as they were. `python bench/figures.py` writes them into docs/batch.md.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TARGET = {"real": "20000", "made": "500"}  # tokens; made-up conversations are short
ACTS = ("search", "compress")
KEPT = ("tasks", "conversations", "records", "failures", "bytes_in", "bytes_out", "cpu_seconds", "digest")
Figures = dict[str, Any]


def command(act: str, kind: str) -> list[str]:
    """The words of a command: the act, and what it is told."""
    return [act, *{"search": ["error"]}.get(act, ["--target", TARGET[kind]])]


def measured(words: Sequence[str], folder: Path, more: Sequence[str], kill: bool = False) -> Figures:
    """One command: its sums, its time, and the most memory that it and one of its workers had."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "out"
        said = ["batch", *words, str(folder), "--out", str(out), "--json", *more]
        print("clew", *said, file=sys.stderr, flush=True)
        began, load = time.monotonic(), os.getloadavg()[0]
        parent, known, killed = 0, dict[int, int](), 0
        running = subprocess.Popen([sys.executable, "-m", "clew", *said], stdout=subprocess.PIPE)
        while running.poll() is None:
            time.sleep(0.1)
            parent = max(parent, peak(running.pid))
            known |= {pid: size for pid in workers(out) if (size := peak(pid))}
            if kill and not killed and _a_quarter_is_done(out) and (found := workers(out)):
                killed = found[0]
                os.kill(killed, signal.SIGKILL)
        seconds = time.monotonic() - began
        if running.returncode or running.stdout is None:
            raise SystemExit(f"clew {' '.join(said)}: ended with {running.returncode}")
        totals = json.loads(running.stdout.read())
    return {name: totals[name] for name in KEPT} | {
        "seconds": round(seconds, 1),
        "killed": bool(killed),
        "parent_bytes": parent,
        "worker_bytes": max(known.values(), default=0),
        "load": [round(load, 1), round(os.getloadavg()[0], 1)],
    }


def workers(out: Path) -> list[int]:
    """The processes that work on this run now: each writes a file with its number in the name, and nobody else does."""
    try:
        return [int(path.name.split(".")[-2]) for path in (out / "parts").glob("*.unfinished") if _is_new(path)]
    except OSError:
        return []


def _is_new(path: Path) -> bool:
    """Whether a file is of a process that still runs: it has the file open."""
    try:
        opened = Path(f"/proc/{path.name.split('.')[-2]}/fd").iterdir()
        return any(link.readlink() == path for link in opened)
    except OSError:
        return False


def _a_quarter_is_done(out: Path) -> bool:
    try:
        tasks = (out / "plan.jsonl").read_bytes().count(b"\n")
    except OSError:
        return False
    return len(list((out / "done").glob("*.json"))) >= tasks / 4


def peak(pid: int) -> int:
    """The most bytes that a process had in memory; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=Path)
    parser.add_argument("--made", type=Path)
    parser.add_argument("--acts", default=",".join(ACTS))
    parser.add_argument("--json", type=Path, required=True)
    given = parser.parse_args()
    known: Figures = json.loads(given.json.read_text()) if given.json.exists() else {"real": {}, "made": {}}
    acts = given.acts.split(",")

    def keep(kind: str, name: str, found: Figures) -> None:
        known[kind][name] = {"made": f"{datetime.now(UTC):%Y-%m-%d}", **found}
        given.json.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")

    if given.real:
        for act in acts:
            keep("real", act, measured(command(act, "real"), given.real, ["--processes", "1"]))
    if given.made:
        for act in acts:
            found = measured(command(act, "made"), given.made, ["--processes", "2"], kill=True)
            keep("made", f"{act}, {found['conversations']:,} conversations, pool", found)


if __name__ == "__main__":
    main()
