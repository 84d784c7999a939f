"""When an agent that looks after its own context is asked to act, and when clew acts for it."""

from typing import NamedTuple

from clew.tokens.target import Filled

STATUS = 64  # tokens that a context status takes, at most
TOLD = 75  # per cent of the room
NET = 50  # one part in so many of the room


def spare(room: int) -> int:
    """Tokens below the limit at which clew compacts all the same if the agent does not: the net."""
    return max(STATUS, room // NET)


class Cue(NamedTuple):
    """From where on an agent that decides itself is asked to act."""

    percent: int = TOLD  # of the room
    tokens: int | None = None  # instead: of the window, with frame and reserve
    is_clients: bool = False  # a client decides, from what calls report: it must see one that is past its own mark

    def is_reached(self, filled: Filled) -> bool:
        return filled.percent >= self.percent if self.tokens is None else filled.window - filled.left > self.tokens

    def heeded(self, filled: Filled) -> "Cue":
        """This one, if it comes before the net; else the usual one."""
        left = spare(filled.room)
        return self if self.is_reached(filled._replace(used=filled.room - left, left=left)) else Cue()
