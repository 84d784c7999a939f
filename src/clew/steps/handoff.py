"""Handoff: the agent asked for a new session, and what came before becomes the message with which that one begins.

It begins with what the user asked for, word for word, however many sessions ago: a poor summary must not become the
task. Then come the agent's own summary, and what it must not forget and may have: what else the user said of how, open
tasks, skills, results that came beside the call.
"""

import json
import re
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

from clew.core.bounds import clip
from clew.core.cuts import groups
from clew.core.items import SHORT, Item, Node
from clew.core.pointers import pointer
from clew.core.view import Swap, View
from clew.steps.lines import omitted
from clew.steps.sealed import instructed, sealed
from clew.steps.shorten import parsed
from clew.steps.worklog.refusals import REFUSED_HEADING
from clew.steps.worklog.requests import WorkRequest, requests
from clew.steps.worklog.standing import Standing
from clew.steps.worklog.wording import ENOUGH, MORE, both_ends, indented, on_one_line
from clew.text.framing import neutral
from clew.text.quoting import ASSISTANT, quoted
from clew.tokens import Counter
from clew.tokens.target import Target

NEW_SESSION = "new_session"
BEGUN = "A new session begins with this summary."  # what such a call is answered with, if it is granted

DONE = ("done", "dropped")
DIRECTIVES = 30  # sentences of the user
HANDOFF_SHARE = 0.25  # of the room, for all of it
HANDED_SHARE = 0.5  # of that, at most, for what the user asked for
ASKED_LEAST = 24  # tokens: with fewer left, no further request is told
LONGEST_TOKEN = 8  # characters: hardly a text has more in each of its tokens
CUT = "[cut]"
HEADED = 2  # lines: with fewer, a heading has nothing under it
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
        most, counter, recall = int(HANDOFF_SHARE * target.room), target.meter.counter, view.short(0, stop)
        said, gone = view.originals(0, stop), {n.id for run in runs for n in view.originals(*run)}
        work = requests(said)
        own = self._summary and on_one_line(self._summary)
        wanted = [(n, r) for n, r in _numbered(work) if not gone.isdisjoint(r.ids) and on_one_line(r.ask) not in own]
        asked = _asked(wanted, int(HANDED_SHARE * most), recall, counter)
        told = f"By the user:\n{summary.strip()}" if own else _by_assistant(summary.strip())
        parts = [neutral(told), *_parts(said, work, asked, beside=view.nodes[call:stop])]
        closing = f"[The summary is the {by}'s own, from the session before this one; {pointer(recall)} for all of it.]"
        rest = _within(parts, closing, most - counter.text(asked), counter)
        text = f"{asked}\n\n{rest}" if asked else rest
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


def _numbered(found: Sequence[WorkRequest]) -> list[tuple[int, WorkRequest]]:
    """What was asked, with the numbers by which the user's rules name it; of the same words the first and the newest
    are one."""
    asks = list(enumerate((request for request in found if request.ask), 1))
    by_words = {request.ask: (n, request) for n, request in asks}
    return sorted({**by_words, asks[0][1].ask: asks[0]}.values(), key=itemgetter(0)) if asks else []


def _asked(wanted: Sequence[tuple[int, WorkRequest]], most: int, recall: str, counter: Counter) -> str:
    """What the user asked for, in so many tokens: the first and the newest request, then the others from the newest on.

    Each is told whole if it has room, else in whole lines or sentences; how many are not told is said.
    """
    heading, more = "What the user asked for, word for word:", "[{} more requests not shown; {}]"
    told, left = dict[int, str](), most - counter.text(f"{heading}\n{more.format(len(wanted), pointer(recall))}")
    first, newest = wanted[:1], wanted[1:][-1:]
    for at, (number, request) in enumerate([*first, *newest, *reversed(wanted[1:-1])]):
        if left < ASKED_LEAST:
            break
        # The first leaves what the newest needs, up to half; one that must be cut leaves some to those before it.
        room = left if at or not newest else max(left // 2, left - counter.text(_request(*newest[0])) - 1)
        line = _request(number, request)
        if counter.text(line) >= room:
            line = _cut(number, request, room if not at else left // 2 if at == 1 else left // 4, counter)
        if line:
            told[number] = line
            left -= counter.text(line) + 1
    missing = len(wanted) - len(told)
    closing = [more.format(missing, pointer(recall))] if missing else []
    return "\n".join([heading, *(told[n] for n in sorted(told)), *closing]) if told else ""


def _request(number: int, request: WorkRequest, ask: str = "", cut: str = "") -> str:
    return neutral(f"- request {number}: The user: {indented(ask or request.ask)}") + cut


def _cut(number: int, request: WorkRequest, most: int, counter: Counter) -> str:
    """A request in so many tokens, by its two ends in whole lines or sentences; nothing if there is room for none."""
    size = min(len(request.ask), most * LONGEST_TOKEN)
    note = f" (cut; {pointer(request.ids[0][:SHORT])})"
    while (size := size * 3 // 4) > ENOUGH:
        ask = both_ends(request.ask, size)
        if ask.strip() != MORE and counter.text(line := _request(number, request, ask, note)) < most:
            return line
    return ""


def _within(parts: Sequence[str], closing: str, most: int, counter: Counter) -> str:
    """The parts in turn, and the closing line, in so many tokens: the first that is too long is cut at a line."""
    kept, left = list[str](), most - counter.text(closing)
    for part in parts:
        short, lines = part, part.splitlines()
        while lines and counter.text(short) > left:
            lines = lines[: len(lines) * 3 // 4]
            short = "\n".join([*lines, CUT]) if lines else ""
        if len(lines) < HEADED and short != part and not kept:  # a summary in one long line
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
    """The agent's own summary: beside what the user asked for, it is told whose it is."""
    return indented(f"By the assistant, not the user:\n{summary}")


def _parts(said: Sequence[Node], found: Sequence[WorkRequest], asked: str, beside: Sequence[Node]) -> list[str]:
    """What must not be forgotten, without what is `asked` word for word."""
    stood, told = Standing(), on_one_line(asked)
    for request in found:
        stood.add(request)
    shown = {rule for rule, known in stood.rules.items() if rule in told and known.later in told}
    stood.rules = {rule: known for rule, known in stood.rules.items() if rule not in shown}
    parts = _section(REFUSED_HEADING, [quoted(call, ASSISTANT) for call in stood.refusals])
    parts += _section("What the user said of how, word for word", stood.binding()[:DIRECTIVES])
    parts += _section("Open tasks", [f"{state}: {what}" for state, what in stood.tasks.values() if state not in DONE])
    parts += _section("Skills that were loaded; load them again before use", list(_skills([n.item for n in said])))
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
