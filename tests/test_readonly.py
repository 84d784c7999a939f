"""Stores that can only be read: a file, a folder, for somebody else; all that only looks works, and nothing is left."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew import Budget, Engine, Request, SQLite
from clew.store.sqlite.opening import migrations
from clew.testing import conversation

pytestmark = pytest.mark.skipif(
    os.name == "nt" or (os.geteuid() == 0 and sys.platform != "linux"), reason="root may write everywhere"
)

# Root writes where it likes, unless it gives that up: CAP_DAC_OVERRIDE is the second of its rights.
ORDINARY = """
import ctypes, os
if os.geteuid() == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    head, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert libc.capget(head, data) == 0
    for n in (0, 1):
        data[n] &= ~0b10
    assert libc.capset(head, data) == 0, ctypes.get_errno()
"""
COMMAND = ORDINARY + "from clew.cli.app import main; main()"
# Commands one after the other, each followed by its exit code: starting a process takes longer than most of them.
COMMANDS = (
    ORDINARY
    + """
import json, sys
from clew.cli.app import main
for args in json.loads(sys.argv[1]):
    sys.argv = ["clew", *args]
    try:
        main()
    except SystemExit as ended:
        print(chr(0), ended.code or 0, sep="", end=chr(0), flush=True)
"""
)
SAYING = (
    ORDINARY
    + """
import asyncio, sys, clew
async def main(path):
    store = clew.SQLite(path)
    try:
        await clew.Engine(store).prepare(clew.Request({"messages": [{"role": "user", "content": "hi"}]}))
    finally:
        await store.close()
asyncio.run(main(sys.argv[1]))
"""
)


@pytest.fixture
async def folder() -> AsyncIterator[Path]:
    """A folder that others may look into, with a store that they may read."""
    made = Path(tempfile.mkdtemp(prefix="clew-ro-"))
    store = SQLite(made / "clew.db")
    body = conversation(1, 20)
    body["messages"].append({"role": "user", "content": "And what about zanzibar?"})
    await Engine(store, Budget(window=3_000)).prepare(Request(body, session="s"))
    await store.close()
    made.chmod(0o755)
    (made / "clew.db").chmod(0o644)
    yield made
    made.chmod(0o755)
    shutil.rmtree(made)


def run(script: str, *args: str) -> "subprocess.CompletedProcess[str]":
    """As somebody who may write only where the rights of a file say so."""
    command = [sys.executable, "-c", script, *args]
    return subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)


def command(folder: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    return run(COMMAND, *args, "--store", str(folder / "clew.db"))


def protect(folder: Path) -> None:
    (folder / "clew.db").chmod(0o444)
    folder.chmod(0o555)


LOOKS = (
    ("show", "s"),
    ("sessions",),
    ("search", "zanzibar"),
    ("export", "s"),
    ("doctor", "--deep"),
    ("diff", "s"),
    ("stats",),
    ("calls", "s"),
    ("coverage", "s"),
    ("preview", "s"),
    ("resume", "s"),
    ("method", "s"),
    ("pin", "s", "--json"),
    ("tag", "s", "--json"),
)


def test_all_that_only_looks_works_and_leaves_nothing(folder: Path) -> None:
    protect(folder)
    done = run(COMMANDS, json.dumps([(*args, "--store", str(folder / "clew.db")) for args in LOOKS]))
    *said, rest = done.stdout.split("\0")
    assert rest == "", done.stderr
    for args, out, code in zip(LOOKS, said[::2], said[1::2], strict=True):
        assert code == "0", (args, done.stderr, out)
        assert out
    assert done.returncode == 0
    assert [p.name for p in folder.iterdir()] == ["clew.db"]


def test_something_is_recalled(folder: Path) -> None:
    protect(folder)
    lines = command(folder, "export", "s").stdout.splitlines()
    id = next(line.split('"node":"')[1][:12] for line in lines if '"node":"' in line)
    done = command(folder, "recall", id)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.few(1)
@pytest.mark.parametrize("what", ["file", "folder"])
def test_writing_says_so(folder: Path, what: str) -> None:
    (folder / "clew.db").chmod(0o444 if what == "file" else 0o666)
    folder.chmod(0o777 if what == "file" else 0o555)
    for done in (run(SAYING, str(folder / "clew.db")), command(folder, "tag", "s", "new")):
        assert done.returncode != 0
        assert "cannot be written: the file or its folder is read-only" in done.stderr
    assert [p.name for p in folder.iterdir()] == ["clew.db"]


async def test_what_a_killed_process_left_in_its_log_is_read(folder: Path) -> None:
    store = SQLite(folder / "clew.db")
    await Engine(store).prepare(Request(conversation(2, 3), session="later"))  # in the log alone
    for file in folder.iterdir():
        file.chmod(0o644)
    folder.chmod(0o555)
    done = command(folder, "sessions", "--json")
    assert "later" in done.stdout, done.stderr
    folder.chmod(0o755)
    await store.close()


def test_an_older_store_says_where_it_can_be_read(folder: Path) -> None:
    data = bytearray((folder / "clew.db").read_bytes())
    data[60:64] = (len(migrations()) - 1).to_bytes(4)
    (folder / "clew.db").write_bytes(data)
    protect(folder)
    done = command(folder, "sessions")
    assert done.returncode == 1
    assert "written by an older clew and read-only" in done.stderr
