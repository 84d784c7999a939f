"""The demo: a real conversation, replayed turn by turn through a real engine in a window much too small for it."""

import asyncio
import re
import shutil
import sys
import time
from collections import Counter as Tally
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, count
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from clew.core import rawjson
from clew.core.items import SHORT, Digests, Edit, Node
from clew.core.limits import Budget
from clew.core.unpacking import shipped
from clew.core.view import View
from clew.engine.engine import Engine, Request, body
from clew.screens import line, name, words
from clew.store import Store, open_store
from clew.store.places import Server
from clew.tokens.target import Target
from clew.wire import check, decode

DEMO_SCOPE = "demo"
DEMO_MODEL = "gpt-4o"  # whose vocabulary counts
DEMO_FORMAT = "openai_chat"


@dataclass(frozen=True, slots=True)
class DemoTurn:
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
class RecallProof:
    """What is behind the stand-ins, read back from the store."""

    hidden: int  # originals that some stand-in took the place of
    recalled: int  # how many of them came back byte for byte


def sample() -> list[dict[str, Any]]:
    """The messages of the conversation that ships with clew; LICENSE-sample.md says whose it is."""
    data = files("clew").joinpath("data/sample.jsonl.gz").read_bytes()
    messages: list[dict[str, Any]] = rawjson.loads(shipped(data))["messages"]
    return messages


class Replay:
    """Sends a conversation again, call by call, and keeps count."""

    def __init__(self, store: Store, messages: Sequence[dict[str, Any]], window: int, session: str) -> None:
        self.messages = messages
        self.session = session
        budget = Budget(window, model=DEMO_MODEL)
        self.engine = Engine(store, budget)
        self.target = Target.of(budget)
        self.edits: tuple[Edit, ...] = ()
        self.largest = self.broken = 0
        self.seconds = 0.0
        frame, items = decode({"messages": list(messages)}, DEMO_FORMAT)
        self.originals = {n.id: n for n in Digests(store.secret, DEMO_SCOPE).chain(items)}
        self._tokens = {n.id: self._count(n) for n in self.originals.values()}
        self._before: list[int] = []  # tokens said before each message
        said = self.target.meter.frame(frame).tokens
        for node in self.originals.values():
            if node.item.opens is not None:
                self._before.append(said)
            said += self._tokens[node.id]
        self.calls = [i for i, m in enumerate(messages) if m["role"] == "assistant" and i]

    async def turns(self) -> AsyncIterator[DemoTurn]:
        """Make every call that the agent made then: each with all that was said before it."""
        sent = whole = 0
        last = ""
        for number, end in enumerate(self.calls, 1):
            view = await self._call(end)
            tokens = self.target.size(view).tokens
            said = self._before[end]
            sent, whole = sent + tokens, whole + said
            self.largest = max(self.largest, tokens)
            last = self._words(view.edits[len(self.edits) :]) or last
            self.edits += view.edits[len(self.edits) :]  # with their words, which later views do not have
            yield DemoTurn(number, len(self.calls), tokens, self.target.limit.tokens, said, sent, whole, last)

    def steps(self) -> Tally[str]:
        """How many edits each step made."""
        return Tally(name(e) for e in self.edits)

    def example(self) -> tuple[str, str] | None:
        """A stand-in as the model saw it, and the id it names."""
        texts = [n.item.text for e in self.edits if name(e) == "Summarize" for n in e.new]
        text = max(texts, key=len, default="")
        found = re.search(rf"recall ([0-9a-f]{{{SHORT}}})", text)
        return (text, found[1]) if found else None

    async def prove(self, store: Store) -> RecallProof:
        """Recall every stand-in from a store and compare what comes back with what was said."""
        engine = Engine(store)
        hidden = {id for e in self.edits for id in e.sources if id in self.originals}
        stand_ins = {n.id for e in self.edits for n in e.new if n.id not in e.old}
        found = {n.id: n.item for id in stand_ins for n in await engine.recall(DEMO_SCOPE, id)}
        recalled = sum(found.get(id) == self.originals[id].item for id in hidden)
        return RecallProof(len(hidden), recalled)

    async def _call(self, end: int) -> View:
        request = Request({"model": DEMO_MODEL, "messages": self.messages[:end]}, DEMO_FORMAT, DEMO_SCOPE, self.session)
        begin = time.perf_counter()
        view = await self.engine.prepare(request)
        self.seconds += time.perf_counter() - begin
        self.broken += len(check(body(view), DEMO_FORMAT))
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
        return ", ".join(f"{step} {old:,} → {new:,} tokens ({n})" for step, (n, old, new) in tally.items())

    def _count(self, node: Node) -> int:
        return self.target.meter.node(node).tokens


# --- on the screen ----------------------------------------------------------------------------------------------------


async def run(where: Path | Server, window: int, tick: float, options: str = "") -> None:
    """The whole demo; `tick` is how long a turn stays on a terminal, in seconds.

    `options` name the store in the commands that it prints, where it is not the configured one.
    """
    console = Console(highlight=False)
    store = open_store(where)
    try:
        replay = Replay(store, sample(), window, await _free_name(store))
        console.print(f"A real coding session in a window of {window:,} tokens, kept in {where}\n", soft_wrap=True)
        last = await play(replay.turns(), console, tick)
    finally:
        await store.close()
    store = open_store(where)  # opened anew: what comes back now comes from the file
    try:
        proof = await replay.prove(store)
    finally:
        await store.close()
    summary(console, replay, last, proof)
    threads(console, replay, options)


async def _free_name(store: Store) -> str:
    """`demo`, or `demo-2` and so on where there was one before."""
    taken = {session.name for session in await store.sessions(DEMO_SCOPE)}
    names = chain(["demo"], (f"demo-{n}" for n in count(2)))
    return next(name for name in names if name not in taken)


def meter(turn: DemoTurn, width: int) -> Group:
    """How a replay stands, to be drawn over the last one."""
    wide = min(40, width - 40)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    turns = ProgressBar(turn.turns, turn.number, wide, complete_style="green", finished_style="green")
    view = ProgressBar(turn.limit, turn.view, wide, complete_style="cyan")
    table.add_row("turn", turns, f"{turn.number} of {turn.turns}")
    table.add_row("sent", view, f"{turn.view:,} of {turn.limit:,} tokens")
    table.add_row("said", f"{turn.said:,} tokens")
    table.add_row("saved", f"{turn.saved:.0%} of {turn.whole:,} tokens")
    last = Text(f"edit   {turn.last or 'none yet: everything fits'}", no_wrap=True, overflow="ellipsis")
    last.stylize("bold", 0, 4)
    return Group(table, last)


async def play(turns: AsyncIterator[DemoTurn], console: Console, tick: float) -> DemoTurn:
    """Show the turns as they come: live on a terminal, else a line for every tenth of them. Returns the last."""
    turn: DemoTurn | None = None
    if not console.is_terminal:
        async for turn in turns:
            if 10 * turn.number // turn.turns > 10 * (turn.number - 1) // turn.turns:
                console.print(milestone(turn))
        console.print()
    else:
        with Live(console=console, transient=True, refresh_per_second=20) as live:
            async for turn in turns:
                live.update(meter(turn, console.width))
                await asyncio.sleep(tick)
    assert turn is not None, "the sample has turns"
    return turn


def milestone(turn: DemoTurn) -> str:
    """How a replay stands, for a log."""
    return (
        f"turn {turn.number:>3} of {turn.turns}: said {turn.said:>6,}, sent {turn.view:>6,} of {turn.limit:,}, "
        f"saved {turn.saved:.0%} so far"
    )


def summary(console: Console, replay: Replay, last: DemoTurn, proof: RecallProof) -> None:
    """What a replay came to."""
    target = replay.target
    edits = ", ".join(f"{n} {step}" for step, n in replay.steps().most_common())
    each = 1000 * replay.seconds / last.turns
    rows = [
        ("said", f"{last.said:,} tokens in {replay.calls[-1]} messages"),
        ("sent in all", f"{last.sent:,} tokens in {last.turns} calls"),
        ("sending everything", f"{last.whole:,} tokens"),
        ("saved", f"{last.saved:.0%}"),
        ("largest view", f"{replay.largest:,} of {target.limit.tokens:,} (and {target.kept_free:,} for the answer)"),
        ("edits", edits or "none: everything fits; try a smaller --window"),
        ("originals recalled", f"{proof.recalled} of {proof.hidden}, byte for byte"),
        ("provider rules", f"{replay.broken} broken in {last.turns} bodies"),
        ("time", f"{replay.seconds:.1f} s, {each:.0f} ms a call"),
    ]
    for what, told in rows:
        line(console, f"{what:<20}{told}")
    console.print()


def command() -> str:
    """How the reader can call clew: after `make demo` it is in the project's own environment, not on the path."""
    called = Path(sys.argv[0])
    if shutil.which("clew") or called.name != "clew":
        return "clew"
    return str(called.relative_to(Path.cwd()) if called.is_relative_to(Path.cwd()) else called)


def threads(console: Console, replay: Replay, options: str) -> None:
    """Where to go from the demo: a stand-in, and the ways to look behind it."""
    if example := replay.example():
        text, id = example
        console.print(Text(f"The model saw:   {words(text, 400)}"))
        console.print(
            f"Get it back:     {command()} recall {id} --scope {DEMO_SCOPE}{options}", markup=False, soft_wrap=True
        )
    console.print(
        f"See all it saw:  {command()} show {replay.session} --scope {DEMO_SCOPE}{options}",
        markup=False,
        soft_wrap=True,
    )
