"""The words that tell a model to bring something back.

Stand-ins in the log name the tool as clew does: `recall ID`. What a model reads of them is `as_named`: under the name
that the tool has there, and without a word of it where there is none.
"""

import re

from clew.core.items import SHORT
from clew.core.own_tools import RECALL, SUMMARY_LINE

POINTER = rf"(?<![0-9a-zA-Z]){RECALL} [0-9a-f]{{{SHORT}}}"  # in whatever text, under whichever name
PREVIEWED = " characters out of view; "  # what stands before one between the two ends of a long text
_ID = rf"{RECALL} [0-9a-f]{{{SHORT}}}"
_ALONE = re.compile(rf"\[{_ID}\]")
_BESIDE = re.compile(
    rf" \({_ID}\)|(?:; for the rest: |[;,:] ){_ID}(?: lines [0-9]{{1,12}}-[0-9]{{1,12}})?(?: for all of it)?"
)
# In a text that is quoted the brackets are round.
_MARK = re.compile(rf"[\[(]… [\d,]+ of [\d,]+{PREVIEWED}|[\[(]{re.escape(SUMMARY_LINE[1:])}[^\n]*[\])]|{POINTER}")


def without_marks(text: str) -> str:
    """What a text of clew's tells, without its own ids and counts: these are facts of nobody."""
    return _MARK.sub(" ", text)


def pointer(id: str, name: str = RECALL) -> str:
    """The words by which whoever reads them gets back what an id stands for."""
    return f"{name} {id}"


def as_named(text: str, name: str) -> str:
    """The text of a stand-in for a model that has `recall` under this name; without ids for one that has it not."""
    if name == RECALL or RECALL not in text:
        return text
    if not name:
        return _BESIDE.sub("", _ALONE.sub("[out of view]", text))

    def named(found: re.Match[str]) -> str:
        return found[0].replace(f"{RECALL} ", f"{name} ", 1)

    return _BESIDE.sub(named, _ALONE.sub(named, text))
