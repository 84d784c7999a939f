"""What an agent asked clew in the middle of an answer: its caller never sees it, and the model does not forget it."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from clew.core import rawjson
from clew.core.items import Digests, Item
from clew.recognition.sameness import arguments

K = TypeVar("K")
V = TypeVar("V")

Signature = tuple[str, tuple[str, ...]]  # by what an answer is known: its text, and its calls

MOST_REMEMBERED = 1_000  # asides that are remembered, and histories that were seen


@dataclass(frozen=True, slots=True)
class AnswerAside:
    """What belongs into a history beside an answer that its caller has: before it, in it, and after its results."""

    before: Sequence[Item]
    answer: Sequence[Item] = ()  # as the model gave it; of a stream, its caller has the texts before it in it, too
    calls: Sequence[Item] = ()
    results: Sequence[Item] = ()
    leads: bool = False  # the first call of the answer is among `calls`; Gemini signs that one alone


class WovenHistory(NamedTuple):
    """A history as its caller has it, with its asides where they were."""

    items: list[Item]
    chain: str  # its digest, the same whichever part of the asides its caller saw
    known: bool  # its newest answer was given here: what was asked aside before it is known
    changed: bool  # there are asides in it
    starts: Mapping[int, str]  # where in it somebody begins to speak, and the digest of what was before


class Asides:
    """The newest asides of all conversations, found again by what was said before them and the answer they led to."""

    def __init__(self, digests: Digests) -> None:
        self._digests = digests
        self._kept: dict[tuple[str, Signature], AnswerAside | None] = {}  # none: two conversations, one answer
        self._seen: dict[str, None] = {}  # digests of histories that were sent
        self._begun: dict[str, Sequence[Item]] = {}  # asides after histories that got no answer
        self._aliases: dict[str, str] = {}  # ids of responses, and of the last one of those that were told as one
        self._plain: dict[bytes, str] = {}  # digests of histories without asides, by the digest of their messages
        self._lock = Lock()

    def rename(self, told: str, id: str) -> None:
        """Remember by which id the provider knows a response that was told under another one."""
        with self._lock:
            _put(self._aliases, told, id)

    def named(self, id: str) -> str:
        """The provider's own id of a response."""
        return self._aliases.get(id, id)

    def chains(self, items: Iterable[Item]) -> list[str]:
        """The digests of all beginnings of a history, by which a store may know it."""
        chain, chains = "", []
        for item in items:
            chain = self._digests.run(chain, [self._digests.content(item)])
            chains.append(chain)
        return chains

    def see(self, chain: str) -> None:
        """Remember a history that is sent."""
        with self._lock:
            _put(self._seen, chain, None)

    def begin(self, past: str, said: Sequence[Item]) -> None:
        """Remember an aside after which no answer came, for when the caller tries again."""
        with self._lock:
            # Two that got no answer after the same words: nobody knows whose it is.
            _put(self._begun, past, () if past in self._begun else tuple(said))

    def begun(self, past: str) -> list[Item]:
        """The aside after which no answer came. It is given once: it may have been the reason."""
        with self._lock:
            return list(self._begun.pop(past, ()))

    def keep(self, past: str, aside: AnswerAside) -> None:
        """Remember an aside between what a caller said and the answer that he got."""
        text, calls = _sign(aside.answer)
        earlier = [_sign(said)[0] for role, said in _runs(aside.before) if role == "assistant"]
        with self._lock:
            self._plain.clear()
            # How much of the earlier texts he has depends on how he asked: of a whole answer none, of a stream all.
            for first in range(len(earlier) + 1):
                key = past, ("".join([*earlier[first:], text]), calls)
                known = self._kept.get(key, aside)
                _put(self._kept, key, aside if known and self._says(known) == self._says(aside) else None)

    def learn(self, items: Sequence[Item], is_ours: Callable[[str], bool], chain: str = "") -> None:
        """Remember the asides in a history that has them: those of another process are in the log."""
        ours = {i.call_id for i in items if i.kind == "call" and is_ours(i.name)}
        before: list[Item] = []
        runs = _runs(items)
        for (role, said), (_, after) in zip(runs, [*runs[1:], ("", [])], strict=True):
            theirs = [item for item in said if item.call_id not in ours]
            mine = [item for item in said if item.call_id in ours]
            if role == "assistant" and mine and not any(item.kind == "call" for item in theirs):
                before += [*said, *(item for item in after if item.call_id in ours)]
                continue
            if role == "assistant" and (mine or before):
                results = [item for item in after if item.call_id in ours]
                self.keep(chain, AnswerAside(tuple(before), theirs, mine, results, leads(said, ours)))
                before = []
            chain = self._after(chain, theirs, _sign(theirs) if role == "assistant" else None)

    def plain(self, marks: Sequence[bytes]) -> tuple[int, str]:
        """How many messages of a history are known to have no asides, and the digest of what they say."""
        for count in range(len(marks), 0, -1):
            if (chain := self._plain.get(marks[count - 1])) is not None:
                return count, chain
        return 0, ""

    def pass_over(self, mark: bytes, chain: str) -> None:
        """Remember a history without asides: it need not be read again."""
        with self._lock:
            _put(self._plain, mark, chain)

    def woven(self, items: Sequence[Item], chain: str = "") -> WovenHistory:
        """A history as its caller has it, with its asides where they were.

        `chain` is the digest of what was before, or the format: in another one they are written otherwise.
        """
        woven: list[Item] = []
        owed: Sequence[Item] = ()
        changed, place, starts = False, 0, {}
        before = None  # the chain before the newest answer
        for role, said in _runs(items):
            starts[place] = chain
            place += len(said)
            sign = _sign(said) if role == "assistant" else None
            if sign:
                before = chain
                if aside := self._kept.get((chain, sign)):
                    changed = True
                    # Of a stream he has the thinking before it in it, too: that is in `before`.
                    thought = any(item.kind == "reasoning" for item in aside.before)
                    kept = sign == _sign(aside.answer) and not thought and not aside.leads
                    said = said if kept else list(aside.answer)
                    sign = _sign(said)
                    woven += [*owed, *aside.before, *_with_calls(said, aside)]
                else:
                    woven += [*owed, *said]
                owed = aside.results if aside else ()
            else:  # all results of an answer stand together
                woven += [*said, *owed] if role == "tool" else [*owed, *said]
                owed = ()
            chain = self._after(chain, said, sign)
        return WovenHistory([*woven, *owed], chain, before is None or before in self._seen, changed, starts)

    def _after(self, chain: str, said: Sequence[Item], sign: Signature | None) -> str:
        if sign:
            return self._digests.run(chain, [repr(sign)]) if said else chain
        return self._digests.run(chain, map(self._digests.content, said))

    def _says(self, aside: AnswerAside) -> list[str]:
        return [self._digests.content(item) for item in (*aside.before, *aside.calls, *aside.results)]


def leads(answer: Iterable[Item], ours: Container[str]) -> bool:
    """Whether the first call of an answer is one of these."""
    return next((item.call_id in ours for item in answer if item.kind == "call"), False)


def _with_calls(said: list[Item], aside: AnswerAside) -> list[Item]:
    """An answer with clew's calls in it, before the caller's or after them as the model made them."""
    at = next((i for i, item in enumerate(said) if item.kind == "call"), len(said)) if aside.leads else len(said)
    return [*said[:at], *aside.calls, *said[at:]]


def _runs(items: Iterable[Item]) -> list[tuple[str, list[Item]]]:
    return [(role, list(run)) for role, run in groupby(items, key=lambda item: item.role)]


def _sign(said: Sequence[Item]) -> Signature:
    """By what an answer is known, however its caller wrote it down and whatever stands between its parts."""
    calls = tuple(f"{i.call_id} {i.name} {arguments(i.text)}" for i in said if i.kind == "call")
    return "".join("".join(i.text.split()) for i in said if i.kind == "text"), calls


def marks(format: str, messages: Iterable[Any]) -> list[bytes]:
    """The digests of all beginnings of a list of messages, as they are written."""
    mark, found = format.encode(), []
    for message in messages:
        mark = blake2b(mark + rawjson.dumps(message), digest_size=16).digest()
        found.append(mark)
    return found


def _put(known: dict[K, V], key: K, value: V) -> None:
    known[key] = value
    if len(known) > MOST_REMEMBERED:
        del known[next(iter(known))]
