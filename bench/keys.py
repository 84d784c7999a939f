"""How soon a key that is pressed is on the screen while an answer streams: python bench/keys.py [--turns N] [--keys N]

`clew chat` runs in a terminal of its own (a pty of 120x40) on a conversation of many turns, and a provider on loopback
sends a delta every 5 ms. Each key is a character that is nowhere else; the time goes from writing it to the terminal
until it comes back drawn. Beside it the same while nothing streams; how long the chat was ready to run and got no CPU
(on Linux); and how late another process wakes meanwhile that only sleeps, 1 ms at a time: no key can be sooner than the
machine lets it. Wanted: 50 ms at most. POSIX only.
"""

import argparse
import asyncio
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import NamedTuple

from clew import Engine, SQLite
from clew.engine.append import Addition
from clew.testing.provider import Answer, StrictProvider

ALPHABET = "".join(map(chr, range(0x4E00, 0x4F00)))  # each of them is drawn once, and by nothing else
LINES, COLUMNS = 40, 120
GIVE_UP = 30.0  # seconds
PACE = 0.08  # seconds between two keys: a fast typist's
WANTED = 50.0  # milliseconds
NAP = 0.001  # seconds


def fill(path: Path, turns: int) -> None:
    """A conversation of so many turns in a log."""
    said = []
    for n in range(turns):
        said.append({"role": "user", "content": f"What about file{n}.py?"})
        said.append({"role": "assistant", "content": f"file{n}.py holds value {n}. " * 40})

    async def write() -> None:
        store = SQLite(path)
        addition = Addition({"model": "gpt-4o", "messages": said}, "long", "openai_chat")
        await Engine(store).append(addition)
        await store.close()

    asyncio.run(write())


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, args: list[str], env: dict[str, str], folder: Path) -> None:
        self.pid, self.end = pty.fork()
        if not self.pid:
            os.chdir(folder)
            os.execve(sys.executable, [sys.executable, *args], env)
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))

    def write(self, text: str) -> None:
        os.write(self.end, text.encode())

    def until(self, text: str) -> float:
        """Seconds until a text is drawn."""
        began, seen, wanted = time.perf_counter(), b"", text.encode()
        while time.perf_counter() - began < GIVE_UP:
            if select.select([self.end], [], [], 0.01)[0]:
                seen = seen[-64:] + os.read(self.end, 65_536)
                if wanted in seen:
                    return time.perf_counter() - began
        raise TimeoutError(f"{text!r} was not drawn")

    def drain(self, seconds: float) -> None:
        """Read what is drawn for a while."""
        began = time.perf_counter()
        while (left := seconds - (time.perf_counter() - began)) > 0:
            if select.select([self.end], [], [], left)[0]:
                os.read(self.end, 65_536)

    def waited(self) -> float:
        """Milliseconds for which the program was ready to run and had no CPU, as Linux counts them."""
        try:
            return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[1]) / 1e6
        except OSError:
            return 0.0

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.end)


class Clock:
    """Another process that only sleeps, and writes down when it woke."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._end, other = context.Pipe()
        self._process = context.Process(target=sleep, args=(other,))
        self._process.start()
        self._end.recv()

    def stop(self) -> list[float]:
        """How many milliseconds late it woke, each time."""
        self._end.send("stop")
        woken: list[float] = self._end.recv()
        self._process.join()
        return [1000 * (now - before - NAP) for before, now in pairwise(woken)]


def sleep(end: Connection) -> None:
    """Sleep until somebody writes."""

    async def nap() -> list[float]:
        woken = []
        while not end.poll():
            await asyncio.sleep(NAP)
            woken.append(time.perf_counter())
        return woken

    end.send("ready")
    end.send(asyncio.run(nap()))


class Press(NamedTuple):
    """A key: the milliseconds until it was drawn, and how many of them the chat could have run but had no CPU."""

    took: float
    waited: float


def press(terminal: Terminal, characters: str) -> tuple[list[Press], list[float]]:
    """Each key, and how late a process woke that only sleeps."""
    clock, pressed = Clock(), []
    for character in characters:
        waited = terminal.waited()
        terminal.write(character)
        took = 1000 * terminal.until(character)
        pressed.append(Press(took, terminal.waited() - waited))
        terminal.drain(PACE)
    return pressed, clock.stop()


def tell(what: str, milliseconds: list[float]) -> None:
    ranked = sorted(milliseconds)
    print(f"{what:<34}{median(ranked):7.1f} ms{ranked[int(0.95 * len(ranked))]:6.1f} ms{ranked[-1]:7.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--keys", type=int, default=60)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        StrictProvider([Answer("more words " * 20_000, pause=0.005)]) as provider,
    ):
        folder = Path(name)
        fill(folder / "clew.db", given.turns)
        model = f"{provider.url}/v1#gpt-4o"
        env = {**os.environ, "HOME": name, "CLEW_STORE": str(folder / "clew.db"), "CLEW_AGENT_MODEL": model}
        env |= {"TERM": "xterm-256color", "OPENAI_API_KEY": "none"}
        terminal = Terminal(["-c", "import clew.cli; clew.cli.main()", "chat", "long"], env, folder)
        try:
            terminal.until("full")
            terminal.drain(1.0)
            quiet = press(terminal, ALPHABET[: given.keys])
            terminal.write("\r")
            terminal.until("more words")
            terminal.drain(1.0)
            busy = press(terminal, ALPHABET[given.keys : 2 * given.keys])
        finally:
            terminal.close()
    print(f"{given.turns} turns, {given.keys} keys".ljust(34) + "   median      95%      most")
    for what, (pressed, late) in (("nothing streams", quiet), ("an answer streams", busy)):
        tell(what, [key.took for key in pressed])
        tell("  of that, without a CPU", [key.waited for key in pressed])
        tell("  meanwhile, a sleep is late by", late)
        slow = [key for key in pressed if key.took > WANTED]
        starved = sum(key.took - key.waited <= WANTED for key in slow)
        print(f"  over {WANTED:.0f} ms: {len(slow)}, of which {starved} only for want of a CPU")


if __name__ == "__main__":
    main()
