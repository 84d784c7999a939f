"""Methods as a picture: dollars against what is still in view when it is needed."""

from collections.abc import Iterator, Sequence
from html import escape
from math import floor, log10
from typing import NamedTuple

from benchmark.plot import BOTTOM, COLOURS, LEFT, STYLE, TOP, Place, apart, line, paper, text

WIDE, HIGH = 720, 440
RIGHT = 160  # for the names


class Point(NamedTuple):
    """A method: what it cost, and the share of what was needed that was in view."""

    method: str
    dollars: float
    share: float


def bill_picture(points: Sequence[Point], ours: Sequence[str]) -> str:
    """A point a method, and its name at the edge; methods of one package have one colour."""
    low, high = min(p.dollars for p in points) * 0.9, max(p.dollars for p in points) * 1.1
    least = floor(10 * min(p.share for p in points)) / 10
    places = {p.method: Place(_across(p.dollars, low, high), _height(p.share, least)) for p in points}
    packages = list(dict.fromkeys(_package(p.method) for p in points if p.method not in ours))
    heights, edge = apart(places, HIGH), WIDE - RIGHT + 10
    parts = list(_axes(low, high, least))
    for method, at in places.items():
        first = method in ours
        colour = "var(--c0)" if first else f"var(--c{1 + packages.index(_package(method)) % (COLOURS - 1)})"
        weight = ";font-weight:700" if first else ""
        parts.append(line(at, Place(edge - 2, heights[method]), "lead", colour))
        parts.append(f'<circle cx="{at.x:.1f}" cy="{at.y:.1f}" r="{5 if first else 3.5}" fill="{colour}"/>')
        style = f'style="fill:{colour}{weight}"'
        parts.append(f'<text class="name" x="{edge}" y="{heights[method] + 4:.1f}" {style}>{escape(method)}</text>')
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" height="{HIGH}">'
    title = "<title>Needed facts in view against dollars</title>"
    return "\n".join([head, title, f"<style>{STYLE}</style>", paper(WIDE, HIGH), *parts, "</svg>\n"])


def _package(method: str) -> str:
    return method.split()[0]


def _axes(low: float, high: float, least: float) -> Iterator[str]:
    """Grid, ticks, and what is measured."""
    yield text(Place(LEFT, 20), "Needed facts in view against dollars", "title")
    yield text(Place(LEFT, 35), "left is cheaper, up is more in view", "soft")
    for tenth in range(round(10 * least), 11):
        share, y = tenth / 10, _height(tenth / 10, least)
        yield line(Place(LEFT, y), Place(WIDE - RIGHT, y), "grid")
        yield text(Place(LEFT - 8, y + 4), f"{share:.0%}", "soft", "end")
    for tick in (n * 10.0**power for power in range(-6, 6) for n in (1, 1.5, 2, 3, 5, 7)):
        if low <= tick <= high:
            yield text(Place(_across(tick, low, high), HIGH - BOTTOM + 16), f"{tick:g}", "soft", "middle")
    yield text(Place((LEFT + WIDE - RIGHT) / 2, HIGH - BOTTOM + 33), "US dollars, all sessions", "soft", "middle")


def _across(dollars: float, low: float, high: float) -> float:
    """By the logarithm: who drops the oldest pays many times as much."""
    return LEFT + (WIDE - LEFT - RIGHT) * log10(dollars / low) / log10(high / low)


def _height(share: float, least: float) -> float:
    return HIGH - BOTTOM - (HIGH - TOP - BOTTOM) * (share - least) / max(1 - least, 0.1)
