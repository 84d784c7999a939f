"""What an agent looked up again, because a compaction had taken it out of view.

A call that looks something up is one that reads a file, a command that only shows something, a search, or a question
to the user; tests and builds are run again for what is new, and count as none. It is made again if the same thing had
been looked up before, if a compaction has since taken that result out of view, and if at least half of the lines that
it shows now had been shown then (of a question: whatever the answer). So a file that was changed all over, or another
part of it, is not read again, but read. What it cost are the tokens of these lines, once: that they are sent again with
every later call, mostly from a cache, is not counted. It is laid to the compaction that took them away and to no other.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from clew.audit.kinds import as_file, command_of, given_to
from clew.clients.voices import lasting
from clew.core.items import Item, canonical
from clew.facts import find
from clew.facts.sheets import NUMBERED
from clew.steps.dedupe import PATH_KEYS, PRINTS, REMARK_KEYS, VIEWING, WHOLE_TEXTS
from clew.steps.outcome import failed
from clew.steps.worklog.acts import NEW_KEYS
from clew.steps.worklog.commands import looks, shortened_command
from clew.steps.worklog.wording import on_one_line

LookupKind = Literal["files", "commands", "searches", "questions"]
LOOKUP_KINDS: tuple[LookupKind, ...] = ("files", "commands", "searches", "questions")
SHARE_SHOWN_BEFORE = 0.5
SOUGHT_BY = ("pattern", "query", "regex", "q", "search_term", "url", "uri")


class LookupSubject(NamedTuple):
    """What a call looks up."""

    kind: LookupKind
    what: str


class LookedUpAgain(NamedTuple):
    """A call that showed what had been out of view."""

    hidden_by: int  # the number of the compaction
    subject: LookupSubject
    tokens: int  # of the lines that had been shown before


class SeenView(NamedTuple):
    """How far back the view reached once a compaction was made."""

    place: int  # messages that were said before it
    start: int  # the first of them that stayed as it was
    also: frozenset[int] = frozenset()  # earlier ones that stayed too

    def hides(self, message: int) -> bool:
        return message < self.start and message not in self.also


def looked_up_again(
    messages: Sequence[Sequence[Item]], views: Sequence[SeenView], tokens: Callable[[str], int]
) -> Iterator[LookedUpAgain]:
    """The calls of a session that looked up what a compaction had taken away; messages are given as their items."""
    calls: dict[str, LookupSubject] = {}
    lines: dict[LookupSubject, dict[int, int]] = defaultdict(dict)  # the hash of a line: where it was last shown
    made, first = 0, views[0].place if views else len(messages)
    for number, items in enumerate(messages):
        while made < len(views) and views[made].place <= number:
            made += 1
        for item in items:
            if item.kind == "call" and (subject := subject_of(item)) is not None:
                calls[item.call_id] = subject
            elif item.kind == "result" and (subject := calls.pop(item.call_id, None)) is not None and not failed(item):
                known, shown = lines[subject], _lines(item.text)
                if number >= first and known:
                    yield from _again(subject, known, shown, views[:made], tokens)
                known.update(dict.fromkeys(shown, number))


def _again(
    subject: LookupSubject,
    known: Mapping[int, int],
    shown: Mapping[int, str],
    views: Sequence[SeenView],
    tokens: Callable[[str], int],
) -> Iterator[LookedUpAgain]:
    if subject.kind == "questions":
        before = {line: place for line, place in known.items() if views[-1].hides(place)}
        gone = [text for line, text in shown.items() if line in before]
        if len(before) < len(known):
            return  # it was asked since, too
    else:
        before = {line: known[line] for line in shown if line in known and views[-1].hides(known[line])}
        gone = [shown[line] for line in before]
        if len(gone) < max(1.0, SHARE_SHOWN_BEFORE * len(shown)):
            return
    newest = max(before.values())
    by = next(n for n, view in enumerate(views) if view.place > newest and view.hides(newest))
    yield LookedUpAgain(by, subject, tokens("\n".join(gone)) if gone else 0)


def _lines(text: str) -> dict[int, str]:
    """The lines of a result, without the numbers of a file viewer and what a client hangs on it.

    A line is known by itself and the one before it: what programs are made of, such as a brace, is in every file.
    """
    found, before = {}, ""
    for line in lasting(text).splitlines():
        bare = line[numbered.end() :] if (numbered := NUMBERED.match(line)) else line
        if bare := bare.strip():
            found[hash((before, bare))] = bare
            before = bare
    return found


# --- what a call looks up -------------------------------------------------------------------------------------------


def subject_of(call: Item) -> LookupSubject | None:
    """What a call looks up; None for one that does something."""
    given = given_to(call)
    if (line := command_of(given)) and not (given.get("command") in VIEWING and _path(given)):
        return _shown_by(line)
    if question := _question(given):
        return LookupSubject("questions", question)
    if any(isinstance(given.get(key), str) and given[key] for key in SOUGHT_BY):
        what = {k: v for k, v in given.items() if k not in REMARK_KEYS}
        return LookupSubject("searches", f"{call.name} {canonical(what)}")
    if (path := _path(given)) and not any(key in given for key in (*WHOLE_TEXTS, *NEW_KEYS, "edits", "insert_text")):
        return LookupSubject("files", as_file(path) or path)
    return None


def _path(given: Mapping[str, Any]) -> str:
    return next((v.strip() for k in PATH_KEYS if isinstance(v := given.get(k), str) and v.strip()), "")


def _shown_by(line: str) -> LookupSubject | None:
    if not looks(line):
        return None
    short = shortened_command(line)
    if PRINTS.fullmatch(short):
        files = [file for fact in find(short) if fact.kind in ("path", "file", "pair") and (file := as_file(fact.text))]
        if files:
            return LookupSubject("files", files[0])
    return LookupSubject("commands", short)


def _question(given: Mapping[str, Any]) -> str:
    asked = given.get("questions")
    if isinstance(asked, list):
        texts = [q.get("question") for q in asked if isinstance(q, Mapping)]
        return " / ".join(on_one_line(t) for t in texts if isinstance(t, str))
    question = given.get("question")
    return on_one_line(question) if isinstance(question, str) else ""
