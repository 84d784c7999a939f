"""New blocks of the log: what was said in some spans, told in so many tokens."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace as with_
from typing import Any

from clew.core.bounds import ITEMS_READ, TEXT_READ, newest
from clew.core.cuts import Stretch
from clew.core.items import BESIDE, LOG, SHORT, STANDS, Item, Node
from clew.core.pointers import pointer
from clew.core.view import Swap
from clew.facts import sheet
from clew.facts.chapters import Chapter
from clew.facts.coverage import ledger, noted
from clew.steps.lines import omitted, tallies
from clew.steps.shares import STATE
from clew.steps.worklog.blocks import Block, evenly, written
from clew.steps.worklog.history import History
from clew.steps.worklog.log import Log
from clew.steps.worklog.standing import Standing
from clew.steps.worklog.wording import around, words
from clew.text.search import Index, texts

BLOCK_SHARE = 0.75  # of what stood there, at most, for a block
DENSE = 3.5  # characters that a token has, more or less: where a text begins to be fitted
HEAD = 80  # characters of the heading of a block
PASSAGE = 300  # characters of what was said of what somebody cares for
FOCUSED = 0.2  # of the room, for that
ADDED_SHARE = 1 / 6  # of what a model wrote, for what code adds to it; more where code alone would have told more
FITTINGS = 6  # until a text has its size
UNDER = 0.98  # of the room is aimed at


class BlockWriter:
    """Writes blocks of one history."""

    def __init__(self, history: History) -> None:
        self.history, self.view, self.meter = history, history.view, history.meter
        self.anew: Standing | None = None  # how things stand after the last block, where something before it is new
        self._logs: dict[Sequence[Stretch], Log] = {}  # a fold is tried with several sizes

    def written(
        self, spans: Sequence[Stretch], room: int, stands: int, free: int, brief: bool = False, full: bool = False
    ) -> dict[Stretch, Swap]:
        """The blocks of these spans in so many tokens together, the last with how things stand.

        What models wrote may take all that is `free`: nobody can tell it in other words. It stands in `full` where more
        can be folded instead.
        """
        history, old = self.history, self.history.old
        originals = [self.view.originals(*span) for span in spans]
        chapters = [history.chapters.get(span) for span in spans]
        told_of = {n: one.texts[0] for n, one in enumerate(chapters) if one}
        if (log := self._logs.get(tuple(spans))) is None:
            log = Log(originals, history.since(spans), history.between(spans), told_of, history.known, history.earlier)
            self._logs = {tuple(spans): log}
        carries = spans[-1][0] > max(old, default=-1)  # the last of them is the last block of all
        told = {*old, *(at for span in spans for at in range(*span))}
        self.anew = None if carries else history.read(told, max(told) + 1)
        focus = self._about([n for nodes in originals for n in nodes], room)
        measured = told_of or (old and history.target.budget.is_narrow)  # what it does not take the others have
        dense, state = self._state(log, stands) if carries and measured else (DENSE, stands)
        most = None if full else max(room, free - state)
        by_models = self._by_models(log, spans, chapters, most, brief)
        taken = self.history.log_tokens(by_models.values())
        more = int(room * self._share(spans, by_models) + ADDED_SHARE * taken)
        room = max(room, min(free - state, taken + more)) if by_models else room
        sizes = room, stands, room + state
        found, items = self._fitted(log, spans, sizes, dense, focus if carries else None, brief, by_models)
        helps = [history.helps(span, item) for span, item in zip(spans, items, strict=True)]
        if not all(helps):
            left = [span for span, does in zip(spans, helps, strict=True) if does]
            stay = sum(history.tokens_of(span) for span, does in zip(spans, helps, strict=True) if not does)
            return self.written(left, max(0, room - stay), stands, free - stay, brief) if left else {}
        swaps: dict[Stretch, Swap] = {}
        for n, (span, item, block) in enumerate(zip(spans, items, found, strict=True)):
            chapter = chapters[n]
            evidence: dict[str, Any] = {LOG: block.to_json()}
            if carries and n == len(found) - 1:
                beside = sorted(log.standing.sources() - {node.id for node in originals[n]})
                evidence |= {STANDS: log.standing.to_json()} | ({BESIDE: beside} if beside else {})
            evidence |= {"cost": chapter.cost} if chapter else {}
            swaps[span] = Swap(*span, [item], evidence, chapter.spent if chapter else 0)
        return swaps

    def _by_models(
        self, log: Log, spans: Sequence[Stretch], chapters: Sequence[Chapter | None], room: int | None, brief: bool
    ) -> dict[int, Block]:
        """The blocks that models wrote, at the greatest lengths that leave code its share of the room, if any."""
        found = dict[int, Block]()
        for n, (part, span, chapter) in enumerate(zip(log.parts, spans, chapters, strict=True)):
            if chapter:
                level = len(chapter.texts) - 1 if brief else 0
                words = chapter.texts, level, part.continued, chapter.author, chapter.findings
                of = self.history.tokens_of(span)
                found[n] = Block(part.first, part.last, self.view.short(*span), *words, stands_for=of)
        if room is None:
            return found
        most = int(room * (1 - self._share(spans, found)))
        tokens = self.history.block_tokens
        fitting = evenly(tokens, {spans[n]: found[n] for n in found}, most)
        return {n: fitting[spans[n]] for n in found}

    def _state(self, log: Log, stands: int) -> tuple[float, int]:
        """The characters that a token has in what says how things stand, and the tokens that it takes of so many."""
        text = log.stands(int(DENSE * stands))
        taken = max(1, self.meter.counter.text(text))
        return min(DENSE, max(1.0, len(text) / taken)), min(taken, stands)

    def _share(self, spans: Sequence[Stretch], by_models: Mapping[int, Block]) -> float:
        """How much of what these spans stand for code tells."""
        sizes = [self.history.tokens_of(span) for span in spans]
        return sum(size for n, size in enumerate(sizes) if n not in by_models) / max(1, sum(sizes))

    def _fitted(
        self,
        log: Log,
        spans: Sequence[Stretch],
        sizes: tuple[int, int, int],
        dense: float,
        focus: str | None,
        brief: bool,
        by_models: Mapping[int, Block],
    ) -> tuple[list[Block], list[Item]]:
        """Blocks, and items that show them, in so many tokens: those of what is told, of how things stand, and of both
        together at most, with so many characters to a token. The last says how things stand, if `focus` is a text."""
        handles, newest = [self.view.short(*span) for span in spans], self.history.is_newest_folded(spans)
        taken_by_models = {n: self.history.block_tokens(block) for n, block in by_models.items()}
        stand_for = [self.history.tokens_of(span) for span in spans]
        room, stands, most = sizes
        fair = room / max(1, sum(stand_for))
        room -= sum(taken_by_models.values())
        size, state_size = dense * max(0, room), dense * stands
        found, items = list[Block](), list[Item]()
        limits = [int(BLOCK_SHARE * dense * of) - HEAD for of in stand_for]
        limits[-1] -= 0 if focus is None else int(state_size)
        for n, taken in taken_by_models.items():
            added = max(ADDED_SHARE * taken, fair * stand_for[n] - taken)
            limits[n] = 0 if brief else min(limits[n], int(dense * added))
        least_taken = 0
        fits = exceeds = 0.0  # the largest size that fits, the smallest that does not
        for _ in range(FITTINGS):
            told = log.told(max(0, int(size) - len(focus or "")), limits)
            parts = zip(log.parts, handles, told, stand_for, strict=True)
            by_code = [written(p.first, p.last, id, lines, p.continued, of) for p, id, lines, of in parts]
            by_code = [with_(block, texts=block.texts[-1:]) for block in by_code] if brief else by_code
            made = [by_models.get(n, b) for n, b in enumerate(by_code)]
            made = [b.beside(by_code[n].texts[0]) if n in by_models and told[n] else b for n, b in enumerate(made)]
            shown = "\n".join(block.text for block in made)
            state = "\n".join(filter(None, (log.stands(int(state_size), shown, newest), focus)))
            if focus is None:
                state = ""
            sent = [block.item(state if i == len(made) - 1 else "") for i, block in enumerate(made)]
            taken = self.meter.items(sent).tokens
            if taken <= most or not found or taken < least_taken:
                found, items, least_taken = made, sent, taken
            all_told = sum(len(block.texts[0]) for block in by_code)
            if UNDER * UNDER * most <= taken <= most or (taken <= most and log.is_all):
                break
            less = UNDER * most / taken
            if taken <= most:
                fits = size
            else:
                exceeds, least = size, min(state_size, dense * self.history.rules_size)
                state_size = max(least, min(state_size, len(state)) * less)
            # By what was told, not by what might have been: a text need not fill its room.
            near = min(size, all_told) if exceeds else size
            size = (fits + exceeds) / 2 if fits and exceeds else less * near
        return found, items

    def _about(self, nodes: Sequence[Node], room: int) -> str:
        """What was said of what somebody cares for above all, in whole sentences."""
        if not self.history.focus:
            return ""
        index, told, left = Index(texts(nodes)), list[str](), int(DENSE * room * FOCUSED)
        for at, _ in index.ranked(self.history.focus):
            passage = index.passages[at]
            source = index.texts[passage.text]
            said = words(around(source.body, [line.text for line in passage.lines]), PASSAGE)
            line = f"- {source.title}: {said} ({pointer(source.id[:SHORT])})"
            if len(line) < left and line not in told:
                told.append(line)
                left -= len(line) + 1
        return "\n".join(["About what was asked for:", *told]) if told else ""

    def with_evidence(self, swap: Swap, read: int) -> Swap:
        """A swap with what became of the facts behind a new block, in so many of the newest items there."""
        if swap.start in self.history.old or not isinstance(item := swap.items[0], Item):
            return swap
        nodes = self.view.originals(swap.start, swap.stop)
        found = self.evidence((swap.start, swap.stop), nodes, item, read)
        return swap._replace(evidence=found | dict(swap.evidence))

    def evidence(self, span: Stretch, nodes: Sequence[Node], item: Item, read: int = ITEMS_READ) -> dict[str, Any]:
        """What is behind a block, and what became of the facts there, in so many of the newest items."""
        _, tally = omitted(self.view.nodes[slice(*span)], tallies(self.view), "")
        told: AbstractSet[str] = sheet(item).facts.keys()
        known = newest(nodes, read)
        found = noted(ledger(known, self.history.others | told))
        if left := len(nodes) - sum(len(n.item.text) <= TEXT_READ for n in known):
            found["unread"] = left  # items, or the middle of them
        return {"tally": tally, "coverage": found}


def summary(nodes: Sequence[Node], size: int) -> str:
    """A log of all of these in about so many characters, and how things stand."""
    log = Log([nodes])
    text, room = "", size
    for _ in range(FITTINGS):
        told = log.texts(int((1 - STATE) * room))[0]
        text = "\n\n".join(filter(None, (told, log.stands(int(STATE * room), told))))
        if len(text) <= size:
            break
        room = int(UNDER * room * size / len(text))
    return text
