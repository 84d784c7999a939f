"""Histories by how they begin: of many bodies that are known, those that a new one may go on."""

from collections import Counter
from collections.abc import Hashable, Mapping
from itertools import islice
from typing import Any, Generic, TypeVar

from clew.recognition.last_body import Body, Known

PROBE = 256  # bytes that most histories differ in
DEEP = 4096  # and where many do not, such as those that open with the same reminders
FEW_ALIKE = 8  # bodies that are compared without looking deeper
LAST_USED = 4  # bodies whose beginning is looked for anywhere: what stands before it may have changed its length

K = TypeVar("K", bound=Hashable)


class Prefixes(Generic[K]):
    """Known bodies, each under a key; what is found may share nothing with a body, what is not found shares nothing."""

    def __init__(self) -> None:
        self._known: dict[K, Known] = {}  # the one used last at the end
        self._under: dict[K, list[Hashable]] = {}  # where each is in the next two
        self._keys: dict[Hashable, dict[K, None]] = {}
        self._edges: Counter[tuple[int, int]] = Counter()  # where the beginnings of histories lie in their bytes
        self._edge: dict[K, tuple[int, int]] = {}
        self._probe: dict[K, bytes] = {}  # what stood there: a body changes before it is put again

    def __len__(self) -> int:
        return len(self._known)

    def put(self, key: K, known: Known) -> None:
        """Have a body under a key, as the one used last."""
        self.drop(key)
        self._known[key] = known
        under: list[Hashable] = [("message", known.format, _gist(known.messages[0]))] if known.messages else []
        if known.end > known.start:
            edge = known.start, min(known.end, known.start + PROBE)
            self._edges[edge] += 1
            self._edge[key], self._probe[key] = edge, known.raw[slice(*edge)]
            under.append(self._probe[key])
            if known.end - known.start >= DEEP:
                under.append(_deep(known.raw, known.start))
        self._under[key] = under
        for place in under:
            self._keys.setdefault(place, {})[key] = None

    def drop(self, key: K) -> None:
        """Forget it."""
        if self._known.pop(key, None) is None:
            return
        for place in self._under.pop(key):
            here = self._keys[place]
            del here[key]
            if not here:
                del self._keys[place]
        self._probe.pop(key, None)
        if edge := self._edge.pop(key, None):
            self._edges[edge] -= 1
            if not self._edges[edge]:
                del self._edges[edge]

    def by_bytes(self, body: Body) -> list[K]:
        """Those whose history may begin as this one, told without parsing it."""
        raw = body.raw
        if raw is None:
            return []
        starts = {edge[0] for edge in self._edges if raw[slice(*edge)] in self._keys} or self._elsewhere(raw)
        sizes = {end - start for start, end in self._edges} if starts else ()
        found = dict.fromkeys(key for at in starts for size in sizes for key in self._keys.get(raw[at : at + size], ()))
        if len(found) > FEW_ALIKE:
            deep = dict.fromkeys(key for at in starts for key in self._keys.get(_deep(raw, at), ()))
            return list(deep or found)
        return list(found)

    def by_message(self, body: Body) -> list[K]:
        """Those whose first message may be that of this one, at the price of parsing it."""
        messages = body.split[1]
        return list(self._keys.get(("message", body.format, _gist(messages[0])), ())) if messages else []

    def _elsewhere(self, raw: bytes) -> set[int]:
        """Where a history begins, if what stands before it is longer or shorter than in any body that is known."""
        used = islice(reversed(self._known), LAST_USED)
        return {raw.find(self._probe[key]) for key in used if key in self._probe} - {-1}


def _deep(raw: bytes, start: int) -> Hashable:
    return "deep", hash(raw[start : start + DEEP])


def _gist(value: Any) -> int:
    """The same for what is equal, in whatever order its keys stand."""
    try:
        if isinstance(value, Mapping):
            return hash(frozenset((key, _gist(part)) for key, part in value.items()))
        return hash(tuple(map(_gist, value)) if isinstance(value, list | tuple) else value)
    except (TypeError, RecursionError):  # whoever reads it says what is wrong
        return 0
