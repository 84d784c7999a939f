"""What `clew count` and `clew compress` show."""

import json
from collections import Counter as Tally
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rich.table import Table

from clew.core.items import SHORT, Frame, Item
from clew.core.view import View
from clew.screens.lines import label, name
from clew.tokens import Counter
from clew.tokens.target import Target


class CountRow(NamedTuple):
    """One kind of item, added up."""

    items: int = 0
    tokens: int = 0
    characters: int = 0


def tally(counter: Counter, frame: Frame, items: Iterable[Item]) -> dict[str, CountRow]:
    """Tokens by kind of item, the frame first."""
    tools = json.dumps(list(frame.tools)) if frame.tools else ""
    rows = {"frame": CountRow(0, counter.frame(frame), len(frame.system) + len(tools))}
    for item in items:
        kind = label(item) if item.kind == "text" else f"{item.kind}s" if item.kind in ("call", "result") else item.kind
        old = rows.get(kind, CountRow())
        size = len(item.text) + len(item.name)
        rows[kind] = CountRow(old.items + 1, old.tokens + counter.item(item), old.characters + size)
    return rows


def counted(rows: Mapping[str, CountRow]) -> Table:
    """The tally as a table, with its sum."""
    table = Table(box=None, padding=(0, 2), pad_edge=False)
    table.add_column("")
    for heading in ("items", "tokens", "chars/4"):
        table.add_column(heading, justify="right")
    whole = CountRow(*map(sum, zip(*rows.values(), strict=True)))
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


def difference(view: View, before: int, target: Target, model: str, session: str | None) -> str:
    """What compressing did, in two lines."""
    after = target.size(view).tokens
    counts = vocabulary(target.meter.counter, model)
    if not view.edits:
        return f"{before:,} tokens fit in {target.limit.tokens:,}: nothing was changed\n{counts}"
    made = Tally(map(name, view.edits))
    edits = ", ".join(f"{n} {step}" for step, n in made.most_common())
    told = f"{before:,} → {after:,} tokens, {1 - after / before:.0%} saved; edits: {edits}\n{counts}"
    if session is None:
        return told
    stand_in = next(e for e in view.edits if any(n in view.nodes for n in e.new))
    id = view.digests.handle(stand_in.old)[:SHORT]
    return f"{told}\nlook: clew show {session} · get an original back: clew recall {id}"
