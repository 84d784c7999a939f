"""Ways to keep a growing session small, as they are asked before every call: what others do, and what clew does."""

from dataclasses import dataclass
from dataclasses import replace as with_
from typing import Protocol

from clew.catalog.usage import Spent
from clew.core.bridge import run
from clew.core.cuts import groups
from clew.core.items import Node
from clew.core.view import View
from clew.lab.act import TAIL, SummaryBefore
from clew.steps import default
from clew.tokens.target import Target

NOTHING = Spent(0)
CLEARED = "[Old tool result content cleared]"


class Keeper(Protocol):
    """Whoever keeps a session small; one for each session."""

    def fit(self, view: View, size: int) -> tuple[View, Spent]:
        """What to send instead of a view of so many tokens, and what a model took that was asked for it."""


# --- what others do ---------------------------------------------------------------------------------------------------


class Whole:
    """All of it, whether it fits or not."""

    def fit(self, view: View, size: int) -> tuple[View, Spent]:
        return view, NOTHING


@dataclass
class Dropping:
    """All of it; in need, without the oldest."""

    target: Target

    def fit(self, view: View, size: int) -> tuple[View, Spent]:
        limit, start = self.target.limit.tokens, 0
        if size <= limit:
            return view, NOTHING
        for begin, stop in groups(view.nodes):
            if size <= limit:
                break
            size -= self.target.meter.nodes(view.nodes[begin:stop]).tokens
            start = stop
        return with_(view, nodes=view.nodes[start:]), NOTHING


@dataclass
class Summarizing:
    """Near the window, a model reads all of it and writes a summary of all but the newest (`clew.lab`)."""

    target: Target
    whole: View
    at: float = 0.75  # of the limit

    def fit(self, view: View, size: int) -> tuple[View, Spent]:
        limit, meter = self.target.limit.tokens, self.target.meter
        if size <= self.at * limit:
            return view, NOTHING
        return SummaryBefore(self.whole)(view, size, min(TAIL, limit // 3), meter)


@dataclass
class Clearing:
    """Above a trigger, all results but the newest are cleared, if that frees enough; in need, the oldest goes."""

    target: Target
    trigger: int = 100_000  # tokens, or half of a small window
    keep: int = 3  # results
    least: int = 5_000  # tokens

    def fit(self, view: View, size: int) -> tuple[View, Spent]:
        meter, limit = self.target.meter, self.target.limit.tokens
        if size <= min(self.trigger, limit // 2):
            return view, NOTHING
        nodes, freed = list(view.nodes), 0
        results = [i for i, node in enumerate(nodes) if node.item.kind == "result"]
        for i in results[: -self.keep]:
            item = with_(nodes[i].item, text=CLEARED, wire=None)
            if nodes[i].item.text != CLEARED:
                freed += meter.node(nodes[i]).tokens - meter.item(item).tokens
                nodes[i] = Node(nodes[i].id, view.digests.content(item), item)
        if freed >= self.least:
            view, size = with_(view, nodes=tuple(nodes)), size - freed
        return Dropping(self.target).fit(view, size)


# --- what clew does ---------------------------------------------------------------------------------------------------


@dataclass
class Fixed:
    """clew by its thresholds: above `high` or `start`, down to `low`."""

    target: Target

    def fit(self, view: View, size: int) -> tuple[View, Spent]:
        have = self.target.limit._replace(tokens=size)
        if not self.target.exceeded(have):
            return view, NOTHING
        return run(default()(view, self.target.aim(have))), NOTHING
