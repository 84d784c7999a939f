"""Real programs before a gateway on loopback, each in a home of its own, with a model that does what a test says."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from clew import wire
from clew.core.items import Item
from clew.core.limits import Budget
from clew.engine.engine import Engine
from clew.engine.settings import Settings
from clew.gateway.app import Gateway
from clew.gateway.metrics import Metrics
from clew.gateway.server import GatewayThread
from clew.gateway.settings import ClientCompaction, GatewaySettings
from clew.gateway.upstreams import Upstream, Upstreams
from clew.resident.serving import end_all
from clew.store.places import open_store
from clew.store.records import Session
from clew.testing import Answer, StrictProvider
from clew.testing.provider import Call
from clew.wire.convert.tools import declared

HERE = Path(__file__).parent
PROGRAMS = Path(os.environ.get("CLIENT_PROGRAMS", HERE / "node_modules")) / ".bin"  # scripts/newest_clients.py
SCOPE = "default"
KEY = "sk-none"
# How the tool that runs a command is called by each program, and what it wants to know.
SHELLS: Mapping[str, Callable[[str], Mapping[str, Any]]] = {
    "Bash": lambda command: {"command": command, "description": "run"},
    "bash": lambda command: {"command": command, "description": "run"},
    "exec_command": lambda command: {"cmd": command, "max_output_tokens": 20_000},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-lc", command]},
    "run_shell_command": lambda command: {"command": command, "is_background": False, "description": "run"},
}
# What a summary of a whole conversation is asked for with. Not clew's own list: it may be wrong.
ASKS_SUMMARY = re.compile(
    r"CONTEXT CHECKPOINT|TEXT ONLY|detailed summary of the conversation|<state_snapshot>|context summarization|"
    r"component that summarizes|anchored summary"
)
GOES_ON = re.compile(
    r"session is being continued|Another language model started|compacted into|What did we do so far|"
    r"history has been summarized"
)


# A command of a shell, a call, a call that follows from the request, or what is said.
PlanStep = str | Call | Callable[[dict[str, Any]], Call] | Answer


@dataclass
class Model:
    """What a provider says: a plan begins with what a user says, and takes a step a request."""

    plans: Mapping[str, Sequence["PlanStep"]] = field(default_factory=dict)
    first: list[Answer] = field(default_factory=list)  # said before anything else, to those who have tools
    summaries: int = 0  # that it was asked for
    asides: int = 0  # requests without tools
    said: list[str] = field(default_factory=list)  # the plans that were done, in order

    def __post_init__(self) -> None:
        self._doing: dict[object, tuple[str, list[PlanStep]]] = {}
        self._number = 0

    def __call__(self, body: dict[str, Any]) -> Answer:
        format = wire.detect(body)
        frame, items = wire.decode(body, format)
        tools = declared(body, format)
        new = newest(items)
        texts = [item.text for item in new if item.kind == "text"]
        summed = [
            n for n, text in enumerate(texts) if GOES_ON.search(text[:400])
        ]  # what stands before was asked earlier
        asked = "\n".join(texts[summed[-1] + 1 :] if summed else texts)
        if ASKS_SUMMARY.search(asked) or (not tools and ASKS_SUMMARY.search(frame.system[:600])):
            self.summaries += 1
            return Answer("<summary>\nA summary that the model made.\n</summary>")
        if not tools:
            self.asides += 1
            return Answer("A title")
        if self.first:
            return self.first.pop(0)
        who = frame.model, frame.system[:40], frozenset(tools), body.get("prompt_cache_key")
        said = self._step(who, new, asked, tools, body)
        thinks = (body.get("thinking") or {"type": "disabled"})["type"] != "disabled" or "reasoning" in body
        return replace(said, reasoning="What comes next?") if thinks else said

    def _step(self, who: object, newest: Sequence[Item], asked: str, tools: set[str], body: dict[str, Any]) -> Answer:
        """The next of a plan: whose it is, by its program and its thread."""
        if not any(item.kind == "result" for item in newest):
            begun = [key for key in self.plans if key in asked]
            if begun:
                key = max(begun, key=asked.rfind)
                self._doing[who] = key, list(self.plans[key])
        key, left = self._doing.get(who, ("", []))
        if not left:
            self.said.append(key)
            return Answer(f"Done: {key.replace(' ', '-') or 'nothing'}.")  # not in words that begin a plan
        step = left.pop(0)
        if isinstance(step, Answer):
            return step
        step = step(body) if callable(step) else step
        return Answer("", (step if isinstance(step, Call) else _shell(step, tools),))


def newest(items: Sequence[Item]) -> Sequence[Item]:
    """What came after the last word of the model."""
    ours = [n for n, item in enumerate(items) if item.role == "assistant"]
    return items[ours[-1] + 1 :] if ours else items


def _shell(command: str, tools: set[str]) -> Call:
    name = next((name for name in SHELLS if name in tools), None)
    assert name, f"no tool runs commands: {sorted(tools)}"
    return Call(name, SHELLS[name](command))


@dataclass
class Stage:
    """A store, a provider, and one gateway after another between them and a program."""

    home: Path
    model: Model
    provider: StrictProvider
    window: int
    url: str = ""
    gateway: Gateway | None = None
    ran: list["subprocess.CompletedProcess[str]"] = field(default_factory=list)
    told: str = ""  # what the last gateway counted
    statuses: set[str] = field(default_factory=set)  # that clients got

    @property
    def work(self) -> Path:
        return self.home / "work"

    @property
    def env(self) -> dict[str, str]:
        """What a program knows of this machine."""
        path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
        given = {"PATH": path, "HOME": str(self.home), "TERM": "dumb", "LANG": "C.UTF-8"}
        return {**given, "CLEW_STORE": str(self.home / "log.db")}

    @contextmanager
    def serving(
        self, compaction: ClientCompaction = "prevent", summary: Literal["none", "own"] = "none", **given: Any
    ) -> Iterator[str]:
        """A gateway over the same store, before the same provider."""
        metrics = Metrics()
        store = open_store(str(self.home / "log.db"))
        budget = Budget(window=self.window)
        engine = Engine(store, budget, Settings(listeners=(metrics,), **given))
        known = [Upstream(kind, kind, self.provider.url, KEY) for kind in ("anthropic", "openai", "gemini")]
        told = GatewaySettings(compaction=compaction, summary=summary)
        self.gateway = Gateway(engine, Upstreams(known), told, metrics)
        with GatewayThread(self.gateway) as self.url:
            yield self.url
        self.told = metrics.text()
        self.statuses |= set(re.findall(r'clew_requests_total\{status="(\d+)"', self.told))
        assert "clew_failed_open_total 0" in self.told, self.told

    @contextmanager
    def alone(self) -> Iterator[str]:
        """The provider itself, with nothing between."""
        self.url = self.provider.url
        yield self.url

    def run(
        self,
        program: str | Path,
        *arguments: str,
        env: Mapping[str, str],
        well: bool | None = True,
        stdin: str = "",
        until: str = "",
    ) -> str:
        """What a program says that knows nothing of this machine; it is not left alone `until` it says this."""
        given = {**self.env, **env, "CLEW_STORE": str(self.home / "log.db")}
        self.work.mkdir(parents=True, exist_ok=True)
        if not until:
            done = subprocess.run(
                [PROGRAMS / program, *arguments], cwd=self.work, env=given, input=stdin, capture_output=True, text=True
            )
            self.ran.append(done)
            assert well is None or (done.returncode == 0) == well, (
                f"{program}: {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
            return done.stdout + done.stderr
        with subprocess.Popen(
            [PROGRAMS / program, *arguments],
            cwd=self.work,
            env=given,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            heard = ""
            if running.stdin and running.stdout:
                running.stdin.write(stdin)
                running.stdin.flush()
                stdin = ""
                for line in running.stdout:
                    heard += line
                    if until in line:
                        break
            heard += running.communicate(stdin)[0]
        assert well is None or (running.returncode == 0) == well, f"{program}: {running.returncode}\n{heard}"
        return heard

    def check(self, *, refused: bool = False) -> None:
        """No request broke a rule, and no client saw an error."""
        for heard in self.provider.heard:
            broken = wire.check(heard.body, wire.detect(heard.body))
            assert not broken, (heard.path, broken[:3])
        assert refused or self.statuses <= {"200", "426"}, self.statuses

    @property
    def answered(self) -> int:
        """Compactions that no model was asked for."""
        return sum(map(int, re.findall(r"clew_compactions_answered_total\S* (\d+)", self.told)))

    async def conversations(self) -> list["Said"]:
        """Those in the log, with all that was said in each, first to last."""
        store = open_store(str(self.home / "log.db"))
        try:
            found = list[Said]()
            for session in reversed(await store.sessions(SCOPE)):
                if session.number > 1 and found and any(s.session.branch == session.branch for s in found):
                    continue
                trace = await store.load(SCOPE, session.branch)
                nodes = await store.nodes(SCOPE, [place.id for place in trace.said])
                text = "\n".join(nodes[place.id].item.text for place in trace.said)
                found.append(Said(session, text))
            return found
        finally:
            await store.close()


@dataclass(frozen=True)
class Said:
    """A branch of the log."""

    session: Session
    text: str = field(repr=False)


def outcome(on: Stage) -> tuple[int, str]:
    """How the last run ended, and what it said."""
    return on.ran[-1].returncode, on.ran[-1].stdout


@contextmanager
def stage(home: Path, model: Model, window: int = 200_000, **given: Any) -> Iterator[Stage]:
    """A provider with this model, and a home for a program."""
    with StrictProvider(model, window=window, **given) as provider:
        try:
            yield Stage(home, model, provider, window)
        finally:
            end_all({"HOME": str(home)})  # what a program started and left
