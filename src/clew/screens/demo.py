"""The demo: a conversation, replayed call by call through a real engine in a window too small for it."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, count, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from rich.cells import set_cell_size
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from clew.core import rawjson
from clew.core.items import SHORT, Digests, Edit, Node
from clew.core.limits import Budget
from clew.core.unpacking import shipped
from clew.core.view import View, originals
from clew.engine.engine import Engine, Request, body
from clew.facts.sheets import voice_of
from clew.screens.lines import LOOKED_AT, name, phrase, read, words
from clew.sessions.window import Window
from clew.store import Store, open_store
from clew.store.places import Server
from clew.text.search import Found
from clew.tokens.target import Target
from clew.wire import check, decode

DEMO_MODEL = "gpt-4o"  # whose vocabulary counts
DEMO_FORMAT = "openai_chat"
DEMO_WINDOW = 24_000
ROWS = 12  # of the picture
SUMMARY_LINES = 8
UNCHANGED = "word for word"
HITS, HIT_LINES = 3, 2  # for a question of the user's: passages, and lines of each
QUESTIONS = (  # about the conversation that ships with clew, in other words than its own
    "Which view should be the default?",
    "Why are the stats of shadow commits wrong?",
    "What happens to session logs on shadow branches when the user commits?",
)


@dataclass(frozen=True, slots=True)
class DemoTurn:
    """One call of the replay, and how things stand after it; all numbers but the first two are tokens."""

    number: int
    turns: int
    view: int  # sent in this call
    limit: int  # of one call
    original: int  # until now
    sent: int  # in all calls until now
    everything: int  # what all calls until now would have been with nothing left out
    last: str  # the newest edits, in words

    @property
    def saved(self) -> float:
        return 1 - self.sent / self.everything if self.everything else 0.0


class RecallProof(NamedTuple):
    """What is behind the stand-ins, read back from the store."""

    hidden: int  # originals that some stand-in took the place of
    recalled: int  # how many of them came back byte for byte


class PictureRow(NamedTuple):
    """Some requests: the tokens that were said with them, those that the last call sends of it, and in which form."""

    request: str
    before: int
    after: int
    form: str


def sample() -> list[dict[str, Any]]:
    """The messages of the conversation that ships with clew; LICENSE-sample.md says whose it is."""
    data = files("clew").joinpath("data/sample.jsonl.gz").read_bytes()
    messages: list[dict[str, Any]] = rawjson.loads(shipped(data))["messages"]
    return messages


class Replay:
    """Sends a conversation again, call by call, and keeps count."""

    def __init__(
        self, store: Store, messages: Sequence[Mapping[str, Any]], window: int, session: str, scope: str
    ) -> None:
        self.messages = messages
        self.session, self.scope = session, scope
        budget = Budget(window, model=DEMO_MODEL)
        self.engine = Engine(store, budget)
        self.target = Target.of(budget)
        self.edits: tuple[Edit, ...] = ()
        self.broken = 0
        self.seconds = 0.0
        self.view: View | None = None  # of the last call
        frame, items = decode({"messages": list(messages)}, DEMO_FORMAT)
        self.originals = {n.id: n for n in Digests(store.secret, scope).chain(items)}
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
        sent = everything = 0
        last = ""
        for number, end in enumerate(self.calls, 1):
            view = self.view = await self._call(end)
            tokens = self.target.size(view).tokens
            said = self._before[end]
            sent, everything = sent + tokens, everything + said
            last = self._words(view.edits[len(self.edits) :]) or last
            self.edits += view.edits[len(self.edits) :]  # with their words, which later views do not have
            yield DemoTurn(number, len(self.calls), tokens, self.target.limit.tokens, said, sent, everything, last)

    async def prove(self, store: Store) -> RecallProof:
        """Recall every stand-in from a store and compare what comes back with what was said."""
        engine = Engine(store)
        hidden = {id for e in self.edits for id in e.sources if id in self.originals}
        stand_ins = {n.id for e in self.edits for n in e.new if n.id not in e.old}
        found = {n.id: n.item for id in stand_ins for n in await engine.recall(self.scope, id)}
        recalled = sum(found.get(id) == self.originals[id].item for id in hidden)
        return RecallProof(len(hidden), recalled)

    async def search(self, question: str, hits: int = HITS) -> list[Found]:
        """What was said that a question is about, best first."""
        branch = await self.engine.named(self.scope, self.session)
        return await self.engine.find(self.scope, question, branch or "", hits)

    def is_in_view(self, id: str) -> bool:
        return self.view is not None and any(node.id == id for node in self.view.nodes)

    def picture(self) -> list[PictureRow]:
        """The requests in order, a few together where there are many."""
        view = self.view
        assert view is not None, "a replay is pictured after its last call"
        starts, voice = list[int](), ""
        said = list(self.originals.values())[: self._last()]
        for at, node in enumerate(said):
            now = voice_of(node.item)
            if now == "user" != voice:
                starts.append(at)
            voice = now
        places = {node.id: at for at, node in enumerate(said)}
        made = view.edits.made
        window = Window(view, None, self.target.size(view).tokens, self.target)  # whose parts add up to what was sent
        seen, at = list[tuple[int, Node, int]](), 0  # where it begins in what was said, and its tokens
        for node, tokens in zip(view.nodes, (one.tokens for one in window.nodes), strict=True):
            at = min((places[id] for id in originals((node.id,), made) if id in places), default=at)
            seen.append((at, node, tokens))
        each = -(-len(starts) // ROWS)
        edges = [*starts[::each], len(said)]
        rows = list[PictureRow]()
        for n, (start, stop) in enumerate(pairwise(edges)):
            first, last = n * each + 1, min(len(starts), (n + 1) * each)
            title = f"{first}{f'-{last}' if last > first else ''} {words(said[start].item.text)}"
            here = [(node, tokens) for at, node, tokens in seen if start <= at < stop]
            whole = {node.id for node, _ in here if node.id in places}
            if not here:
                form = "in the one above"
            elif len(whole) == stop - start:  # and perhaps a passage that clew put beside it
                form = UNCHANGED
            else:
                words_too = any(voice_of(node.item) == "user" and node.id in whole for node in said[start:stop])
                form = "summary + request" if words_too else "summary"
            before = sum(self._tokens[node.id] for node in said[start:stop])
            rows.append(PictureRow(title, before, sum(tokens for _, tokens in here), form))
        return rows

    def example(self) -> tuple[str, str] | None:
        """The first summary of some length as the model sees it in the last call, and the id it names."""
        shown = [] if self.view is None else [n.item.text for n in self.view.nodes if n.id not in self.originals]
        long = (text for text in shown if len(text.splitlines()) > SUMMARY_LINES)
        text = next(long, max(shown, key=len, default=""))
        found = re.search(rf"recall ([0-9a-f]{{{SHORT}}})", text)
        return (text, found[1]) if found else None

    def _last(self) -> int:
        """How many items were said before the last call."""
        ends = self.calls[-1]
        opened = -1
        for at, node in enumerate(self.originals.values()):
            opened += node.item.opens is not None
            if opened == ends:
                return at
        return len(self.originals)

    async def _call(self, end: int) -> View:
        request = Request({"model": DEMO_MODEL, "messages": self.messages[:end]}, DEMO_FORMAT, self.scope, self.session)
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


async def run(
    console: Console,
    where: Path | Server | str,
    messages: Sequence[Mapping[str, Any]],
    window: int,
    scope: str,
    asked: Sequence[str] = (),
    tick: float = 0.0,
) -> Replay:
    """All of a replay up to the questions; `tick` is how long a turn stays on a terminal, in seconds."""
    store = open_store(where)
    try:
        replay = Replay(store, messages, window, await _free_name(store, scope), scope)
        if not replay.calls:
            console.print("There is no answer of an agent in it, so there is nothing to replay.")
            return replay
        limit = f"(a request: {replay.target.limit.tokens:,})"
        console.print(f"A coding session, call by call, in a window of {window:,} tokens {limit}\n", soft_wrap=True)
        last = await play(replay.turns(), console, tick)
        if str(where) == ":memory:":
            proof = await replay.prove(store)
        else:
            again = open_store(where)  # opened anew: what comes back now comes from the file
            try:
                proof = await replay.prove(again)
            finally:
                await again.close()
        figures(console, replay, last, proof)
        picture(console, replay, last)
        await questions(console, replay, asked)
    finally:
        await store.close()
    return replay


async def _free_name(store: Store, scope: str) -> str:
    """`demo`, or `demo-2` and so on where there was one before."""
    taken = {session.name for session in await store.sessions(scope)}
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
    table.add_row("call", turns, f"{turn.number} of {turn.turns}")
    table.add_row("sent", view, f"{turn.view:,} of {turn.limit:,} tokens")
    table.add_row("said", f"{turn.original:,} tokens")
    table.add_row("saved", f"{turn.saved:.0%} of {turn.everything:,} tokens")
    last = Text(f"edit   {turn.last or 'none yet: everything fits'}", no_wrap=True, overflow="ellipsis")
    last.stylize("bold", 0, 4)
    return Group(table, last)


async def play(turns: AsyncIterator[DemoTurn], console: Console, tick: float) -> DemoTurn:
    """Show the turns as they come: live on a terminal, else a line for every tenth of them. Returns the last."""
    turn: DemoTurn | None = None
    if not console.is_terminal:
        async for turn in turns:
            if 10 * turn.number // turn.turns > 10 * (turn.number - 1) // turn.turns:
                console.print(milestone(turn), soft_wrap=True)
        console.print()
    else:
        with Live(console=console, transient=True, refresh_per_second=20) as live:
            async for turn in turns:
                live.update(meter(turn, console.width))
                await asyncio.sleep(tick)
    assert turn is not None, "a replay has calls"
    return turn


def milestone(turn: DemoTurn) -> str:
    """How a replay stands, for a log."""
    return (
        f"call {turn.number:>4} of {turn.turns}: {turn.original:>7,} tokens so far, {turn.view:>7,} sent, "
        f"{turn.saved:.0%} saved in all"
    )


def figures(console: Console, replay: Replay, last: DemoTurn, proof: RecallProof) -> None:
    """What a replay came to."""
    rows = [
        ("conversation", f"{last.original:,} tokens in {replay.calls[-1]} messages"),
        ("the last call", f"{last.view:,} tokens of it sent, where {last.limit:,} fit"),
        ("all calls", f"{last.sent:,} tokens instead of {last.everything:,} ({last.saved:.0%} less)"),
        ("originals", f"{proof.recalled} of {proof.hidden} behind summaries come back byte for byte"),
        ("requests", f"{last.turns}, {replay.broken} of them break a rule of the provider"),
    ]
    for what, value in rows:
        console.print(f"{what:<15}{value}", soft_wrap=True)
    console.print()


def picture(console: Console, replay: Replay, last: DemoTurn) -> None:
    """What was said beside what the model sees of it."""
    if not replay.edits:
        console.print("Everything fits: try a smaller --window\n")
        return
    if example := replay.example():
        lines = example[0].splitlines()
        console.print(Text("One of the summaries, as the model reads it", "bold"))
        read(console, "\n".join(lines[:SUMMARY_LINES]), 2, "cyan")
        console.print(Text(f"  … {max(0, len(lines) - SUMMARY_LINES)} more lines\n", "dim"))
    wide = max(20, console.width - 40)
    console.print(Text(f"{'The requests, and what followed each':<{wide}} {'before':>7} {'after':>7}  now", "bold"))
    for request, before, after, form in replay.picture():
        cells = f"{before:>7,} {after:>7,}"
        shown = Text.assemble(_padded(request, wide), f" {cells}  ", (form, "" if form == UNCHANGED else "cyan"))
        console.print(shown, soft_wrap=True)
    console.print(Text(f"{'tokens':<{wide}} {last.original:>7,} {last.view:>7,}\n", "bold"), soft_wrap=True)


def _padded(text: str, width: int) -> str:
    """The first words of a text, and as many blanks as bring it to a width on the screen."""
    return set_cell_size(phrase(text, width), width)


async def questions(console: Console, replay: Replay, asked: Sequence[str]) -> None:
    """Ask the log, as the model can: what it finds, and whether that is still in view."""
    console.print(Text("Asked afterwards, and answered from the log without a model", "bold"))
    for question in asked or QUESTIONS:
        console.print(Text(f"? {question}", "bold"), soft_wrap=True)
        found = await replay.search(question, HITS if asked else 1)
        if not found:
            console.print("  nothing in this conversation is about that")
        for one in found:
            lines = " … ".join(words(found.text.strip(" -*")) for found in one.lines[:HIT_LINES])
            place = "still in view" if replay.is_in_view(one.id) else "recalled"
            read(console, f"{place}, {phrase(one.title, 60)}: {phrase(lines, 2 * LOOKED_AT)}", 2, "")
        console.print()


def next_steps(console: Console, replay: Replay, hinted: Callable[[str], str]) -> None:
    """Where to go from the demo: the conversation, and the way behind a summary."""
    console.print("Next:")
    steps = [(f"`clew show {replay.session}`", "what fills the window, and the text of each summary")]
    if example := replay.example():
        steps.append((f"`clew recall {example[1]}`", "the original behind one of them, byte for byte"))
    steps.append((f"`clew open {replay.session}`", "the same in a browser"))
    for does, why in steps:
        console.print(f"  {hinted(does).strip('`')}  # {why}", markup=False, soft_wrap=True)
