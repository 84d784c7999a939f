"""What it takes to have the library at all: time, memory, disk, and no network. python bench/imports.py"""

import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from venv import EnvBuilder

from session import show

ROOT = Path(__file__).resolve().parent.parent
TRIES = 7

# Each runs in a fresh interpreter and prints one number, or a word.
IMPORT = """
import time
begin = time.perf_counter()
import clew
print((time.perf_counter() - begin) * 1e3)
"""
# Not ru_maxrss: a child's begins at its parent's.
MEMORY = """
import clew
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024 / 1e6)
"""
BARE = MEMORY.replace("import clew", "")
OFFLINE = """
import socket

def refuse(*given, **named):
    raise SystemExit(f"asked the network for {given[1:] or given}")

for name in ("connect", "connect_ex", "sendto"):
    setattr(socket.socket, name, refuse)
socket.getaddrinfo = socket.gethostbyname = socket.create_connection = refuse

import asyncio
import clew

talk = [{"role": "user", "content": f"{n} " + "word " * 400} for n in range(40)]
assert clew.compress(talk, window=8_000).tokens_saved > 0
models = ("gpt-4o", "gpt-4", "claude-sonnet-4-5", "gemini-2.5-pro", "llama-3.3-70b", "deepseek-v3", "unheard-of")
for model in models:
    assert clew.counter_for(model).text("ten green bottles") > 0

async def turn():
    engine = clew.Engine(clew.SQLite(":memory:"), clew.Budget(window=8_000))
    assert clew.body(await engine.prepare(clew.Request({"model": "gpt-4o", "messages": talk})))["messages"]
    await engine.store.close()

asyncio.run(turn())
print("none")
"""


def fresh(script: str, python: str = sys.executable) -> str:
    """What a script prints in a new interpreter that has read nothing of ours."""
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else f"FAILED: {done.stderr.strip()[-200:]}"


def installed(folder: Path) -> tuple[str, int, dict[str, int]]:
    """A Python with the base install and nothing else, its size in bytes without pip, and that of each part."""
    EnvBuilder(with_pip=True, symlinks=True).create(folder)
    python = str(folder / "bin" / "python")
    before = set(_packages(folder).iterdir())
    subprocess.run([python, "-m", "pip", "install", "-q", str(ROOT)], check=True)
    parts = {path.name: _size(path) for path in _packages(folder).iterdir() if path not in before}
    return python, sum(parts.values()), parts


def _packages(folder: Path) -> Path:
    return next(folder.glob("lib/python*/site-packages"))


def _size(path: Path) -> int:
    """Bytes on disk; compiled modules count, for they will be there after the first run."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def main() -> None:
    """Print the table."""
    with TemporaryDirectory() as folder:
        python, size, parts = installed(Path(folder))
        fresh(IMPORT, python)  # once, so that everything is compiled and in the disk cache
        times = [float(fresh(IMPORT, python)) for _ in range(TRIES)]
        memory, bare = (median(float(fresh(script, python)) for _ in range(TRIES)) for script in (MEMORY, BARE))
        network = fresh(OFFLINE, python)
    largest = sorted(parts.items(), key=lambda part: -part[1])[:4]
    rows = [
        ("", "measured", "target"),
        ("import clew, ms (median of 7)", f"{median(times):.0f}", "150"),
        ("memory after it, MB", f"{memory:.0f}", "60"),
        ("  of it Python itself", f"{bare:.0f}", ""),
        ("base install without pip, MB", f"{size / 1e6:.1f}", "60"),
        *((f"  {name}", f"{part / 1e6:.1f}", "") for name, part in largest),
        ("network at import and first use", network, "none"),
    ]
    show(rows)


if __name__ == "__main__":
    main()
