"""What the id of a call says of whose call it is. Pure functions."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise

from clew.core.items import Item

LEAST_RUN = 8  # letters and digits in one run of it: `r1c2t3` is a place in a table
MIXED = 4  # changes between letters and digits, in one run of an id, that nobody counts up to
MIXED_CASE = 8  # changes between small letters, capitals and digits there
_RUN = re.compile(r"[A-Za-z0-9]+")
_MOMENT = re.compile(r"(?<!\d)1[5-9]\d{11}(?!\d)")  # milliseconds since 1970: by these Gemini CLI names its calls
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def is_made_up(id: str, name: str = "", shared: Iterable[str] = ()) -> bool:
    """Whether a provider made an id up: others have `call_3`, `call00000012` and `functions.bash:0`, too.

    What is called may stand in it, as often as it is called, and what several ids of a conversation share.
    """
    for part in shared:
        id = id.replace(part, " ")
    if _UUID.search(id):
        return True
    runs = [run for run in _RUN.findall(id.replace(name, " ") if name else id) if len(run) >= LEAST_RUN]
    return any(_changes(run, _letter) >= MIXED or _changes(run, _case) >= MIXED_CASE for run in runs)


def shared(ids: Iterable[str]) -> frozenset[str]:
    """What stands in several of these ids: the number of something else, say of a workspace that counts its calls."""
    parts = Counter(part for id in ids for part in {*_UUID.findall(id), *_RUN.findall(id)} if len(part) >= LEAST_RUN)
    return frozenset(part for part, times in parts.items() if times > 1)


def _changes(run: str, kind: Callable[[str], str]) -> int:
    return sum(kind(a) != kind(b) for a, b in pairwise(run))


def _letter(character: str) -> str:
    return "1" if character.isdigit() else "a"


def _case(character: str) -> str:
    return "1" if character.isdigit() else "A" if character.isupper() else "a"


def moment(id: str) -> str:
    """When a call was made, where its id says that."""
    found = _MOMENT.search(id)
    return found[0] if found else ""


def are_moments(ids: Iterable[str]) -> bool:
    """Whether a clock wrote these ids, at several moments: two conversations hardly have the same.

    What stands in every id is the number of something else. Counters stay within a second, and a clock that was set by
    hand, as in trials, ticks in whole ones.
    """
    at = {int(found) for id in ids if (found := moment(id))}
    return all(len(parts) > 1 for parts in ({a // 1000 for a in at}, {a % 1000 for a in at}))


def is_same_call(was: Item, now: Item) -> bool:
    """Whether both are of one call: Gemini CLI, when it resumes a session, writes a tool's name before its ids."""
    named = moment(was.call_id) and now.call_id.endswith(f"__{was.call_id}")
    return was.call_id == now.call_id or bool(named)
