"""What `clew show` shows: what a window is made of, and every node in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from clew.core.items import ASKING, SHORT, Edit, Node
from clew.core.view import View, originals
from clew.screens.lines import count, label, line, name, numbered, read, table, words
from clew.sessions.composition import CompositionPart, Shown, adding_up, parts, recall_id, shown
from clew.store.records import Session
from clew.tokens.meter import Meter

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


@dataclass(frozen=True)
class Window:
    """What was sent in a call, and how much of it was allowed."""

    session: Session
    view: View
    call: int | None  # None: it was not sent yet
    sent: int  # tokens, as the provider counts
    limit: int
    reserve: int | None  # kept free for the answer; None: it is not known any more
    meter: Meter
    said: Mapping[str, Node]  # every original by id

    @cached_property
    def _sizes(self) -> list[int]:
        """Tokens of system prompt and tools, and of each node, as the provider counts: they add up to what was sent."""
        view = self.view
        framed = self.meter.frame(view.frame).tokens if view.frame.system or view.frame.tools else 0
        return adding_up([framed, *(self.meter.node(node).tokens for node in view.nodes)], self.sent)

    @property
    def frame(self) -> int:
        """Tokens of system prompt and tools."""
        return self._sizes[0]

    @property
    def nodes(self) -> list[Shown]:
        counted = shown(self.view.nodes, self.view.edits, self.meter)
        return [one._replace(tokens=size) for one, size in zip(counted, self._sizes[1:], strict=True)]

    @property
    def parts(self) -> list[CompositionPart]:
        return parts(self.nodes, self.frame)

    @property
    def whole(self) -> int:
        """Tokens of all that was said, as the provider counts."""
        frame, nodes = self.meter.frame(self.view.frame), self.meter.nodes
        own, said = (frame.plus(nodes(some)).tokens for some in (self.view.nodes, self.said.values()))
        return round(said * self.sent / own) if own else 0

    @property
    def saved(self) -> float:
        return max(0.0, 1 - self.sent / self.whole) if self.whole else 0.0

    def as_json(self) -> dict[str, Any]:
        """All of it, for a program."""
        keys = ("call", "sent", "limit", "reserve", "whole", "saved")
        by_id = self.view.edits.made
        nodes = [
            {"id": n.node.id, "kind": n.node.item.kind, "role": n.node.item.role, "tokens": n.tokens}
            | ({"stands_for": self.behind(by_id[n.node.id], by_id)._asdict()} if n.node.id in by_id else {})
            | {"words": words(n.node.item.text)}
            for n in self.nodes
        ]
        return (
            {"session": numbered(self.session), "id": self.session.id, "model": self.view.frame.model}
            | {key: getattr(self, key) for key in keys}
            | {"parts": [part._asdict() for part in self.parts], "nodes": nodes}
        )

    def behind(self, edit: Edit, by_id: Mapping[str, Edit]) -> Behind:
        nodes = [self.said[id] for id in originals(edit.old, by_id) if id in self.said]
        id = recall_id(edit, self.view.digests)
        return Behind(id, len(nodes), self.meter.nodes(nodes).tokens, name(edit))


def window(console: Console, shown: Window, ids: bool) -> None:
    """A table, a bar, the sum, and then a line for each node."""
    _heading(console, shown)
    colours = bool(console.color_system) and not console.no_color
    _table(console, shown.parts, colours)
    console.print(bar(shown, console.width, colours), soft_wrap=True)
    saved = f" · {shown.saved:.0%} saved" if shown.sent < shown.whole else ""
    verb = "sent" if shown.call is not None else "would be sent"
    line(console, f"{shown.sent:,} {verb} of {shown.limit:,} · {shown.whole:,} said{saved}", "bold")
    console.print()
    _listing(console, shown, ids)


def _heading(console: Console, shown: Window) -> None:
    session = shown.session
    sent = "not sent yet" if shown.call is None else f"as sent in call {shown.call}"
    undone = ", undone since" if session.undone else ""
    told = Text(numbered(session), "bold")
    told.append(f" · {session.cause}{undone} · {words(shown.view.frame.model or '-', 40)} · {sent}", "dim")
    told.truncate(console.width, overflow="ellipsis")
    console.print(told, soft_wrap=True)


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
    """The window as one line: what is in it, what is free, and what is kept for the answer."""
    return cells(shown.parts, shown.sent, shown.limit, shown.reserve or 0, width, colours)


def cells(parts: Sequence[CompositionPart], sent: int, limit: int, reserve: int, width: int, colours: bool) -> Text:
    """Parts of a window as cells of a line, then what is free of the limit, then the reserve."""
    own = sum(part.tokens for part in parts) or 1
    filled = [(part.tokens * sent / own, *LOOKS[part.kind]) for part in parts]
    free, kept = float(max(0, limit - sent)), float(reserve)
    whole = sum(tokens for tokens, _, _ in filled) + free + kept
    text, at = Text(), 0.0
    for n, (tokens, colour, letter) in enumerate([*filled, (free, *FREE), (kept, *RESERVE)]):
        cells = round((at + tokens) * width / whole) - round(at * width / whole)
        text.append(("█" if colours and n < len(filled) else letter) * cells, colour)
        at += tokens
    return text


def _listing(console: Console, shown: Window, ids: bool) -> None:
    view = shown.view
    if shown.frame:
        tools = f" and {count(len(view.frame.tools), 'tool')}" if view.frame.tools else ""
        id = " " * (SHORT + 2) if ids else ""
        line(console, f"  {id}{'system':<9} {shown.frame:>7,}   {words(view.frame.system, 60)}{tools}")
    by_id = view.edits.made
    for node, tokens, _ in shown.nodes:
        edit = by_id.get(node.id)
        mark, style = ("▸", "cyan") if edit else (" ", "")
        id = f"{node.id[:SHORT]}  " if ids else ""
        told = words(f"{node.item.name} {node.item.text}")
        if edit and ASKING in edit.evidence:
            told = f"recalled for the message after it   {name(edit)}"
        elif edit:
            id_of, items, said, by = shown.behind(edit, by_id)
            told = f"{id_of} stands for {count(items, 'item')}, {said:,} tokens   {by}"
        line(console, f"{mark} {id}{label(node.item):<9} {tokens:>7,}   {told}", style)
        if edit and node.item.kind == "summary":
            read(console, node.item.text, INDENT)
