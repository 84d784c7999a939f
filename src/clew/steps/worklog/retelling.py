"""A chapter that a model wrote, told by code instead: from the same originals, in no more room."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as with_

from clew.core.items import BESIDE, LOG, STANDS
from clew.core.view import Swap, View
from clew.steps.worklog.blocks import blocks, lines_of, standing, written
from clew.steps.worklog.history import History
from clew.steps.worklog.log import Log
from clew.steps.worklog.standing import RULES
from clew.steps.worklog.wording import on_one_line
from clew.steps.worklog.writing import DENSE, FITTINGS, UNDER, BlockWriter
from clew.tokens.target import Target


@dataclass(frozen=True)
class ToldByCode:
    """By which a model's words are replaced."""


def retold(view: View, target: Target, id: str) -> View | None:
    """A view, with what is behind its stand-ins, in which code tells what that one stands for; None if it has not the
    room for a line."""
    history = History(view, target)
    at = next(at for at in history.old if view.nodes[at].id == id)
    block, evidence = history.old[at]
    nodes, item = view.originals(at, at + 1), view.nodes[at].item
    # How things stand is code's already.
    stands = item.text.removeprefix(block.item().text).lstrip("\n") if STANDS in evidence else ""
    before = [line for n, (other, _) in history.old.items() if n != at for line in lines_of(other)]
    log = Log([nodes], told="\n".join((history.known, stands)), before=before)
    room = history.meter.item(item).tokens
    size = DENSE * history.block_tokens(block)
    for _ in range(FITTINGS):
        made = written(block.first, block.last, block.recall, log.told(int(size))[0], block.continued)
        new = made.item(stands)
        if (taken := history.meter.item(new).tokens) <= room:
            kept = {key: evidence[key] for key in (STANDS, BESIDE) if key in evidence}
            found = BlockWriter(history).evidence((at, at + 1), nodes, new)
            return view.replace_all([Swap(at, at + 1, [new], {**found, LOG: made.to_json(), **kept})], by=ToldByCode())
        size *= UNDER * room / taken
    return None


@dataclass(frozen=True)
class RuleTakenBack:
    """By which one of the user's rules is kept in mind no longer."""


def without_rule(view: View, said: str) -> View | None:
    """A view whose newest block neither tells nor hands on one of the user's rules; None if it tells no such one."""
    found = blocks(view)
    kept = standing(found)
    if kept is None or kept.rules.pop(said, None) is None:
        return None
    at = max(found)
    item, line = view.nodes[at].item, f"- “{on_one_line(said)}” ("
    lines = [one for one in item.text.split("\n") if not one.startswith(line)]
    text = "\n".join(one for n, one in enumerate(lines) if not _is_bare(lines, n))
    if text == item.text:
        return None
    new = with_(item, text=text)
    return view.replace_all([Swap(at, at + 1, [new], {**found[at][1], STANDS: kept.to_json()})], by=RuleTakenBack())


def _is_bare(lines: Sequence[str], n: int) -> bool:
    """Whether a line is a heading of rules below which none is left."""
    return lines[n].startswith(RULES) and not "".join(lines[n + 1 : n + 2]).startswith("- ")
