"""The curves as a picture: needed facts kept, bound, against what is left. SVG by hand, for light and dark pages."""

from collections.abc import Mapping, Sequence
from html import escape
from math import log10
from typing import NamedTuple

from benchmark.judging import Curve, Row

WIDE, HIGH = 460, 320  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 52, 132, 46, 44  # around its axes
GAP = 14  # between two labels at least
COLOURS = 10
STYLE = """
svg { --paper: #ffffff; --ink: #1f2328; --soft: #656d76; --line: #d8dee4;
      --c0: #d1460b; --c1: #57606a; --c2: #0969da; --c3: #1a7f37;
      --c4: #8250df; --c5: #9a6700; --c6: #bf3989; --c7: #0f766e;
      --c8: #7c5c3e; --c9: #3b5bdb }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #e6edf3; --soft: #9198a1; --line: #30363d;
        --c0: #ff8a4c; --c1: #9198a1; --c2: #58a6ff; --c3: #3fb950;
        --c4: #bc8cff; --c5: #d8a430; --c6: #f778ba; --c7: #2dd4bf;
        --c8: #c9a27e; --c9: #91a7ff }
}
text { font: 12px system-ui, sans-serif; fill: var(--ink) }
.title { font-weight: 600; font-size: 13px } .soft { fill: var(--soft); font-size: 11px }
.grid { stroke: var(--line) } .curve { fill: none; stroke-width: 1.6; stroke-linejoin: round }
.first { stroke-width: 3.2 } .lead { stroke-width: 0.8; stroke-dasharray: 1 3 } .name { font-size: 11.5px }
"""


class Place(NamedTuple):
    """A point of the picture."""

    x: float
    y: float


def picture(curves: Sequence[Curve]) -> str:
    """All curves that have more than one size, two panels a row."""
    drawn = [c for c in curves if len(c.sizes()) > 1]
    names = list(dict.fromkeys(row.method for c in drawn for row in c.rows))
    across = min(2, max(1, len(drawn)))
    wide, high = across * WIDE, -(-len(drawn) // across) * HIGH
    panels = [
        f'<g transform="translate({n % across * WIDE} {n // across * HIGH})">{_panel(c, names)}</g>'
        for n, c in enumerate(drawn)
    ]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}">'
    title = "<title>Needed facts kept against tokens left</title>"
    return "\n".join([head, title, f"<style>{STYLE}</style>", paper(wide, high), *panels, "</svg>\n"])


def paper(wide: int, high: int) -> str:
    """The ground of a picture."""
    return f'<rect width="{wide}" height="{high}" fill="var(--paper)"/>'


def _panel(curve: Curve, names: Sequence[str]) -> str:
    """Axes, a line a method, and its name at the end of the line."""
    axis = _Axis(curve)
    lines = {name: [row for row in curve.rows if row.method == name] for name in names}
    lines = {name: sorted(rows, key=axis.of) for name, rows in lines.items() if rows}
    ends = {name: axis.place(rows[-1]) for name, rows in lines.items()}
    parts = [text(Place(LEFT, 20), curve.name, "title"), text(Place(LEFT, 35), axis.needs(), "soft"), axis.drawn()]
    for name in reversed(lines):  # the first one on top
        colour = f"var(--c{names.index(name) % COLOURS})"
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(axis.place, lines[name]))
        first = " first" if name == names[0] else ""
        parts.append(f'<polyline class="curve{first}" stroke="{colour}" points="{points}"/>')
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.4" fill="{colour}"/>' for x, y in map(axis.place, lines[name])
        ]
    for name, y in apart(ends).items():
        colour = f"var(--c{names.index(name) % COLOURS})"
        edge, end = WIDE - RIGHT + 10, ends[name]
        parts.append(line(end, Place(edge - 2, y), "lead", colour))
        weight = ";font-weight:700" if name == names[0] else ""
        parts.append(
            f'<text class="name" x="{edge}" y="{y + 4:.1f}" style="fill:{colour}{weight}">{escape(name)}</text>'
        )
    return "\n".join(parts)


class _Axis:
    """Where a row stands in a panel: sizes by their logarithm, facts from none to all."""

    def __init__(self, curve: Curve) -> None:
        self.curve = curve
        self.ticks = curve.sizes()
        self.share = self.ticks[-1] <= 1
        found = [self.of(row) for row in curve.rows if self.of(row) > 0]
        self.low, self.high = min(*self.ticks, *found), max(*self.ticks, *found)

    def of(self, row: Row) -> float:
        return row.size if self.share else row.tokens

    def place(self, row: Row) -> Place:
        return Place(self._x(self.of(row)), self._y(row.bound))

    def needs(self) -> str:
        if not self.curve.far:
            return f"share of {self.curve.needs} facts in view"
        return f"share of {self.curve.far} needed facts in view, with a word of their context"

    def drawn(self) -> str:
        """Grid, ticks, and what is measured."""
        parts = []
        for tenth in (0, 0.25, 0.5, 0.75, 1):
            y = self._y(tenth)
            parts.append(line(Place(LEFT, y), Place(WIDE - RIGHT, y), "grid"))
            parts.append(text(Place(LEFT - 8, y + 4), f"{tenth:.0%}", "soft", "end"))
        for tick in self.ticks:
            told = f"{tick:.0%}" if self.share else f"{tick / 1000:,.0f}k"
            parts.append(text(Place(self._x(tick), HIGH - BOTTOM + 16), told, "soft", "middle"))
        unit = "size of the view, share of the history" if self.share else "tokens in view"
        parts.append(text(Place((LEFT + WIDE - RIGHT) / 2, HIGH - BOTTOM + 33), unit, "soft", "middle"))
        return "\n".join(parts)

    def _x(self, size: float) -> float:
        size = max(size, self.low)
        return LEFT + 8 + (WIDE - LEFT - RIGHT - 16) * log10(size / self.low) / max(log10(self.high / self.low), 1e-9)

    def _y(self, share: float) -> float:
        return HIGH - BOTTOM - (HIGH - TOP - BOTTOM) * share


def apart(ends: Mapping[str, Place], high: int = HIGH) -> dict[str, float]:
    """Heights for the labels: as near to the ends of their lines as they can be, and none over another."""
    stacks: list[list[str]] = []
    for name in sorted(ends, key=lambda name: ends[name].y):
        stacks.append([name])
        while len(stacks) > 1 and _top(stacks[-2], ends, high) + GAP * len(stacks[-2]) > _top(stacks[-1], ends, high):
            stacks[-2:] = [stacks[-2] + stacks[-1]]
    return {name: _top(stack, ends, high) + GAP * n for stack in stacks for n, name in enumerate(stack)}


def _top(stack: Sequence[str], ends: Mapping[str, Place], high: int) -> float:
    """Where a stack of labels begins, so that its middle is that of its lines."""
    middle = sum(ends[name].y for name in stack) / len(stack)
    tall = GAP * (len(stack) - 1)
    return min(max(middle - tall / 2, TOP), high - BOTTOM - tall)


def line(start: Place, stop: Place, kind: str, colour: str = "") -> str:
    """A straight line of some kind."""
    stroke = f' stroke="{colour}"' if colour else ""
    return f'<line class="{kind}" x1="{start.x:.1f}" y1="{start.y:.1f}" x2="{stop.x:.1f}" y2="{stop.y:.1f}"{stroke}/>'


def text(at: Place, said: str, kind: str, anchor: str = "start") -> str:
    """Words at a place."""
    return f'<text class="{kind}" x="{at.x:.1f}" y="{at.y:.1f}" text-anchor="{anchor}">{escape(said)}</text>'
