"""What an agent asked clew in the middle of an answer: its caller never sees it, and the model does not forget it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from threading import Lock
from typing import TypeVar

from clew.core.items import Digests, Item
from clew.recognition.sameness import arguments

K = TypeVar("K")
V = TypeVar("V")

MOST_REMEMBERED = 1_000  # asides that are remembered, and histories that were seen


@dataclass(frozen=True, slots=True)
class AnswerAside:
    """What belongs into a history beside an answer that its caller has: before it, in it, and after its results."""

    before: Sequence[Item]
    calls: Sequence[Item] = ()
    results: Sequence[Item] = ()


_NONE = AnswerAside(())


class Asides:
    """The newest asides of all conversations, found again by what was said before them and the answer they led to."""

    def __init__(self, digests: Digests) -> None:
        self._digests = digests
        self._kept: dict[
            tuple[str, str, tuple[str, ...]], AnswerAside | None
        ] = {}  # none: two conversations, one answer
        self._seen: dict[str, None] = {}  # digests of histories that were woven
        self._begun: dict[str, Sequence[Item]] = {}  # asides after histories that got no answer
        self._lock = Lock()

    def knows(self, items: Sequence[Item]) -> bool:
        """Whether the newest answer in a history was given here: what was asked aside before it is known then."""
        runs = _runs(items)
        last = max((at for at, (role, _) in enumerate(runs) if role == "assistant"), default=None)
        return last is None or self._chain(item for _, said in runs[:last] for item in said) in self._seen

    def chains(self, items: Iterable[Item]) -> list[str]:
        """The digests of all beginnings of a history, by which a store may know it."""
        chain, chains = "", []
        for item in items:
            chain = self._digests.run(chain, [self._digests.content(item)])
            chains.append(chain)
        return chains

    def begin(self, past: Iterable[Item], said: Sequence[Item]) -> None:
        """Remember an aside after which no answer came, for when the caller tries again."""
        chain = self._chain(past)
        with self._lock:
            # Two that got no answer after the same words: nobody knows whose it is.
            _put(self._begun, chain, () if chain in self._begun else tuple(said))

    def begun(self, past: Iterable[Item]) -> list[Item]:
        """The aside after which no answer came. It is given once: it may have been the reason."""
        with self._lock:
            return list(self._begun.pop(self._chain(past), ()))

    def keep(self, past: Iterable[Item], answer: Sequence[Item], aside: AnswerAside) -> None:
        """Remember an aside between what a caller said and the answer that he got."""
        chain = self._chain(past)
        with self._lock:
            key = (chain, *_sign(answer))
            known = self._kept.get(key, aside)
            _put(self._kept, key, aside if known and self._says(known) == self._says(aside) else None)

    def learn(self, items: Sequence[Item], is_ours: Callable[[str], bool]) -> None:
        """Remember the asides in a history that has them: those of another process are in the log."""
        ours = {i.call_id for i in items if i.kind == "call" and is_ours(i.name)}
        past: list[Item] = []
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
                self.keep(past, theirs, AnswerAside(tuple(before), mine, results))
                before = []
            past += theirs

    def weave(self, items: Sequence[Item]) -> list[Item]:
        """A history as its caller has it, with its asides where they were."""
        woven: list[Item] = []
        owed: Sequence[Item] = ()
        chain = ""
        for role, said in _runs(items):
            if role == "assistant":
                aside = self._kept.get((chain, *_sign(said))) or _NONE
                woven += [*owed, *aside.before, *said, *aside.calls]
                owed = aside.results
            else:  # all results of an answer stand together
                woven += [*said, *owed] if role == "tool" else [*owed, *said]
                owed = ()
            chain = self._digests.run(chain, map(self._digests.content, said))
        with self._lock:
            _put(self._seen, chain, None)
        return [*woven, *owed]

    def _says(self, aside: AnswerAside) -> list[str]:
        return [self._digests.content(item) for item in (*aside.before, *aside.calls, *aside.results)]

    def _chain(self, items: Iterable[Item]) -> str:
        return self._digests.run("", map(self._digests.content, items))


def _runs(items: Iterable[Item]) -> list[tuple[str, list[Item]]]:
    return [(role, list(run)) for role, run in groupby(items, key=lambda item: item.role)]


def _sign(said: Sequence[Item]) -> tuple[str, tuple[str, ...]]:
    """By what an answer is known, however its caller wrote it down."""
    calls = tuple(f"{i.call_id} {i.name} {arguments(i.text)}" for i in said if i.kind == "call")
    return "".join(i.text for i in said if i.kind == "text"), calls


def _put(known: dict[K, V], key: K, value: V) -> None:
    known[key] = value
    if len(known) > MOST_REMEMBERED:
        del known[next(iter(known))]
