"""What `clew show` shows: what a window is made of, and every node in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from clew.core.items import ASKING, SHORT, Edit, Node
from clew.core.view import originals
from clew.screens.lines import count, label, line, maker, name, numbered, print_line, read, table, words
from clew.sessions.composition import CompositionPart, recall_id
from clew.sessions.window import Window
from clew.steps.worklog.blocks import author
from clew.store.records import Session

# Of each kind: the colour of its part of the bar, and its letter where there are no colours.
LOOKS = {
    "system and tools": ("bright_black", "S"),
    "summaries": ("cyan", "M"),
    "other stand-ins": ("blue", "O"),
    "user text": ("green", "U"),
    "assistant text": ("yellow", "A"),
    "calls": ("magenta", "C"),
    "results": ("bright_blue", "R"),
    "reasoning": ("bright_magenta", "T"),
    "media": ("bright_yellow", "P"),
    "other": ("white", "X"),
}
INDENT = 4  # of what a summary says
FREE, RESERVE = ("bright_black", "·"), ("bright_black", "/")


class Behind(NamedTuple):
    """What a stand-in stands for."""

    id: str
    items: int
    tokens: int
    by: str
    author: str  # of a chapter: the model, or code
    cost: float | None  # dollars, of a model's


@dataclass(frozen=True)
class ShownWindow:
    """A window, the session that it is of, and every original by id."""

    session: Session
    window: Window
    nodes: Mapping[str, Node]

    @property
    def original_tokens(self) -> int:
        """Tokens of all that was said, as the provider counts."""
        view, meter = self.window.view, self.window.target.meter
        frame = meter.frame(view.frame)
        own, said = (frame.plus(meter.nodes(some)).tokens for some in (view.nodes, self.nodes.values()))
        return round(said * self.window.sent / own) if own else 0

    @property
    def saved(self) -> float:
        return max(0.0, 1 - self.window.sent / self.original_tokens) if self.original_tokens else 0.0

    def as_json(self) -> dict[str, Any]:
        """All of it, for a program."""
        found, by_id = self.window, self.window.view.edits.made
        nodes = [
            {"id": n.node.id, "kind": n.node.item.kind, "role": n.node.item.role, "tokens": n.tokens}
            | ({"stands_for": self.behind(by_id[n.node.id], by_id)._asdict()} if n.node.id in by_id else {})
            | {"words": words(n.node.item.text)}
            for n in found.nodes
        ]
        return (
            {"session": numbered(self.session), "id": self.session.id, "model": found.view.frame.model}
            | {key: getattr(found, key) for key in ("call", "sent", "limit", "reserve")}
            | {"whole": self.original_tokens, "saved": self.saved}
            | {"parts": [part._asdict() for part in found.parts], "nodes": nodes}
        )

    def behind(self, edit: Edit, by_id: Mapping[str, Edit]) -> Behind:
        nodes = [self.nodes[id] for id in originals(edit.old, by_id) if id in self.nodes]
        id = recall_id(edit, self.window.view.digests)
        tokens = self.window.target.meter.nodes(nodes).tokens
        return Behind(id, len(nodes), tokens, name(edit), author(edit), edit.evidence.get("cost"))


def window(console: Console, shown: ShownWindow, ids: bool) -> None:
    """A table, a bar, the sum, and then a line for each node."""
    found = shown.window
    _heading(console, shown)
    colours = bool(console.color_system) and not console.no_color
    _table(console, found.parts, colours)
    console.print(bar(found, console.width, colours), soft_wrap=True)
    saved = f" · {shown.saved:.0%} saved" if found.sent < shown.original_tokens else ""
    verb = "sent" if found.call is not None else "would be sent"
    line(console, f"{found.sent:,} {verb} of {found.limit:,} · {shown.original_tokens:,} said{saved}", "bold")
    console.print()
    _listing(console, shown, ids)


def _heading(console: Console, shown: ShownWindow) -> None:
    session, found = shown.session, shown.window
    sent = "not sent yet" if found.call is None else f"as sent in call {found.call}"
    undone = ", undone since" if session.undone else ""
    told = Text(numbered(session), "bold")
    told.append(f" · {session.cause}{undone} · {words(found.view.frame.model or '-', 40)} · {sent}", "dim")
    print_line(console, told)


def _table(console: Console, parts: Sequence[CompositionPart], colours: bool) -> None:
    made = table("", "tokens", "share", "items")
    whole = sum(part.tokens for part in parts) or 1
    for part in parts:
        colour, letter = LOOKS[part.kind]
        mark = Text("██ " if colours else f"{letter}  ", colour)
        made.add_row(
            mark.append(part.kind, "default"), f"{part.tokens:,}", f"{part.tokens / whole:.0%}", f"{part.items:,}"
        )
    console.print(made)


def bar(shown: Window, width: int, colours: bool) -> Text:
    """A window as one line: what is in it, what is free, and what is kept for the answer."""
    filled = [(part.tokens, *LOOKS[part.kind]) for part in shown.parts]
    free, kept = max(0, shown.limit - shown.sent), shown.reserve
    whole = sum(tokens for tokens, _, _ in filled) + free + kept
    text, at = Text(), 0
    for n, (tokens, colour, letter) in enumerate([*filled, (free, *FREE), (kept, *RESERVE)]):
        cells = round((at + tokens) * width / whole) - round(at * width / whole)
        text.append(("█" if colours and n < len(filled) else letter) * cells, colour)
        at += tokens
    return text


def _listing(console: Console, shown: ShownWindow, ids: bool) -> None:
    view = shown.window.view
    if shown.window.frame:
        tools = f" and {count(len(view.frame.tools), 'tool')}" if view.frame.tools else ""
        id = " " * (SHORT + 2) if ids else ""
        line(console, f"  {id}{'system':<9} {shown.window.frame:>7,}   {words(view.frame.system, 60)}{tools}")
    by_id = view.edits.made
    for node, tokens, _ in shown.window.nodes:
        edit = by_id.get(node.id)
        mark, style = ("▸", "cyan") if edit else (" ", "")
        id = f"{node.id[:SHORT]}  " if ids else ""
        told = words(f"{node.item.name} {node.item.text}")
        if edit and ASKING in edit.evidence:
            told = f"recalled for the message after it   {name(edit)}"
        elif edit:
            behind = shown.behind(edit, by_id)
            told = f"{behind.id} stands for {count(behind.items, 'item')}, {behind.tokens:,} tokens   {maker(edit)}"
        line(console, f"{mark} {id}{label(node.item):<9} {tokens:>7,}   {told}", style)
        if edit and node.item.kind == "summary":
            read(console, node.item.text, INDENT)
