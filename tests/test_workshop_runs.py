"""Commands and searches: processes that are bounded in all they do, and leave none behind."""

import asyncio
import os
import shutil
import signal
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.agent.tools import tools
from clew.agent.tools.marked import can_look
from clew.agent.tools.processes import end_group, last_signal
from clew.agent.tools.root import Root
from clew.agent.tools.searching import search
from test_workshop import refused, root, told

__all__ = ["root"]

# Processes that ignore every request to end, one of them a grandchild; each holds the pipe `alive` open while it lives.
STUBBORN = """
exec 9>alive
trap '' TERM INT HUP
(trap '' TERM INT HUP; echo x >&9; (echo x >&9; while :; do sleep 60; done) & while :; do sleep 60; done) &
echo x >&9
while :; do sleep 60; done
"""


@pytest.fixture
def alive(root: Path) -> Iterator[int]:
    """The reading end of a pipe that processes hold open while they live."""
    os.mkfifo(root / "alive")
    pipe = os.open(root / "alive", os.O_RDONLY | os.O_NONBLOCK)
    yield pipe
    os.close(pipe)


async def heard(pipe: int, most: int) -> bytes:
    """What was said into a pipe: so much of it, or all that comes before nobody holds it any more."""
    got = b""
    while len(got) < most:
        try:
            piece = os.read(pipe, 100)
            if not piece and got:
                break
            got += piece
        except BlockingIOError:
            pass
        await asyncio.sleep(0.01)
    return got


async def nobody_left(pipe: int) -> None:
    """Wait until all who held the pipe are gone; a test that leaves one fails here."""
    async with asyncio.timeout(300):
        while True:
            try:
                if not os.read(pipe, 100):
                    return
            except BlockingIOError:
                await asyncio.sleep(0.01)


# --- commands -------------------------------------------------------------------------------------------------------


async def test_output_comes_as_it_was_written_with_the_exit_code(root: Path) -> None:
    assert await told(root, "run", command="echo out; echo err >&2; printf more; exit 3") == (
        "out\nerr\nmore\n[exit code 3]"
    )
    assert await told(root, "run", command="pwd; cat; true") == f"{root}\n[exit code 0]"  # cat: there is no input
    assert await told(root, "run", command="kill -9 $$") == "[ended by SIGKILL; it wrote nothing]"
    assert await told(root, "run", command=r"printf '\033[1m\377\0'") == "\x1b[1m�\0\n[exit code 0]"


async def test_a_command_has_a_session_of_its_own_and_so_no_terminal(root: Path) -> None:
    text = await told(root, "run", command=f"{sys.executable} -c 'import os; print(os.getsid(0))'; echo $$")
    session, shell, _ = text.splitlines()
    assert session == shell


async def test_what_no_process_can_have_is_refused(root: Path) -> None:
    assert "no process" in await refused(root, "run", command="echo \0")
    assert "no process" in await refused(root, "run", command="echo \ud800")
    assert "too long" in await refused(root, "run", command="echo " + "x" * 10_000_000)
    assert "empty" in await refused(root, "run", command=" \n")


async def test_a_hundred_megabytes_are_counted_and_not_kept(root: Path) -> None:
    tracemalloc.start()
    try:
        command = "echo first; head -c 100000000 /dev/zero | tr '\\0' x; echo; echo last"
        text = await told(root, "run", command=command, size=1_000)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    assert text.startswith("first\nxxx")
    assert text.endswith("xxx\nlast\n[exit code 0]")
    assert "[… 99,999,012 of 100,000,012 characters left out …]" in text
    assert len(text) < 1_100


async def test_a_command_that_takes_too_long_is_ended_with_all_it_started(root: Path, alive: int) -> None:
    text = await told(root, "run", command=f"echo before\n{STUBBORN}", seconds=4)
    assert text == "before\n[it took longer than 4 seconds and was ended with all that it had started]"
    await nobody_left(alive)


@pytest.mark.parametrize("times", [1, 2])
async def test_being_cancelled_leaves_no_process(root: Path, alive: int, times: int) -> None:
    running = asyncio.create_task(told(root, "run", command=STUBBORN))
    assert await heard(alive, 6) == b"x\nx\nx\n"
    for _ in range(times):
        running.cancel()
        await asyncio.sleep(0.1)
    with pytest.raises(asyncio.CancelledError):
        await running
    await nobody_left(alive)


@pytest.mark.parametrize("ticks", range(12))
async def test_being_cancelled_while_it_starts_leaves_no_process(root: Path, ticks: int) -> None:
    [tool] = [t for t in tools(root) if t.name == "run"]
    running = asyncio.create_task(tool.run({"command": "sleep 1000 & sleep 1000 & wait"}))
    for _ in range(ticks):
        await asyncio.sleep(0)
    time.sleep(0.1)  # the loop stands still where it is, and the command goes on
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    async with asyncio.timeout(300):
        while still_in(root):
            await asyncio.sleep(0.01)


def still_in(folder: Path) -> list[str]:
    """The processes that work in a folder."""
    if not Path("/proc/self/cwd").exists():
        pytest.skip("this system does not show where its processes work")
    places = {cwd: os.path.realpath(cwd) for cwd in map(str, Path("/proc").glob("[0-9]*/cwd"))}
    return [cwd for cwd, place in places.items() if place == str(folder)]


async def test_what_stays_at_the_output_is_ended(root: Path, alive: int) -> None:
    text = await told(root, "run", command="exec 9>alive; sleep 1000 & echo started")
    assert text == "started\n[exit code 0; what it had left running at its output was ended]"
    await nobody_left(alive)


SETSID = pytest.mark.skipif(not (shutil.which("setsid") and can_look()), reason="there is no setsid, or no /proc")
STRAY = "exec 9>alive; setsid bash -c 'trap \"\" TERM; echo x >&9; while :; do sleep 60; done'"


@SETSID
@pytest.mark.few(2)  # each waits for three seconds
@pytest.mark.parametrize("how", [">/dev/null 2>&1 & ", "& ", "", "&\n(setsid setsid sleep 1000 >log 2>&1 &) & "])
async def test_what_left_its_session_is_ended_with_the_command(root: Path, alive: int, how: str) -> None:
    text = await told(root, "run", command=f"{STRAY} {how}\nwhile [ ! -e never ]; do sleep 60; done", seconds=1.5)
    assert text == "[it took longer than 1.5 seconds and was ended with all that it had started; it wrote nothing]"
    await nobody_left(alive)


@SETSID
async def test_what_left_its_session_and_stays_at_the_output_is_ended(root: Path, alive: int) -> None:
    text = await told(root, "run", command=f"{STRAY} & echo started")
    assert text == "started\n[exit code 0; what it had left running at its output was ended]"
    await nobody_left(alive)


@SETSID
async def test_what_cannot_be_found_is_told_of(root: Path, alive: int) -> None:
    text = await told(root, "run", command=f"{STRAY.replace('setsid', 'env -i setsid')} & echo started; exit 3")
    assert text == "started\n[exit code 3; what it had left running at its output goes on, and could not be ended]"
    found = [int(place.split("/")[2]) for place in still_in(root)]
    assert found
    for process in found:
        os.kill(process, signal.SIGKILL)
    await nobody_left(alive)


@SETSID
async def test_what_left_its_session_and_sends_its_output_elsewhere_runs_on(root: Path, alive: int) -> None:
    command = "exec 9>alive; (echo x >&9; exec setsid sleep 1000) >log 2>&1 & setsid sleep 1000 & echo $!"
    text = await told(root, "run", command=command)
    assert "at its output was ended" in text
    assert await heard(alive, 2) == b"x\n"
    for process in [int(place.split("/")[2]) for place in still_in(root)]:
        os.kill(process, signal.SIGKILL)
    await nobody_left(alive)


async def test_what_sends_its_output_elsewhere_runs_on(root: Path, alive: int) -> None:
    text = await told(root, "run", command="exec 9>alive; (echo x >&9; exec sleep 1000) >log 2>&1 & echo $!")
    pid, code = text.splitlines()
    assert (code, await heard(alive, 2)) == ("[exit code 0]", b"x\n")
    with pytest.raises(BlockingIOError):  # somebody is there, and says nothing
        os.read(alive, 1)
    os.kill(int(pid), signal.SIGKILL)
    await nobody_left(alive)


# --- searches -------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["ours", "ripgrep"])
def ripgrep(request: pytest.FixtureRequest) -> str | None:
    if request.param == "ours":
        return None
    return shutil.which("rg") or pytest.skip("ripgrep is not installed")


@pytest.fixture
def project(root: Path) -> Path:
    for path, text in {
        "src/one.py": "def one():\n    return 'One'\n",
        "src/deep/two.py": "def two():\n    return one() + one()\r\n",
        "src/[id]/three.ts": "one(\n",
        "src/made.log": "one\n",
        "node_modules/x.py": "one\n",
        "build/x.py": "one\n",
        ".github/x.yml": "one: 1\n",
        ".gitignore": "build/\n*.log\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, newline="")
    (root / "src/data.bin").write_bytes(b"\0one\n")
    (root / "src/link.py").symlink_to("../../secret.txt")
    return root


@pytest.mark.few(7)
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"pattern": r"\bone\(\)$"}, "src/deep/two.py:2:    return one() + one()"),
        ({"pattern": "^one"}, ".github/x.yml:1:one: 1\na.txt:1:one\nsrc/[id]/three.ts:1:one("),
        ({"pattern": "(?i)'ONE'"}, "src/one.py:2:    return 'One'"),
        ({"pattern": "one", "path": "src", "glob": "deep/*.py"}, "src/deep/two.py:2:    return one() + one()"),
        ({"pattern": "one", "path": "src/[id]", "glob": "*.{ts,tsx}"}, "src/[id]/three.ts:1:one("),
        ({"pattern": "one", "path": "build"}, "build/x.py:1:one"),
        ({"pattern": "one", "path": "src/made.log"}, "src/made.log:1:one"),
        ({"pattern": "(?<=def )one"}, "src/one.py:1:def one():"),
        ({"pattern": "-one|--files"}, "[nothing found]"),
        (
            {"pattern": "one("},
            "src/[id]/three.ts:1:one(\nsrc/deep/two.py:2:    return one() + one()\nsrc/one.py:1:def one():\n"
            "[searched as plain text: the pattern is no regular expression]",
        ),
    ],
)
async def test_searches_find_the_same_with_and_without_ripgrep(
    project: Path, ripgrep: str | None, query: dict[str, str], found: str
) -> None:
    assert await search(Root(project), 30_000, ripgrep).run(query) == found.replace("\r", "")


async def test_many_hits_and_long_lines_are_bounded(root: Path, ripgrep: str | None) -> None:
    (root / "hits.txt").write_text(("hit " * 1_000 + "\n") * 2_000)
    text = await search(Root(root), 1_000, ripgrep).run({"pattern": "hit"})
    assert len(text) < 1_100
    assert "characters left out" in text
    assert "hit " * 100 not in text


async def test_nothing_in_the_folder_is_run_by_a_search(root: Path) -> None:
    for name in ("re.py", "orjson.py", "clew.py", "sitecustomize.py"):
        (root / name).write_text("open('ran', 'w')")
    assert "a.txt:2:two" in await search(Root(root), 30_000).run({"pattern": "two"})
    assert not (root / "ran").exists()


async def test_a_pattern_that_takes_for_ever_can_be_cancelled(root: Path) -> None:
    (root / "f").write_text("a" * 100 + "b\n")
    searching = asyncio.create_task(search(Root(root), 30_000).run({"pattern": "(a+)+$"}))
    while not still_in(root):
        assert not searching.done()
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.5)
    assert not searching.done()
    assert len(still_in(root)) == 1
    searching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await searching
    assert still_in(root) == []


async def test_a_search_refuses_what_it_cannot_use(root: Path) -> None:
    assert "does not exist" in await refused(root, "search", pattern="x", path="nowhere")
    assert "is empty" in await refused(root, "search", pattern="")
    assert "surrogate" in await refused(root, "search", pattern="\ud800")


@pytest.mark.parametrize(("platform", "last"), [("linux", signal.SIGKILL), ("win32", signal.SIGTERM)])
async def test_a_process_is_ended_as_its_system_does_it(platform: str, last: signal.Signals) -> None:
    sleeping = await asyncio.create_subprocess_exec("sleep", "60", start_new_session=True)
    assert last_signal(platform) == last
    end_group(sleeping.pid, last, platform)
    assert await sleeping.wait() == -last
    end_group(sleeping.pid, last, platform)  # what has ended is left alone
