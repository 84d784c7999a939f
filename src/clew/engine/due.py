"""Whether it is time to compact: every rule there is, in the order in which they are asked."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from clew.core.items import Node
from clew.core.limits import LOW, LOW_SMALL, SMALL, Size
from clew.core.view import View, shared_start
from clew.engine.branch import Branch
from clew.engine.net import is_over, likely, since_call
from clew.steps.bound import is_thinking
from clew.steps.sealed import asks_to_compact
from clew.steps.worklog.tasks import is_done
from clew.tokens.target import CacheRates, Target
from clew.wire.rules.binding import binds

Why = Literal[
    "off",
    "agent decides",
    "asked about all of it",
    "limit",
    "client compacts",
    "thinking",
    "did not help",
    "just compacted",
    "would not pay",
    "unread",
    "being read",
    "frees little",
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
        "the method is `llm`, the request fits, and it takes less than 0.98 of the room or the agent was not asked to "
        "act yet",
        "no, the agent decides",
        ("compaction_method", "new_session.when"),
    ),
    DueRule("asked about all of it", "the request asks for a summary or a title of all of it", "no, while it fits"),
    DueRule(
        "limit",
        "the request is larger than the window less the reserve",
        "yes, down to `low`; a chapter that a model is writing is waited for, 15 s at most",
        ("budget.window", "budget.reserve", "summary.model"),
    ),
    DueRule("client compacts", "the client is compacting by itself", "no, while it fits"),
    DueRule("thinking", "the provider binds thinking to what was said, and a turn is open", "no, until the turn ends"),
    DueRule("did not help", "by the provider's own count, the last two compactions freed nothing", "no, while it fits"),
    DueRule(
        "just compacted",
        "it is past a threshold or `done`, and less than 0.15 of the room was said since the last compaction",
        "no",
    ),
    DueRule(
        "would not pay",
        "it is past a threshold, neither `high` nor `start` is set, its client is not about to compact, and writing "
        "the shorter history into the provider's cache costs more than it saves over as many calls as there were since "
        "the last compaction",
        "no, while it fits",
        ("budget.high", "budget.start"),
    ),
    DueRule(
        "unread",
        "it is past a threshold in a window of 32,000 tokens or more, neither `high` nor `start` is set, its client is "
        "not about to compact, and what no call has read yet, which stays whole, is more than a compaction would leave",
        "no, until it was read, while it fits",
        ("budget.high", "budget.start"),
    ),
    DueRule(
        "being read",
        "a model is reading what will be summarized, or is to be asked once more is new",
        "no, until that is done or the limit is reached",
        ("summary.model",),
    ),
    DueRule("frees little", "tried, it frees less than 0.05 of the history", "no, while it fits"),
    DueRule(
        "threshold",
        "the history takes more than `high` of the room or more than `start` tokens, or one more call like the "
        "largest would have its client compact by itself",
        "yes, down to `low`",
        ("budget.high", "budget.start", "budget.low"),
    ),
    DueRule(
        "done",
        "the agent has just finished its list of tasks, and the history takes more than `Budget.done` of the room",
        "yes, down to `low` of what was said",
    ),
    DueRule("fits", "none of these", "no"),
)
QUIET = ("agent decides", "asked about all of it", "client compacts", "fits", "off")  # nothing to weigh: no note of it
HELD = ("agent decides", "asked about all of it", "client compacts", "thinking", "did not help")  # nobody reads ahead


GAIN = 0.05  # of the history: a compaction that frees less is not worth a changed prefix, whatever it costs


class Forecast(NamedTuple):
    """What a compaction would write, and what it would save, in tokens of a request and prices of one of input."""

    before: int  # tokens of the request as it is
    after: int
    kept: int  # that both begin with
    calls: int  # since the last compaction: as many come again, for all that is known
    rates: CacheRates

    @property
    def pays(self) -> bool:
        """Whether what is saved in these calls is worth what is written anew."""
        written = max(0, self.after - self.kept) * max(0.0, self.rates.write - self.rates.read)
        return self.calls * (self.before - self.after) * self.rates.read >= written

    def note(self) -> dict[str, float]:
        """The same for the log."""
        found = {"before": self.before, "after": self.after, "kept": self.kept, "calls": self.calls}
        return {**found, "read": round(self.rates.read, 4), "write": round(self.rates.write, 4)}


class Due(NamedTuple):
    """What to compact to, or why not now."""

    why: Why
    target: Target | None = None
    forecast: Forecast | None = None  # where the rules went by it

    def note(self) -> dict[str, Any] | None:
        """What the log has of a decision: nothing, where there was none to take."""
        if self.why in QUIET:
            return None
        return {"why": self.why, **(self.forecast.note() if self.forecast else {})}


def due(branch: Branch, view: View, target: Target, told: bool | None = None) -> Due:
    """Whether a view is compacted before it is sent: the first of `RULES` that applies decides.

    `told` says whether an agent that decides itself was asked to act; None: clew decides. Whether a model is reading,
    and what a compaction really frees, is asked where that is known (`settled`).
    """
    if told is not None and not is_over(branch, view, target, told):
        return Due("agent decides")
    if branch.keeps_all:
        likely_size, bounds = likely(branch, view, target)
        if likely_size.within(bounds.limit):
            return Due("asked about all of it")
    size, rate = branch.ledger.size.measure(view)
    is_free = target.budget.high is None and target.budget.start is None
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
        return _past(branch, view, target, size, is_free)
    done = target.budget.done
    if done and size.tokens > target.frame + done * target.room and is_done(view):
        # A piece of work is over, and the next has not begun: as if somebody asked for it now.
        return Due("done", part(target, size)) if _has_grown(branch, view, target) else Due("just compacted")
    return Due("fits")


def _past(branch: Branch, view: View, target: Target, size: Size, is_free: bool) -> Due:
    """Whether a view above a threshold is compacted now; `is_free`: nobody but clew says when."""
    aimed = target.aim(size)
    if not _has_grown(branch, view, target):
        return Due("just compacted")
    forecast = _forecast(branch, target, size.tokens, aimed.goal.tokens) if is_free else None
    if forecast and not target.is_clients_next(size):
        if not forecast.pays:
            return Due("would not pay", None, forecast)
        # What is new would stay whole, and be read again in every call up to the next compaction; one call later it may
        # go, too. That call reads a long request once more from the cache, which two shorter ones make up for.
        unread = since_call(branch, view, target)
        if target.frame + unread > aimed.goal.tokens and not target.budget.is_narrow:
            return Due("unread", None, forecast)
    return Due("threshold", aimed, forecast)


def settled(found: Due, branch: Branch, before: View, after: View) -> Due:
    """The same once it was tried, by what it really frees and keeps."""
    size = branch.ledger.size
    was, now = size.measure(before)[0].tokens, size.measure(after)[0].tokens
    if found.why == "limit" or found.target is None:
        return found
    frame = found.target.frame
    if now - frame > (was - frame) * (1 - GAIN):
        return Due("frees little")
    if found.forecast is None:
        return found
    forecast = found.forecast._replace(after=now, kept=frame + found.target.meter.nodes(_shared(before, after)).tokens)
    if forecast.pays or found.target.is_clients_next(size.measure(before)[0]):
        return found._replace(forecast=forecast)
    return Due("would not pay", None, forecast)


def _shared(before: View, after: View) -> Sequence[Node]:
    return after.nodes[: shared_start(before.nodes, after.nodes)]


def _forecast(branch: Branch, target: Target, before: int, after: int) -> Forecast:
    """By what is aimed at: of the history nothing stays as it is."""
    calls, folds = branch.trace.calls, branch.trace.folds
    now = len(branch.trace.said)
    since = bisect_right(calls, (folds[-1].seq, now)) if folds else 0
    sizes = {said for _, said in calls[since:] if said < now}  # what is sent once more is no other call
    return Forecast(before, after, target.frame, len(sizes), target.rates)


def _has_grown(branch: Branch, view: View, target: Target) -> bool:
    """Whether enough was said since the last compaction, as the log has it: else the next one would bring little."""
    folds, since = branch.trace.folds, 0
    if folds and not {n.id for n in view.nodes}.isdisjoint(folds[-1].made):
        since = folds[-1].said
    new = {place.id for place in branch.trace.said[since:]}
    return target.meter.nodes(n for n in view.nodes if n.id in new).tokens >= target.least


def part(target: Target, size: Size) -> Target:
    """What a compaction aims at that somebody asks for: a part of what was said, however much that is."""
    said, low = min(size.tokens, target.limit.tokens) - target.frame, target.budget.lower
    share = LOW_SMALL if low == LOW and said < SMALL else low  # of little, a fifth is too little to tell it
    return target.to(target.frame + int(share * said))
