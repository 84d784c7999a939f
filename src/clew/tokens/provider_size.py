"""How big the view of one branch is: by our own count, and by what its provider will count."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from clew.core.items import Node
from clew.core.view import View
from clew.tokens.budget import Meter, Size
from clew.tokens.calibration import Anchor, Calibration, Traits

UNPROVEN = 1.1  # what triggers count with before the first report, where the vocabulary is not the model's own
STEEPEST = 2.5  # tokens of the provider for one of ours: beyond it a report is odd, and a view must not vanish for it
FLATTEST, EXACT = 0.5, 0.9  # and at least: somebody between us and the provider may report only a part
CLOCK = 64  # tokens by which a frame may change and what was proven of it still hold
_UNTAUGHT = Calibration()
_UNPROVEN = Anchor()


@dataclass(slots=True)
class Scale:
    """Kept from turn to turn, so that a turn costs what is new."""

    meter: Meter | None = None
    calibration: Calibration = _UNTAUGHT
    anchor: Anchor = _UNPROVEN
    framed: int = 0  # tokens of the last frame
    _nodes: tuple[Size, Traits] | None = None  # of all nodes that are in view

    def turn(self, meter: Meter, calibration: Calibration, framed: int) -> None:
        """Begin a turn: with another model or other tools, nothing proven so far holds."""
        if meter is not self.meter:
            self.meter, self.anchor, self._nodes = meter, _UNPROVEN, None
        elif abs(framed - self.framed) > CLOCK:
            self.anchor = _UNPROVEN
        self.calibration, self.framed = calibration, framed

    def grow(self, nodes: Sequence[Node]) -> None:
        """These nodes come after those in view."""
        if self._nodes is not None and self.meter is not None:
            size, traits = self._nodes
            self._nodes = size.plus(self.meter.nodes(nodes)), traits.plus(self.meter.traits(nodes))

    def edit(self) -> None:
        """What is in view changed otherwise; the reports of what it was still say what is hidden beside it."""
        self._nodes = None

    def measure(self, view: View) -> tuple[Size, float]:
        """The size by our count, and how many tokens of the provider one of ours may at most be."""
        size, traits = self._whole(view)
        taught = self.anchor.first is not None or self.calibration.weights != _UNTAUGHT.weights
        if not taught or not size.tokens:
            return size, 1.0 if self._own.counter.exact else UNPROVEN
        rate = self.anchor.upper(self.calibration, traits) / size.tokens
        return size, min(max(rate, EXACT if self._own.counter.exact else FLATTEST), STEEPEST)

    def expected(self, view: View) -> int:
        """The tokens that the provider will count; what few reports teach of a much larger view is not trusted far."""
        size, traits = self._whole(view)
        thought = self.anchor.expected(self.calibration, traits)
        return round(min(max(thought, FLATTEST * size.tokens), STEEPEST * size.tokens))

    def prefix(self, before: View, view: View) -> int:
        """How many of them the request before this one began with too: a provider has those in its cache."""
        same = sum(
            1 for _ in takewhile(lambda pair: pair[0].id == pair[1].id, zip(before.nodes, view.nodes, strict=False))
        )
        own = self._own.frame(view.frame).tokens + self._own.nodes(view.nodes[:same]).tokens
        return round(own * self.expected(view) / max(1, self._whole(view)[0].tokens))

    def report(self, view: View, tokens: int) -> Calibration:
        """The provider counted that many tokens in this view: what is known of its count now."""
        self.anchor, self.calibration = self.anchor.reported(self.calibration, self._whole(view)[1], tokens)
        return self.calibration

    def recover(self, before: View, tokens: int) -> None:
        """Begin with what the provider counted in a view that was sent while the branch was not in memory."""
        meter = self._own
        if abs(meter.frame(before.frame).tokens - self.framed) <= CLOCK:
            traits = meter.frame_traits(before.frame).plus(meter.traits(before.nodes))
            self.anchor, _ = self.anchor.reported(self.calibration, traits, tokens)

    @property
    def _own(self) -> Meter:
        assert self.meter is not None, "a turn has begun"
        return self.meter

    def _whole(self, view: View) -> tuple[Size, Traits]:
        meter = self._own
        if self._nodes is None:
            self._nodes = meter.nodes(view.nodes), meter.traits(view.nodes)
        size, traits = self._nodes
        return meter.frame(view.frame).plus(size), meter.frame_traits(view.frame).plus(traits)
