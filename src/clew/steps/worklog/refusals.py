"""Calls that were not made: where the protocol says that a call failed, and its whole result is a client's refusal.

Nothing here is what the user said. A tool chooses the text of its result, and often the flag beside it: of a refusal it
is told that there was one, and the words in it are the result's.
"""

import re
from collections.abc import Reversible
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import NamedTuple

from clew.clients.voices import lasting
from clew.core.bounds import REFUSALS_SETTLED
from clew.core.items import Item
from clew.steps.outcome import is_flagged
from clew.steps.worklog.wording import on_one_line, opening, words

REFUSED_HEADING = "Calls that were refused, as their results tell"
CALL_LENGTH = 300  # characters of a call
WHY_CHARACTERS = 1_200  # characters of a result in which that is looked for
ALIKE = 0.5  # of the words that two calls have in common if one is the other, tried again
UNMADE_LINE = 300  # characters of what a result says of why its call was not made

# How results begin that say that a call was not made. Whoever says so, it has not done what it was called for.
_NO = r"(?:rejected|declined|denied|refused|cancell?ed|aborted|interrupted)"
_UNMADE = re.compile(
    r"(?i)\W{0,3}(?:error:\s*)?(?:the )?(?:user|human) (?:has |have )?"
    rf"(?:doesn['’]t want|does not want|did not want|didn['’]t want|{_NO})\b"
    rf"|\W{{0,3}}(?:[\w']+ ){{0,6}}{_NO} by (?:the )?(?:user|human)\b"
    r"|\[Request interrupted by user"
)
# What clients send instead of a result, whole: Claude Code, opencode, Gemini CLI, and clew's own agent.
_WRITTEN = "The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). "
_WAIT = r"STOP what you are doing and wait for the user to tell you how to proceed\."
_REFUSALS = re.compile(
    rf"The user doesn't want to proceed with this tool use\. {re.escape(_WRITTEN)}"
    rf"(?:{_WAIT}|To tell you how to proceed, the user said:\n(?P<said>.+))"
    rf"|The user doesn't want to take this action right now\. {_WAIT}"
    r"|The user rejected permission to use this specific tool call(?:\.| with the following feedback: (?P<fed>.+))"
    r"|\[Operation Cancelled\] Reason: User (?:denied execution\.|did not allow tool call)"
    r"|Cancelled by the user before it was done\."
    r"|\w+ was not carried out: the user said no",
    re.DOTALL,
)


class Refusal(NamedTuple):
    """A call that was refused, and why, in the words of its result."""

    why: str


def refusal(result: Item, said: str) -> Refusal | None:
    """The refusal that a result is: the protocol flags it, and all that it says is a client's own words for one."""
    found = _REFUSALS.fullmatch(lasting(said)) if is_flagged(result) else None
    why = (found["said"] or found["fed"] or "")[:WHY_CHARACTERS] if found else ""
    return Refusal(on_one_line(why)) if found else None


def is_refusal(said: str) -> bool:
    """Whether a result says that its call was not made, in whatever words and whoever they are of."""
    return _UNMADE.match(said[:UNMADE_LINE]) is not None


def unmade(said: str) -> str:
    """What such a result says, on a line."""
    return opening(on_one_line(lasting(said[:WHY_CHARACTERS])).replace(_WRITTEN, ""), UNMADE_LINE)


def refused_call(call: str) -> str:
    """A call that was refused, on a line, without the words of its result, which 0.1 kept beside it."""
    return words(call.partition(": “")[0], CALL_LENGTH)


def settled(refused: Reversible[str], now: AbstractSet[str]) -> list[str]:
    """Which of these calls are let through now, by the words of one that is; of many the newest are looked at."""
    lately = ((call, set(call.replace("`", "").split())) for call in islice(reversed(refused), REFUSALS_SETTLED))
    return [call for call, said in lately if len(said & now) >= max(1, ALIKE * min(len(said), len(now)))]
