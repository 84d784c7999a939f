"""The two ends of the command line: the files it reads and writes, and what it shows."""

import json
import os
import shutil
import tempfile
from collections import Counter as Tally
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from clew import rawjson
from clew.budget import Budget, Meter
from clew.costs import Bill
from clew.errors import BadRequest, NotFound
from clew.excerpts import matching, span
from clew.finding import Found
from clew.items import SHORT, Digests, Edit, Frame, Item, Node
from clew.steps.lines import amount, clip
from clew.store.records import BranchInfo, Call
from clew.tokens import Counter
from clew.view import View, originals

WORDS = 200  # characters of a node that are looked at for its line


def words(text: str, most: int = WORDS) -> str:
    """The first words of a text on one line, with nothing in them that would move a cursor."""
    return "".join(c if c.isprintable() else "�" for c in clip(text, most))


def line(console: Console, text: str, style: str = "") -> None:
    """Print one line, cut to the width of the screen."""
    cut = Text(text, style)
    cut.truncate(console.width, overflow="ellipsis")
    console.print(cut, soft_wrap=True)


def name(edit: Edit) -> str:
    """The step that made an edit, without its settings."""
    return edit.by.partition("(")[0]


# --- files ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation as a file holds it."""

    shape: Literal["body", "list", "lines"]
    body: Mapping[str, Any]

    def written(self, body: Mapping[str, Any]) -> bytes:
        """Another body in the same shape."""
        match self.shape:
            case "body":
                values = [body]
            case "list":
                values = [body["messages"]]
            case "lines":
                values = body["messages"]
        return b"".join(rawjson.dumps(v) + b"\n" for v in values)


def read(file: str) -> str:
    """The text of a file, or of standard input for `-`."""
    try:
        data = typer.get_binary_stream("stdin").read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise BadRequest(f"{file}: {error.strerror or error}; give the name of a file, or - for input") from None
    if data[:2] == b"\x1f\x8b":
        raise BadRequest(f"{file}: is compressed; unpack it first, with gunzip -c, and give - as the file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequest(f"{file}: not UTF-8 at byte {error.start:,}; convert it first, with iconv -t UTF-8") from None


def parse(file: str, text: str) -> Talk:
    """The conversation in a text: a body, a list of messages, or one message a line."""
    try:
        value = rawjson.loads(text)
    except BadRequest as error:
        value = _messages(file, text, error)
        return Talk("lines", {"messages": value})
    match value:
        case {"messages": list()}:
            return Talk("body", value)
        case [{"role": _}, *_]:
            return Talk("list", {"messages": value})
        case {"role": _}:
            return Talk("lines", {"messages": [value]})
    raise BadRequest(f"{file}: no conversation; expected an object with `messages`, a list of messages, or one a line")


def _messages(file: str, text: str, whole: BadRequest) -> list[Any]:
    rows = [(n, row) for n, row in enumerate(text.split("\n"), 1) if row.strip()]
    found: list[Any] = []
    for n, row in rows:
        try:
            value = rawjson.loads(row)
        except BadRequest as error:
            # Not even one line reads by itself: then the file was meant as a whole.
            told = f"line {n}: {error}" if found else str(whole)
            raise BadRequest(f"{file}: {told}; expected JSON, or one message a line") from None
        if not isinstance(value, dict) or "role" not in value:
            raise BadRequest(f"{file}: line {n} is no message; give one conversation, one message a line")
        found.append(value)
    if not found:
        raise BadRequest(f"{file}: is empty; expected JSON, or one message a line")
    return found


def save(out: Path, data: bytes) -> None:
    """Write a file whole or not at all: it may be the only copy of what it holds."""
    target = out.resolve()
    try:
        if target.exists() and not target.is_file():  # a pipe or a device is written to, not replaced
            target.write_bytes(data)
            return
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        part = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if target.exists():
            shutil.copymode(target, part)
        part.replace(target)
    except OSError as error:
        raise BadRequest(f"{out}: cannot be written ({error.strerror}); choose another place") from None


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


# --- clew show, clew recall, clew search ------------------------------------------------------------------------------


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
    saved = f" · {1 - call.predicted / whole:.0%} saved" if call.predicted < whole else ""
    line(console, f"  {call.predicted:,} sent of {call.limit:,} · {whole:,} said{saved}", "bold")


def _behind(edit: Edit, by_id: dict[str, Edit], digests: Digests, meter: Meter, said: Mapping[str, Node]) -> str:
    nodes = [said[id] for id in originals(edit.old, by_id) if id in said]
    items = f"{len(nodes)} item{'s' if len(nodes) != 1 else ''}"
    tokens = meter.nodes(nodes).tokens
    return f"{digests.handle(edit.old)[:SHORT]} stands for {items}, {tokens:,} tokens   {name(edit)}"


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
    first, last = span(lines, len(every))
    picked = every[first - 1 : last]
    if not picked:
        raise NotFound(f"there are only {len(every):,} lines, none of them in {lines}")
    if not grep:
        return "".join(f"{told}\n" for told in picked)
    found = [f"{n}:{every[n - 1]}\n" for n in matching(picked, grep, first)]
    if not found:
        raise NotFound(f"no line of {len(picked):,} matches {grep}")
    return "".join(found)


def hits(console: Console, found: Sequence[Found]) -> None:
    """What was found: one line for each text, and the lines of it that say so."""
    for hit in found:
        line(console, f"{hit.id[:SHORT]}  {words(hit.title, 80)}", "bold")
        for number, text in hit.lines:
            line(console, f"  {number:>6}  {words(text)}")


def bills(console: Console, rows: Sequence[Bill]) -> None:
    """Calls in a table, and their sum: thought, then reported."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("call", "tokens", "reported", "cached", "reported", "cost", "reported"):
        table.add_column(title, justify="right")
    for bill in rows:
        shadow = "" if bill.shadow is None else f"  would be {bill.shadow['tokens_after']:,}"
        pairs = ((bill.tokens, bill.input), (bill.cached, bill.cache_read))
        counts = [_told(n, ",d") for pair in pairs for n in pair]
        table.add_row(f"{bill.seq}{shadow}", *counts, _told(bill.foretold, ".4f"), _told(bill.cost, ".4f"))
    console.print(table)
    thought, paid = (sum(filter(None, costs)) for costs in zip(*((b.foretold, b.cost) for b in rows), strict=True))
    line(console, f"{len(rows):,} calls · {thought:.4f} dollars foretold · {paid:.4f} reported", "bold")


def _told(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
