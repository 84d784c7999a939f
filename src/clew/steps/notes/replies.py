"""What a model answered, line by line, in whatever form it wrote; or the reason why it is no answer at all."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Literal, NamedTuple, get_args

from clew.steps.notes.language import language_of
from clew.steps.notes.model import Reply
from clew.steps.notes.placing import UNSPACED
from clew.steps.worklog.wording import plain, sentences

Flaw = Literal["empty", "reasoning only", "tool call", "garbage", "too long", "language"]
FLAWS: tuple[Flaw, ...] = get_args(Flaw)

LEAST_SENTENCE, LEAST_SIGNS = 12, 4  # characters of a sentence that can say something; where a sign is a word
NOTE_CHARACTERS = 600  # characters of a note that can be one
READ_CHARACTERS = 4_000  # characters of a line, or of a sentence, that is read
MANY = 400  # notes of one answer
TITLE = 60  # and of a heading
LABEL_WORDS = 5  # words of a line with a colon that is one
REPEATED = 4  # times the same line
CIRCLES = 0.3  # of the lines, said so often: it is going round in circles

_THINKING = re.compile(r"\s*<(think|thinking|analysis|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_THOUGHT = re.compile(r"\A(?:(?!<think).)*?</(?:think|thinking)>", re.DOTALL)  # without its beginning, as some send it
_HEADING = re.compile(r"\s{0,3}#{1,6}\s*\S|\s{0,3}\*\*[^*]+\*\*:?\s*$")
_BOLD = re.compile(r"\s{0,3}\*\*")
_MARKS = re.compile(r"^\s*#+\s*")
_NUMBER = re.compile(r"^\s*\d{1,2}[.)]\s+")
_COLON = re.compile(r"(?:\d{1,2}[.)]\s+)?[^-*•\s].{0,70}[:：]\**\s*")
_DIVIDES = re.compile(r"^\s*(?:-{3,}|\|[\s:|-]+\|)\s*$")  # as under the head of a table
_FENCE = re.compile(r"^[ \t]*(```|~~~)")
# A quotation from end to end, perhaps with another inside, which begins after a space.
_QUOTE = re.compile(r"\W*[\"“](?:[^\"“”]*|[^\"“”]*\s[\"“].*)[\"”][^\"“”]{0,20}")
_NAME = re.compile(r"`[\w./-]+`|(?=[^\s]*[./_])[\w./-]+|[\x21-\x7e]+")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_NONE = re.compile(
    r"\W*(?:n/a|(?:none|nothing)"
    r"(?: (?:to (?:add|note|report)|at all|(?:was |is )?(?:explicitly )?(?:stated|pending|noted)))?)\W*",
    re.IGNORECASE,
)
_CITED = re.compile(r"^(.*?) ?\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\] ?\.?$")
_LABELS = re.compile(r" ?[\[(]n\d+(?:[, ]+n\d+)*[\])]")  # in the middle of a line: they mean nothing to who reads it
_BLANKS = re.compile(r"(?<=\S)\s+")
_WRAPPED = re.compile(r"\A\s*(```|~~~)\w*\n(.*)\n\1\s*\Z", re.DOTALL)
_LABEL = re.compile(r"\bn\d+\b")
_OF = re.compile(r"[\[(]?(n\d+)\b[\])]?")
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
    written = language_of("\n".join(note.text for note in islice(notes(text), MANY)))
    return "language" if language and written and written != language else None


def spoken(text: str) -> str:
    """A reply without what its model thought aloud in tags."""
    thought = _THINKING.match(text) or _THOUGHT.match(text)
    said = text[thought.end() :] if thought else text
    wrapped = _WRAPPED.match(said)
    return (wrapped[2] if wrapped and wrapped[1] not in wrapped[2] else said).strip()


def notes(text: str, cut: bool = False) -> Iterator[Note]:
    """The notes of a reply, in order: an entry of a list with all that belongs to it, prose sentence by sentence.

    Of a reply that was `cut` the last line may be half of one: it is left out.
    """
    under, of, level = "", "", 0  # the heading; the label of the one above it that has one, and how deep that is
    top, headless = -1, False  # how far the entry is indented that deeper ones belong to; whether nothing of it is told
    lines = list(_unwrapped(_prose(spoken(text).splitlines())))
    lines = lines[:-1] if cut else lines
    for line, following in zip(lines, [*lines[1:], ""], strict=False):
        if (title := _title(line)) is not None:
            label, depth = _OF.match(title), line.lstrip().count("#", 0, 6)
            if label or depth <= level:
                of, level = label[1] if label else "", depth
            under, top = title[len(label[0]) if label else 0 :].strip(" :,-–"), -1
        elif _DIVIDES.match(line) or _DIVIDES.match(following):
            top = -1
        else:
            entry, depth = _BULLET.match(line), _depth(line)
            deeper = bool(entry) and depth > top >= 0
            top, headless = (top, headless) if deeper else (depth if entry else -1, True)
            leads = bool(entry) and not deeper and _depth(following) > depth and _BULLET.match(following) is not None
            cited = _CITED.match(line)
            labels = dict.fromkeys(_LABEL.findall(" ".join([cited[2] if cited else "", *_LABELS.findall(line)])))
            quotes = _QUOTED.findall(cited[2]) if cited else []
            for said in _said(cited[1] if cited and (labels or quotes) else line, leads):
                yield Note(said, tuple(labels), tuple(quotes), under, of, deeper and not headless)
                deeper, headless = bool(entry), False


def _prose(lines: list[str]) -> Iterator[str]:
    """The lines that are neither empty nor code: of that, code tells what matters. An open fence is none."""
    fences = Counter(found[1] for line in lines if (found := _FENCE.match(line)))
    fence = ""
    for line in lines:
        if found := _FENCE.match(line):
            fences[found[1]] -= 1
            fence = "" if fence == found[1] else fence or (found[1] if fences[found[1]] else "")
        elif line.strip() and not fence:
            indent = len(line) - len(line.lstrip())
            squeezed = line[:indent] + _BLANKS.sub(" ", line[indent:]).rstrip()
            # A whole summary may be one paragraph; what has no sentences is no prose.
            yield from (
                [squeezed]
                if len(squeezed) <= READ_CHARACTERS
                else (s for s in sentences(squeezed) if len(s) <= READ_CHARACTERS)
            )


def _unwrapped(lines: Iterator[str]) -> Iterator[str]:
    """The lines with those joined that are one entry, written in several."""
    held = ""
    for line in lines:
        goes_on = held and _BULLET.match(held) and not _BULLET.match(line) and _depth(line) > _depth(held)
        if goes_on and held[-1] not in ".:!?。：！？" and len(held) + len(line) <= NOTE_CHARACTERS:
            held = f"{held} {line.strip()}"
            continue
        if held:
            yield held
        held = line
    if held:
        yield held


def _said(line: str, leads: bool) -> Iterator[str]:
    """The sentences of a line that say something; what only quotes is told by code, and better.

    A name, or what ends with a colon, `leads` to what stands under it, or says nothing.
    """
    said = _LABELS.sub("", plain(_BULLET.sub("", line))).strip()
    if not line.rstrip(" *").endswith((":", "：")):
        said = said.rstrip(":")  # which a line in bold type has got
    if _QUOTE.fullmatch(said) or _NONE.fullmatch(said):
        return
    if _NAME.fullmatch(said) or said.endswith((":", "：")):
        if leads and len(said) <= NOTE_CHARACTERS:
            yield f"{said.rstrip(':：')}:"
        return
    for part in sentences(said):
        if (LEAST_SIGNS if max(part) >= UNSPACED else LEAST_SENTENCE) <= len(
            part
        ) <= NOTE_CHARACTERS and not _NONE.fullmatch(part):
            yield part


def _depth(line: str) -> int:
    return len(line.expandtabs()) - len(line.expandtabs().lstrip())


def _title(line: str) -> str | None:
    """A heading in the model's own words; empty for what only announces what follows."""
    said = _NUMBER.sub("", plain(_MARKS.sub("", line))).strip(" *:：")
    if not _HEADING.match(line):
        if _depth(line) or not _COLON.fullmatch(line):
            return None
        if len(said.split()) > LABEL_WORDS or ":" in said:
            return None if _NUMBER.match(line) else ""  # an entry, or words that only announce what follows
        return said
    return said if len(said) <= TITLE or _OF.match(said) else None if _BOLD.match(line) else ""


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
