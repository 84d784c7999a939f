"""Handoff: the agent asked for a new session, and what came before becomes the message with which that one begins.

It begins with the agent's own summary, then what it must not forget and may have: what the user said of how, open
tasks, skills, results that came beside the call.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from clew.core.cuts import groups
from clew.core.items import Item, Node
from clew.core.pointers import pointer
from clew.core.view import Swap, View
from clew.steps.lines import clip, omitted
from clew.steps.sealed import instructed, sealed
from clew.steps.shorten import parsed
from clew.steps.worklog.refusals import REFUSED_HEADING
from clew.steps.worklog.requests import requests
from clew.steps.worklog.standing import Standing
from clew.steps.worklog.wording import indented
from clew.text.framing import neutral
from clew.text.quoting import ASSISTANT, quoted, speaks_for_user
from clew.tokens import Counter
from clew.tokens.target import Target

NEW_SESSION = "new_session"
BEGUN = "A new session begins with this summary."  # what such a call is answered with, if it is granted

DONE = ("done", "dropped")
DIRECTIVES = 30  # sentences of the user
HANDOFF_SHARE = 0.25  # of the room, for all of it
CUT = "[cut]"
BESIDE_CHARACTERS = 2_000  # characters of each result that came beside the call
SKILL = re.compile(r"(?i)^(?:load_|use_|get_|activate_)?skills?$")
SKILL_FILE = re.compile(r"(?:^|/)([\w.-]+)/SKILL\.md$")


class Handoff:
    """Folds a view behind the last call of `new_session` that was granted; anything else it leaves as it is.

    With a `summary`, somebody other than the agent asks for it, and all of the view is folded.
    """

    def __init__(self, summary: str = "") -> None:
        self._summary = summary

    def __repr__(self) -> str:
        return "Handoff()"

    def is_due(self, view: View) -> bool:
        """Whether a new session is asked for that has not begun."""
        return bool(self._summary and view.nodes) or _granted(view.nodes) is not None

    def __call__(self, view: View, target: Target) -> View:
        """The view that begins the new session in a quarter of the room; what is behind it must be in memory."""
        found = (len(view.nodes), len(view.nodes) - 1) if self._summary else _granted(view.nodes)
        if found is None:
            return view
        call, last = found
        stop = next(stop for start, stop in view.groups() if start <= last < stop)
        runs = list(_runs(view, stop))
        if not runs:  # all of it must stay
            return view
        summary = self._summary or parsed(view.nodes[call].item.text)["summary"]
        by = "user" if self._summary else "assistant"
        told = summary.strip() if self._summary else _by_assistant(summary.strip())
        parts = _parts(view, stop, told, beside=view.nodes[call:stop])
        recall = view.short(0, stop)
        closing = f"[The summary is the {by}'s own, from the session before this one; {pointer(recall)} for all of it.]"
        text = _within(parts, closing, int(HANDOFF_SHARE * target.room), target.meter.counter)
        first, *others = runs
        swaps = [Swap(*first, [Item("summary", "user", text)])]
        swaps += [Swap(a, b, [Item("summary", "user", _line(view, a, b))]) for a, b in others]
        return view.replace_all(swaps, by=self)


def _line(view: View, start: int, stop: int) -> str:
    return omitted(view.nodes[start:stop], {}, view.short(start, stop))[0]


def _granted(nodes: Sequence[Node]) -> tuple[int, int] | None:
    """Where the newest call of `new_session` is that was granted, and where that was said."""
    for at in range(len(nodes) - 1, -1, -1):
        item = nodes[at].item
        if item.kind == "result" and item.text == BEGUN:
            calls = (i for i in range(at) if nodes[i].item.kind == "call" and nodes[i].item.call_id == item.call_id)
            call = max(calls, default=None)
            return None if call is None or nodes[call].item.name != NEW_SESSION else (call, at)
    return None


def _runs(view: View, stop: int) -> Iterator[tuple[int, int]]:
    """Stretches up to there without a pin, and nothing that only the provider reads; each as long as can be."""
    stays = sealed(view) | instructed(view) | {i for i, n in enumerate(view.nodes) if n.id in view.pinned}
    begin: int | None = None
    for start, end in groups(view.nodes[:stop]):
        if not stays.isdisjoint(range(start, end)):
            if begin is not None:
                yield begin, start
            begin = None
        elif begin is None:
            begin = start
    if begin is not None:
        yield begin, stop


def _within(parts: Sequence[str], closing: str, most: int, counter: Counter) -> str:
    """The parts in turn, and the closing line, in so many tokens: the first that is too long is cut at a line."""
    kept, left = list[str](), most - counter.text(closing)
    for part in parts:
        short, lines = part, part.splitlines()
        while lines and counter.text(short) > left:
            lines = lines[: len(lines) * 3 // 4]
            short = "\n".join([*lines, CUT]) if lines else ""
        if not lines and not kept:  # one long line
            size = len(part)
            while size > 1 and counter.text(short := f"{part[:size]} {CUT}") > left:
                size = size * 3 // 4
        if not short:
            break
        kept.append(short)
        left -= counter.text(short)
        if short != part:
            break
    return "\n\n".join([*kept, closing])


def _by_assistant(summary: str) -> str:
    """The agent's own summary; where it tells of the user, after who says so."""
    return indented(f"By the assistant, not the user:\n{summary}") if speaks_for_user(summary) else summary


def _parts(view: View, stop: int, told: str, beside: Sequence[Node]) -> list[str]:
    """What a new session begins with: the summary, then what must not be forgotten."""
    nodes = view.originals(0, stop)
    said, stood = [n.item for n in nodes], Standing()
    for request in requests(nodes):
        stood.add(request)
    parts = [neutral(told)]
    parts += _section(REFUSED_HEADING, [quoted(call, ASSISTANT) for call in stood.refusals])
    parts += _section("What the user said of how, word for word", stood.binding()[:DIRECTIVES])
    parts += _section("Open tasks", [f"{state}: {what}" for state, what in stood.tasks.values() if state not in DONE])
    parts += _section("Skills that were loaded; load them again before use", list(_skills(said)))
    parts += _section("Results that came beside it", [_beside(n.item) for n in beside if _is_beside(n.item)])
    return parts


def _section(heading: str, lines: Sequence[str]) -> list[str]:
    return ["\n".join([f"{heading}:", *(f"- {neutral(line)}" for line in lines)])] if lines else []


def _skills(items: Sequence[Item]) -> Iterator[str]:
    found: dict[str, None] = {}
    for item in items:
        given: Any = parsed(item.text) if item.kind == "call" else None
        if not isinstance(given, dict):
            continue
        if SKILL.match(item.name):
            names = (given.get(key) for key in ("name", "skill", "skill_name", "command"))
            found |= {quoted(clip(name, 80), ASSISTANT): None for name in names if isinstance(name, str) and name}
        found |= {m[1]: None for v in given.values() if isinstance(v, str) and (m := SKILL_FILE.search(v))}
    yield from found


def _is_beside(item: Item) -> bool:
    return item.kind == "result" and item.text != BEGUN


def _beside(item: Item) -> str:
    text = (
        item.text
        if len(item.text) <= BESIDE_CHARACTERS
        else f"{item.text[:BESIDE_CHARACTERS]} … ({len(item.text):,} characters)"
    )
    return f"a tool{f', {item.name}' if item.name else ''}: {json.dumps(text, ensure_ascii=False)}"
