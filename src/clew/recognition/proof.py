"""What proves that a conversation goes on from another one: a line that only clew writes, an answer that only one got.

Equal words are no proof: many conversations read the same files, and begin with the same greeting.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from clew.core.items import Digests

ANSWERS = "compaction_answer"  # the kind under which a store has the marks of answers
LEAST = 200  # characters of such an answer: what is shorter, a model may say to many
OPENING = 8  # words by which an answer is looked for in a text
MOST_WORDS = 50_000  # of a text in which answers are looked for
MOST_TRIES = 64  # places in it that are compared whole
_LINE = "[clew log %s.%s: all of it is kept, and `recall` with an id from above gives the original]"
_LINES = re.compile(r"\[clew log ([0-9a-f]{16,64})\.([0-9a-f]{16}):")
_WORDS = re.compile(r"\w+")
_TAGS = ("summary", "state_snapshot")  # of which clients take what is in them, and leave out what is around them


def log_line(digests: Digests, branch: str) -> str:
    """The last line of a summary that clew gave a client: of which branch it is, with a key that nobody can make up."""
    return _LINE % (branch, _key(digests, branch))


def has_log_line(text: str) -> bool:
    """Whether a text has such a line, anybody's."""
    return _LINES.search(text) is not None


def logged(digests: Digests, text: str) -> str | None:
    """The branch whose summary this is, by clew's own line in it: the last one, for what is quoted stands above it."""
    found = _LINES.findall(text)
    return next((branch for branch, key in reversed(found) if key == _key(digests, branch)), None)


def _key(digests: Digests, branch: str) -> str:
    return digests.link(branch, ("log line",))[:16]


class AnswerMark(NamedTuple):
    """By what the answer to a compaction is known again, without its words."""

    whole: str
    opening: str
    words: int

    def learned(self, branch: str) -> tuple[str, str, Mapping[str, Any]]:
        """As a store learns that a branch got this answer."""
        return ANSWERS, f"{self.whole}.{branch}", {"opening": self.opening, "words": self.words}


def answer_mark(digests: Digests, text: str) -> AnswerMark | None:
    """The mark of what a model answered to a client that compacts; None where that is too short to be one's own."""
    words = _WORDS.findall(_without_tags(text))
    if sum(map(len, words)) < LEAST or len(words) > MOST_WORDS:
        return None
    return AnswerMark(_digest(digests, words), _digest(digests, words[:OPENING]), len(words))


def answered(digests: Digests, text: str, learned: Mapping[str, Mapping[str, Any]], alone: bool = False) -> str | None:
    """The one branch that got an answer which stands whole in this text; None where there is none, or several.

    `alone`: nothing else may stand in it.
    """
    known: dict[str, list[tuple[str, int, str]]] = {}
    for name, value in learned.items():
        whole, _, branch = name.partition(".")
        known.setdefault(str(value.get("opening")), []).append((whole, int(value.get("words", 0)), branch))
    words = _WORDS.findall(_without_tags(text) if alone else text)[:MOST_WORDS] if known else []
    found: set[str] = set()
    tries = MOST_TRIES
    for at in range(min(1, len(words)) if alone else len(words)):
        for whole, count, branch in known.get(_digest(digests, words[at : at + OPENING]), ()):
            tries -= 1
            fits = tries >= 0 and (count == len(words) or not alone)
            if fits and _digest(digests, words[at : at + count]) == whole:
                found.add(branch)
    return found.pop() if len(found) == 1 else None


def _without_tags(text: str) -> str:
    for tag in _TAGS:
        text = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0] or text
    return text


def _digest(digests: Digests, words: Iterable[str]) -> str:
    return digests.link("answer", words)
