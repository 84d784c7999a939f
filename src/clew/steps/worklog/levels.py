"""Older blocks of the log in fewer words: a length at a time, then neighbours as one."""

from collections.abc import Mapping, Sequence
from typing import Any

from clew.clients.voices import typed
from clew.core.cuts import Stretch
from clew.core.items import BESIDE, LOG, STANDS
from clew.core.view import Swap
from clew.steps.worklog.blocks import TOGETHER, Block, evenly, shorter, together
from clew.steps.worklog.history import LEAST_BLOCK, History, runs
from clew.steps.worklog.standing import Standing
from clew.steps.worklog.writing import DENSE

Blocks = Mapping[Stretch, Block]  # by where they stand
LEAST_SHARE = 150  # tokens of a block by its share: many with less have headings, and the words of those that tell most


def lowered(history: History, log: Blocks, most: int, all_most: int, apart: int = -1) -> dict[Stretch, Block]:
    """The blocks in fewer words, then neighbours as one, until they are within so many tokens; the one at `apart`
    stays by itself."""
    is_narrow = history.target.budget.is_narrow
    fewer = evenly if is_narrow else shorter
    log = fewer(history.block_tokens, _worthwhile(history, log, most, apart) if is_narrow else log, most)
    sizes = {at: history.block_tokens(block) for at, block in log.items()}
    while (whole := sum(sizes.values())) > most and (run := _neighbours(history, log, apart, whole > all_most)):
        start, stop = run[0][0], run[-1][1]
        one = together([log[at] for at in run], history.view.short(start, stop))
        if history.block_tokens(one) >= sum(sizes[at] for at in run):
            break
        for at in run:
            del log[at], sizes[at]
        log = fewer(history.block_tokens, {**log, (start, stop): one}, most)
        sizes = {at: history.block_tokens(block) for at, block in log.items()}
    return log


def _worthwhile(history: History, log: Blocks, most: int, apart: int) -> Blocks:
    """The blocks, with neighbours as one whose shares of so many tokens are hardly worth a heading each."""
    log, every = dict(log), sum(block.stands_for for block in log.values())
    for row in rows(history, log, apart):
        run, share = list[Stretch](), 0
        for at in row:
            fair = most * log[at].stands_for // max(1, every)
            if fair >= LEAST_SHARE or share >= LEAST_SHARE:
                _join(history, log, run)
                run, share = [], 0
            if fair < LEAST_SHARE:
                run, share = [*run, at], share + fair
        _join(history, log, run)
    return log


def _join(history: History, log: dict[Stretch, Block], run: Sequence[Stretch]) -> None:
    """Make these one, if that is less."""
    if len(run) > 1:
        start, stop = run[0][0], run[-1][1]
        one = together([log[at] for at in run], history.view.short(start, stop))
        if history.block_tokens(one) < sum(history.block_tokens(log[at]) for at in run):
            for at in run:
                del log[at]
            log[start, stop] = one


def changed(
    history: History, log: Blocks, made: Mapping[Stretch, Swap], stands: int, anew: Standing | None
) -> list[Swap]:
    """The swaps of blocks whose level or place changed; the last of all says how things stand."""
    last = max([*log, *made], default=(-1, -1))
    grows, swaps = history.target.budget.is_narrow, []  # elsewhere its prefix is in a cache
    for (start, stop), block in log.items():
        was, evidence = history.old[start]
        if stop - start > 1:
            tallies = [history.old[at][1].get("tally", {}) for at in range(start, stop) if at in history.old]
            tally = {noun: sum(t.get(noun, 0) for t in tallies) for t in tallies for noun in t}
            ends = (anew or history.stood) if (start, stop) == last else None
            item = block.item(ends.told(int(DENSE * stands)) if ends else "")
            more: dict[str, Any] = {STANDS: ends.to_json(), BESIDE: sorted(ends.sources())} if ends else {}
            by_model = history.anew.get((start, stop))
            by_model = by_model if by_model and by_model.texts == block.texts else None
            more |= {"cost": by_model.cost} if by_model else {}
            spent = by_model.spent if by_model else 0
            swaps.append(Swap(start, stop, [item], {LOG: block.to_json(), "tally": tally, **more}, spent))
            continue
        stays = (start, stop) == last and STANDS in evidence
        if (start, stop) == last and anew:
            told: Standing | None = anew
        elif (block.text, block.below) == (was.text, was.below) and (stays or STANDS not in evidence):
            continue
        else:
            told = history.stood if stays else None
        kept = {k: v for k, v in evidence.items() if k not in ("coverage", STANDS, BESIDE)}
        if told:
            beside = sorted(told.sources())
            kept |= {STANDS: told.to_json()} | ({BESIDE: beside} if beside else {})
        item = block.item(told.told(int(DENSE * stands), newest=history.is_newest_folded([])) if told else "")
        now = history.view.nodes[start]
        is_less = history.meter.item(item).tokens < history.meter.node(now).tokens
        if is_less or (told and told is anew) or (grows and item.text != now.item.text):
            swaps.append(Swap(start, stop, [item], {**kept, LOG: block.to_json()}))
    return swaps


def _neighbours(history: History, log: Blocks, apart: int, few: bool) -> list[Stretch]:
    """The oldest blocks in a row, enough to become one; or but a `few`."""
    found = rows(history, log, apart)
    if run := next((run for run in found if len(run) >= TOGETHER), None):
        return run[:TOGETHER]
    some = max(found, key=len, default=[])
    return some if few and len(some) > 1 else []


def rows(history: History, log: Blocks, apart: int = -1, spoken: bool = False) -> list[list[Stretch]]:
    """The blocks that could become one: neighbours, with nothing between them that stays; if it may be `spoken` of
    anew, nothing but what is too little for a block."""
    short = (run for run in runs(history.free) if history.tokens_of(run) < LEAST_BLOCK)
    small = {at for run in short for at in range(*run)}  # too little for a block: it may stand between two
    if not spoken:  # but for what the user said
        small = {at for at in small if not typed(history.view.nodes[at].item)}
    found = list[list[Stretch]]()
    for start, stop in sorted(at for at in log if at[0] != apart):
        if found and all(at in small for at in range(found[-1][-1][1], start)):
            found[-1].append((start, stop))
        else:
            found.append([(start, stop)])
    return found
