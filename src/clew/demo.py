"""The demo: a real conversation, replayed turn by turn through a real engine in a window much too small for it."""

import gzip
import time
from collections import Counter as Tally
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from clew import rawjson
from clew.budget import Budget
from clew.engine import Engine, Request, body
from clew.items import SHORT, Digests, Edit, Node
from clew.store.records import Store
from clew.view import View
from clew.wire import check, decode

SCOPE = "demo"
MODEL = "gpt-4o"  # whose vocabulary counts
FORMAT = "openai_chat"


@dataclass(frozen=True, slots=True)
class Turn:
    """One call of the replay, and how things stand after it; all numbers but the first two are tokens."""

    number: int
    turns: int
    view: int  # sent in this call
    limit: int  # of one call
    said: int  # until now
    sent: int  # in all calls until now
    whole: int  # what all calls until now would have been with nothing left out
    last: str  # the newest edits, in words

    @property
    def saved(self) -> float:
        return 1 - self.sent / self.whole if self.whole else 0.0


@dataclass(frozen=True, slots=True)
class Proof:
    """What is behind the stand-ins, read back from the store."""

    hidden: int  # originals that some stand-in took the place of
    recalled: int  # how many of them came back byte for byte


def sample() -> list[dict[str, Any]]:
    """The messages of the conversation that ships with clew; LICENSE-sample.md says whose it is."""
    data = files("clew").joinpath("data/sample.jsonl.gz").read_bytes()
    messages: list[dict[str, Any]] = rawjson.loads(gzip.decompress(data))["messages"]
    return messages


class Replay:
    """Sends a conversation again, call by call, and keeps count."""

    def __init__(self, store: Store, messages: Sequence[dict[str, Any]], window: int, session: str) -> None:
        self.messages = messages
        self.session = session
        self.budget = Budget(window, model=MODEL)
        self.engine = Engine(store, self.budget)
        self.edits: tuple[Edit, ...] = ()
        self.largest = self.broken = 0
        self.seconds = 0.0
        frame, items = decode({"messages": list(messages)}, FORMAT)
        self.originals = {n.id: n for n in Digests(store.secret, SCOPE).chain(items)}
        self._tokens = {n.id: self._count(n) for n in self.originals.values()}
        self._before: list[int] = []  # tokens said before each message
        self.said = self.budget.meter.frame(frame).tokens  # tokens of the whole conversation
        for node in self.originals.values():
            if node.item.opens is not None:
                self._before.append(self.said)
            self.said += self._tokens[node.id]
        self.calls = [i for i, m in enumerate(messages) if m["role"] == "assistant" and i]

    async def turns(self) -> AsyncIterator[Turn]:
        """Make every call that the agent made then: each with all that was said before it."""
        sent = whole = 0
        last = ""
        for number, end in enumerate(self.calls, 1):
            view = await self._call(end)
            tokens = self.budget.size(view).tokens
            said = self._before[end]
            sent, whole = sent + tokens, whole + said
            self.largest = max(self.largest, tokens)
            last = self._words(view.edits[len(self.edits) :]) or last
            self.edits = view.edits
            yield Turn(number, len(self.calls), tokens, self.budget.limit.tokens, said, sent, whole, last)

    def steps(self) -> Tally[str]:
        """How many edits each step made."""
        return Tally(name(e) for e in self.edits)

    def example(self) -> tuple[str, str] | None:
        """A stand-in as the model saw it, and the id it names."""
        lines = [(e, n) for e in self.edits for n in e.new if n.item.kind == "result" and name(e) == "ClearResults"]
        edit, node = next(iter(lines), (None, None))
        return (node.item.text, edit.old[0][:SHORT]) if edit and node else None

    async def prove(self, store: Store) -> Proof:
        """Recall every stand-in from a store and compare what comes back with what was said."""
        engine = Engine(store)
        hidden = {id for e in self.edits for id in e.old if id in self.originals}
        stand_ins = {n.id for e in self.edits for n in e.new if n.id not in e.old}
        found = {n.id: n.item for id in stand_ins for n in await engine.recall(SCOPE, id)}
        recalled = sum(found.get(id) == self.originals[id].item for id in hidden)
        return Proof(len(hidden), recalled)

    async def _call(self, end: int) -> View:
        request = Request({"model": MODEL, "messages": self.messages[:end]}, FORMAT, SCOPE, self.session)
        begin = time.perf_counter()
        view = await self.engine.prepare(request)
        self.seconds += time.perf_counter() - begin
        self.broken += len(check(body(view), FORMAT))
        return view

    def _words(self, edits: Sequence[Edit]) -> str:
        """New edits, in words."""
        tally: dict[str, list[int]] = {}
        for edit in edits:
            for node in edit.new:
                self._tokens.setdefault(node.id, self._count(node))
            row = tally.setdefault(name(edit), [0, 0, 0])
            row[0] += len(edit.old)
            row[1] += sum(self._tokens[id] for id in edit.old)
            row[2] += sum(self._count(n) for n in edit.new)
        return ", ".join(f"{step} {n:,} items: {old:,} → {new:,}" for step, (n, old, new) in tally.items())

    def _count(self, node: Node) -> int:
        return self.budget.meter.node(node).tokens


def name(edit: Edit) -> str:
    """The step that made an edit, without its settings."""
    return edit.by.partition("(")[0]
