"""Summarize: the oldest part of a history becomes blocks of a work log that code writes.

A fold appends blocks for what is new and leaves older ones as they are while there is room; then the oldest of those
are told in fewer words. Every block is made of what was said, never of another block.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as with_

from clew.core.cuts import Stretch
from clew.core.view import View
from clew.facts.chapters import Chapter
from clew.steps.places import beside_log, protected
from clew.steps.protocol import Combination, PureStep, Step
from clew.steps.worklog.blocks import blocks
from clew.steps.worklog.fold import ChapterStretch, LogFold
from clew.steps.worklog.history import LEAST_BLOCK, History, runs
from clew.tokens.target import Target

MOST = 30_000  # tokens of the log

Reached = Callable[[tuple[View, Target]], None]


@dataclass(frozen=True)
class Summarize(PureStep):
    """The oldest of what is not protected becomes blocks of the log, until the rest fits; `most` are its tokens."""

    most: int = MOST
    focus: str = field(default="", repr=False)  # what somebody who has it compacted cares for above all
    chapters: Sequence[Chapter] = field(default=(), repr=False)  # that models wrote of what may be folded
    reached: Reached | None = field(default=None, repr=False)  # hears what other steps leave to fold, and how far
    merges: bool = field(default=False, repr=False)  # neighbours are one block, however long

    def apply(self, view: View, target: Target) -> View:
        if self.reached:
            self.reached((view, target))
        target = beside_log(view, target)
        while target.excess(view):  # beside blocks that one pass wrote, the next may find room for another
            swaps = LogFold(History(view, target, self.focus, self.chapters), self.most, self.merges).swaps()
            before, view = view, view.replace_all(swaps, by=self)
            if target.size(view).tokens >= target.size(before).tokens:
                break
        return view


def briefed(
    step: Step,
    focus: str = "",
    chapters: Sequence[Chapter] = (),
    reached: Reached | None = None,
) -> Step:
    """A step whose summaries, however deep inside, know what somebody cares for and what models wrote, and tell what
    other steps left for them to fold."""
    match step:
        case Summarize():
            return with_(step, focus=focus, chapters=chapters, reached=reached)
        case Combination():
            return step.map(lambda part: briefed(part, focus, chapters, reached))
    return step


def aims(step: Step, view: View, target: Target) -> tuple[View, Target]:
    """From what a step begins, and how far it goes: a host's may have more that stays."""
    aimed = getattr(step, "aims", None)
    return aimed(view, target) if aimed else (view, target)


def spans(view: View, target: Target, keep: Sequence[bool] | None = None) -> Iterator[Stretch]:
    """Runs of groups that may be folded, oldest first; `keep` says for each node whether it stays, if not as always."""
    keep = keep or protected(view, target)
    begin: int | None = None
    for start, stop in view.groups():
        if not any(keep[start:stop]):
            begin = start if begin is None else begin
        elif begin is not None:
            yield begin, start
            begin = None
    if begin is not None:
        yield begin, len(view.nodes)


def reads(view: View, target: Target) -> list[str]:
    """The stand-ins in view whose originals the next fold reads: no blocks, unless something before the last is new."""
    history = History(view, beside_log(view, target))
    made, last = view.stand_ins(), max(history.old, default=-1)
    anew = bool(history.old) and history.stood is None
    for run in runs(history.free):
        anew |= run[1] <= last and target.meter.span(view, *run).tokens >= LEAST_BLOCK
    return [n.id for at, n in enumerate(view.nodes) if n.id in made and (anew or at not in history.old)]


def coming(
    view: View, target: Target, chapters: Sequence[Chapter] = (), most: int = MOST, after: View | None = None
) -> list[ChapterStretch]:
    """What the next fold will tell of, more or less, and no model has written of; with at most so many tokens.

    `after` is the view as code alone would fold it.
    """
    stays = None
    if after is not None:
        told = blocks(after)
        stays = target.size(after).tokens - target.meter.nodes(after.nodes[at] for at in told).tokens
    return LogFold(History(view, beside_log(view, target), chapters=chapters), MOST).coming(most, stays)
