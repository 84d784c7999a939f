"""A text in passages: whole lines, counted."""

from collections.abc import Iterator
from typing import NamedTuple

from clew.text.quoting import LINE_ENDS
from clew.text.words import PIECE

PASSAGE = 150  # characters after which a passage ends: many short ones answer better than few long ones
QUESTION_MARKS = "?？؟\u037e՞"  # the Greek one looks like a semicolon, and is none


class NumberedLine(NamedTuple):
    """A line of a text, counted from 1."""

    number: int
    text: str


class Passage(NamedTuple):
    """A few lines of a text."""

    text: int  # which one, by position
    lines: tuple[NumberedLine, ...]
    words: int


def passages(body: str) -> Iterator[tuple[NumberedLine, ...]]:
    """A text in passages: whole lines, or pieces of long ones; empty lines are left out."""
    lines: list[NumberedLine] = []
    size = 0
    for number, line in enumerate(body.split("\n"), 1):
        line = LINE_ENDS.sub(" ", line.rstrip("\r"))  # each is shown as one, after its number
        for at in range(0, len(line) if line.strip() else 0, PIECE):
            piece = line[at : at + PIECE]
            if lines and size + len(piece) > PASSAGE:
                yield tuple(lines)
                lines, size = [], 0
            lines.append(NumberedLine(number, piece))
            size += len(piece) + 1
    if lines:
        yield tuple(lines)


def asks(text: str) -> bool:
    """Whether a text has a question in it, in whichever language."""
    return any(mark in text for mark in QUESTION_MARKS)
