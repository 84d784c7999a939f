"""What proves that a conversation goes on from another one: a line that only clew writes, an answer that only one got.

Equal words are no proof: many conversations read the same files, and begin with the same greeting.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from clew.core.items import Digests
from clew.core.own_tools import SUMMARY_LINE

ANSWER_MARKS = "compaction_answer"  # the kind under which a store has the marks of answers
LEAST_ANSWER = 200  # characters of such an answer: what is shorter, a model may say to many
OPENING_WORDS = 8  # words by which an answer is looked for in a text
MOST_WORDS = 50_000  # of a text in which answers are looked for
MOST_PLACES = 64  # in it, where an answer may begin
_LINE = SUMMARY_LINE + "%s.%s.%s: all of it is kept%s]"
_WAY = ", and `%s` with an id from above gives the original"
_LINES = re.compile(re.escape(SUMMARY_LINE) + r"([0-9a-f]{16,64})\.([0-9]{1,12})\.([0-9a-f]{16}):")
_WORDS = re.compile(r"\w+")
_TAGS = ("summary", "state_snapshot")  # of which clients take what is in them, and leave out what is around them


class Past(NamedTuple):
    """What a history goes on from: a branch as it was after one of its events."""

    branch: str
    seq: int


NOBODYS = Past("", 0)


def log_line(digests: Digests, past: Past, recall: str = "", below: Past | None = None) -> str:
    """The last line of a summary that clew gave a client: of what it is, with a key that nobody can make up.

    `recall` is the name under which whoever goes on from it can recall. With `below`, it holds only where another such
    line stands above it.
    """
    return _LINE % (past.branch, past.seq, _key(digests, past, below), _WAY % recall if recall else "")


def logged(digests: Digests, text: str) -> Past | None:
    """What this is a summary of, by clew's own line in it: the last one, for what is quoted stands above it."""
    found: list[Past] = []
    for branch, seq, key in _LINES.findall(text):
        past = Past(branch, int(seq))
        found += [past for above in (None, *found[-1:]) if key == _key(digests, past, above)]
    return found[-1] if found else None


def _key(digests: Digests, past: Past, below: Past | None = None) -> str:
    above = (below.branch, str(below.seq)) if below else ()
    return digests.link(past.branch, ("log line", str(past.seq), *above))[:16]


class AnswerMark(NamedTuple):
    """By what the answer to a compaction is known again, without its words."""

    full: str
    opening: str
    words: int

    def learned(self, past: Past) -> tuple[str, str, Mapping[str, Any]]:
        """As a store learns what this sums up."""
        value = {"opening": self.opening, "words": self.words, "seq": past.seq}
        return ANSWER_MARKS, f"{self.full}.{past.branch}", value


def answer_mark(digests: Digests, text: str) -> AnswerMark | None:
    """The mark of what a client that compacts was given; None where that is too short to be one's own."""
    words = _WORDS.findall(text)
    if sum(map(len, words)) < LEAST_ANSWER or len(words) > MOST_WORDS:
        return None
    return AnswerMark(_digest(digests, words), _digest(digests, words[:OPENING_WORDS]), len(words))


def answered(digests: Digests, text: str, learned: Mapping[str, Mapping[str, Any]], alone: bool = False) -> Past | None:
    """What an answer that stands whole in this text sums up; None where there is none, or where several got it.

    `alone`: nothing else may stand in it.
    """
    known: dict[str, dict[int, list[tuple[str, Past]]]] = {}  # by their opening, and how many words they have
    for name, value in learned.items():
        whole, _, branch = name.partition(".")
        same = known.setdefault(str(value.get("opening")), {})
        same.setdefault(int(value.get("words", 0)), []).append((whole, Past(branch, int(value.get("seq", 0)))))
    words = _WORDS.findall(_untagged(text.strip()) if alone else text)[:MOST_WORDS] if known else []
    openings = (
        (n, known.get(_digest(digests, words[n : n + OPENING_WORDS]))) for n in range(1 if alone else len(words))
    )
    found: set[Past] = set()
    for at, marks in islice(((n, marks) for n, marks in openings if marks), MOST_PLACES):
        lengths = sorted(count for count in marks if count <= len(words) - at and (count == len(words) or not alone))
        for count, digest in zip(lengths, digests.links("answer", words[at:], lengths), strict=True):
            found |= {past for whole, past in marks[count] if whole == digest}
    return found.pop() if len(found) == 1 else None


def taken(answer: str, tag: str | None) -> str:
    """What a client takes of a model's answer that is to stand in a tag: without one, it may quote others in theirs."""
    inside = answer.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0] if tag in _TAGS else ""
    return inside or _untagged(answer.strip())


def _untagged(text: str) -> str:
    """A text without the tag in which all of it stands."""
    for tag in _TAGS:
        if text.startswith(f"<{tag}>") and text.endswith(f"</{tag}>"):
            return text.removeprefix(f"<{tag}>").removesuffix(f"</{tag}>")
    return text


def _digest(digests: Digests, words: Iterable[str]) -> str:
    return digests.link("answer", words)
