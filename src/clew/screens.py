"""What the command line shows: a meter, tables, and one line a node. Everything here only draws."""

import asyncio
import json
import re
from collections import Counter as Tally
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from clew import catalog, rawjson
from clew.budget import Budget, Meter
from clew.demo import SCOPE, Proof, Replay, Turn, name
from clew.errors import BadRequest, NotFound
from clew.items import SHORT, Digests, Edit, Frame, Item, Node
from clew.live import originals
from clew.steps.lines import amount, clip
from clew.store.records import BranchInfo, Call
from clew.tokens import Counter
from clew.view import View

WORDS = 200  # characters of a node that are looked at for its line


def words(text: str, most: int = WORDS) -> str:
    """The first words of a text on one line, with nothing in them that would move a cursor."""
    return "".join(c if c.isprintable() else "�" for c in clip(text, most))


def line(console: Console, text: str, style: str = "") -> None:
    """Print one line, cut to the width of the screen."""
    cut = Text(text, style)
    cut.truncate(console.width, overflow="ellipsis")
    console.print(cut, soft_wrap=True)


def grid(rows: Iterable[Sequence[RenderableType]]) -> Table:
    """Names on the left, what they are on the right."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="ellipsis", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


# --- clew demo ------------------------------------------------------------------------------------------------------


def meter(turn: Turn, width: int) -> Group:
    """How a replay stands, to be drawn over the last one."""
    bar = ProgressBar(total=turn.limit, completed=turn.view, width=min(40, width - 40))
    sent = Table.grid(padding=(0, 2))
    sent.add_row(bar, f"{turn.view:>6,} of {turn.limit:,}")
    rows: list[Sequence[RenderableType]] = [
        ("turn", f"{turn.number} of {turn.turns}"),
        ("sent now", sent),
        ("said", f"{turn.said:,} tokens"),
        ("saved", f"{turn.whole - turn.sent:,} of {turn.whole:,} tokens ({turn.saved:.0%})"),
        ("last edit", turn.last or "none yet: everything fits"),
    ]
    return Group(grid(rows))


async def play(turns: AsyncIterator[Turn], console: Console, tick: float) -> Turn:
    """Show the turns as they come: live on a terminal, else a line for every tenth of them. Returns the last."""
    turn: Turn | None = None
    if not console.is_terminal:
        async for turn in turns:
            if turn.number % max(1, turn.turns // 10) == 0 or turn.number == turn.turns:
                console.print(milestone(turn))
        console.print()
    else:
        with Live(console=console, transient=True, refresh_per_second=20) as live:
            async for turn in turns:
                live.update(meter(turn, console.width))
                await asyncio.sleep(tick)
    assert turn is not None, "the sample has turns"
    return turn


def milestone(turn: Turn) -> str:
    """How a replay stands, for a log."""
    return (
        f"turn {turn.number:>3} of {turn.turns}: said {turn.said:>6,}, sent {turn.view:>6,} of {turn.limit:,}, "
        f"saved {turn.saved:.0%} so far"
    )


def summary(replay: Replay, last: Turn, proof: Proof) -> Table:
    """What a replay came to."""
    budget = replay.budget
    edits = ", ".join(f"{n} {step}" for step, n in replay.steps().most_common())
    each = 1000 * replay.seconds / last.turns
    rows = [
        ("said", f"{replay.said:,} tokens in {len(replay.messages)} messages"),
        ("sent in all", f"{last.sent:,} tokens in {last.turns} calls"),
        ("everything, every time", f"{last.whole:,} tokens"),
        ("saved", f"{last.saved:.0%}"),
        ("largest view", f"{replay.largest:,} of {budget.limit.tokens:,} (and {budget.kept_free:,} for the answer)"),
        ("edits", edits or "none: everything fits; try a smaller --window"),
        ("originals recalled", f"{proof.recalled} of {proof.hidden}, byte for byte"),
        ("provider rules", f"{replay.broken} broken in {last.turns} bodies"),
        ("time", f"{replay.seconds:.1f} s, {each:.0f} ms a call"),
    ]
    return grid(rows)


def threads(console: Console, replay: Replay) -> None:
    """Where to go from the demo: a stand-in, and the ways to look behind it."""
    if example := replay.example():
        text, id = example
        line(console, f"The model saw    {words(text)}")
        line(console, f"Get it back      clew recall {id} --scope {SCOPE}")
    line(console, f"See what it saw  clew show {replay.session} --scope {SCOPE}")


# --- clew count -----------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """One kind of item, added up."""

    items: int = 0
    tokens: int = 0
    characters: int = 0


def tally(counter: Counter, frame: Frame, items: Iterable[Item]) -> dict[str, Row]:
    """Tokens by kind of item, the frame first."""
    tools = json.dumps(list(frame.tools)) if frame.tools else ""
    rows = {"frame": Row(0, counter.frame(frame), len(frame.system) + len(tools))}
    for item in items:
        kind = label(item) if item.kind == "text" else f"{item.kind}s" if item.kind in ("call", "result") else item.kind
        old = rows.get(kind, Row())
        size = len(item.text) + len(item.name)
        rows[kind] = Row(old.items + 1, old.tokens + counter.item(item), old.characters + size)
    return rows


def counted(rows: Mapping[str, Row]) -> Table:
    """The tally as a table, with its sum."""
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    table.add_column("")
    for heading in ("items", "tokens", "chars/4"):
        table.add_column(heading, justify="right")
    whole = Row(*map(sum, zip(*rows.values(), strict=True)))
    for kind, row in (*rows.items(), ("in all", whole)):
        items = f"{row.items:,}" if row.items or kind == "in all" else ""
        style = "bold" if kind == "in all" else ""
        table.add_row(kind, items, f"{row.tokens:,}", f"{row.characters // 4:,}", style=style)
    return table


def vocabulary(counter: Counter, model: str) -> str:
    """Whose counts these are, and how far to trust them."""
    if not model:
        return f"{counter.vocabulary}, approximate: name the model with --model"
    return f"{counter.vocabulary}, {'exact' if counter.exact else 'approximate'} for {model}"


# --- clew compress ----------------------------------------------------------------------------------------------------


def difference(view: View, before: int, budget: Budget, model: str, session: str | None) -> str:
    """What compressing did, in two lines."""
    after = budget.size(view).tokens
    counts = vocabulary(budget.meter.counter, model)
    if not view.edits:
        return f"{before:,} tokens fit in {budget.limit.tokens:,}: nothing was changed\n{counts}"
    made = Tally(map(name, view.edits))
    edits = ", ".join(f"{n} {step}" for step, n in made.most_common())
    told = f"{before:,} → {after:,} tokens, {1 - after / before:.0%} saved; edits: {edits}\n{counts}"
    if session is None:
        return told
    stand_in = next(e for e in view.edits if any(n in view.nodes for n in e.new))
    id = view.digests.handle(stand_in.old)[:SHORT]
    return f"{told}\nlook: clew show {session} · get an original back: clew recall {id}"


# --- clew show, clew recall -------------------------------------------------------------------------------------------


def label(item: Item) -> str:
    """What an item is, in one word: who said it, or its kind."""
    return item.role if item.kind == "text" else item.kind


def listing(console: Console, rows: Sequence[tuple[BranchInfo, int]], more: int) -> None:
    """Branches, newest first, and how many items were said on each."""
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    for heading in ("id", "session", "calls", "items", "when"):
        table.add_column(heading, justify="right" if heading in ("calls", "items") else "left", no_wrap=True)
    for info, said in rows:
        when = datetime.fromtimestamp(info.at).strftime("%Y-%m-%d %H:%M")
        session = words(info.session or "-", 30)
        table.add_row(info.id[:SHORT], Text(session), f"{info.calls:,}", f"{said:,}", when)
    console.print(table)
    if more:
        line(console, f"and {more:,} older")


def seen(console: Console, view: View, call: Call, meter: Meter, said: Mapping[str, Node]) -> None:
    """A view as it was sent, one line a node; `said` has every original by id."""
    if tokens := meter.frame(view.frame).tokens if view.frame.system or view.frame.tools else 0:
        tools = f" and {len(view.frame.tools)} tools" if view.frame.tools else ""
        line(console, f"  {'system':<9} {tokens:>7,}   {words(view.frame.system, 60)}{tools}")
    by_id = {n.id: e for e in view.edits for n in e.new if n.id not in e.old}
    for node in view.nodes:
        edit = by_id.get(node.id)
        mark, style = ("▸", "cyan") if edit else (" ", "")
        told = _behind(edit, by_id, view.digests, meter, said) if edit else words(f"{node.item.name} {node.item.text}")
        line(console, f"{mark} {label(node.item):<9} {meter.node(node).tokens:>7,}   {told}", style)
    whole = meter.frame(view.frame).plus(meter.nodes(said.values())).tokens
    window = f" of {call.model}'s {catalog.window(call.model):,}" if call.model else ""
    saved = f" · {1 - call.predicted / whole:.0%} saved" if call.predicted < whole else ""
    line(console, f"  {call.predicted:,} sent{window} · {whole:,} said{saved}", "bold")


def _behind(edit: Edit, by_id: dict[str, Edit], digests: Digests, meter: Meter, said: Mapping[str, Node]) -> str:
    nodes = [said[id] for id in originals(edit.old, by_id) if id in said]
    items = f"{len(nodes)} item{'s' if len(nodes) != 1 else ''}"
    tokens = meter.nodes(nodes).tokens
    return f"stands for {items}, {tokens:,} tokens   {name(edit)}   {digests.handle(edit.old)[:SHORT]}"


def heading(nodes: Sequence[Node], id: str) -> str:
    """What a recalled id is."""
    if len(nodes) == 1:
        return f"{id}: {described(nodes[0].item)}"
    return f"{id}: {len(nodes)} items, {sum(len(n.item.text) for n in nodes):,} characters"


def described(item: Item) -> str:
    """An item in a few words."""
    what = f"{label(item)} {item.name}".strip() if item.kind == "call" else label(item)
    return f"{words(what, 60)}, {amount(item)}"


def original(item: Item) -> str:
    """An item's text, byte for byte; the provider's block for one that is no text."""
    return item.text if item.text or not item.wire else rawjson.dumps(item.wire).decode()


def excerpt(text: str, lines: str, grep: str) -> str:
    """Some lines of a text; those that match a pattern come with their numbers."""
    every = text.split("\n")
    first, last = _span(lines, len(every))
    picked = list(enumerate(every, 1))[first - 1 : last]
    if not picked:
        raise NotFound(f"there are only {len(every):,} lines, none of them in {lines}")
    if not grep:
        return "".join(f"{told}\n" for _, told in picked)
    try:
        wanted = re.compile(grep)
    except re.error as error:
        raise BadRequest(f"--grep {grep}: not a pattern ({error}); put a backslash before ( [ * + ?") from None
    found = [f"{n}:{told}\n" for n, told in picked if wanted.search(told)]
    if not found:
        raise NotFound(f"no line of {len(picked):,} matches {grep}")
    return "".join(found)


def _span(lines: str, last: int) -> tuple[int, int]:
    if not lines:
        return 1, last
    found = re.fullmatch(r"(\d+)(?:-(\d*))?", lines)
    if not found or not int(found[1]):
        raise BadRequest(f"--lines {lines}: write it like 10-20, 10- or 10; the first line is 1")
    begin = int(found[1])
    return begin, begin if found[2] is None else int(found[2] or last)
