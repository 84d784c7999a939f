"""Whether it is time to compact: every rule there is, in the order in which they are asked."""

from typing import Literal, NamedTuple

from clew.core.limits import Size
from clew.core.view import View
from clew.engine.branch import Branch
from clew.steps.bound import is_thinking
from clew.steps.sealed import asks_to_compact
from clew.steps.worklog.tasks import is_done
from clew.tokens.target import Target
from clew.wire.rules.binding import binds

Why = Literal["limit", "client compacts", "thinking", "did not help", "threshold", "just compacted", "done", "fits"]


HELD = ("client compacts", "thinking", "did not help")  # whatever the size, while it fits


class Due(NamedTuple):
    """What to compact to, or why not now."""

    why: Why
    target: Target | None = None


def due(branch: Branch, view: View, target: Target) -> Due:
    """Whether a view is compacted before it is sent. The first rule that says something decides."""
    size, rate = branch.ledger.size.measure(view)
    target = target.at(rate)
    if not size.within(target.limit):
        return Due("limit", target.aim(size))
    if asks_to_compact(view):
        return Due("client compacts")
    if binds(view.frame.format, view.frame.model) and is_thinking(view):
        return Due("thinking")  # what is thought in an open turn would be lost with the first change before it
    if branch.ledger.verdict.paused:
        return Due("did not help")
    if target.exceeded(size):
        return Due("threshold", target.aim(size)) if _has_grown(branch, view, target) else Due("just compacted")
    done = target.budget.done
    if done and size.tokens > target.frame + done * target.room and is_done(view):
        # A piece of work is over, and the next has not begun: as if somebody asked for it now.
        return Due("done", part(target, size)) if _has_grown(branch, view, target) else Due("just compacted")
    return Due("fits")


def _has_grown(branch: Branch, view: View, target: Target) -> bool:
    """Whether enough was said since the last compaction, as the log has it: else the next one would bring little."""
    folds, since = branch.trace.folds, 0
    if folds and not {n.id for n in view.nodes}.isdisjoint(folds[-1].made):
        since = folds[-1].said
    new = {place.id for place in branch.trace.said[since:]}
    return target.meter.nodes(n for n in view.nodes if n.id in new).tokens >= target.least


def part(target: Target, size: Size) -> Target:
    """What a compaction aims at that somebody asks for: a part of what was said, however much that is."""
    said = min(size.tokens, target.limit.tokens) - target.frame
    return target.to(target.frame + int(target.budget.low * said))
