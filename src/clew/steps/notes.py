"""What a model noted of a history, as a summary tells it: only while the nodes that it read still stand there."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from clew.claims import Claim, from_json
from clew.finding import COMMON
from clew.items import CLAIMS, Edit, Node
from clew.view import View, originals

KINDS = {
    "constraints": "a rule of the user's",
    "tasks": "a task",
    "decisions": "decided",
    "findings": "",
    "errors": "went wrong",
    "questions": "an open question",
    "next": "next",
}

_WORD = re.compile(r"\w+")
_UNSPACED = "\u0e00"  # from here on, most scripts write no space between words


class Notes(NamedTuple):
    """Claims that hold, and the nodes that a model has read for them."""

    claims: tuple[Claim, ...]
    read: frozenset[str]
    trust: float = 0.0  # share of what the model wrote that was believed


def notes_of(view: View) -> Notes:
    """The notes that hold for a view: those of the newest draft, else those that its summaries were made with."""
    by_id = {n.id: e for e in view.edits for n in e.stand_ins}
    claims: list[Claim] = []
    read: set[str] = set()
    trust = 0.0
    for node in view.nodes:
        edit = by_id.get(node.id)
        if edit is not None and CLAIMS in edit.evidence:
            claims += from_json(edit.evidence[CLAIMS])
            trust = edit.evidence.get("trust", 0.0)
            read |= {*originals((node.id,), by_id)} - {*edit.evidence.get("unread", ())}
    draft = view.past.draft
    if draft is not None and draft.read and _stand(draft.read, view, by_id):
        return Notes(draft.claims, frozenset(read | {*draft.read}), draft.trust)
    return Notes(tuple(claims), frozenset(read), trust)


def _stand(ids: Collection[str], view: View, by_id: dict[str, Edit]) -> bool:
    """Whether all of these are still part of the history, as they were."""
    return {*ids} <= {*originals([n.id for n in view.nodes], by_id)}


def about(claims: Sequence[Claim], nodes: Sequence[Node]) -> tuple[Claim, ...]:
    """The claims that a span is the source of."""
    here = {n.id for n in nodes}
    return tuple(c for c in claims if not here.isdisjoint(c.cites))


def placed(claims: Sequence[Claim], parts: Sequence[Sequence[Node]]) -> list[list[Claim]]:
    """For each part the claims that are told in it: each once, where its last source is, or at the end."""
    at = {n.id: i for i, nodes in enumerate(parts) for n in nodes}
    found: list[list[Claim]] = [[] for _ in parts]
    for claim in claims:
        if any(id in at for id in claim.cites):
            found[at.get(claim.cites[-1], len(parts) - 1)].append(claim)
    return found


def terms(text: str) -> set[str]:
    """The words and numbers that a text has; where there are no spaces, pairs of signs."""
    found = set[str]()
    for word in _WORD.findall(text.lower()):
        if word[0] >= _UNSPACED:
            found.update(word[i : i + 2] for i in range(len(word) - 1))
        elif word not in COMMON:
            found.add(word)
    return found


def told(claims: Sequence[Claim]) -> Iterator[tuple[str, str]]:
    """(heading, line) of each claim as it is told: findings as they were written, of the others the newest first.

    Work that is left comes before work that is done. What belongs to an entry stands on its line.
    """
    for section, kind in KINDS.items():
        found = [c for c in (claims if section == "findings" else reversed(claims)) if c.section == section]
        if section == "findings":
            yield from _entries(found)
            continue
        found.sort(key=lambda c: c.state == "done")
        for c in found:
            text = f'"{c.text}"' if section == "constraints" else f"{c.state}: {c.text}" if c.state else c.text
            yield "", f"{kind}: {text}"


def _entries(found: Sequence[Claim]) -> Iterator[tuple[str, str]]:
    entries = list[list[Claim]]()
    for claim in found:
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
