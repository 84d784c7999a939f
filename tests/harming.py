"""Law 12: what works without clew works with it.

Sessions in the shapes of all recorded clients, through a gateway before a strict provider. In each, one thing goes
wrong at one call, as it would without clew, and the client asks again, as clients do. Beside it runs the same session
in which nothing goes wrong.
"""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from clew.testing import Answer, StrictProvider
from made_clients import CLIENTS, ClientRequest, session
from serving import Got, Served, post, serving

SAID = Answer("Understood.")
TURNS = 6
ROOMY, TIGHT, CLAUDES = 400_000, 40_000, 100_000  # tokens: nothing is folded, or much
# What goes wrong upstream, at one call.
UPSTREAM: dict[str, Answer] = {
    "overloaded": Answer(status=529),
    "out of quota": Answer(status=429, retry_after=0),
    "broken": Answer(status=500),
    "cut off": Answer("Understood, and gone.", cut=60),
    "an error in the stream": Answer("Under", status=529, late=True),
    "garbled": Answer(raw=b"{"),
    "says that it is too long": Answer(status=400, error="prompt is too long: 210000 tokens > 16384 maximum"),
}
# What goes wrong on this machine: none of it is anything that the client has to do with.
ENDED = "gateway ended"
HERE = ("store locked", "store gone", ENDED)
FAULTS = (*UPSTREAM, *HERE)
KEPT = "says that it is too long"  # after it, clew may send less for a while
_ID = re.compile(rb"\b(?=[0-9a-f]*\d)[0-9a-f]{10,32}\b")

OWN_TOOLS = {"recall", "search_history"}


@dataclass
class Harm:
    """What went wrong that would not have without clew."""

    calls: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)

    def add(self, kind: str, where: str) -> None:
        self.kinds[kind] += 1
        self.told.append(f"{kind}: {where}")


@dataclass
class Upstream:
    """Says what it is told to say next, and else always the same."""

    next: list[Answer] = field(default_factory=list)

    def __call__(self, body: Any) -> Answer:
        return self.next.pop() if self.next else SAID


@dataclass(frozen=True)
class Trial:
    """A session, and what goes wrong in it."""

    client: str
    seed: int
    window: int
    fault: str = ""
    at: int = 0

    def requests(self) -> list[ClientRequest]:
        return [r for r in session(self.client, "amber", TURNS, self.seed) if r.kind in ("main", "continued")]


class Played:
    """A session through a gateway, request by request."""

    def __init__(self, trial: Trial, store: Path) -> None:
        self.trial, self.store = trial, store
        self.upstream = Upstream()
        self.provider = StrictProvider(self.upstream, window=trial.window)
        self.ended = ExitStack()
        self.served: Served | None = None

    def __enter__(self) -> "Played":
        self.ended.enter_context(self.provider)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.ended.close()

    def end(self) -> None:
        """Let the gateway be gone; the next request finds another one over the same store."""
        if self.served:
            self._serving.__exit__(None, None, None)
        self.served = None

    def ask(self, request: ClientRequest) -> Got:
        if self.served is None:
            behind = _Lent(self.provider)
            self._serving = serving(self.store, behind, self.trial.window)  # type: ignore[arg-type]
            self.served = self._serving.__enter__()
        return self.served.ask(request.path, request.body, request.headers)

    def sent(self) -> bytes:
        """What the provider was sent last, without ids, which are others in every store."""
        return _ID.sub(b"ID", self.provider.heard[-1].raw)


class _Lent:
    """A provider that outlives the gateway before it."""

    def __init__(self, provider: StrictProvider) -> None:
        self._provider = provider

    def __enter__(self) -> StrictProvider:
        return self._provider

    def __exit__(self, *_: object) -> None:
        pass


@contextmanager
def gone_wrong(played: Played, fault: str) -> Iterator[None]:
    """What is wrong while one request is answered."""
    if fault in UPSTREAM:
        played.upstream.next.append(UPSTREAM[fault])
        yield
        played.upstream.next.clear()
    elif fault == ENDED:
        played.end()
        yield
    elif fault == "store locked":
        with sqlite3.connect(played.store, isolation_level=None) as line:
            line.execute("begin immediate")
            yield
            line.execute("rollback")
        line.close()
    else:  # nobody may write to it, as on a disk that is full
        with sqlite3.connect(played.store, isolation_level=None) as line:
            line.execute("create trigger full before insert on event begin select raise(abort, 'disk is full'); end")
            yield
            line.execute("drop trigger full")
        line.close()


def tried(trial: Trial, harm: Harm) -> None:
    """Play a session twice, once with a fault, and note what differs."""
    with TemporaryDirectory(prefix="clew-harm-") as folder:
        plain, faulty = (Played(trial, Path(folder) / name) for name in ("plain.db", "faulty.db"))
        with plain, faulty:
            for n, request in enumerate(trial.requests()):
                where = f"{trial.client} seed {trial.seed} window {trial.window} call {n}: {trial.fault} at {trial.at}"
                _compare(trial, n, request, plain, faulty, harm, where)


def _without_own_tools(raw: bytes) -> Any:
    """What was sent, without the tools that clew may append to those of a client."""
    body = json.loads(raw)
    if "tools" in body:
        body["tools"] = [tool for tool in body["tools"] if not OWN_TOOLS & {*_tool_names(tool)}]
    return body


def _messages(body: Any) -> str:
    return json.dumps(body[next(key for key in ("messages", "input", "contents") if key in body)])


def _tool_names(tool: dict[str, Any]) -> Iterator[str]:
    for one in tool.get("functionDeclarations", [tool]):
        yield one.get("function", one).get("name", "")


def _compare(
    trial: Trial, n: int, request: ClientRequest, plain: Played, faulty: Played, harm: Harm, where: str
) -> None:
    got = plain.ask(request)
    harm.calls += 1
    if got.status != 200:
        if alone(trial, request).status == 200:
            harm.add("refused", f"{where}: {got.status} {got.raw[:200]!r}")
        elif got.json()["error"]["message"].startswith("clew"):
            harm.add("refused by clew itself", f"{where}: {got.status} {got.raw[:200]!r}")
        return
    if trial.window == ROOMY:
        sent = _without_own_tools(plain.provider.heard[-1].raw)
        # Of its messages nothing is written otherwise, nor in another order.
        if sent != request.body or _messages(sent) != _messages(request.body):
            harm.add("changed below the threshold", where)
    first = None
    if n == trial.at and trial.fault:
        with gone_wrong(faulty, trial.fault):
            first = faulty.ask(request)
        harm.calls += 1
        if trial.fault in HERE and first.status != 200:
            harm.add("an error that is not the client's", f"{where}: {first.status} {first.raw[:200]!r}")
    if first and first.status == 200 and trial.fault == ENDED:
        again = first  # it was asked of the next one already: nobody asks again for what was answered
    else:
        again = faulty.ask(request)
        harm.calls += 1
    if again.status != 200:
        harm.add("refused afterwards", f"{where}: {again.status} {again.raw[:200]!r}")
    elif faulty.sent() != plain.sent() and not (trial.fault == KEPT and n >= trial.at):
        harm.add("not what it would have been", where)


def alone(trial: Trial, request: ClientRequest) -> Got:
    """What comes back without a gateway."""
    with StrictProvider([SAID], window=trial.window) as provider:
        return post(provider.url, request.path, request.body, request.headers)


def trials(seed: int) -> Iterator[Trial]:
    """One after the other, without end."""
    random = Random(seed)
    while True:
        client, fault = random.choice(list(CLIENTS)), random.choice(FAULTS)
        window = random.choice((ROOMY, CLAUDES if client.startswith("claude") else TIGHT))
        trial = Trial(client, random.randrange(10_000), window, fault)
        yield replace(trial, at=random.randrange(1, len(trial.requests())))


def fuzz(calls: int, seed: int, told: Callable[[Harm], None] = lambda _: None) -> Harm:
    """So many calls at least."""
    harm = Harm()
    for trial in trials(seed):
        tried(trial, harm)
        told(harm)
        if harm.calls >= calls:
            return harm
    raise AssertionError("there is no end of trials")
