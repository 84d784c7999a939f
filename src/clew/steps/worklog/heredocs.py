"""Texts that stand in a shell command, from `<<EOF` to a line with nothing but `EOF`."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

_OPENS = re.compile(r"<<-?[ \t]*['\"]?(\w{1,40})['\"]?[^\n<]{0,400}\n")


class Heredoc(NamedTuple):
    """One of them."""

    word: str  # that ends it
    text: str
    start: int  # of the mark that begins it
    begin: int  # of the text itself
    stop: int  # after the word that ends it


def heredocs(command: str) -> Iterator[Heredoc]:
    """Those of a command in their order; what does not end is none."""
    lines: dict[str, list[int]] = {}  # by what a line has but for its indent: where such lines begin
    at = 0
    for line in command.split("\n"):
        lines.setdefault(line.lstrip(" \t"), []).append(at)
        at += len(line) + 1
    done = 0
    for opened in _OPENS.finditer(command):
        ends = lines.get(opened[1], [])
        first = bisect_right(ends, opened.end())  # it has a line of its own at least
        if opened.start() >= done and first < len(ends):
            text = command[opened.end() : ends[first] - 1]
            done = command.index(opened[1], ends[first]) + len(opened[1])
            yield Heredoc(opened[1], text, opened.start(), opened.end(), done)


def without_heredocs(command: str, told: Callable[[Heredoc], str] = lambda _: "") -> str:
    """A command with what is told of each of them in its place."""
    kept, at = list[str](), 0
    for found in heredocs(command):
        kept += [command[at : found.start], told(found)]
        at = found.stop
    return "".join([*kept, command[at:]])
