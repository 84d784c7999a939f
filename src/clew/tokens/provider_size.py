"""How big the view of one branch is: by our own count, and by what its provider will count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from clew.core.items import Frame, Item, Node
from clew.core.limits import Size
from clew.core.view import View, shared_start
from clew.tokens.calibration import Anchor, Calibration, Report, Traits
from clew.tokens.meter import Meter

UNPROVEN = 1.1  # what triggers count with before the first report, where the vocabulary is not the model's own
STEEPEST = 2.5  # tokens of the provider for one of ours: beyond it a report is odd, and a view must not vanish for it
FLATTEST, EXACT = 0.5, 0.9  # and at least: somebody between us and the provider may report only a part
CLOCK = 64  # tokens by which a frame may change and what was proven of it still hold
FRAME_PARTS = 4
_UNTAUGHT = Calibration()
_UNPROVEN = Anchor()


class _Measured(NamedTuple):
    """Nodes and their sum: one value, for hosts may be on several event loops."""

    nodes: tuple[Node, ...] = ()
    size: Size = Size()
    traits: Traits = Traits()
    secrets: bool = False  # some are measured as they are sent


_NOTHING = _Measured()


@dataclass(slots=True)
class ProviderSize:
    """Kept from turn to turn: what was measured last is the start for what is measured next, so a turn costs its news.

    Nodes that hold a secret are measured as they are sent, which is not as they are kept.
    """

    meter: Meter | None = None
    calibration: Calibration = _UNTAUGHT
    anchor: Anchor = _UNPROVEN
    framed: int = 0  # tokens of the last frame
    unmasked: Mapping[str, Item] = field(default_factory=dict)  # by node
    _measured: _Measured = _NOTHING
    _summed: tuple[_Measured, Frame, tuple[Size, Traits]] | None = None  # with a frame
    # What follows from that, an anchor and a calibration: how many tokens of the provider one of ours may at most be,
    # and how many all of them are thought to be. Asked several times a turn, mostly of the same.
    _thought: tuple[tuple[Size, Traits], Anchor, Calibration, tuple[float, int]] | None = None

    def turn(self, meter: Meter, calibration: Calibration, framed: int) -> None:
        """Begin a turn: with another model or other tools, nothing proven so far holds."""
        if meter is not self.meter:
            self.meter, self.anchor, self._measured, self._summed = meter, _UNPROVEN, _NOTHING, None
        elif abs(framed - self.framed) > CLOCK:
            self.anchor = _UNPROVEN
        self.calibration, self.framed = calibration, framed

    @property
    def bytes(self) -> int:
        """What was measured last takes in memory: as JSON, and its frame, of many small parts, several times that."""
        nodes = self._measured.size.bytes
        return nodes + (FRAME_PARTS * (self._summed[2][0].bytes - nodes) if self._summed else 0)

    def unmeasured(self, view: View) -> Sequence[Node]:
        """What `measure` would count, more or less."""
        return view.nodes[shared_start(self._measured.nodes, view.nodes) :]

    def measure(self, view: View) -> tuple[Size, float]:
        """The size by our count, and how many tokens of the provider one of ours may at most be."""
        whole = self._size_of(view)
        return whole[0], self._outlook(whole)[0]

    def expected(self, view: View) -> int:
        """The tokens that the provider will count; what few reports teach of a much larger view is not trusted far."""
        return self._outlook(self._size_of(view))[1]

    def _outlook(self, whole: tuple[Size, Traits]) -> tuple[float, int]:
        known, anchor, calibration = self._thought, self.anchor, self.calibration
        if known is None or known[0] is not whole or known[1] is not anchor or known[2] is not calibration:
            size, traits = whole
            near = anchor.nearest(calibration, traits)
            expected = min(max(near.then(calibration, traits), FLATTEST * size.tokens), STEEPEST * size.tokens)
            outlook = self._rate(near, size, traits), round(expected)
            known = self._thought = whole, anchor, calibration, outlook
        return known[3]

    def _rate(self, near: Report, size: Size, traits: Traits) -> float:
        taught = self.anchor.first is not None or self.calibration.weights != _UNTAUGHT.weights
        if not taught or not size.tokens:
            return 1.0 if self._own.counter.exact else UNPROVEN
        rate = near.upper(self.calibration, traits) / size.tokens
        return min(max(rate, EXACT if self._own.counter.exact else FLATTEST), STEEPEST)

    def prefix(self, before: View, view: View) -> int:
        """How many of them the request before this one began with too: a provider has those in its cache."""
        same = shared_start(before.nodes, view.nodes)
        own = self._own.frame(view.frame).tokens + self._own.nodes(view.nodes[:same]).tokens
        return round(own * self.expected(view) / max(1, self._size_of(view)[0].tokens))

    def report(self, view: View, tokens: int) -> Calibration:
        """The provider counted that many tokens in this view: what is known of its count now."""
        self.anchor, self.calibration = self.anchor.reported(self.calibration, self._size_of(view)[1], tokens)
        return self.calibration

    def recover(self, before: View, tokens: int, predicted: int) -> None:
        """Begin with what the provider counted in a view that was sent while the branch was not in memory.

        What was nearly foreseen is believed: reports that are gone had told what is hidden in each request.
        """
        meter = self._own
        if abs(meter.frame(before.frame).tokens - self.framed) <= CLOCK:
            traits = meter.frame_traits(before.frame).plus(meter.traits(before.nodes))
            report = Report(tokens, traits)
            if Report(predicted, traits).agrees(self.calibration, report):
                self.anchor = Anchor(report, report)
            else:
                self.anchor, _ = self.anchor.reported(self.calibration, traits, tokens)

    @property
    def _own(self) -> Meter:
        assert self.meter is not None, "a turn has begun"
        return self.meter

    def _size_of(self, view: View) -> tuple[Size, Traits]:
        found = self._measured
        if view.nodes is not found.nodes:
            found = self._measured = self._changed(found, view.nodes)
        known = self._summed
        if known is None or known[0] is not found or known[1] is not view.frame:
            of, meter = (found, view.frame), self._own
            size, traits = meter.frame(view.frame).plus(found.size), meter.frame_traits(view.frame).plus(found.traits)
            known = self._summed = *of, (size, traits)
        return known[2]

    def _changed(self, last: _Measured, nodes: tuple[Node, ...]) -> _Measured:
        """The sum of these: that of the last ones, less what went, and what came."""
        if last.secrets or self.unmasked:  # which of them are known unmasked may have changed, too
            return _Measured(nodes, *self._of(nodes), bool(self.unmasked))
        same = shared_start(last.nodes, nodes)
        (gone, lost), (new, more) = self._of(last.nodes[same:]), self._of(nodes[same:])
        return _Measured(nodes, last.size.less(gone).plus(new), last.traits.less(lost).plus(more))

    def _of(self, nodes: Sequence[Node]) -> tuple[Size, Traits]:
        meter = self._own.as_sent(self.unmasked) if self.unmasked else self._own
        return meter.nodes(nodes), meter.traits(nodes)
