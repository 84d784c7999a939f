"""What a sentence cannot be told without: its numbers, its names, its files.

All else may be said in other words; another number, or the same one of something else, is another sentence. A file may
be told by its last name, a long id by its first signs, a small number in words. Names are what clew's finder takes for
one, whatever has a digit in it, and, where few words are capitals, those inside a sentence that have one.
"""

import re
from collections.abc import Iterator

from clew.core.caches import remembers
from clew.facts import find

SENTENCES_READ = 4096  # whose particulars are kept: a sentence is looked for in several texts
THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
DIGITS = re.compile(r"(?<![\w.])\d+(?:[.:]\d+)*")
WITH_DIGIT = re.compile(r"\b[^\W\d_]\w*\d\w*")
CAPITAL = re.compile(r"(?<=[\w,;)]\s)[A-Z][a-z]{2,}\b")
CAPITALS_MOST = 0.3  # of the words of a sentence: in German every noun has one, in a title every word
LIST_MARK = re.compile(r"\W*\d{1,2}[.)]\s")
NAMING_KINDS = frozenset("const dotted email error file flag id path private sha symbol url".split())
TIME_OR_RANGE = re.compile(r"~?[\d:.-]+(?:-[a-z]+)?")  # ids to the finder, numbers to a reader: 05:30, 1-2, 12-char
LONG_ID = re.compile(r"[0-9a-f]{12,64}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{10,30}")
SHORT_ID = 7  # signs, as git shows them
NUMERALS = "zero one two three four five six seven eight nine ten eleven twelve".split()
SMALL_NUMBERS = frozenset(map(str, range(len(NUMERALS))))


def in_one_writing(text: str) -> str:
    """A text whose numbers have no commas inside."""
    return THOUSANDS.sub("", text)


@remembers(SENTENCES_READ)
def particulars(said: str) -> tuple[re.Pattern[str], ...]:
    """What finds each particular of a sentence, and not as a piece of something longer; texts are in one writing."""
    mark = LIST_MARK.match(said)
    found = dict.fromkeys(_particulars(said[mark.end() :] if mark else said))
    return tuple(re.compile(pattern, re.IGNORECASE) for pattern in found)


def _particulars(said: str) -> Iterator[str]:
    names, left = _parted(said)
    yield from map(_counted, DIGITS.findall(left))
    yield from map(_named, names)


@remembers(SENTENCES_READ)
def names_in(said: str) -> frozenset[str]:
    """What a sentence is about, by name."""
    return frozenset(name.lower() for name in _parted(said)[0])


def _parted(said: str) -> tuple[list[str], str]:
    """The names in a sentence, and what is left of it without most of them."""
    names, rest, end = list[str](), list[str](), 0
    for kind, text, start, stop in find(said):
        if start < end or kind not in NAMING_KINDS or TIME_OR_RANGE.fullmatch(text):
            continue
        names.append(text.rpartition("/")[2] if kind in ("path", "file") else text.strip("-/"))
        rest.append(said[end:start])
        end = stop
    left = " ".join((*rest, said[end:]))
    capitals = CAPITAL.findall(said)
    few = capitals if len(capitals) <= CAPITALS_MOST * len(said.split()) else []
    return [*names, *WITH_DIGIT.findall(left), *few], left


def _named(name: str) -> str:
    if LONG_ID.fullmatch(name):
        return rf"(?<!\w){re.escape(name[:SHORT_ID])}"  # what follows may be cut anywhere
    return rf"(?<!\w){re.escape(name)}(?!\w)"


def _counted(number: str) -> str:
    in_words = rf"|\b{NUMERALS[int(number)]}\b" if number in SMALL_NUMBERS else ""
    return rf"(?<![\w.])(?<!\d:){re.escape(number)}(?!\d|[.:]\d){in_words}"
