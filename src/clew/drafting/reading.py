"""What a model answered: lines under headings, or plain words; or the reason why it is no answer at all."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple, get_args

from clew.claims import SECTIONS, STATES, Section
from clew.drafting.language import language_of
from clew.step import Reply
from clew.steps.worklog.wording import plain, sentences

Flaw = Literal["empty", "reasoning only", "tool call", "garbage", "too long", "language"]
FLAWS: tuple[Flaw, ...] = get_args(Flaw)

LITTLE = 12  # characters of a sentence that can say something
LINE = 600  # characters of a note that can be one
REPEATED = 4  # times the same line
CIRCLES = 0.3  # of the lines, said so often: it is going round in circles

_THINKING = re.compile(r"<(think|thinking|analysis|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s*\**([A-Za-z]+)")
_TITLE = re.compile(r"^\s{0,3}#{1,6}\s|^\s*(?:\d+[.)]\s*)?\*\*[^*]+\*\*:?\s*$|^\s*(?:-{3,}|\|[\s:|-]+\|)\s*$|^\s*```")
_FENCED = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_QUOTES = re.compile(r"\W*[\"“].*[\"”].{0,20}|`?[\w./-]+`?", re.DOTALL)
_RULE = re.compile(r"^\s*\|[\s:|-]+\|\s*$")  # under the head of a table
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_NOTE = re.compile(r"^\s*[-*•]\s+(.+?)\s*$")
_NONE = re.compile(r"\W*(?:none|nothing|n/a)\W*", re.IGNORECASE)
_CITED = re.compile(r"^(.*?)\s*\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]\s*\.?$")
_LABEL = re.compile(r"\bn\d+\b")
_QUOTED = re.compile(r"[\"“”]([^\"“”]{4,})[\"“”]")
_STATE = re.compile(rf"^\**({'|'.join(STATES)})\**\s*:\s*(.+)$", re.IGNORECASE)
_KNOWN = re.compile(r"^\**k(\d+)\**[:,]?\s+(.+)$")


class Note(NamedTuple):
    """A line as the model wrote it."""

    section: Section
    text: str
    labels: tuple[str, ...]
    quotes: tuple[str, ...]
    state: str = ""
    about: int = -1  # the place of an earlier note that it changes
    stale: bool = False


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
    written = language_of("\n".join(note.text for note in notes(text) if note.section != "constraints"))
    return "language" if language and written and written != language else None


def spoken(text: str) -> str:
    """A reply without what its model thought aloud in tags."""
    return _THINKING.sub("", text).strip()


def notes(text: str, cut: bool = False) -> Iterator[Note]:
    """The notes of a reply, in order; what stands under no heading of ours is taken sentence by sentence.

    Of a reply that was `cut` the last line may be half of one: it is left out.
    """
    section: Section | None = None
    lines = _FENCED.sub("", spoken(text)).splitlines()
    lines = lines[:-1] if cut else lines
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if heading := _HEADING.match(line):
            section = _section(heading[1])
        elif _TITLE.match(line) or not line.strip() or _RULE.match(following):
            continue
        elif section and (found := _NOTE.match(line)):
            if len(found[1]) <= LINE and not _NONE.fullmatch(found[1]):
                yield _note(section, found[1])
        else:
            # An entry of a list as it is, prose by its sentences. What only quotes is told by code, and better.
            said = plain(_BULLET.sub("", line)).strip()
            for part in [said] if _BULLET.match(line) and len(said) <= LINE else sentences(said):
                if LITTLE <= len(part) <= LINE and not part.endswith((":", "：")) and not _QUOTES.fullmatch(part):
                    yield Note("findings", part, (), ())


def _note(section: Section, line: str) -> Note:
    cited = _CITED.match(line)
    text, cites = (cited[1], cited[2]) if cited else (line, "")
    about = -1
    if known := _KNOWN.match(text):
        about, text = int(known[1]) - 1, known[2]
    stale = about >= 0 and text.strip(" .:*").lower() == "stale"
    state = ""
    if section == "tasks" and (told := _STATE.match(text)):
        state, text = told[1].lower(), told[2]
    if section == "tasks" and not state:
        state = "open"
    return Note(section, text.strip(), tuple(_LABEL.findall(cites)), tuple(_QUOTED.findall(cites)), state, about, stale)


def is_whole(text: str) -> bool:
    """Whether it has every section that was asked for: then nothing under them means that there is nothing."""
    found = {_section(heading[1]) for line in spoken(text).splitlines() if (heading := _HEADING.match(line))}
    return found >= {*SECTIONS}


def _section(word: str) -> Section | None:
    return next((s for s in SECTIONS if s == word.lower()), None)


def rambles(text: str) -> bool:
    """Whether it says the same line again and again, or is no text."""
    lines = [line for line in text.splitlines() if len(line) > 12]
    again = sum(times for times in Counter(lines).values() if times >= REPEATED)
    if again > CIRCLES * len(lines):
        return True
    odd = sum(c == "\ufffd" or (c < " " and c not in "\n\t\r") for c in text)
    return odd * 50 > len(text)
