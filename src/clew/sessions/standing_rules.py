"""The user's rules that are kept in mind: who said each, since when, and in which calls its words stood."""

from collections.abc import Sequence
from typing import NamedTuple

from clew.core.view import View
from clew.engine.engine import Engine
from clew.steps.worklog.blocks import blocks, standing
from clew.store.records import Call

LOOKED = 60  # calls that are looked at for one conversation: each is a view of its own


class StandingRule(NamedTuple):
    """A sentence of the user's about how things are to be done."""

    text: str
    id: str  # of who said it
    since: int | None  # the first call after it; None: nothing was sent since
    at: float | None  # when that was
    later: str  # what they said since about what it names: it may take the rule back
    in_view: Sequence[tuple[int, int]]  # calls in which its words were in view, from and to
    missed: Sequence[tuple[int, int]]  # and those since it was said in which they were not


async def standing_rules(engine: Engine, view: View, calls: Sequence[Call]) -> list[StandingRule]:
    """The rules that stand behind the chapters of a view, the newest first; none before something was folded."""
    kept = standing(blocks(view))
    if kept is None or not (held := kept.held()):
        return []
    trace = await engine.store.load(view.scope, view.branch, view.seq)
    place = {one.id: n for n, one in enumerate(trace.said)}
    # Between two folds nothing leaves the window: the call after each says what stood from there on.
    folds = {fold.last for fold in trace.folds}
    begins = [n for n, call in enumerate(calls) if not n or any(calls[n - 1].seq < at < call.seq for at in folds)]
    begins = begins[-LOOKED:]
    ends = [*begins[1:], len(calls)]
    windows = [await engine.view(view.scope, view.branch, calls[n].seq) for n in begins]
    words = [(ids := {node.id for node in one.nodes}, _written(one)) for one in windows]
    told = []
    for text in held:
        rule = kept.rules[text]
        first = next((n for n, call in enumerate(calls) if call.said > place.get(rule.id, len(calls))), None)
        stood, missed = list[tuple[int, int]](), list[tuple[int, int]]()
        for begin, end, (ids, written) in zip(begins, ends, words, strict=True) if first is not None else ():
            if (begin := max(begin, first or 0)) < end:
                found = stood if rule.id in ids or _flat(text) in written else missed
                if found and found[-1][1] == begin:
                    found[-1] = found[-1][0], end
                else:
                    found.append((begin + 1, end))
        at = calls[first].at if first is not None else None
        told.append(StandingRule(text, rule.id, None if first is None else first + 1, at, rule.later, stood, missed))
    return told


def _written(view: View) -> str:
    """What stands in for others in a view."""
    return "\n".join(_flat(node.item.text) for node in view.nodes if node.id in view.edits.made)


def _flat(text: str) -> str:
    return " ".join(text.split())
