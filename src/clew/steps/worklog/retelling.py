"""A chapter that a model wrote, told by code instead: from the same originals, in no more room."""

from dataclasses import dataclass

from clew.core.items import BESIDE, LOG, STANDS
from clew.core.view import Swap, View
from clew.steps.worklog.blocks import lines_of, written
from clew.steps.worklog.history import History
from clew.steps.worklog.log import Log
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
