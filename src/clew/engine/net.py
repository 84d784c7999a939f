"""Where clew acts because of others: below an agent that looks after its own context, and before its client does."""

from dataclasses import replace as with_
from itertools import takewhile

from clew.core.limits import Size
from clew.core.view import View
from clew.engine.branch import Branch
from clew.engine.cue import STATUS, Cue, spare
from clew.steps import Arrivals
from clew.tokens.target import Target
from clew.wire.formats import named

LEAST_ANSWER = 20  # one part in so many of the window: room for an answer, however much a client asks for
MOST_MARGIN = 4  # one part in so many of where a client compacts: no call is thought to bring more


def net(target: Target, client: str = "") -> Target:
    """The target of an agent that looks after its window itself: clew acts only just before it is full.

    A `client` that speaks this format compacts once a call has reported more than it wants: it must see that call, so
    that clew acts only where the request itself would be refused.
    """
    target = with_(target, ceiling=None)
    if client:
        kept = target.kept_free
        if not named(client).counted_answer:  # its provider refuses nothing that fits without the longest answer
            kept = min(kept, target.window // LEAST_ANSWER)
        return target.under(with_(target.budget, reserve=kept, start=None, high=1.0))
    reserve = min(target.kept_free + STATUS, target.window - 1)
    bare = with_(target.budget, reserve=reserve, start=None)
    high = min(1.0, max(0.01, (target.room - spare(target.room)) / max(1, target.under(bare).room)))
    return target.under(with_(bare, high=high, low=min(bare.lower, high)))


def likely(branch: Branch, view: View, target: Target) -> tuple[Size, Target]:
    """The size, and the target at the rate that is expected: on the scale of what the agent is told."""
    size, _ = branch.ledger.size.measure(view)
    return size, target.at(branch.ledger.size.expected(view) / max(1, size.tokens))


async def previewed(branch: Branch, view: View, target: Target) -> View:
    """The view with previews of what just came, where that jumps past the net."""
    size, bounds = likely(branch, view, target)
    if not bounds.exceeded(size):
        return view
    return await Arrivals()(view, bounds.to(bounds.threshold))


def is_over(branch: Branch, view: View, target: Target, told: bool) -> bool:
    """Whether clew must act for an agent: it was told and did not, or there is no room to tell it."""
    size, bounds = likely(branch, view, target)
    return bounds.exceeded(size) if told else not size.within(bounds.limit)


def before_client(branch: Branch, view: View, target: Target) -> Target:
    """The target of a request whose client compacts by itself: one more call must leave it below that.

    A client adds what came since to what was reported, and compacts before it sends what would be too much.
    """
    branch.ledger.growth = max(branch.ledger.growth, since_call(branch, view, target))
    if target.ceiling is None:
        return target
    return with_(target, ceiling=target.ceiling - min(margin(branch, view, target), target.ceiling // MOST_MARGIN))


def margin(branch: Branch, view: View, target: Target) -> int:
    """Tokens, as the provider counts them, that one more call may bring: as many as the largest so far."""
    _, rate = branch.ledger.size.measure(view)
    return max(int(branch.ledger.growth * rate), target.window // LEAST_ANSWER)


def since_call(branch: Branch, view: View, target: Target) -> int:
    """Tokens of what came since the last call, as the view has it."""
    calls = branch.trace.calls
    new = {place.id for place in branch.trace.said[calls[-1][1] :]} if calls else set()
    return target.meter.nodes(takewhile(lambda n: n.id in new, reversed(view.nodes))).tokens


def was_asked_to_act(branch: Branch, view: View, target: Target, cue: Cue) -> bool:
    """Whether the status of the last call asked the agent to act."""
    if not branch.trace.calls:
        return False
    since = since_call(branch, view, target)
    size, _ = branch.ledger.size.measure(view)
    told = target.filled(size.tokens - since + STATUS, branch.ledger.size.expected(view) / max(1, size.tokens))
    return cue.heeded(told).is_reached(told)
