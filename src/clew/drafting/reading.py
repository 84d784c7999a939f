"""What a model answered, line by line, in whatever form it wrote; or the reason why it is no answer at all."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, get_args

from clew.drafting.language import language_of
from clew.step import Reply
from clew.steps.worklog.wording import plain, sentences

Flaw = Literal["empty", "reasoning only", "tool call", "garbage", "too long", "language"]
FLAWS: tuple[Flaw, ...] = get_args(Flaw)

LITTLE = 12  # characters of a sentence that can say something
LINE = 600  # characters of a note that can be one
TITLE = 60  # and of a heading
FEW = 5  # words of a line with a colon that is one
REPEATED = 4  # times the same line
CIRCLES = 0.3  # of the lines, said so often: it is going round in circles

_THINKING = re.compile(r"<(think|thinking|analysis|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s*\S|\s{0,3}\*\*[^*]+\*\*:?\s*$")
_MARKS = re.compile(r"^\s*#+\s*")
_NUMBER = re.compile(r"^\s*\d{1,2}[.)]\s+")
_COLON = re.compile(r"(?:\d{1,2}[.)]\s+)?[^-*•\s].{0,70}[:：]\**\s*")
_DIVIDES = re.compile(r"^\s*(?:-{3,}|\|[\s:|-]+\|)\s*$")  # as under the head of a table
_FENCE = re.compile(r"^[ \t]*(```|~~~)")
_QUOTE = re.compile(r"\W*[\"“].*[\"”].{0,20}", re.DOTALL)
_NAME = re.compile(r"`?[\w./-]+`?")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_NONE = re.compile(r"\W*(?:none\b.{0,30}|nothing|n/a)\W*", re.IGNORECASE)
_CITED = re.compile(r"^(.*?)\s*\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]\s*\.?$")
_LABEL = re.compile(r"\bn\d+\b")
_QUOTED = re.compile(r"[\"“”]([^\"“”]{4,})[\"“”]")


class Note(NamedTuple):
    """A line as the model wrote it."""

    text: str
    labels: tuple[str, ...] = ()  # of the items that it names
    quotes: tuple[str, ...] = ()  # words of them
    under: str = ""  # its heading
    of: str = ""  # the label that the heading names
    goes_on: bool = False  # it belongs to the entry before it


def flaw(reply: Reply, source: int, count: Callable[[str], int], language: str) -> Flaw | None:
    """Why a reply is no summary of a source of so many tokens; None if it may be one."""
    text = spoken(reply.text)
    if not text:
        if reply.calls:
            return "tool call"
        return "reasoning only" if reply.reasoning or reply.text.strip() else "empty"
    if count(text) >= source:
        return "too long"
    if rambles(text):
        return "tool call" if reply.calls else "garbage"
    written = language_of("\n".join(note.text for note in notes(text)))
    return "language" if language and written and written != language else None


def spoken(text: str) -> str:
    """A reply without what its model thought aloud in tags."""
    return _THINKING.sub("", text).strip()


def notes(text: str, cut: bool = False) -> Iterator[Note]:
    """The notes of a reply, in order: an entry of a list with all that belongs to it, prose sentence by sentence.

    Of a reply that was `cut` the last line may be half of one: it is left out.
    """
    under, of, top = "", "", -1  # the heading, its label; how far the entry is indented that deeper ones belong to
    lines = list(_prose(spoken(text).splitlines()))
    lines = lines[:-1] if cut else lines
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if (title := _title(line)) is not None:
            label = _LABEL.match(title)
            under, of, top = title.removeprefix(label[0] if label else "").strip(" :,-–"), label[0] if label else "", -1
        elif _DIVIDES.match(line) or _DIVIDES.match(following):
            top = -1
        else:
            entry, depth = _BULLET.match(line), _depth(line)
            deeper = bool(entry) and depth > top >= 0
            top = top if deeper else depth if entry else -1
            leads = bool(entry) and not deeper and _depth(following) > depth and _BULLET.match(following) is not None
            cited = _CITED.match(line)
            labels, quotes = _LABEL.findall(cited[2]) if cited else [], _QUOTED.findall(cited[2]) if cited else []
            for said in _said(cited[1] if cited and (labels or quotes) else line, leads):
                yield Note(said, tuple(labels), tuple(quotes), under, of, deeper)
                deeper = bool(entry)


def _prose(lines: list[str]) -> Iterator[str]:
    """The lines that are neither empty nor code: of that, code tells what matters."""
    fence = ""
    for line in lines:
        if found := _FENCE.match(line):
            fence = "" if fence == found[1] else fence or found[1]
        elif line.strip() and not fence:
            yield line


def _said(line: str, leads: bool) -> Iterator[str]:
    """The sentences of a line that say something; what only quotes is told by code, and better.

    A name, or what ends with a colon, `leads` to what stands under it, or says nothing.
    """
    said = plain(_BULLET.sub("", line)).strip()
    if _QUOTE.fullmatch(said) or _NONE.fullmatch(said):
        return
    if _NAME.fullmatch(said) or said.endswith((":", "：")):
        if leads and len(said) <= LINE:
            yield f"{said.rstrip(':：')}:"
        return
    for part in sentences(said):
        if LITTLE <= len(part) <= LINE:
            yield part


def _depth(line: str) -> int:
    return len(line.expandtabs()) - len(line.expandtabs().lstrip())


def _title(line: str) -> str | None:
    """A heading in the model's own words; empty for what only announces what follows."""
    said = _NUMBER.sub("", plain(_MARKS.sub("", line))).strip(" *:：")
    if not _HEADING.match(line):
        if _depth(line) or not _COLON.fullmatch(line):
            return None
        if len(said.split()) > FEW or ":" in said:
            return None if _NUMBER.match(line) else ""  # an entry, or words that only announce what follows
    return said if len(said) <= TITLE or _LABEL.match(said) else ""


def says_none(text: str) -> bool:
    """Whether it says that there is nothing to note."""
    lines = [line for line in spoken(text).splitlines() if line.strip() and _title(line) is None]
    return bool(lines) and all(_NONE.fullmatch(_BULLET.sub("", line)) for line in lines)


def rambles(text: str) -> bool:
    """Whether it says the same line again and again, or is no text."""
    lines = [line for line in text.splitlines() if len(line) > 12]
    again = sum(times for times in Counter(lines).values() if times >= REPEATED)
    if again > CIRCLES * len(lines):
        return True
    odd = sum(c == "\ufffd" or (c < " " and c not in "\n\t\r") for c in text)
    return odd * 50 > len(text)
