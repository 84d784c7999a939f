"""Published packages at the same job: the newest release of each, set as its documentation recommends, none tuned.

Each runs in an environment of its own (`make peers`) and in a process of its own, with a cap on its CPU
and on its time.
"""

import atexit
import json
import re
import signal
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from benchmark.judging import Messages, Method, shown

HERE = Path(__file__).parent.parent / "packages"
CAP = 60.0  # seconds of CPU that a peer may use in a session
PATIENCE = 300.0  # seconds by the clock beside three times the cap: it may be sleeping, or the machine busy
REASON = 200  # characters of why a package could not be installed
CHARACTERS = 4  # of a token, as most of them count
WINDOWS_TRIED = 1.0, 1.2, 1.5, 2.0, 3.0  # times a size in characters: not every peer fills its window


@dataclass(frozen=True)
class Peer:
    """A way to make a history smaller that a package has."""

    name: str  # in the tables
    package: str
    environment: str  # bench/packages/ENVIRONMENT.txt, and use_ENVIRONMENT.py beside it
    way: str  # in that file
    settings: str  # as it is run here
    goes_on: bool = True  # with what it left; else it is given the whole history each time
    remembers: bool = False  # something of its own between two calls, so that all of them are needed
    model: bool = False  # it asks for a summary: a stand-in copies (bench/packages/standin.py)

    folder: Path = HERE

    @property
    def python(self) -> Path:
        return self.folder / f".venv-{self.environment}" / "bin" / "python"

    def version(self) -> str | None:
        """Of the package that is there, if it is."""
        name = self.package.replace("-", "_")
        found = sorted(self.python.parent.parent.glob(f"lib/*/site-packages/{name}-*.dist-info"))
        return found[-1].name.removeprefix(f"{name}-").removesuffix(".dist-info") if found else None

    def missing(self) -> str:
        """Why it cannot run here; nothing if it can."""
        if self.version():
            return ""
        said = self.folder / f".venv-{self.environment}" / "failed.txt"  # by `make peers`
        words = re.sub(r"https?://\S+", "", said.read_text()).split() if said.exists() else []
        why = " ".join(word for word in words if word not in ("×", "╰─▶"))[:REASON]
        return f"could not be installed: {why}" if why else "not installed: `make peers` installs it"


PEERS = (
    Peer("langchain trim", "langchain-core", "langchain", "trim", "`trim_messages`, newest that fit", goes_on=False),
    Peer("langchain clear", "langchain", "langchain", "clear", "`ClearToolUsesEdit`: newest 3 results", goes_on=False),
    Peer(
        "langchain summary",
        "langchain",
        "langchain",
        "summarise",
        "`SummarizationMiddleware`: at 80 %, newest 20 messages",
        model=True,
    ),
    Peer(
        "deepagents",
        "deepagents",
        "langchain",
        "deep",
        "its defaults: at 85 %, newest 10 %",
        goes_on=False,
        remembers=True,
        model=True,
    ),
    Peer(
        "langmem",
        "langmem",
        "langchain",
        "langmem",
        "`summarize_messages`: at 80 %",
        goes_on=False,
        remembers=True,
        model=True,
    ),
    Peer("strands window", "strands-agents", "strands", "window", "newest 40 messages, proactive at 70 %"),
    Peer("strands summary", "strands-agents", "strands", "summarise", "oldest 30 %, proactive at 70 %", model=True),
    Peer("praisonai truncate", "praisonaiagents", "praisonai", "truncate", "its default: newest 5 messages"),
    Peer(
        "praisonai sliding",
        "praisonaiagents",
        "praisonai",
        "sliding",
        "`SLIDING`, the same as `SMART`: newest that fit into 75 %",
    ),
    Peer("praisonai summarize", "praisonaiagents", "praisonai", "summarize", "100 characters of each message"),
    Peer("praisonai prune", "praisonaiagents", "praisonai", "prune", "old results cut to 300 characters"),
    Peer("praisonai llm", "praisonaiagents", "praisonai", "llm_summarize", "`LLM_SUMMARIZE`", model=True),
    Peer(
        "cliffcompaction",
        "cliffcompaction",
        "cliffcompaction",
        "cliff",
        "newest 3 turns, one summary",
        goes_on=False,
        remembers=True,
    ),
    Peer("headroom", "headroom-ai", "headroom", "compress", "`compress` without its weights", goes_on=False),
    Peer("litellm trim", "litellm", "litellm", "trim", "`trim_messages` to 75 %", goes_on=False),
    Peer("litellm compress", "litellm", "litellm", "compress", "`compress`: BM25, to 70 %", goes_on=False),
    Peer("openai-agents trim", "openai-agents", "openai_agents", "trim", "`ToolOutputTrimmer`", goes_on=False),
)
# Who has a way and cannot run here, and why.
ABSENT = {
    "openai-agents session": "its sessions that compact do so on a server of OpenAI's; what they leave is encrypted",
    "anthropic compact": "`compact_20260112` summarises on a server of Anthropic's",
    "anthropic clear": "`clear_tool_uses_20250919` runs on a server of Anthropic's; langchain clear is that policy",
    "mem0": "stores facts that a model extracts, found by embeddings: without a model and embeddings it keeps nothing",
}


class NoAnswer(Exception):
    """A peer used up its time, or died; the message says which."""


class Failed(Exception):
    """A peer raised an error; the message is its own."""


class Child:
    """A peer at work in a process of its own, session after session."""

    def __init__(self, peer: Peer, cap: float = CAP) -> None:
        self.peer, self.cap, self.cpu = peer, cap, 0.0
        self.asked: Sequence[tuple[int, int]] = ()  # characters read and written for each summary of the last answer
        self._given: Messages = ()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, window: int) -> None:
        """A new session in a window of so many tokens; a process that died is started again."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            command = [str(self.peer.python), str(HERE / "worker.py"), self.peer.environment, str(self.peer.folder)]
            pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, text=True)
        self.cpu, self._given = 0.0, ()
        self._ask({"begin": self.peer.way, "window": window, "cap": self.cap})

    def fit(self, messages: Messages) -> list[Any]:
        """What it would send instead of these messages."""
        pairs = enumerate(zip(messages, self._given, strict=False))
        same = next((n for n, (new, old) in pairs if new is not old), min(len(messages), len(self._given)))
        self._given = list(messages)
        found = self._ask({"same": same, "messages": self._given[same:]})
        self.asked = found["asked"]
        return [messages[part] if isinstance(part, int) else part for part in found["messages"]]

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        """One line there, one line back."""
        assert self._process is not None, "begin comes first"
        there, back = self._process.stdin, self._process.stdout
        assert there is not None
        assert back is not None
        clock = threading.Timer(3 * self.cap + PATIENCE, self._process.kill)
        clock.start()
        try:
            there.write(json.dumps(order) + "\n")
            there.flush()
            line = back.readline()
        except BrokenPipeError:
            line = ""
        finally:
            clock.cancel()
        if not line:
            raise NoAnswer(self._ended(self._process.wait()))
        found: dict[str, Any] = json.loads(line)
        self.cpu += found["cpu"]
        if "error" in found:
            raise Failed(found["error"])
        return found

    def _ended(self, code: int) -> str:
        """Why there is no answer, from how the process ended."""
        if code == -signal.SIGXCPU:
            return f"no answer in {self.cap:.0f} s of CPU"
        if code == -signal.SIGKILL:
            return f"no answer in {3 * self.cap + PATIENCE:.0f} s"
        return f"its process ended ({code})"


def as_method(peer: Peer) -> Method:
    """A peer at a size in characters: with the largest of some windows whose result has room.

    Who fails leaves nothing, and what is over the size even with the smallest loses its beginning.
    """
    child = Child(peer)
    atexit.register(child.close)

    def method(messages: Messages, size: int) -> str:
        best = ""
        try:
            for more in WINDOWS_TRIED:
                child.begin(max(1, int(more * size / CHARACTERS)))
                found = shown(child.fit(messages))
                if best and len(found) > size:
                    break
                best = found[-size:]
        except (NoAnswer, Failed):
            pass
        return best

    return method


def present() -> Sequence[Peer]:
    """The peers whose environments are there."""
    return [peer for peer in PEERS if peer.version()]


def installed() -> tuple[dict[str, Method], list[str]]:
    """The peers that are there, and a line for each about its version or its absence."""
    lines = [
        f"{peer.name}: {peer.package} {found}"
        if (found := peer.version())
        else f"{peer.name}: skipped, {peer.missing()}"
        for peer in PEERS
    ]
    return {peer.name: as_method(peer) for peer in present()}, lines
