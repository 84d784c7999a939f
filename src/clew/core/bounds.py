"""How much is looked at, at most, of what anybody may send: all bounds of a compaction's work, with a reason each.

What is beyond a bound stays in the log as it was said, is counted and sent as always, and can be recalled. Only what is
told of it is less, and the text that tells less says so.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from clew.core.items import Node

# A log has 30,000 tokens, about 105,000 characters: of no text does it tell as much as this.
TEXT_READ = 200_000  # characters of one text, half of them its end
# The longest histories that fit the largest windows have four to five million; with more, each text is read less far.
FOLD_READ = 8_000_000  # characters of all that one compaction puts into words
SHORTER = (20_000, 2_000, 200)  # characters of each text then: the first of these with which all are within that
# In a log of that length a line of 25 characters has room for each of these, and for no more.
MESSAGES_TOLD = 4_000  # that one compaction puts into words; rules, tasks and files are read in all of them
# What became of the facts behind its blocks is counted; of them the newest say what is worth recalling.
ITEMS_READ = 10_000  # of what one compaction takes out of view, in which facts are looked for
# Beside the newest message stand 2,000 tokens of what is out of view; what is older is found by whoever asks for it.
SEARCHED = 8_000_000  # characters of what is out of view, the newest of it, where there is no store to search
ITEMS_SEARCHED = 20_000  # and so many items of it
# A search reads so many characters of all that its store proposes.
TEXT_SEARCHED = 2_500_000  # characters of one text, from its beginning
# A failure that so many others followed is not what the next change mends.
FAILURES_OPEN = 200  # commands that failed, of which it is told what was changed until they went well
# What was refused without a reason and then let through is settled soon after, or never.
REFUSALS_SETTLED = 24  # of the newest, that something done later may settle
BACKGROUND = 60  # things left running that are kept in mind: nobody asks for as many
PATH_DEPTH = 24  # folders of a path in which those are found that most paths begin with


def ends(text: str, most: int = TEXT_READ) -> str:
    """A text, or the two ends of a long one with a line between them that says what is not looked at."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n({unread(len(text), most)})\n{text[-(most // 2) :]}"


def unread(length: int, most: int = TEXT_READ) -> str:
    """What to say of a text that is longer than what is read of it; nothing of another."""
    return f"{length - most:,} characters not looked at" if length > most else ""


def newest(nodes: Sequence[Node], items: int, characters: int = FOLD_READ, each: int = TEXT_READ) -> Sequence[Node]:
    """The newest of these, within so many items and characters, of each of which so many are read."""
    taken = accumulate(min(each, len(n.item.text)) for n in reversed(nodes))
    return nodes[len(nodes) - min(items, sum(size <= characters for size in taken)) :]


def reach(lengths: Iterable[int]) -> int:
    """How many characters are read of each text of so many characters each, so that all are not too much."""
    every = list(lengths)
    for most in (TEXT_READ, *SHORTER):
        if sum(min(length, most) for length in every) <= FOLD_READ:
            return most
    return SHORTER[-1]


def clip(text: str, most: int) -> str:
    """Text on one line, cut to size."""
    line = " ".join(text[: most * 4].split())
    return line if len(line) <= most else line[: most - 1] + "…"
