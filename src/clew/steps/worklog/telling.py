"""What was asked, said and done, line by line, each with what it is worth to somebody who goes on."""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_
from itertools import groupby
from typing import NamedTuple

from clew.core.bounds import FAILURES_OPEN
from clew.core.items import Node
from clew.steps.worklog.acts import NO_RESULT, REPORT_CHARACTERS, Act
from clew.steps.worklog.commands import command_key
from clew.steps.worklog.news import OFTEN, Phrases, Rarity
from clew.steps.worklog.requests import WorkRequest, WorkStep
from clew.steps.worklog.wording import (
    SAYS_WHY,
    both_ends,
    chooses,
    first_lines,
    gist,
    indented,
    listed,
    on_one_line,
    opening,
    outline,
    plain,
    unannounced,
)
from clew.text.quoting import ASSISTANT, TOOL, code, enclosed, quoted, speaks_for_user, unvoiced

SAY = 260  # characters of the words with which a step begins
LITTLE_SAID = 60  # characters: what is said in fewer says less
CAUSE = 420  # and of those that follow on a failure: they say why
CLOSE = 1_400  # of the last words of a request
GIST = 320  # characters of them at the least
OPTIONS = 2_400  # and of those that the user answered in a few words: the choice is in them
BRIEF_ANSWER = 160  # characters of an answer that says nothing without what it answers
NAMES_IN_A_ROW = 200  # characters of names in a row
SAID_AT_ONCE = 6_000  # characters of what was said at once, at most
LOOKED, USED = 0.15, 0.8  # what it is worth that something was looked at, and a line of a result that mattered
NEEDED = 1_000_000.0  # what it is worth to say that something is not told
INNER = "    "  # before the lines of what a call brought

_ONLY_WRITES = re.compile(r"(?:cat|tee|sed|(?:git\s+)?mv|(?:git\s+)?rm)\b[^;&|]*$")
_READS = re.compile(r"/|\.\w{1,5}$")  # a file: what was done with it is told by the edits


Used = Callable[[Node], Sequence[str]]  # the lines of a result with values that were used later


class LogLine(NamedTuple):
    """A line of the log, in several lengths, each with what it is worth beyond the one before it."""

    texts: tuple[str, ...]
    worths: tuple[float, ...]
    needed: bool = False  # the first of them is the least that must be told of a request


def line(text: str, worth: float) -> LogLine:
    """One in a single length."""
    return LogLine((text,), (worth,))


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


def ask(request: WorkRequest, most: int, rarity: Rarity) -> str:
    """What was asked, in so many characters; what the user says again and again has no room before the rest."""
    if len(request.ask) <= most:
        told = request.ask
    else:
        lines = [line for line in request.ask.splitlines() if line.strip()]
        told = both_ends("\n".join(lines), most) if len(lines) > 1 else rarity.told(request.ask, most)
    pictures = f" (with {request.images} picture{'s' if request.images > 1 else ''})" if request.images else ""
    unread = f" ({request.unread})" if request.unread else ""
    return f"The user: {indented(told)}{pictures}{unread}" if told else ""


def _reported(note: str) -> LogLine:
    """What a program said; a long one, such as a client's summary, in two lengths."""
    lengths = (CLOSE, SAID_AT_ONCE) if len(note) > CLOSE else (CLOSE,)
    texts = tuple(f"- (a program reported: {indented(unvoiced(first_lines(note, most)))})" for most in lengths)
    return LogLine(texts, (1.0,) * len(lengths))


def by_assistant(said: str) -> str:
    """Words of the assistant, all lines but the first further in; where they tell of the user, after who says so."""
    return f"The assistant: {indented(unvoiced(said))}" if speaks_for_user(said) else indented(said)


class Teller:
    """Tells of one request after the other, in their order."""

    def __init__(self, requests: Sequence[WorkRequest], used: Used, rel: Callable[[str], str]) -> None:
        self.used, self.rel = used, rel
        self.failures = Failures()
        steps = [step for request in requests for step in request.steps]
        self.phrases = Phrases(step.say for step in steps)
        self.printed = Counter(act.told for step in steps for act in step.acts if act.ok)

    def lines(self, request: WorkRequest, answered: str) -> Iterator[LogLine]:
        """The lines of a request after its ask; `answered` is what the user said next."""
        last = max((i for i, step in enumerate(request.steps) if step.text), default=-1)
        only_said = all(act.kind in ("look", "plan") for step in request.steps for act in step.acts)
        if request.missing:
            yield line(f"({request.missing:,} messages not shown)", NEEDED)
        failed, changed = False, {c.path for step in request.steps for act in step.acts for c in act.changes}
        for i, step in enumerate(request.steps):
            told = self._closing(step, answered, only_said) if i == last else self._saying(step, failed)
            unread = f" ({step.unread})" if step.unread else ""
            yield from self._step(step, i == last, [(say + unread, worth) for say, worth in told if say], changed)
            failed = any(not act.ok and act.kind in ("run", "edit", "did") for act in step.acts)

    def _step(
        self, step: WorkStep, last: bool, told: Sequence[tuple[str, float]], changed: Container[str]
    ) -> Iterator[LogLine]:
        rel = self.rel
        # What is printed each time says nothing. One line each: a name may have several.
        acts = [with_(a, told="") if a.ok and self.printed[a.told] >= OFTEN else a for a in step.acts]
        phrases = [rel(p) for p in counted(_phrases(acts, self.failures))]
        seen = [a.what for a in step.acts if a.kind == "look" and a.ok and a.what not in changed]
        looked = [rel(quoted(on_one_line(what), ASSISTANT)) for what in seen]
        # What was done stands on a line of its own: nothing that a tool printed can pass for what somebody said.
        done = f"  * {'; '.join(phrases)}" if phrases else ""
        worth = sum(_worth(a) for a in step.acts)
        if told:
            said = [(f"- {by_assistant(rel(say))}", more) for say, more in told]
            full = [("\n".join(filter(None, (say, done))), more) for say, more in said]
            full[0] = full[0][0], full[0][1] + (0 if last else worth)
            if last and done:  # of the last words there is a length without what was done
                full[0] = said[0]
                full[1] = full[1][0], full[1][1] + worth
            yield LogLine(
                tuple(t for t, _ in full),
                tuple(w for _, w in full),
                needed=last and len(told[0][0]) >= LITTLE_SAID // 2,
            )
        elif done:
            yield line(done, worth)
        if looked:
            yield line(
                f"  * looked at {listed(dict.fromkeys(looked), NAMES_IN_A_ROW)}", LOOKED if told or done else 2 * LOOKED
            )
        for act, result in step.results:
            if act.ok and (act.kind in ("did", "run") or (act.kind == "look" and not _READS.search(act.what))):
                yield from (line(f"  > {quoted(rel(found), TOOL)}", USED) for found in self.used(result))
        for note in step.notes:
            yield _reported(rel(note))

    def _closing(self, step: WorkStep, answered: str, only_said: bool) -> Iterator[tuple[str, float]]:
        """The last words of a request, from few of them to all, each with what it is worth beyond the one before.

        Where nothing was done they are all there is; where the user chose between what they offer, all are needed.
        """
        brief = bool(answered) and (len(answered) <= BRIEF_ANSWER or chooses(answered, step.say))
        words = self.phrases.news(step.say)
        yield gist(words, GIST // 2), 3.0 * min(1.0, len(words) / LITTLE_SAID)
        if len(words) > GIST // 2 and not brief:
            yield gist(words, GIST), 2.5 if only_said else 1.5
        most = OPTIONS if brief else CLOSE
        if len(step.say) > most // 2:
            yield outline(step.say, most // 2), 8.5 if brief else 4.0 if only_said else 2.5
        yield outline(step.say, most), 4.0 if brief else 2.5
        yield from _whole(step)

    def _saying(self, step: WorkStep, failed: bool) -> Iterator[tuple[str, float]]:
        """What was said on the way; `failed` if something had just gone wrong."""
        acted = any(act.kind not in ("look", "plan") or not act.ok for act in step.acts)
        words = unannounced(step.say) if acted else step.say
        news = self.phrases.news(words)
        routine = self.phrases.only_set(words)
        announces = not acted and len(words) <= SAY and all(a.kind == "look" for a in step.acts) and step.acts
        why = bool(SAYS_WHY.search(news)) and not routine
        least = (0.3 if announces or routine else 1.0 + 1.2 * failed) * min(1.0, len(news) / LITTLE_SAID)
        if not words:
            return
        yield gist(news, CAUSE) if why else opening(news, CAUSE if failed else SAY), least + 1.0 * why
        yield from _whole(step)


def _whole(step: WorkStep) -> Iterator[tuple[str, float]]:
    if len(step.text) > SAY:
        yield first_lines(plain(step.text), SAID_AT_ONCE), 1.0


def _worth(act: Act) -> float:
    match act.kind:
        case "edit":
            return 1.2
        case "run":
            return 1.6 if act.commit else 0.5 if act.ok else 2.0
        case "proposal" | "question" | "refused":
            return 4.0
        case "report":
            return 2.5
        case "did":  # something was changed, out in the world
            return 3.0
        case _:
            return 0.0


def counted(phrases: Iterable[str]) -> Iterator[str]:
    """Equal ones in a row as one, with their number."""
    for phrase, same in groupby(phrases):
        often = sum(1 for _ in same)
        yield f"{phrase} ({often} times)" if often > 1 else phrase


def _phrases(acts: Sequence[Act], failures: Failures) -> Iterator[str]:
    """What was done in one step; edits of one file are told together."""
    edits: dict[tuple[str, str], list[str]] = {}
    for act in acts:
        if act.kind in ("edit", "run") and act.ok:
            for c in act.changes:
                edits.setdefault((c.path, c.verb), []).append(c.told)
    for (path, verb), told in edits.items():
        what = "; ".join(dict.fromkeys(filter(None, told)))
        for changed in failures.changed.values():
            changed.setdefault(path)
        yield on_one_line(f"{verb} {quoted(path, ASSISTANT)}{f': {what}' if what else ''}")
    for act in acts:
        for phrase in _phrase(act, failures):
            yield phrase if act.kind in ("proposal", "report") else on_one_line(phrase)


def _phrase(act: Act, failures: Failures) -> Iterator[str]:
    match act:
        case Act(kind="edit", ok=False):
            yield f"an edit of {quoted(act.what, ASSISTANT)} failed: {act.told}"
        case Act(kind="run", commit=True):
            yield f"committed {act.told}"
        case Act(kind="run", ok=True) if act.changes and _ONLY_WRITES.match(act.what):
            return  # the change says so
        case Act(kind="run"):
            yield _run(act, failures)
        case Act(kind="proposal"):
            yield f"{on_one_line(act.what)}: {_theirs(act.told, OPTIONS)}"
        case Act(kind="question"):
            asked = quoted(on_one_line(act.what), ASSISTANT)
            yield asked + (f"; the tool's result: {enclosed(outline(act.told, OPTIONS))}" if act.told else "")
        case Act(kind="report"):
            asked = quoted(act.what, ASSISTANT)
            yield f"a sub-agent was asked: {asked}. It reported: {_theirs(act.told, REPORT_CHARACTERS)}"
        case Act(kind="refused"):
            why = f"; its result says why: {enclosed(opening(act.told, CAUSE))}" if act.told else ""
            yield f"REFUSED: {quoted(act.what, ASSISTANT)}{why}"
        case Act(kind="did"):
            how = "" if not act.told else f": {act.told}" if act.ok else f" failed: {act.told}"
            yield f"{quoted(act.what, ASSISTANT)}{how}"
        case _:
            pass


def _theirs(text: str, most: int) -> str:
    """Lines of a plan or a report, further in than those of the log."""
    return indented(unvoiced(outline(text, most)), INNER)


def _run(act: Act, failures: Failures) -> str:
    key = command_key(act.what)
    if act.told == NO_RESULT:
        return f"{code(act.what)} was called, no result was seen"
    if not act.ok and not key:
        return f"{code(act.what)} FAILED{f': {act.told}' if act.told else ''}"
    if not act.ok:
        failures.add(key, act.told)
        return f"{code(act.what)} FAILED{f': {act.told}' if act.told else ''}"
    left = " (left running)" if act.background else ""
    how = f": {act.told}" if act.told else ""
    if failures.open.pop(key, None) is not None:
        by = failures.changed.pop(key, {})
        after = f" after the change{'s' if len(by) > 1 else ''} to {listed(by, NAMES_IN_A_ROW)}" if by else ""
        return f"{code(act.what)} now went well{after}{how}"
    return f"ran {code(act.what)}{left}{how}"
