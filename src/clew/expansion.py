"""Expansion: when the user, or the assistant in a call, names what stands behind a stand-in, its lines come back.

What a tool said never asks for anything. A stand-in gets richer once for a name, and a question is answered once, so
that nothing is put back and forth.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as with_
from typing import NamedTuple

from clew.budget import Budget
from clew.decorations import undecorated
from clew.excerpts import framed
from clew.finding import NAME, Index, Passage, Text, passages, texts, wording
from clew.items import SHORT, Edit, Item, Node
from clew.steps.bound import last_thought
from clew.steps.places import newest_turn
from clew.view import Swap, View, originals
from clew.wire.binding import binds

MOST = 2_000  # tokens put back for one question
NAMES = 20  # of a question
LONGEST = 1_000  # characters of a name: what is longer is no name
SHARE = 0.3  # of the best score: passages below it are not worth their room
PATH = re.compile(r"/|\.[A-Za-z]\w{0,7}$")
ID = re.compile(r"(?=.*\d)(?:\d{5,}|(?=.*[A-Za-z])[\w-]{5,})$")


class Question(NamedTuple):
    """What was asked for by name, and the last node that asked."""

    key: str
    text: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Expand:
    """Who put it back."""

    most: int = MOST


EXPAND = Expand()


def question(view: View) -> Question | None:
    """The names in what the user typed last and in the newest calls since; None if there are none to answer."""
    made = view.stand_ins()
    start, stop = newest_turn(view.nodes)
    asking = [n for n in view.nodes[start:stop] if n.item.kind == "text" and n.id not in made]
    asking += [n for n in _newest_calls(view.nodes[stop:]) if n.id not in made]
    text = "\n".join(undecorated(n.item.text) if n.item.kind == "text" else wording(n.item) for n in asking)
    said = (name for name in NAME.findall(text) if len(name) <= LONGEST)
    names = dict.fromkeys(n.removeprefix("./") for n in said if PATH.search(n) or ID.match(n))
    if not names or any(e.evidence.get("asked") == asking[-1].id for e in view.edits):
        return None
    return Question(asking[-1].id, text, tuple(names)[:NAMES])


def _newest_calls(nodes: Sequence[Node]) -> list[Node]:
    """The calls that the assistant made last, together."""
    stop = len(nodes)
    while stop and nodes[stop - 1].item.kind != "call":
        stop -= 1
    start = stop
    while start and nodes[start - 1].item.kind == "call":
        start -= 1
    return list(nodes[start:stop])


def behind(view: View) -> dict[str, list[str]]:
    """For each stand-in in view that may get richer, the ids of what was said behind it."""
    by_id = {n.id: e for e in view.edits for n in e.stand_ins}
    bound = binds(view.frame.format, view.frame.model)
    return {
        n.id: originals(by_id[n.id].sources, by_id)
        # Nothing may change before thinking that is bound to it.
        for n in view.nodes[last_thought(view) + 1 if bound else 0 :]
        # A mended call has its whole text in view, and is taken back when its result comes.
        if n.id in by_id
        and n.id not in view.pinned
        and "call" not in by_id[n.id].evidence
        and n.item.kind in ("text", "result", "summary")
    }


def expanded(view: View, budget: Budget, said: Mapping[str, Node], by: Expand = EXPAND) -> View:
    """The view with lines that were asked for by name put back, within `budget.goal`; `said` has originals by id."""
    asked = question(view)
    room = min(by.most, budget.goal.tokens - budget.size(view).tokens)
    if asked is None or room <= 0:
        return view
    sources = list(_sources(view, asked, said))
    chosen = _Choice(view, budget, sources, room).fill(asked.text)
    swaps = [
        Swap(at, at + 1, [item], {**edit.evidence, "asked": asked.key, "names": sorted({*names, *_told(edit)})})
        for at, (item, edit, names) in sorted(chosen.items())
    ]
    after = view.replace_all(swaps, by=by)
    return after if budget.size(after).within(budget.goal) else view


class _Source(NamedTuple):
    """Something said behind a stand-in that has, or is, what was named."""

    at: int  # of the stand-in in the view
    edit: Edit  # that made it
    text: Text
    names: tuple[str, ...]


def _sources(view: View, asked: Question, said: Mapping[str, Node]) -> Iterator[_Source]:
    made = {n.id: e for e in view.edits for n in e.stand_ins}
    hidden = behind(view)
    calls = {n.item.call_id: n for n in view.nodes if n.item.kind == "call"}
    patterns = {name: _whole(name) for name in asked.names}
    for at, node in enumerate(view.nodes):
        nodes = [said[id] for id in hidden.get(node.id, ()) if id in said]
        if not nodes:
            continue
        edit = made[node.id]
        called = calls.get(node.item.call_id) if node.item.kind == "result" else None
        fresh = [name for name in asked.names if name not in _told(edit)]
        by_id = [name for name in fresh if f"recall {name[:SHORT]}" in node.item.text]
        for text in texts([called, *nodes] if called else nodes):
            names = by_id or [n for n in fresh if patterns[n].search(text.title) or patterns[n].search(text.body)]
            if names and not (called and text.id == called.id):
                yield _Source(at, edit, text, tuple(names))


def _told(edit: Edit) -> Collection[str]:
    names: Collection[str] = edit.evidence.get("names", ())
    return names


def _whole(name: str) -> re.Pattern[str]:
    """A name as a whole; a long path also by its last two parts, for one may write it from elsewhere."""
    ends = {name, "/".join(name.split("/")[-2:])}
    return re.compile(rf"(?<![\w])(?:{'|'.join(re.escape(e) for e in sorted(ends))})(?!\w)")


class _Choice:
    """Passages chosen best first, each under its stand-in, while there is room."""

    def __init__(self, view: View, budget: Budget, sources: Sequence[_Source], room: int) -> None:
        self.view, self.budget, self.sources, self.room = view, budget, sources, room
        self.index = Index([s.text for s in sources])
        self.seen = {line for node in view.nodes for line in _lines(wording(node.item))}

    def fill(self, question: str) -> dict[int, tuple[Item, Edit, set[str]]]:
        """For each stand-in that gets richer: what it becomes, the edit that made it, and the names it was asked by."""
        chosen: dict[int, list[int]] = {}
        out: dict[int, tuple[Item, Edit, set[str]]] = {}
        ranked = self.index.ranked(question)
        for i, score in ranked:
            passage = self.index.passages[i]
            source = self.sources[passage.text]
            if score < SHARE * ranked[0][1]:
                break
            if all(line.text.strip() in self.seen for line in passage.lines):
                continue
            tried = sorted([*chosen.get(source.at, []), i])
            item = self._richer(source.at, tried)
            old = out[source.at][0] if source.at in out else self.view.nodes[source.at].item
            cost = self.budget.meter.item(item).tokens - self.budget.meter.item(old).tokens
            if cost > self.room:
                break
            self.room -= cost
            chosen[source.at] = tried
            names = out[source.at][2] if source.at in out else set()
            out[source.at] = item, source.edit, names | set(source.names)
        return out

    def _richer(self, at: int, chosen: Sequence[int]) -> Item:
        item = self.view.nodes[at].item
        told: list[str] = []
        before = -1
        for passage in (self.index.passages[i] for i in chosen):
            if passage.text != before:
                text = self.sources[passage.text].text
                told.append(f"{text.id[:SHORT]} {text.title}:")
                before = passage.text
            told += _numbered(passage)
        data = framed("\n".join(told), "some of its lines, asked for by name")
        return with_(item, text=f"{item.text}\n{data}", wire=None, mark=None)


def _numbered(passage: Passage) -> list[str]:
    return [f"{line.number}: {line.text}" for line in passage.lines]


def _lines(text: str) -> Iterator[str]:
    """The lines of a text as passages have them, also without the numbers that an excerpt gave them."""
    for lines in passages(text):
        for line in lines:
            yield line.text.strip()
            yield re.sub(r"^\d+: ", "", line.text).strip()
