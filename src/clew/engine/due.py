"""Whether it is time to compact: every rule there is, in the order in which they are asked."""

from typing import Literal, NamedTuple

from clew.core.limits import Size
from clew.core.view import View
from clew.engine.branch import Branch
from clew.engine.net import is_over, likely
from clew.steps.bound import is_thinking
from clew.steps.sealed import asks_to_compact
from clew.steps.worklog.tasks import is_done
from clew.tokens.target import Target
from clew.wire.rules.binding import binds

Why = Literal[
    "off",
    "agent decides",
    "asked about all of it",
    "limit",
    "client compacts",
    "thinking",
    "did not help",
    "being read",
    "just compacted",
    "threshold",
    "done",
    "fits",
]


class DueRule(NamedTuple):
    """One rule, for people."""

    why: Why
    when: str
    then: str
    settings: tuple[str, ...] = ()


RULES = (
    DueRule(
        "off", "compaction is `off` or `shadow`", "no; with `shadow` it is tried and written down", ("compaction",)
    ),
    DueRule(
        "agent decides",
        "the method is `llm`, and the request fits: below the net, or before the agent was told to act",
        "no: the agent decides",
        ("compaction_method", "new_session.when"),
    ),
    DueRule("asked about all of it", "the request asks for a summary or a title of all of it", "no, while it fits"),
    DueRule(
        "limit",
        "the request is larger than the window less the reserve",
        "yes, down to `low`",
        ("budget.window", "budget.reserve"),
    ),
    DueRule("client compacts", "the client is compacting by itself", "no, while it fits"),
    DueRule("thinking", "the provider binds thinking to what was said, and a turn is open", "no, until the turn ends"),
    DueRule("did not help", "by the provider's own count, the last two compactions freed nothing", "no, while it fits"),
    DueRule(
        "being read",
        "a model is reading what will be summarized",
        "no, until that is done or the limit is reached",
        ("summary.model",),
    ),
    DueRule("just compacted", "less than 0.15 of the room was said since the last compaction", "no"),
    DueRule(
        "threshold",
        "the history takes more than `high` of the room, or more than `start` tokens",
        "yes, down to `low`",
        ("budget.high", "budget.start", "budget.low"),
    ),
    DueRule(
        "done",
        "the agent has just finished its list of tasks, and the history takes more than `done` of the room",
        "yes, down to `low` of what was said",
        ("budget.done",),
    ),
    DueRule("fits", "none of these", "no"),
)
HELD = ("agent decides", "asked about all of it", "client compacts", "thinking", "did not help")  # nobody reads ahead


class Due(NamedTuple):
    """What to compact to, or why not now."""

    why: Why
    target: Target | None = None


def due(branch: Branch, view: View, target: Target, told: bool | None = None) -> Due:
    """Whether a view is compacted before it is sent: the first of `RULES` that applies decides.

    `told` says whether an agent that decides itself was asked to act; None: clew decides.
    """
    if told is not None and not is_over(branch, view, target, told):
        return Due("agent decides")
    if branch.whole:
        likely_size, bounds = likely(branch, view, target)
        if likely_size.within(bounds.limit):
            return Due("asked about all of it")
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
