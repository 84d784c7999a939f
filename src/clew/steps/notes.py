"""What a model noted of a history, as a summary tells it: only while the nodes that it read still stand there."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from clew.claims import DATA, Claim, from_json
from clew.items import CLAIMS, Edit, Node
from clew.view import View, originals

HEADINGS = {
    "constraints": "a rule of the user's",
    "tasks": "a task",
    "decisions": "decided",
    "findings": "",
    "errors": "went wrong",
    "questions": "an open question",
    "next": "next",
}


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


def last_about(claims: Sequence[Claim], nodes: Sequence[Node], after: Collection[str]) -> tuple[Claim, ...]:
    """The claims that a span is the last source of: none of theirs is in what comes `after` it."""
    return tuple(c for c in about(claims, nodes) if not any(id in after for id in c.cites))


def by_section(claims: Sequence[Claim]) -> Iterator[tuple[str, list[str]]]:
    """(heading, lines) of each section, findings as they were written, of the others the newest first.

    Work that is left comes before work that is done.
    """
    for section, heading in HEADINGS.items():
        found = [c for c in (claims if section == "findings" else reversed(claims)) if c.section == section]
        found.sort(key=lambda c: c.state == "done")
        if section == "findings":
            yield from ((DATA if c.state == DATA else heading, [c.text]) for c in found)
        elif section == "constraints":
            yield heading, [f'"{c.text}"' for c in found]
        else:
            yield heading, [f"{c.state}: {c.text}" if c.state else c.text for c in found]
