"""Summarize: the oldest part of a history becomes blocks of a work log that code writes.

A fold appends blocks for what is new and leaves older ones as they are while there is room; then the oldest of those
are told in fewer words. Every block is made of what was said, never of another block.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from dataclasses import replace as with_
from functools import cached_property
from typing import Any

from clew.core.items import CLAIMS, LOG, SHORT, STANDS, Item, Node
from clew.core.limits import Size
from clew.core.view import Stretch, Swap, View, groups
from clew.facts import sheet
from clew.facts.claims import Draft, to_json
from clew.facts.coverage import ledger, noted, words_in
from clew.steps.lines import omitted
from clew.steps.notes.placing import Notes, notes_of, placed
from clew.steps.places import beside, protected
from clew.steps.protocol import Combination, Step
from clew.steps.worklog.blocks import TOGETHER, Block, blocks, standing, together
from clew.steps.worklog.log import Log
from clew.steps.worklog.requests import requests, typed
from clew.steps.worklog.standing import Standing
from clew.steps.worklog.wording import around, words
from clew.text.search import Index, texts
from clew.tokens.target import Target

MOST = 30_000  # tokens of the log
LEAST = 200  # tokens of originals: for less, a block is not worth its heading
SMALL = 1_500  # tokens of originals that a block has before it ends at the next request
WORTH = 300  # tokens that a block has, more or less: with less room there are fewer and longer ones
SHARE = 0.6  # of what a goal leaves for the history: the log has no more, or the oldest blocks are told in fewer words
VERBATIM = 6_000  # tokens that are enough for the newest of what was said, as it was said: the log may have the others
FEWER = 0.2  # of the same: down to this
STATE = 0.2  # of the same, at most, for how things stand
PART = 0.75  # of what stood there, at most, for a block
MUCH = 1_000_000  # characters: all of it
MORE = 1.2  # times what how things stood took last: it grows
RATIO = 0.15  # of what is folded: so much its blocks take, more or less
SLACK = 0.04  # of the history that may be left empty
DENSE = 3.5  # characters that a token has, more or less: where a text begins to be fitted
HEAD = 80  # characters of the heading of a block
PASSAGE = 300  # characters of what was said of what somebody cares for
ROUNDS = 6  # of fitting
UNDER = 0.98  # of the room is aimed at


@dataclass(frozen=True)
class Summarize:
    """The oldest of what is not protected becomes blocks of the log, until the rest fits; `most` are its tokens."""

    most: int = MOST
    focus: str = field(default="", repr=False)  # what somebody who has it compacted cares for above all
    draft: Draft | None = field(default=None, repr=False)  # what a model noted of what will be folded

    async def __call__(self, view: View, target: Target) -> View:
        target = beside(view, target)
        if not target.excess(view):
            return view
        swaps = await asyncio.to_thread(lambda: _Fold(view, target, self.most, self.focus, self.draft).swaps())
        return view.replace_all(swaps, by=self)


def briefed(step: Step, focus: str = "", draft: Draft | None = None) -> Step:
    """A step whose summaries, however deep inside, know what somebody cares for and what a model noted."""
    match step:
        case Summarize():
            return with_(step, focus=focus, draft=draft)
        case Combination():
            return step.map(lambda part: briefed(part, focus, draft))
    return step


def spans(view: View, target: Target, keep: Sequence[bool] | None = None) -> Iterator[Stretch]:
    """Runs of groups that may be folded, oldest first; `keep` says for each node whether it stays, if not as always."""
    keep = keep or protected(view, target)
    begin: int | None = None
    for start, stop in groups(view.nodes):
        if not any(keep[start:stop]):
            begin = start if begin is None else begin
        elif begin is not None:
            yield begin, start
            begin = None
    if begin is not None:
        yield begin, len(view.nodes)


def reads(view: View, target: Target) -> list[str]:
    """The stand-ins in view whose originals the next fold reads: no blocks, unless something before the last is new."""
    fold = _Fold(view, beside(view, target))
    made, last = view.stand_ins(), max(fold.old, default=-1)
    anew = bool(fold.old) and fold.stood is None
    for run in _runs(fold.free):
        anew |= run[1] <= last and target.meter.nodes(view.nodes[slice(*run)]).tokens >= LEAST
    return [n.id for at, n in enumerate(view.nodes) if n.id in made and (anew or at not in fold.old)]


def next_folded(view: View, target: Target) -> list[Node]:
    """What was said in the groups that the next fold will tell of, more or less."""
    return _Fold(view, beside(view, target)).next()


class _Fold:
    """One compaction: which groups become blocks, which blocks get fewer words."""

    def __init__(
        self, view: View, target: Target, most: int = MOST, focus: str = "", draft: Draft | None = None
    ) -> None:
        self.view, self.target, self.meter = view, target, target.meter
        self.size, self.goal = target.size(view), target.goal
        self.history = max(1, self.goal.tokens - target.meter.frame(view.frame).tokens)
        self.most = min(most, max(int(SHARE * self.history), self.history - VERBATIM))
        self.fewer = min(int(FEWER * self.history), self.most // 2)
        self.old = blocks(view)
        self.log = {(at, at + 1): block for at, (block, _) in self.old.items()}
        self.focus, self.draft = focus.strip(), draft
        self.notes = notes_of(view, draft)
        self.unpaid = _unpaid(view, draft)
        self.stood = standing(self.old)
        self.anew: Standing | None = None  # how things stand after the last block, where something before it is new
        most_state, told = min(int(STATE * self.history), self.most // 2), self.stood.told(MUCH) if self.stood else ""
        self.stands = min(most_state, int(MORE * self.meter.counter.text(told)) + LEAST) if told else most_state
        self.keep = keep = protected(view, target)
        self.free = [g for g in groups(view.nodes) if not any(keep[slice(*g)]) and not self.old.keys() & {*range(*g)}]
        self.sizes = [self.meter.nodes(view.nodes[slice(*g)]) for g in self.free]

    @cached_property
    def others(self) -> AbstractSet[str]:
        """The facts in what stays."""
        return words_in((n for i, n in enumerate(self.view.nodes) if self.keep[i]))

    @cached_property
    def told(self) -> AbstractSet[str]:
        """What older blocks tell of."""
        return {n.id for at in self.old for n in self.view.originals(at, at + 1)}

    def swaps(self) -> list[Swap]:
        """What to replace by what: as little as does, so that what room there is holds originals."""
        best: list[Swap] = []
        low, high = 0, len(self.free)
        tried = self._extent()
        gone = sum(size.tokens for size in self.sizes[:tried])
        if self.log and self._tokens(self.log) + RATIO * gone > self.most:
            self.log = self._lowered(self.log, self.fewer)
            tried = self._extent()
        for _ in range(ROUNDS):
            swaps = self._plan(tried)
            after = self._after(swaps)
            if after.within(self.goal):
                best, high = swaps, tried
                left = self.goal.tokens - after.tokens
                if left <= SLACK * self.history or low >= high - 1:
                    break
                tried = max(low + 1, self._less(tried, left))
            else:
                low = tried
                if low >= high:
                    break
                tried = min(high, max(low + 1, self._more(tried, after)))
            if tried in (low, high) and (best or tried == low):
                break
        return [self._with_evidence(swap) for swap in self._filled(best, high) or self._least()]

    def _filled(self, swaps: list[Swap], extent: int) -> list[Swap]:
        """The same with more words, where the next of what was said has no room, but words have."""
        left = self.goal.tokens - self._after(swaps).tokens if swaps else 0
        if left <= SLACK * self.history:
            return swaps
        self.most += left
        more = self._plan(extent)
        return more if self._after(more).within(self.goal) else swaps

    def next(self) -> list[Node]:
        """What was said in the groups that would be folded, by the first guess, once a compaction is due."""
        self.size = self.size._replace(tokens=max(self.size.tokens, self.target.threshold))
        return [n for group in self.free[: self._extent()] for n in self.view.originals(*group)]

    def _extent(self) -> int:
        """How many of the oldest groups to fold, by a first guess."""
        told = Size(self._tokens(self.log) + self.stands) if self.old else Size(self.stands)
        rest = self.size.less(self.meter.nodes(self.view.nodes[at] for at in self.old)).plus(told)
        gone = Size()
        for n, size in enumerate(self.sizes, 1):
            gone = gone.plus(size)
            if rest.less(gone).plus(Size(int(RATIO * gone.tokens), 0, 0, 1)).within(self.goal):
                return n
        return len(self.sizes)

    def _less(self, tried: int, left: int) -> int:
        """How many groups to fold if so many tokens more may stay."""
        while tried > 1 and left > (size := self.sizes[tried - 1].tokens):
            left -= int((1 - RATIO) * size)
            tried -= 1
        return tried

    def _more(self, tried: int, after: Size) -> int:
        lacking = after.tokens - self.goal.tokens
        while tried < len(self.sizes) and lacking > 0:
            lacking -= int((1 - RATIO) * self.sizes[tried].tokens)
            tried += 1
        return tried

    def _after(self, swaps: Sequence[Swap]) -> Size:
        size = self.size
        for swap in swaps:
            size = size.less(self.meter.nodes(self.view.nodes[swap.start : swap.stop]))
            size = size.plus(self.meter.items(i for i in swap.items if isinstance(i, Item)))
        return size

    def _plan(self, extent: int) -> list[Swap]:
        """The swaps where so many of the oldest groups become blocks."""
        folded = self.free[:extent]
        if not self._spans(folded, self.history):
            return []
        gone = sum(size.tokens for size in self.sizes[:extent])
        log = self.log
        rest = self.size.tokens - gone - sum(self.meter.node(self.view.nodes[at]).tokens for at in self.old)
        want, room = int(RATIO * gone), self._room(log, rest)
        if log and extent == len(self.free) and room < want:
            log = self._lowered(log, self.fewer)
            room = self._room(log, rest)
        spans = self._spans(folded, max(LEAST, room))
        made = self._written(spans, max(LEAST // 2, room), self.stands)
        return [*self._changed(log, made), *made.values()] if made else []

    def _tokens(self, log: Mapping[Stretch, Block]) -> int:
        return sum(self.meter.item(block.item()).tokens for block in log.values())

    def _room(self, log: Mapping[Stretch, Block], rest: int) -> int:
        """Tokens for new blocks beside these and all that is neither."""
        bare = self._tokens(log)
        return min(self.most - bare, self.goal.tokens - rest - bare) - self.stands

    def _lowered(self, log: Mapping[Stretch, Block], most: int, apart: int = -1) -> dict[Stretch, Block]:
        """The blocks in fewer words, oldest first, a level a pass, then neighbours as one, until they are within so
        many tokens; the one at `apart` stays by itself."""
        log = dict(log)
        sizes = {at: self.meter.item(block.item()).tokens for at, block in log.items()}
        lowered = True
        while lowered and sum(sizes.values()) > most:
            lowered = False
            for at in sorted(log):
                if sum(sizes.values()) <= most:
                    break
                if fewer := log[at].lower():
                    log[at], sizes[at], lowered = fewer, self.meter.item(fewer.item()).tokens, True
        runs = (run for run in _runs(self.free) if self.meter.nodes(self.view.nodes[slice(*run)]).tokens < LEAST)
        small = {at for run in runs for at in range(*run)}  # too little for a block: it may stand between two
        if words := {at for at in small if typed(self.view.nodes[at].item)}:  # but for what the user said
            small -= words
        while (all := sum(sizes.values())) > most and (run := _neighbours(log, apart, small, all > self.most)):
            start, stop = run[0][0], run[-1][1]
            one = together([log[at] for at in run], self.view.short(start, stop))
            if (size := self.meter.item(one.item()).tokens) >= sum(sizes[at] for at in run):
                break
            for at in run:
                del log[at], sizes[at]
            log[start, stop], sizes[start, stop] = one, size
        return log

    def _changed(self, log: Mapping[Stretch, Block], made: Mapping[Stretch, Swap]) -> list[Swap]:
        """The swaps of blocks whose level or place changed; the last of all says how things stand."""
        last = max([*log, *made], default=(-1, -1))
        swaps = []
        for (start, stop), block in log.items():
            was, evidence = self.old[start]
            if stop - start > 1:
                tallies = [self.old[at][1].get("tally", {}) for at in range(start, stop) if at in self.old]
                tally = {noun: sum(t.get(noun, 0) for t in tallies) for t in tallies for noun in t}
                ends = (self.anew or self.stood) if (start, stop) == last else None
                item = block.item(ends.told(int(DENSE * self.stands)) if ends else "")
                more = {STANDS: ends.to_json(), "beside": sorted(ends.sources())} if ends else {}
                more |= _noted_in([self.old[at][1] for at in range(start, stop) if at in self.old])
                swaps.append(Swap(start, stop, [item], {LOG: block.to_json(), "tally": tally, **more}))
                continue
            stays = (start, stop) == last and STANDS in evidence
            if (start, stop) == last and self.anew:
                told: Standing | None = self.anew
            elif block.level == was.level and (stays or STANDS not in evidence):
                continue
            else:
                told = self.stood if stays else None
            kept = {k: v for k, v in evidence.items() if k not in ("coverage", STANDS, "beside")}
            if told:
                beside = sorted(told.sources())
                kept |= {STANDS: told.to_json()} | ({"beside": beside} if beside else {})
            item = block.item(told.told(int(DENSE * self.stands), newest=self._is_newest_folded([])) if told else "")
            if (told and told is self.anew) or self.meter.item(item).tokens < self.meter.node(
                self.view.nodes[start]
            ).tokens:
                swaps.append(Swap(start, stop, [item], {**kept, LOG: block.to_json()}))
        return swaps

    def _least(self) -> list[Swap]:
        """Where it does not fit: all that can be is folded; if it is words that are too many, into the fewest."""
        swaps = self._plan(len(self.free))
        if self._after(swaps).tokens <= self.goal.tokens:
            return swaps
        spans = [run for run in _runs(self.free) if self.meter.nodes(self.view.nodes[slice(*run)]).tokens >= LEAST]
        made = self._written(spans, LEAST // 2, LEAST // 2, brief=True) if spans else {}
        log = self._lowered(self.log, 0, -1 if made else max(self.old, default=-1))
        return [*self._changed(log, made), *made.values()]

    def _spans(self, folded: Sequence[Stretch], room: int) -> list[Stretch]:
        """The groups as blocks: each ends before a request once it is long enough, or in the middle of a long one."""
        whole = sum(self.meter.nodes(self.view.nodes[slice(*g)]).tokens for g in folded)
        small = max(SMALL, whole * WORTH // room)
        found = list[tuple[int, int, int]]()  # from, to, tokens
        for start, stop in folded:
            node, size = self.view.nodes[start].item, self.meter.nodes(self.view.nodes[start:stop]).tokens
            begin, end, tokens = found[-1] if found else (0, 0, 0)
            says = node.role == "assistant" and node.kind == "text"
            full = (typed(node) and tokens >= small) or (says and tokens >= 4 * small) or tokens >= 8 * small
            if found and start == end and not full:
                found[-1] = begin, stop, tokens + size
            else:
                found.append((start, stop, size))
        if len(found) > 1 and found[-1][2] < small and found[-2][1] == found[-1][0]:  # too short to stand alone
            begin, _, tokens = found[-2]
            found[-2:] = [(begin, found[-1][1], tokens + found[-1][2])]
        return [(begin, end) for begin, end, tokens in found if tokens >= LEAST]

    def _written(self, spans: Sequence[Stretch], room: int, stands: int, brief: bool = False) -> dict[Stretch, Swap]:
        """The blocks of these spans in so many tokens together, the last with how things stand."""
        originals = [self.view.originals(*span) for span in spans]
        claims = placed(self.notes.claims, originals, self.told) if self.notes.claims else []
        log = Log(originals, self._since(spans), self._following(spans[-1][1]), self._between(spans), claims)
        focus = self._about([n for nodes in originals for n in nodes], room)
        newest = self._is_newest_folded(spans)
        carries = spans[-1][0] > max(self.old, default=-1)  # the last of them is the last block of all
        self.anew = None if carries else self._read({*self.old, *(at for span in spans for at in range(*span))})
        handles = [self.view.short(*span) for span in spans]
        size, state_size, most = DENSE * room, DENSE * stands, room + stands
        found, items = list[Block](), list[Item]()
        limits = [int(PART * DENSE * self.meter.nodes(self.view.nodes[slice(*span)]).tokens) - HEAD for span in spans]
        limits[-1] -= int(state_size) if carries else 0
        before = 0
        for _ in range(ROUNDS):
            told = log.told(max(0, int(size) - len(focus)), limits)
            short = [log.levels(p, text)[-1] if brief else text for p, text in zip(log.parts, told, strict=True)]
            parts = zip(log.parts, handles, short, strict=True)
            made = [Block(p.first, p.last, id, (text,), 0, p.continued) for p, id, text in parts]
            shown = "\n".join(block.texts[0] for block in made)
            state = "\n".join(filter(None, (log.stands(int(state_size), shown, newest), focus)))
            sent = [block.item(state if carries and i == len(made) - 1 else "") for i, block in enumerate(made)]
            taken = self.meter.items(sent).tokens
            if taken <= most or not found:
                found, items = made, sent
            if UNDER * UNDER * most <= taken <= most or (taken <= most and taken <= before):
                break
            before = taken
            size, state_size = size * UNDER * most / taken, state_size * min(1.0, UNDER * most / taken)
        helps = [self._helps(span, item) for span, item in zip(spans, items, strict=True)]
        if not all(helps):
            left = [span for span, does in zip(spans, helps, strict=True) if does]
            return self._written(left, room, stands, brief) if left else {}
        swaps: dict[Stretch, Swap] = {}
        sources = log.standing.sources()
        for n, (span, item, block) in enumerate(zip(spans, items, found, strict=True)):
            lengths = block.texts if brief else log.levels(log.parts[n], block.texts[0])
            evidence: dict[str, Any] = {LOG: with_(block, texts=lengths).to_json()}
            evidence |= {CLAIMS: to_json(claims[n])} if claims and claims[n] else {}
            if carries and n == len(found) - 1:
                beside = sorted(sources - {node.id for node in originals[n]})
                evidence |= {STANDS: log.standing.to_json()} | ({"beside": beside} if beside else {})
            paid = None if swaps else self.unpaid
            evidence |= {"cost": paid.cost} if paid else {}
            swaps[span] = Swap(*span, [item], evidence, paid.spent if paid else 0)
        return swaps

    def _helps(self, span: Stretch, item: Item) -> bool:
        """Whether a block is smaller than what it stands for, in every way."""
        now, new = self.meter.nodes(self.view.nodes[slice(*span)]), self.meter.item(item)
        return new.tokens < now.tokens and new._replace(messages=0).within(now._replace(messages=0))

    def _since(self, spans: Sequence[Stretch]) -> Standing:
        """How things stood before the first of these; read anew if something before the last block was not told yet."""
        first = spans[0][0]
        if self.stood is not None and first > max(self.old):
            return self.stood
        told = {at for at in self.old if at < first}
        stood = self._read(told)
        stood.count += self._asked(0, max(told) if told else first)
        return stood

    def _asked(self, start: int, stop: int) -> int:
        """How many requests stand in view there, as they are."""
        return sum(bool(typed(n.item)) for n in self.view.nodes[start:stop])

    def _between(self, spans: Sequence[Stretch]) -> list[int]:
        """How many requests stay in view before each of these, after the block or the span before it."""
        told = max((at for at in self.old if at < spans[0][0]), default=None)
        ends = [spans[0][0] if told is None else told + 1, *(stop for _, stop in spans[:-1])]
        return [self._asked(end, start) for end, (start, _) in zip(ends, spans, strict=True)]

    def _read(self, places: AbstractSet[int]) -> Standing:
        """How things stand after what was said at these places."""
        stood, made = Standing(), self.view.stand_ins()
        said = [n for at in sorted(places) for n in self.view.originals(at, at + 1)]
        for request in requests([n for n in said if n.id not in made]):
            stood.add(request)
        return stood

    def _is_newest_folded(self, spans: Sequence[Stretch]) -> bool:
        """Whether the newest request is told in the log only."""
        folded = {at for span in spans for at in range(*span)}
        asked = [at for at, n in enumerate(self.view.nodes) if typed(n.item)]
        # What stays in view between blocks is newer than the first of them, and so than what that one tells of.
        told = max((at for at in asked if at in folded), default=min(self.old, default=-1))
        return told > max((at for at in asked if at not in folded), default=-1)

    def _following(self, stop: int) -> str:
        """What the user said next."""
        return next((said for n in self.view.nodes[stop:] if (said := typed(n.item))), "")

    def _about(self, nodes: Sequence[Node], room: int) -> str:
        """What was said of what somebody cares for above all, in whole sentences."""
        if not self.focus:
            return ""
        index, told, left = Index(texts(nodes)), list[str](), int(DENSE * room * FEWER)
        for at, _ in index.ranked(self.focus):
            passage = index.passages[at]
            source = index.texts[passage.text]
            said = words(around(source.body, [line.text for line in passage.lines]), PASSAGE)
            line = f"- {source.title}: {said} (recall {source.id[:SHORT]})"
            if len(line) < left and line not in told:
                told.append(line)
                left -= len(line) + 1
        return "\n".join(["About what was asked for:", *told]) if told else ""

    def _with_evidence(self, swap: Swap) -> Swap:
        """A swap with what became of the facts behind a new block."""
        if swap.start in self.old or not isinstance(item := swap.items[0], Item):
            return swap
        nodes = self.view.originals(swap.start, swap.stop)
        found = self._evidence((swap.start, swap.stop), nodes, item)
        return swap._replace(evidence=found | dict(swap.evidence))

    def _evidence(self, span: Stretch, nodes: Sequence[Node], item: Item) -> dict[str, Any]:
        earlier = {n.id: e.evidence["tally"] for e in self.view.edits if "tally" in e.evidence for n in e.new}
        _, tally = omitted(self.view.nodes[slice(*span)], earlier, "")
        told: AbstractSet[str] = sheet(item).facts.keys()
        found = ledger(nodes, self.others | told)
        return {"tally": tally, "coverage": noted(found), **self._read_by_a_model(nodes)}

    def _read_by_a_model(self, nodes: Sequence[Node]) -> dict[str, object]:
        """What the next fold must know of a model's notes."""
        unread = [n.id for n in nodes if n.id not in self.notes.read]
        if len(unread) == len(nodes):
            return {}
        draft = {"draft": self.draft.key} if self.draft else {}
        return {CLAIMS: [], "unread": unread, "trust": round(self.notes.trust, 3), **draft}


def _noted_in(several: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What a model noted of several blocks, where they become one."""
    found = [evidence for evidence in several if CLAIMS in evidence]
    if not found:
        return {}
    lists = {key: [x for evidence in found for x in evidence.get(key, ())] for key in (CLAIMS, "unread")}
    return {**lists, **{key: found[-1][key] for key in ("trust", "draft") if key in found[-1]}}


def _neighbours(log: Mapping[Stretch, Block], apart: int, small: AbstractSet[int], few: bool) -> list[Stretch]:
    """The oldest blocks in a row, with nothing between them that stays, enough to become one; or but a `few`."""
    run, some = list[Stretch](), list[Stretch]()
    for start, stop in sorted(log):
        if run and (start == apart or not all(at in small for at in range(run[-1][1], start))):
            run = []
        if start != apart:
            run.append((start, stop))
        if len(run) == TOGETHER:
            return run
        if len(run) > len(some):
            some = list(run)
    return some if few and len(some) > 1 else []


def _runs(stretches: Sequence[Stretch]) -> Iterator[Stretch]:
    """Neighbours as one."""
    begin, end = -1, -1
    for start, stop in stretches:
        if start != end:
            if end > begin:
                yield begin, end
            begin = start
        end = stop
    if end > begin:
        yield begin, end


def _unpaid(view: View, draft: Draft | None) -> Draft | None:
    """The newest draft, if no edit has what it took yet."""
    return None if draft is None or any(e.evidence.get("draft") == draft.key for e in view.edits) else draft


def summary(nodes: Sequence[Node], size: int) -> str:
    """A log of all of these in about so many characters, and how things stand."""
    log = Log([nodes])
    text, room = "", size
    for _ in range(ROUNDS):
        told = log.told(int((1 - STATE) * room))[0]
        text = "\n\n".join(filter(None, (told, log.stands(int(STATE * room), told))))
        if len(text) <= size:
            break
        room = int(UNDER * room * size / len(text))
    return text


__all__ = ["MOST", "Notes", "Summarize", "briefed", "next_folded", "reads", "spans", "summary"]
