"""Pages as a reader pastes them: each line of a shell block typed into bash, each line of Python into Python's prompt.

As on a reader's desk, a server has a terminal of its own until the page ends, a question is answered with y, and an id
in a line is the one that the screen showed last. The first line that fails ends it.

python tests/pasting.py PAGE ...   types whole pages, each in a fresh clone of this checkout and with an empty home.
"""

import fcntl
import os
import re
import select
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from consoles import BLOCK as SHELL
from consoles import ID, OTHERS, blocks
from prompting import CONTINUES, EXAMPLE

ROOT = Path(__file__).parents[1]
ESCAPE = re.compile(r"\x1b(?:\[[0-9;?<>=]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9]|[=>])")
PROMPT = re.compile(r"<<(\d+|python|more)>> ")
QUESTION = re.compile(r"\[y/N\]|\[Y/n\]")
FAULT = re.compile(r"^(?:Traceback|\w+Error\b|  File \")", re.MULTILINE)
STARTUP = "import sys\nsys.ps1, sys.ps2 = '<<python>> ', '<<more>> '\n"
SERVERS = {"clew serve": "Any Anthropic SDK"}  # what is left running, and what it prints when it is ready
KEYS = {  # what is typed into a program that waits for a person, and what that person waits for first
    "clew open": [("Ctrl.C ends it", "\x03")],
    "clew chat --demo": [("Say something", "Hello.\r"), ("Esc cancels", "What failed?\r"), ("Compacted", "\x11")],
}
PORT = "8377"  # another program may have it here: then lines and settings have one that is free
LONGEST = 600.0  # seconds that one line may take: some install
LONG_FOR_KEYS = 60.0


class Unpasted(AssertionError):
    """A line that did not do what its page says."""


@dataclass(frozen=True)
class Pasted:
    kind: str  # "shell" or "python"
    lines: list[str]
    installs: bool = False


def parts(page: str) -> Iterator[Pasted]:
    """What is to be pasted, in the order of the page."""
    found: list[tuple[int, Pasted]] = []
    for block, match in zip(blocks(page), SHELL.finditer(page), strict=True):
        installs = block.how.startswith("not run, it installs")
        found.append((match.start(), Pasted("shell", [command.line for command in block.commands], installs)))
    found += [(match.start(), Pasted("python", match[1].splitlines())) for match in EXAMPLE.finditer(page)]
    told: list[Pasted] = []
    for _, part in sorted(found, key=lambda one: one[0]):
        if part.kind == "python" and part.lines[0] == CONTINUES.strip():  # at the prompt at which that block was pasted
            before = next(other for other in reversed(told) if other.kind == "python")
            before.lines.extend(["", *part.lines])
        else:
            told.append(part)
    yield from told


class Terminal:
    """A bash in a pseudo-terminal, and whoever types there."""

    def __init__(self, env: dict[str, str], folder: Path) -> None:
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-i"],
            stdin=theirs, stdout=theirs, stderr=theirs, env={**env, "PS1": "<<$?>> "}, cwd=folder,
            start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(theirs)
        self.ours = ours
        self.unread = ""
        self.seen_id = ""
        self.wait(PROMPT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)

    def send(self, keys: str) -> None:
        os.write(self.ours, keys.encode())

    def wait(self, *patterns: re.Pattern[str], seconds: float = LONGEST) -> tuple[str, re.Match[str]]:
        """What came on the screen before the first of these, and which one it was."""
        end = time.monotonic() + seconds
        while True:
            text = ESCAPE.sub("", self.unread).replace("\r", "")
            found = [match for pattern in patterns if (match := pattern.search(text))]
            if found:
                first = min(found, key=lambda match: match.start())
                self.unread = text[first.end() :]
                return text[: first.start()], first
            if not select.select([self.ours], [], [], max(0.0, end - time.monotonic()))[0]:
                raise Unpasted(f"nothing of {[p.pattern for p in patterns]} came; the screen has\n{text[-2_000:]}")
            try:
                self.unread += os.read(self.ours, 65_536).decode(errors="replace")
            except OSError:  # the other end is closed
                raise Unpasted(f"the terminal ended; the screen has\n{text[-2_000:]}") from None

    def type(self, line: str) -> str:
        """Type a line into the shell, do what a person does while it runs, and see that it went well."""
        line = ID.sub(lambda found: self.seen_id or found[0], line)
        self.send(f"{line}\r")
        shown = ""
        for pattern, keys in next((steps for name, steps in KEYS.items() if line.startswith(name)), []):
            shown += self.wait(re.compile(pattern), seconds=LONG_FOR_KEYS)[0]
            self.send(keys)
        while True:
            text, found = self.wait(PROMPT, QUESTION)
            shown += text
            if found.re is PROMPT:
                break
            self.send("y\r")
        if found[1] != "0":
            raise Unpasted(f"{line}\nended with {found[1]}:\n{shown[-2_000:]}")
        if ids := ID.findall(shown.partition("\n")[2]):
            self.seen_id = ids[0]
        return shown

    def begin(self, line: str, ready: str) -> None:
        """Type a line that goes on running, and wait until it is ready."""
        self.send(f"{line}\r")
        text, found = self.wait(re.compile(ready), PROMPT)
        if found.re is PROMPT:
            raise Unpasted(f"{line}\nended at once:\n{text}")

    def end(self) -> None:
        """Ctrl+C to what is running, which is no failure."""
        self.send("\x03")
        _, found = self.wait(PROMPT)
        if found[1] != "0":
            raise Unpasted(f"Ctrl+C ended it with {found[1]}")

    def python(self, lines: list[str]) -> str:
        """Paste lines into Python's prompt, each once the prompt is back; then leave it."""
        self.send("python\r")
        self.wait(re.compile("<<python>> "))
        shown = ""
        for line in [*lines, ""]:
            self.send(f"{line}\r")
            text, found = self.wait(PROMPT)
            shown += text
            if found[1].isdigit() or FAULT.search(text.partition("\n")[2]):
                raise Unpasted(f"{line}\n{text[-2_000:]}")
        if found[1] != "python":
            raise Unpasted(f"{lines[-1]}\nis not the end of what was begun")
        self.send("\x04")
        self.wait(re.compile(r"<<0>> "))
        return shown


def environment(home: Path, path: str) -> dict[str, str]:
    """What somebody has who has just come to this machine; how it reaches a package index is the machine's."""
    kept = ("PIP_", "UV_", "SSL_", "CURL_", "REQUESTS_", "HTTP", "http", "NO_PROXY", "no_proxy")
    env = {name: value for name, value in os.environ.items() if name.startswith(kept) and not name.startswith(OTHERS)}
    (home / ".startup.py").write_text(STARTUP, encoding="utf-8")
    plain = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "BROWSER": "true", "PYTHON_BASIC_REPL": "1"}
    return {**env, **plain, "HOME": str(home), "PATH": path, "PYTHONSTARTUP": str(home / ".startup.py")}


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def paste(page: str, env: dict[str, str], folder: Path, *, installed: bool = False) -> None:
    """Paste a page from its first line to its last; where clew is installed, without what installs it."""
    port = free_port()
    env = {**env, "CLEW_GATEWAY_PORT": port}
    with ExitStack() as stack:
        first = stack.enter_context(Terminal(env, folder))
        servers = []
        activated = ""  # what a person types into each new terminal, too
        for part in parts(page):
            if part.kind == "python":
                first.python(part.lines)
                continue
            for line in () if part.installs and installed else part.lines:
                line = line.replace(PORT, port)
                sys.stderr.write(f"$ {line}\n")
                ready = next((ready for name, ready in SERVERS.items() if name in line), "")
                if ready:
                    servers.append(stack.enter_context(Terminal(env, folder)))
                    if activated:
                        servers[-1].type(activated)
                    servers[-1].begin(line, ready)
                else:
                    first.type(line)
                    activated = line if line.endswith("/activate") else activated
        for server in servers:
            server.end()


def main(names: list[str]) -> None:
    system = os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if ".venv" not in p)
    for name in names:
        with TemporaryDirectory() as temporary:
            home, clone = Path(temporary, "home"), Path(temporary, "clew")
            home.mkdir()
            (home / ".claude").mkdir()  # a person with Claude Code, which has been started once
            (home / ".claude" / "settings.json").write_text("{}\n", encoding="utf-8")
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
            began = time.monotonic()
            paste((clone / name).read_text(encoding="utf-8"), environment(home, system), clone)
            sys.stderr.write(f"{name}: pasted in {time.monotonic() - began:.0f} s\n")


if __name__ == "__main__":
    main(sys.argv[1:])
