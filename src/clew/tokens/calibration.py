"""What the provider will count where its tokenizer is not ours: learned from the usage it reports.

One tokenizer differs from another mainly in what it makes of digits, of punctuation and of other scripts, one provider
from another in what it wraps around each item. So a correction of our count that is linear in those few traits is
nearly right, and a few reports fit it (recursive least squares). What is hidden in every request of a conversation, its
first report tells.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

_DIGITS = b"0123456789"
_SIGNS = b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_LEADS = bytes(range(0xC0, 0x100))  # the first byte of each character beyond ASCII


class Traits(NamedTuple):
    """What decides how many tokens others count. Additive: those of a request are the sum of its items'."""

    tokens: int = 0  # by our own count, wrapping included
    digits: int = 0
    signs: int = 0
    wide: int = 0  # characters beyond ASCII
    items: int = 0

    def plus(self, other: "Traits") -> "Traits":
        (a, b, c, d, e), (v, w, x, y, z) = self, other
        return Traits(a + v, b + w, c + x, d + y, e + z)

    def less(self, other: "Traits") -> "Traits":
        (a, b, c, d, e), (v, w, x, y, z) = self, other
        return Traits(a - v, b - w, c - x, d - y, e - z)


def traits(text: str, tokens: int) -> Traits:
    """The traits of one item: all its text, and our count of it."""
    data = text.encode("utf-8", "surrogatepass")
    size = len(data)
    digits = size - len(data.translate(None, _DIGITS))
    signs = size - len(data.translate(None, _SIGNS))
    wide = size - len(data.translate(None, _LEADS)) if size > len(text) else 0
    return Traits(tokens, digits, signs, wide, 1)


Vector = tuple[float, ...]


def _squared(deviations: Vector) -> tuple[Vector, ...]:
    """The covariance of independent deviations."""
    return tuple(tuple(d * d if i == j else 0.0 for j in range(len(deviations))) for i, d in enumerate(deviations))


_START: Vector = (1.0, 0.0, 0.0, 0.0, 0.0)  # our own count, as it is
# How far off that may be, as standard deviations per unit of each trait; less where the vocabulary is the model's own.
_DOUBT = _squared((0.3, 0.6, 0.3, 0.6, 20.0))
_DOUBT_EXACT = _squared((0.05, 0.05, 0.05, 0.05, 8.0))
_RETURN = 0.001  # of the first doubt, with each report: what was learned long ago may no longer hold
_NOISE = 4.0  # variance per token that no trait explains, at first
_LEAST_NOISE = 0.5
_PACE = 0.1  # at which the noise is learned
_STEP = 0.25  # the most that one report may change of what is expected
_SURPRISE = 3.0  # and that in standard deviations
_RANGE = (0.4, 4.0)  # tokens per token of ours, whatever was learned
_MARGIN = 2.5  # standard deviations from what is expected to what is hardly exceeded
_HIDDEN = 1000  # tokens that a provider may well add unseen to every request


@dataclass(frozen=True, slots=True)
class Calibration:
    """How one model's count follows from traits, and how sure that is."""

    weights: Vector = _START
    doubt: tuple[Vector, ...] = _DOUBT  # covariance of the weights
    noise: float = _NOISE  # variance per token that no trait explains

    @classmethod
    def fresh(cls, exact: bool) -> "Calibration":
        """Before any report; `exact`: we count with the model's own vocabulary."""
        return cls(doubt=_DOUBT_EXACT if exact else _DOUBT)

    def expected(self, traits: Traits) -> float:
        """How many tokens the provider will count for this."""
        low, high = _RANGE[0] * traits.tokens, _RANGE[1] * traits.tokens
        if low > high:  # of what went
            low, high = high, low
        return min(max(_dot(self.weights, traits), low), high)

    def spread(self, traits: Traits) -> float:
        """The standard deviation of what is expected."""
        return math.sqrt(self._unsure(traits) + self.noise * abs(traits.tokens))

    def upper(self, traits: Traits) -> float:
        """What the provider's count will hardly exceed."""
        return self.expected(traits) + _MARGIN * self.spread(traits)

    def learned(self, traits: Traits, tokens: float) -> "Calibration":
        """What is known after a report that this was so many tokens."""
        if traits.tokens <= 0 or not math.isfinite(tokens):
            return self
        expected, unsure, usual = self.expected(traits), self._unsure(traits), self.noise * traits.tokens
        surprise = tokens - expected
        # A report that would move us further than a step is taken as that much noisier: it also settles less.
        step = min(_STEP * expected, _SURPRISE * math.sqrt(unsure))
        variance = max(unsure + usual, unsure * abs(surprise) / step)
        gains = [_dot(row, traits) for row in self.doubt]
        weights = tuple(w + g * surprise / variance for w, g in zip(self.weights, gains, strict=True))
        doubt = tuple(
            tuple(
                (1 - _RETURN) * (d - g * h / variance) + _RETURN * f for d, h, f in zip(row, gains, first, strict=True)
            )
            for row, g, first in zip(self.doubt, gains, _DOUBT, strict=True)
        )
        odd = min(surprise**2 / (unsure + usual), _SURPRISE**2)
        noise = max(self.noise * (1 + _PACE * (odd - 1)), _LEAST_NOISE)
        return Calibration(weights, doubt, noise)

    def _unsure(self, traits: Traits) -> float:
        """The variance of what is expected as far as the weights are in doubt."""
        return max(_dot([_dot(row, traits) for row in self.doubt], traits), 1e-9)

    def to_json(self) -> dict[str, Any]:
        """As a few numbers, for a store."""
        return {"weights": list(self.weights), "doubt": [list(row) for row in self.doubt], "noise": self.noise}

    @classmethod
    def from_json(cls, value: Any, exact: bool) -> "Calibration":
        """What `to_json` gave; a fresh one from anything else."""
        given = value if isinstance(value, Mapping) else {}
        rows = given.get("doubt")
        weights, doubt = _row(given.get("weights")), tuple(map(_row, rows)) if isinstance(rows, list) else ()
        noise = given.get("noise")
        if weights and _is_doubt(doubt) and isinstance(noise, int | float) and 0 < noise < math.inf:
            return cls(weights, doubt, float(noise))
        return cls.fresh(exact)


class Report(NamedTuple):
    """A provider's count of one request's whole input, cached or not."""

    tokens: float
    traits: Traits

    def then(self, calibration: Calibration, traits: Traits) -> float:
        """How many tokens another request of the same conversation is, if this report is right."""
        return max(self.tokens + calibration.expected(traits.less(self.traits)), 1.0)

    def upper(self, calibration: Calibration, traits: Traits) -> int:
        """What that one will hardly exceed: what triggers should count with."""
        return math.ceil(self.tokens + calibration.upper(traits.less(self.traits)))

    def agrees(self, calibration: Calibration, other: "Report", hidden: int = 0) -> bool:
        """Whether another report of the same conversation can be right, if this one is."""
        expected = self.then(calibration, other.traits)
        spread = calibration.spread(other.traits.less(self.traits))
        factor = 1 + (max(_STEP * expected, _SURPRISE * spread) + hidden) / expected
        return expected / factor <= other.tokens <= expected * factor


@dataclass(frozen=True, slots=True)
class Anchor:
    """What reports prove about one conversation, while its frame and its model stay the same."""

    first: Report | None = None  # of a small request: the best measure of what is hidden in each
    last: Report | None = None  # none after an edit, when much of what it counted is gone
    doubtful: Report | None = None  # newer, and not to be believed unless the next one agrees with it

    def expected(self, calibration: Calibration, traits: Traits) -> float:
        """How many tokens the provider will count for the next request."""
        return self.nearest(calibration, traits).then(calibration, traits)

    def upper(self, calibration: Calibration, traits: Traits) -> int:
        """What the next request will hardly exceed."""
        return self.nearest(calibration, traits).upper(calibration, traits)

    def reported(self, calibration: Calibration, traits: Traits, tokens: float) -> tuple["Anchor", Calibration]:
        """What a report of the request just made proves, and what its difference to the one before teaches."""
        if not (math.isfinite(tokens) and tokens > 0):
            return self, calibration
        report, first, last = Report(tokens, traits), self.first, self.last
        if not self.nearest(calibration, traits).agrees(calibration, report, hidden=0 if first else _HIDDEN):
            if self.doubtful is None or not self.doubtful.agrees(calibration, report):
                return replace(self, doubtful=report), calibration
            first = last = self.doubtful
        if last is not None:
            calibration = calibration.learned(traits.less(last.traits), tokens - last.tokens)
        return Anchor(first or report, report), calibration

    def nearest(self, calibration: Calibration, traits: Traits) -> Report:
        """The report from which to what is sent now it is the shortest way: after an edit, often the first."""
        first, last = self.first, self.last
        if first is None or last is None or first is last:
            return last or first or _NO_REPORT
        near, far = (calibration.spread(traits.less(report.traits)) for report in (last, first))
        return last if near <= far else first


_NO_REPORT = Report(0, Traits())


def _dot(a: Vector | list[float], b: Vector | Traits) -> float:
    # Written out: asked a hundred times a turn, and a loop takes several times as long.
    (p, q, r, s, t), (v, w, x, y, z) = a, b
    return p * v + q * w + r * x + s * y + t * z


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _row(value: Any) -> Vector:
    """A number per trait; empty if it is anything else."""
    if isinstance(value, list) and len(value) == len(_START) and all(map(_is_number, value)):
        return tuple(map(float, value))
    return ()


def _is_doubt(rows: tuple[Vector, ...]) -> bool:
    """Whether this is a covariance, and no wider than at first."""
    if len(rows) != len(_START) or not all(rows):
        return False
    own = [row[i] for i, row in enumerate(rows)]
    if not all(0 < mine <= 1.001 * first[i] for i, (mine, first) in enumerate(zip(own, _DOUBT, strict=True))):
        return False
    n = range(len(rows))
    return all(rows[i][j] == rows[j][i] and rows[i][j] ** 2 <= own[i] * own[j] * 1.001 for i in n for j in n)
