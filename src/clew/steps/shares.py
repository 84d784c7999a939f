"""How what a goal leaves for the history is shared out: the most that each part may have.

What one leaves free the others have: the chapters first, then originals. A goal is a size to fill.
"""

from clew.tokens.target import Target

FIRST = 1 / 8  # the first exchange, as it was said: a longer one is told like the rest
STATE = (
    1 / 4
)  # how things stand, the user's rules first of all: each fold writes it anew, so it is never most of a view
# The newest of what was said, as it was said; more where the room is small, for one result is a large part of that.
VERBATIM, VERBATIM_SMALL = 1 / 8, 1 / 4
BESIDE_NEWEST = 1 / 4  # for all else, at least, where the newest exchange takes more than its share
# Older chapters take so much after they have been made shorter: each time breaks the prefix that a provider has in its
# cache, so it is to be far away. In a small room words count more: there it is but the time after the next.
SHORTENED, SHORTENED_SMALL = 1 / 6, 1 / 3


def history(target: Target) -> int:
    """Tokens that a goal leaves for the history."""
    return max(0, target.goal.tokens - target.frame)


def verbatim(target: Target) -> int:
    """Tokens of the newest of what was said."""
    return int((VERBATIM_SMALL if target.budget.is_small else VERBATIM) * history(target))


def shortened(target: Target, most: int, new: int) -> int:
    """Tokens that older chapters are made to take, where they may have so `most` beside so many `new` ones."""
    if target.budget.is_small:
        return max(0, min(most, max(int(SHORTENED_SMALL * history(target)), most - new)))
    return max(0, min(most, int(SHORTENED * history(target))))


def log_share(target: Target, first: int) -> int:
    """Tokens of the log beside a first exchange of so many: a half at least, 3/8 in a small room, and a quarter for how
    things stand."""
    return max(0, history(target) - verbatim(target) - min(first, int(FIRST * history(target))))
