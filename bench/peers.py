"""Others at the same job: the growing history fitted into one window, each turn. python bench/peers.py [--corpus DIR]

Each in a process of its own, until the end or a cap of CPU. Peers get messages as they keep them and are timed only
while they fit them; clew is timed from the request's bytes to the bytes to send, its log on disk included. Facts are 40
strings said once in the first tenth of the session, by the user and by tools. A peer stopped early had less to forget:
its facts are those it had at the turn it reached.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, Protocol

import orjson

from clew import Budget, Engine, Meter, Request, SQLite, View, body, counter_for
from clew.wire import check, decode
from session import OPENAI, SYSTEM, WINDOW, Message, Turn, alone, anthropic, as_bytes, session, show

FACTS = 40
ROOM = WINDOW - 8_192  # the answer needs some


@dataclass(frozen=True)
class Outcome:
    """What a fitter used and what it left."""

    cpu: float
    turns: int
    messages: list[Message]
    recalled: int | None = None


class Fitter(Protocol):
    """Something that keeps a history small enough."""

    def add(self, turn: Turn) -> None: ...
    def fit(self) -> None: ...
    def messages(self) -> list[Message]: ...


# --- peers --------------------------------------------------------------------------------------------------------


class LangChain:
    """`trim_messages` with its own quick counter: the newest messages that fit, from a user message on."""

    def __init__(self) -> None:
        self._lib = import_module("langchain_core.messages")
        self._count = import_module("langchain_core.messages.utils").count_tokens_approximately
        self._history = [self._lib.SystemMessage(SYSTEM)]
        self._fitted: list[Any] = []

    def add(self, turn: Turn) -> None:
        self._history += self._lib.convert_to_messages([{**m, "content": m.get("content") or ""} for m in turn])

    def fit(self) -> None:
        self._fitted = self._lib.trim_messages(
            self._history,
            max_tokens=ROOM,
            token_counter=self._count,
            strategy="last",
            include_system=True,
            start_on="human",
            end_on=("human", "tool"),
        )

    def messages(self) -> list[Message]:
        found: list[Message] = import_module("langchain_core.messages").convert_to_openai_messages(self._fitted)
        return found


class LiteLLM:
    """`trim_messages` with the model's own counter."""

    def __init__(self) -> None:
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network when imported
        self._trim = import_module("litellm.utils").trim_messages
        self._history: list[Message] = [{"role": "system", "content": SYSTEM}]
        self._fitted: list[Message] = []

    def add(self, turn: Turn) -> None:
        self._history += turn

    def fit(self) -> None:
        self._fitted = self._trim(self._history, model=OPENAI, max_tokens=ROOM)

    def messages(self) -> list[Message]:
        return self._fitted


class Strands:
    """The default sliding window: the newest 40 messages, whatever their size."""

    def __init__(self) -> None:
        self._manager = import_module("strands.agent.conversation_manager").SlidingWindowConversationManager()
        self._agent = SimpleNamespace(messages=[])

    def add(self, turn: Turn) -> None:
        self._agent.messages += [
            {"role": m["role"], "content": [self._block(b) for b in m["content"]]} for m in anthropic(turn)
        ]

    def fit(self) -> None:
        self._manager.apply_management(self._agent)

    def messages(self) -> list[Message]:
        found: list[Message] = [{"role": "system", "content": SYSTEM}]
        for message in self._agent.messages:
            found += _plain(message)
        return found

    def _block(self, block: Message) -> Message:
        match block["type"]:
            case "tool_use":
                return {"toolUse": {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}}
            case "tool_result":
                said = [{"text": block["content"]}]
                return {"toolResult": {"toolUseId": block["tool_use_id"], "status": "success", "content": said}}
            case _:
                return {"text": block["text"]}


def _plain(message: Message) -> list[Message]:
    """A message of Strands in OpenAI's format."""
    results: list[Message] = [
        {
            "role": "tool",
            "tool_call_id": b["toolResult"]["toolUseId"],
            "content": "".join(part["text"] for part in b["toolResult"]["content"]),
        }
        for b in message["content"]
        if "toolResult" in b
    ]
    calls = [
        {
            "id": b["toolUse"]["toolUseId"],
            "type": "function",
            "function": {"name": b["toolUse"]["name"], "arguments": json.dumps(b["toolUse"]["input"])},
        }
        for b in message["content"]
        if "toolUse" in b
    ]
    text = "\n".join(b["text"] for b in message["content"] if "text" in b)
    said: Message = {"role": message["role"], "content": text}
    if calls:
        said["tool_calls"] = calls
    return [*results, *([said] if text or calls else [])]


class Praison:
    """`ContextCompactor` that prunes old tool results; it goes on with what it kept."""

    def __init__(self) -> None:
        lib = import_module("praisonaiagents.compaction")
        self._compactor = lib.ContextCompactor(max_tokens=ROOM, strategy=lib.CompactionStrategy.PRUNE)
        self._history: list[Message] = [{"role": "system", "content": SYSTEM}]

    def add(self, turn: Turn) -> None:
        self._history += turn

    def fit(self) -> None:
        if self._compactor.needs_compaction(self._history):
            found = self._compactor.compact(self._history)
            self._history = list(found[0] if isinstance(found, tuple) else found.messages)

    def messages(self) -> list[Message]:
        return self._history


PEERS: dict[str, tuple[str, type[Fitter]]] = {
    "langchain-core trim_messages": ("langchain-core", LangChain),
    "litellm trim_messages": ("litellm", LiteLLM),
    "strands sliding window": ("strands-agents", Strands),
    "praisonaiagents prune": ("praisonaiagents", Praison),
}


# --- the run ------------------------------------------------------------------------------------------------------


def planted(turns: int, corpus: Path | None) -> tuple[list[Turn], list[str]]:
    """The session with facts in its first tenth, and the facts."""
    chance = Random(7)
    facts = [f"zq{chance.getrandbits(48):012x}" for _ in range(FACTS)]
    told = session(turns, corpus)
    early = max(1, len(told) // 10)
    left = list(facts)
    for n in range(FACTS):
        turn = told[n * early // FACTS]
        results = [m for m in turn if m["role"] == "tool" and isinstance(m["content"], str)]
        if n % 2 and results:
            results[-1]["content"] += f"\nbuild {n} finished, artifact {left.pop()}"
        else:
            turn.append({"role": "user", "content": f"Note for later: the key of customer {n} is {left.pop()}."})
    return told, facts


def run_peer(name: str, turns: int, corpus: Path | None, cap: float) -> Outcome:
    """One peer until its CPU is used up."""
    fitter = PEERS[name][1]()
    told, _ = planted(turns, corpus)
    cpu, n = 0.0, 0
    for n, turn in enumerate(told, 1):
        fitter.add(turn)
        begin = time.process_time()
        fitter.fit()
        cpu += time.process_time() - begin
        _progress(name, n, cpu)
        if cpu > cap:
            break
    return Outcome(cpu, n, fitter.messages())


def run_clew(turns: int, corpus: Path | None) -> Outcome:
    """The same for clew, from bytes to bytes."""
    told, facts = planted(turns, corpus)
    with TemporaryDirectory() as folder:
        return asyncio.run(_run_clew(told, facts, Path(folder, "clew.db")))


async def _run_clew(told: Sequence[Turn], facts: Sequence[str], path: Path) -> Outcome:
    engine = Engine(SQLite(path), Budget(window=WINDOW))
    cpu, view = 0.0, None
    for n, sent in enumerate(as_bytes(told), 1):
        begin = time.process_time()
        view = await engine.prepare(Request(sent.given))
        orjson.dumps(body(view))
        cpu += time.process_time() - begin
        _progress("clew", n, cpu)
    assert view is not None
    recalled = sum([await _recalled(engine, view, fact) for fact in facts])
    await engine.store.close()
    return Outcome(cpu, len(told), body(view)["messages"], recalled)


async def _recalled(engine: Engine, view: View, fact: str) -> bool:
    """Whether a search on this branch finds the fact, and a recall by the id found brings it back."""
    for node in await engine.search(view.scope, fact, view.branch, 5):
        said = await engine.recall(view.scope, node.id, view.branch)
        if any(fact in n.item.text for n in said):
            return True
    return False


def _progress(name: str, n: int, cpu: float) -> None:
    if n % 20 == 0:
        print(f"\r{name}: turn {n:,}, {cpu:.1f} s CPU ", end="", file=sys.stderr)


HEAD = ("", "version", "CPU s", "turn reached", "tokens then", "fits", f"of {FACTS} facts", "recallable", "valid")


def row(name: str, package: str, outcome: Outcome, facts: Sequence[str]) -> tuple[str, ...]:
    """What the table says about one of them."""
    meter = Meter(counter_for(OPENAI))
    frame, items = decode({"model": OPENAI, "messages": outcome.messages}, "openai_chat")
    kept = json.dumps(outcome.messages)
    broken = check({"messages": outcome.messages}, "openai_chat")
    tokens = meter.frame(frame).plus(meter.items(items)).tokens
    return (
        name,
        version(package),
        f"{outcome.cpu:.1f}",
        f"{outcome.turns:,}",
        f"{tokens:,}",
        "yes" if tokens <= WINDOW else "no",
        str(sum(fact in kept for fact in facts)),
        "-" if outcome.recalled is None else str(outcome.recalled),
        f"no: {broken[0].rule}" if broken else "yes",
    )


def _attempt(name: str, package: str, work: Callable[[], Outcome], facts: Sequence[str]) -> tuple[str, ...]:
    try:
        found = row(name, package, work(), facts)
    except (ImportError, PackageNotFoundError):
        found = (name, "not installed", *[""] * (len(HEAD) - 2))
    print(file=sys.stderr)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--corpus", type=Path, help="a folder of *.jsonl.gz")
    parser.add_argument("--cap", type=float, default=60, help="seconds of CPU a peer may use")
    given = parser.parse_args()
    _, facts = planted(given.turns, given.corpus)
    rows = [HEAD, _attempt("clew", "clew", lambda: alone(run_clew, given.turns, given.corpus), facts)]
    for name, (package, _) in PEERS.items():
        rows.append(_attempt(name, package, _later(name, given.turns, given.corpus, given.cap), facts))
    show(rows)


def _later(*given: Any) -> Callable[[], Outcome]:
    return lambda: alone(run_peer, *given)


if __name__ == "__main__":
    main()
