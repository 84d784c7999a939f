"""What was asked, said and done, as the lines that may be told of it."""

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import count

from clew.clients.voices import PASTE, own_words
from clew.core.bounds import FAILURES_OPEN
from clew.core.items import Node
from clew.steps.worklog.acts import NO_RESULT, Act
from clew.steps.worklog.choosing import DIGIT, LogLine, Who, words_of
from clew.steps.worklog.commands import command_key
from clew.steps.worklog.contents import UsedLater, lines_of
from clew.steps.worklog.requests import WorkRequest, WorkStep
from clew.steps.worklog.results import texts_in
from clew.steps.worklog.rules import kind_of_rule
from clew.steps.worklog.tables import lists
from clew.steps.worklog.wording import below, listed, lone_sentences, on_one_line, plain
from clew.text.quoting import ASSISTANT, TOOL, code, enclosed, quoted

# How much a line is worth by whose it is: what a person said cannot be found again in the world.
USER, PASTED = 1.0, 0.5
CLOSING, ADVISING, SAYING = 0.65, 0.35, 0.4  # last words of work, of mere talk; what was said on the way
SETTLED, FAILED, EDITED, DONE = 1.5, 0.9, 0.7, 0.5  # acts: out in the world, what went wrong, on files, all others
WRITTEN = 0.9  # a sentence that was sent or noted down
FOUND, PRINTED, READ_AGAIN = 0.7, 0.35, 0.2  # a line of a result; of a command's; of a file, which can be read again
LEADING = 0.5  # times as much, for what is said right before an act: mostly the act tells it
WISHED = 1.5  # times as much, for how somebody wants things done
REPORTED = 0.5  # by a program
LOOKED = 0.2  # that something was looked at, without what it showed
BRIEF = 60  # characters of an answer that says nothing without what it answers
BRIEF_CHOICE = 160  # and of one that chooses by number
NAMES_IN_A_ROW = 200  # characters of names
NEEDED = 1_000.0  # what it is worth to say that something is not told

_ONLY_WRITES = re.compile(r"(?:cat|tee|sed|(?:git\s+)?mv|(?:git\s+)?rm)\b[^;&|]*$")
_FILE = re.compile(r"/|\.\w{1,5}$")
_STAMP = re.compile(r"\s*\[([^\]\n]{0,20}\d{1,4}[:./-]\d{1,2}[^\]\n]{0,20})\]:?\s*")  # a time before a message
_ASKS = ("?", "？", "؟")
_NUMBERED = re.compile(r"\W{0,4}(\d{1,2})(?:[.):]|\s*\|)\s|\W{0,6}\w+ (\d{1,2})\b\W")
_CHOSEN = re.compile(r"(?<![\w./:-])#?(\d{1,2})(?![\w/:%-]|\.\d)")


@dataclass(slots=True)
class Failures:
    """What failed and was not seen to go well since; what was changed meanwhile."""

    open: dict[str, str] = field(default_factory=dict)  # by the key of a command: how it failed
    changed: dict[str, dict[str, None]] = field(default_factory=dict)  # files since then

    def add(self, key: str, told: str) -> None:
        """Take one in; the oldest of very many is no longer what anybody mends."""
        self.open[key] = told
        self.changed.setdefault(key, {})
        if len(self.changed) > FAILURES_OPEN:
            oldest = next(iter(self.changed))
            del self.changed[oldest], self.open[oldest]


class Telling:
    """Puts one request after the other into lines, in their order."""

    def __init__(self, used: UsedLater, root: str) -> None:
        self._used, self._root = used, root
        self._failures = Failures()
        self._messages = count()
        self._when = ""
        self._said: list[LogLine] = []  # what the assistant said last: a short answer needs it

    def lines(self, request: WorkRequest) -> Iterator[LogLine]:
        """Those of a request."""
        if request.missing:
            yield LogLine("note", f"({request.missing:,} messages not shown)", NEEDED, next(self._messages))
        yield from self._asked(request)
        closing = CLOSING if any(step.acts for step in request.steps) else ADVISING
        last = max((i for i, step in enumerate(request.steps) if step.text), default=-1)
        changed = {c.path for step in request.steps for act in step.acts for c in act.changes}
        for i, step in enumerate(request.steps):
            voice = closing if i == last else SAYING
            unread = f" ({step.unread})" if step.unread else ""
            said = self._paragraph("said", step.say, voice, unread)
            self._said = said or self._said
            if i != last and step.acts and said:
                said[-1].voice *= LEADING
            yield from said
            yield from self._done(step, request, changed)
            for note in step.notes:
                for line in self._paragraph("note", note, REPORTED):
                    line.voice *= WISHED if kind_of_rule(line.text) else 1
                    yield line

    def _asked(self, request: WorkRequest) -> Iterator[LogLine]:
        if not request.ask:
            return
        pictures = f" (with {request.images} picture{'s' if request.images > 1 else ''})" if request.images else ""
        unread = f" ({request.unread})" if request.unread else ""
        own = set(lone_sentences(plain(own_words(request.ask))))
        found = self._paragraph("user", plain(request.ask), USER, pictures + unread)
        pasted = len(request.ask) > PASTE
        for line in found:
            line.voice *= WISHED if kind_of_rule(line.text) else 1
        for line in found:
            if pasted or (line.text not in own and line is not found[-1]):
                line.voice = PASTED
        if self._said and len(found) <= 2 and not request.ask.endswith(_ASKS):
            answered = _answered(request.ask, self._said)
            for line in found[:1]:
                line.needs = answered
        yield from found

    def _paragraph(self, who: Who, text: str, voice: float, more: str = "") -> list[LogLine]:
        message = next(self._messages)
        if stamp := _STAMP.match(text):
            self._when, text = stamp[1], text[stamp.end() :]
        parts = lone_sentences(text)
        if parts and more:
            parts = [*parts[:-1], parts[-1] + more]
        return [LogLine(who, below(self._root, part), voice, message, when=self._when) for part in parts]

    # --- acts -------------------------------------------------------------------------------------------------------

    def _done(self, step: WorkStep, request: WorkRequest, changed: AbstractSet[str]) -> Iterator[LogLine]:
        message = next(self._messages)
        results = {id(act): node for act, node in step.results}
        looked = dict[str, None]()
        yield from self._edited(step.acts, message)
        for act in step.acts:
            content = self._content(act, results.get(id(act)), request, message)
            line: LogLine | None = None
            if act.kind == "look" and act.ok:
                name = quoted(on_one_line(act.what), ASSISTANT)
                if content:
                    line = self._act(f"looked at {name}", LOOKED, message)
                elif act.what not in changed:
                    looked[below(self._root, name)] = None
            elif phrase := _phrase(act, self._failures):
                line = self._act(phrase, _voice(act, results.get(id(act))), message)
            if line is not None:
                yield line
            for one in content:
                one.needs = line
                yield one
        if looked:
            yield self._act(f"looked at {listed(looked, NAMES_IN_A_ROW)}", LOOKED, message)

    def _edited(self, acts: Sequence[Act], message: int) -> Iterator[LogLine]:
        """Edits of one step, those of one file together."""
        edits: dict[tuple[str, str], list[str]] = {}
        for act in acts:
            for c in act.changes if act.kind in ("edit", "run") and act.ok else ():
                edits.setdefault((c.path, c.verb), []).append(c.words)
        for (path, verb), told in edits.items():
            what = "; ".join(dict.fromkeys(filter(None, told)))
            for others in self._failures.changed.values():
                others.setdefault(path)
            yield self._act(f"{verb} {quoted(path, ASSISTANT)}{f': {what}' if what else ''}", EDITED, message)

    def _act(self, text: str, voice: float, message: int) -> LogLine:
        return LogLine("act", below(self._root, on_one_line(text)), voice, message)

    def _content(self, act: Act, result: Node | None, request: WorkRequest, message: int) -> list[LogLine]:
        """The lines of what a call brought that may be told."""
        if act.kind in ("proposal", "report"):
            texts: Sequence[str] = lone_sentences(act.outcome)
            return [self._brought(text, CLOSING, message) for text in texts]
        written = [self._brought(text, WRITTEN, message, "sent") for one in act.texts for text in lone_sentences(one)]
        if result is None or not act.ok or act.kind not in ("did", "run", "look"):
            return written
        if act.kind == "did" and (texts := texts_in(result.item.text)):
            return written + [self._brought(text, FOUND, message) for one in texts for text in lone_sentences(one)]
        used = self._used.facts(result)
        is_file = act.kind == "look" and _FILE.search(act.what) is not None
        if is_file and not used:
            return written
        runs = act.kind == "run"  # a command says its own words again, and how it came out is told
        asked = request.ask[-PASTE:] if runs else f"{request.ask[-PASTE:]} {act.what}"
        found = lines_of(result, asked, used, telling=runs)
        shown, known = act.outcome, words_of(f"{act.what} {act.outcome}")
        voice = READ_AGAIN if is_file else PRINTED if runs else FOUND
        told = [text for text in found if text not in shown and 2 * len(words_of(text) & known) < len(words_of(text))]
        return written + [self._brought(text, voice / (1 + n / 2), message) for n, text in enumerate(told)]

    def _brought(self, text: str, voice: float, message: int, who: Who = "result") -> LogLine:
        return LogLine(
            who, quoted(below(self._root, on_one_line(text)), ASSISTANT if who == "sent" else TOOL), voice, message
        )


def _answered(ask: str, said: Sequence[LogLine]) -> LogLine | None:
    """What a short answer answers: the entry that it chooses by number, else the last question, else the last words."""
    if len(ask) <= BRIEF_CHOICE:
        chosen = set(_CHOSEN.findall(ask))
        for line in said:
            if (entry := _NUMBERED.match(line.text)) and (entry[1] or entry[2]) in chosen:
                return line
    if len(ask) > BRIEF:
        return None
    return next((line for line in reversed(said) if line.text.endswith(_ASKS)), said[-1])


def _voice(act: Act, result: Node | None) -> float:
    if not act.ok:
        return FAILED
    if act.kind == "did" and result is not None and lists(result.item.text):
        return DONE
    return SETTLED if act.kind in ("did", "proposal", "question", "report") or act.commit else DONE


def _phrase(act: Act, failures: Failures) -> str:
    """What was done, and how it came out."""
    match act:
        case Act(kind="edit", ok=False):
            return f"an edit of {quoted(act.what, ASSISTANT)} failed: {act.outcome}"
        case Act(kind="run", commit=True):
            return f"committed {act.outcome}"
        case Act(kind="run", ok=True) if act.changes and _ONLY_WRITES.match(act.what):
            return ""  # the change says so
        case Act(kind="run"):
            return _run(act, failures)
        case Act(kind="proposal"):
            return f"{on_one_line(act.what)}:"
        case Act(kind="question"):
            asked = quoted(on_one_line(act.what), ASSISTANT)
            return asked + (f"; the tool's result: {enclosed(act.outcome)}" if act.outcome else "")
        case Act(kind="report"):
            return f"a sub-agent was asked: {quoted(act.what, ASSISTANT)}. It reported:"
        case Act(kind="refused"):
            why = f"; its result says why: {enclosed(act.outcome)}" if act.outcome else ""
            return f"REFUSED: {quoted(act.what, ASSISTANT)}{why}"
        case Act(kind="did") | Act(kind="look", ok=False):
            how = "" if not act.outcome else f": {act.outcome}" if act.ok else f" failed: {act.outcome}"
            return f"{quoted(act.what, ASSISTANT)}{how}"
    return ""


def _run(act: Act, failures: Failures) -> str:
    key = command_key(act.what)
    if act.outcome == NO_RESULT:
        return f"{code(act.what)} was called, no result was seen"
    if not act.ok:
        if key:
            failures.add(key, act.outcome)
        return f"{code(act.what)} FAILED{f': {act.outcome}' if act.outcome else ''}"
    left = " (left running)" if act.background else ""
    how = f": {act.outcome}" if act.outcome else ""
    if failures.open.pop(key, None) is not None:
        by = failures.changed.pop(key, {})
        after = f" after the change{'s' if len(by) > 1 else ''} to {listed(by, NAMES_IN_A_ROW)}" if by else ""
        return f"{code(act.what)} now went well{after}{how}"
    return f"ran {code(act.what)}{left}{how}"


def corrected(lines: Sequence[LogLine]) -> None:
    """Of each line, what was said later about most of what it names, with another value: it may be no longer so."""
    having: dict[str, list[int]] = {}
    for n, line in enumerate(lines):
        if line.who in CORRECTED:
            for word in line.words:
                having.setdefault(word, []).append(n)
    rare = {word: found for word, found in having.items() if 1 < len(found) <= RARE}
    for n, line in enumerate(lines):
        if line.who not in CORRECTED:
            continue
        named = [word for word in line.words if word in rare]
        shared: dict[int, int] = {}
        for word in named:
            for later in rare[word]:
                if later > n and lines[later].message != line.message:
                    shared[later] = shared.get(later, 0) + 1
        also = [later for later, often in shared.items() if often >= max(2, ALIKE * len(named))]
        also = [later for later in also if any(map(DIGIT.search, lines[later].words - line.words))]
        if also:
            line.follow = lines[max(also)]


CORRECTED: Sequence[Who] = ("user", "said", "sent", "act")
RARE = 24  # lines with a word: with more of them it names nothing
ALIKE = 0.6  # of the rare words of a line, in another about the same
