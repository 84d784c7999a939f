"""What a model noted of a history, as a summary tells it: only while the nodes that it read still stand there."""

import re
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from clew.core.items import CLAIMS, Edit, Node
from clew.core.view import View, originals
from clew.facts.claims import Claim, Draft, from_json
from clew.text.words import COMMON

UNSPACED = "\u0e00"  # from here on, most scripts write no space between words
_WORD = re.compile(r"\w+")


class Notes(NamedTuple):
    """Claims that no block tells yet, those that blocks do tell, and the nodes that a model has read for them."""

    claims: tuple[Claim, ...]
    told: tuple[Claim, ...]
    read: frozenset[str]
    trust: float = 0.0  # share of what the model wrote that was believed
    drafted: bool = False  # whether the newest draft still holds


def notes_of(view: View, draft: Draft | None = None) -> Notes:
    """The notes that hold for a view: those of the newest draft, and those that its summaries were made with."""
    by_id = view.edits.made
    told: list[Claim] = []
    read: set[str] = set()
    trust = 0.0
    for node in view.nodes:
        edit = by_id.get(node.id)
        if edit is not None and CLAIMS in edit.evidence:
            told += from_json(edit.evidence[CLAIMS])
            trust = edit.evidence.get("trust", 0.0)
            read |= {*originals((node.id,), by_id)} - {*edit.evidence.get("unread", ())}
    if draft is None or not draft.read or not _stand(draft.read, view, by_id):
        return Notes((), tuple(told), frozenset(read), trust)
    known = {c.text for c in told}
    new = tuple(c for c in draft.claims if c.text not in known)
    return Notes(new, tuple(told), frozenset(read | {*draft.read}), draft.trust, True)


def _stand(ids: Collection[str], view: View, by_id: Mapping[str, Edit]) -> bool:
    """Whether all of these are still part of the history, as they were."""
    return {*ids} <= {*originals([n.id for n in view.nodes], by_id)}


def placed(claims: Sequence[Claim], parts: Sequence[Sequence[Node]], before: Container[str]) -> list[list[Claim]]:
    """For each part the claims that are told in it: each once, where its last source is, or else at the end.

    What is only about nodes that were told `before` came late: it stands first. What is about none of these waits.
    """
    at = {n.id: i for i, nodes in enumerate(parts) for n in nodes}
    found: list[list[Claim]] = [[] for _ in parts]
    head: int | None = None  # where the entry is told that others belong to
    for claim in claims:
        if not claim.goes_on:
            known = any(id in at for id in claim.cites)
            late = not known and all(id in before for id in claim.cites)
            head = at.get(claim.cites[-1], len(parts) - 1) if known else 0 if late else None
        if head is not None:
            found[head].append(claim)
    return found


def terms(text: str) -> set[str]:
    """The words and numbers that a text has; where there are no spaces, pairs of signs."""
    found = set[str]()
    for word in _WORD.findall(text.lower()):
        if word[0] >= UNSPACED:
            found.update(word[i : i + 2] for i in range(len(word) - 1))
        elif word not in COMMON:
            found.add(word)
    return found


def told(claims: Sequence[Claim]) -> Iterator[tuple[str, str]]:
    """(heading, line) of each entry as it is told: what belongs to one stands on its line."""
    entries = list[list[Claim]]()
    for claim in claims:
        if claim.goes_on and entries and entries[-1][0].under == claim.under:
            entries[-1].append(claim)
        else:
            entries.append([claim])
    for first, *others in entries:
        if others or not first.text.endswith(":"):  # a name, or what leads to nothing, says nothing
            text = first.text
            for c in others:
                text += f"{' ' if text.endswith((':', '.', '!', '?', '。')) else '; '}{c.text}"
            yield first.under, text
