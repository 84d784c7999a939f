"""What a model answered: its three lengths, or the reason why it is no chapter at all."""

import re
from collections import Counter
from collections.abc import Callable, Container
from itertools import zip_longest
from typing import Literal, NamedTuple, get_args

from clew.steps.chapters.language import language_of
from clew.steps.chapters.model import Reply
from clew.steps.worklog.blocks import chosen, pieces

Flaw = Literal["empty", "reasoning only", "tool call", "garbage", "too long", "too short", "language", "echo"]
FLAWS: tuple[Flaw, ...] = get_args(Flaw)

LEAST_LINE = 20  # characters of a line that may not stand twice: shorter ones are headings, and answers
REPEATED = 4  # times the same line
CIRCLES = 0.3  # of the lines, said so often: it is going round in circles
LEAST_SHARE = 1 / 8  # of the size that was asked for, where there is that much to tell
ECHOED = 3  # lines of the prompt in an answer: it is no answer
MIDDLE = 0.6  # of the full length: what lacks a little room need not lose two thirds of its words
SHORT = 1 / 3  # of the full length, where a model wrote but one
SMALLER = 0.8  # of the length before it: else a length is left out

_THINKING = re.compile(r"\s*<(think|thinking|analysis|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL)
_THOUGHT = re.compile(r"\A(?:(?!<think).)*?</(?:think|thinking)>", re.DOTALL)  # without its beginning, as some send it
# Where a length begins: at the beginning of a line, perhaps behind the sign of a list or a word, or behind the end of
# another. Inside of a sentence it is a quotation.
_BEGINS = re.compile(
    r"(?:^[^\w\n<`\"']*(?:\d{1,2}[.)]\s|\w{4,5}:\s)?|(?P<end></(?:line|short|full)>)[^\n<]{0,40})"
    r"<(?P<name>line|short|full)>",
    re.MULTILINE | re.IGNORECASE,
)
_DONE = re.compile(r"</full>[^<]{0,40}\Z", re.IGNORECASE)
_WRAPPED = re.compile(r"\A\s*(```|~~~)\w*\n(.*)\n\1\s*\Z", re.DOTALL)


class Lengths(NamedTuple):
    """A chapter as its model wrote it."""

    full: str
    short: str = ""
    line: str = ""

    def without(self, told: Container[str]) -> "Lengths":
        """The same without the lines that stand in view already; as they are, if nothing else were left."""
        full = _untold(self.full, told)
        return Lengths(full, _untold(self.short, told), _untold(self.line, told)) if full else self

    @property
    def texts(self) -> tuple[str, ...]:
        """From the most to the fewest words, each much shorter than the one before; what a model left out is cut."""
        short = self.short or first_lines(self.full, int(SHORT * len(self.full)))
        line = " ".join(self.line.split()) or first_lines(short, 0)
        found = [self.full]
        for text in (chosen(self.full, MIDDLE, short), short, line):
            if text and len(text) < SMALLER * len(found[-1]):
                found.append(text)
        return tuple(found)


def _untold(text: str, told: Container[str]) -> str:
    """A text without these lines; nothing, if only headings were left."""
    kept = [line for line in text.splitlines() if len(line.strip()) < LEAST_LINE or line.strip() not in told]
    return "\n".join(kept) if any(len(line.strip()) >= LEAST_LINE for line in kept) else ""


def lengths(reply: Reply) -> Lengths:
    """The lengths in a reply. One that was cut off has the shorter ones, which come first, and no full one."""
    text = spoken(reply.text)
    begins, found = dict[str, re.Match[str]](), dict[str, str]()
    for tag in _BEGINS.finditer(text):
        begins.setdefault(tag["name"].lower(), tag)  # a second one is quoted
    for (name, tag), after in zip_longest(begins.items(), [*begins.values()][1:]):
        body = text[tag.end() : after.start() if after else None]
        ends = [end.start() for end in re.finditer(f"</{name}>", body, re.IGNORECASE)]  # so are all but the last
        if ends or after or not reply.cut:
            found[name] = body[: ends[-1] if ends else None].strip()
    if not found:
        return Lengths(without_last_line(text) if reply.cut else text)
    full = found.get("full") or found.get("short") or found.get("line", "")
    return Lengths(full, found.get("short", ""), found.get("line", ""))


def parted(reply: Reply) -> list[Reply]:
    """A reply as the several that it is: a length that was there before begins the next, behind a full one. Only the
    last was cut off."""
    text, starts, seen = spoken(reply.text), [0], set[str]()
    closes = "</" in text
    for tag in _BEGINS.finditer(text):
        name, start = tag["name"].lower(), tag.end("end") if tag["end"] else tag.start()
        if name in seen and (not closes or _DONE.search(text[:start][-60:])):
            starts.append(start)
            seen.clear()
        seen.add(name)
    ends = [*starts[1:], len(text)]
    found = [reply._replace(text=text[start:stop]) for start, stop in zip(starts, ends, strict=True)]
    return [*(one._replace(cut=False) for one in found[:-1]), found[-1]] if len(found) > 1 else [reply]


def flaw(reply: Reply, source: int, size: int, asked: str, language: str, count: Callable[[str], int]) -> Flaw | None:
    """Why a reply is no chapter of a source of so many tokens, asked for in so many; None if it may be one."""
    text = spoken(reply.text)
    if not text:
        if reply.calls:
            return "tool call"
        return "reasoning only" if reply.reasoning or reply.text.strip() else "empty"
    told = lengths(reply).full
    if rambles(told):
        return "tool call" if reply.calls else "garbage"
    own = {line.strip() for line in asked.splitlines() if len(line) > 30}
    if sum(line.strip() in own for line in text.splitlines()) >= ECHOED:
        return "echo"
    tokens = count(told)
    if tokens >= source:
        return "too long"
    if tokens < LEAST_SHARE * min(size, source / 4):
        return "too short"
    written = language_of(told)
    return "language" if language and written and written != language else None


def spoken(text: str) -> str:
    """A reply without what its model thought aloud in tags, and without a fence around all of it."""
    thought = _THINKING.match(text) or _THOUGHT.match(text)
    said = text[thought.end() :] if thought else text
    wrapped = _WRAPPED.match(said)
    return (wrapped[2] if wrapped and wrapped[1] not in wrapped[2] else said).strip()


def rambles(text: str) -> bool:
    """Whether it says the same line again and again, or is no text."""
    lines = [line for line in text.splitlines() if len(line) > 12]
    again = sum(times for times in Counter(lines).values() if times >= REPEATED)
    if again > CIRCLES * len(lines):
        return True
    odd = sum(c == "\ufffd" or (c < " " and c not in "\n\t\r") for c in text)
    return odd * 50 > len(text)


def first_lines(text: str, most: int) -> str:
    """The first lines of a text in so many characters, and at least one."""
    lines = [line for line in pieces(text) if line.strip()]
    kept = lines[:1]
    for line in lines[1:]:
        if sum(map(len, kept)) + len(kept) + len(line) > most:
            break
        kept.append(line)
    return "\n".join(kept)


def without_last_line(text: str) -> str:
    """A text that was cut off, without its last line."""
    return text.rpartition("\n")[0] or text
