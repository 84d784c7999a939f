"""Bills as a table, and as a picture: dollars against what is still there when it is needed."""

from collections.abc import Iterator, Sequence
from html import escape
from math import log10

from rich.table import Table

from benchmark.dollars import EARLY, FIXED, Bill, Setting
from benchmark.plot import BOTTOM, COLOURS, HIGH, LEFT, RIGHT, STYLE, TOP, WIDE, Place, apart, line, paper, text

LOWEST = 0.7  # share at which the picture begins


def bill_table(bills: Sequence[Bill]) -> Table:
    """The methods in one setting, a row each."""
    title = str(bills[0].setting)
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("method", no_wrap=True)
    for heading in ("$", "own calls", "compactions", "kept", "bound", "1 call"):
        table.add_column(heading, justify="right", no_wrap=True)
    for bill in bills:
        spent = f"{bill.dollars:,.2f}", f"{bill.helpers:,.2f}" if bill.helpers else "", f"{bill.compactions:,}"
        shares = (f"{share:.3f}" for share in (bill.kept, bill.bound, bill.one_call))
        table.add_row(_name(bill), *spent, *shares, style="bold" if bill.method == EARLY else "")
    return table


def prefix_line(bills: Sequence[Bill]) -> str:
    """Whether the provider's cache had what our edits said it would."""
    ours = [bill for bill in bills if bill.method in (EARLY, FIXED)]
    right, calls = sum(bill.predicted for bill in ours), sum(bill.calls for bill in ours)
    return f"cached prefix as predicted in {right:,} of {calls:,} calls of clew's"


def _name(bill: Bill) -> str:
    return f"{bill.method}, {bill.start // 1000}k" if bill.start else bill.method


def bill_picture(bills: Sequence[Bill]) -> str:
    """A panel a window: a point a method, a line through those of clew with `start`."""
    settings = [s for s in dict.fromkeys(bill.setting for bill in bills) if s == Setting(s.window)]
    wide = max(1, len(settings)) * WIDE
    panels = (
        f'<g transform="translate({n * WIDE} 0)">{_panel([b for b in bills if b.setting == setting])}</g>'
        for n, setting in enumerate(settings)
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {HIGH}" width="{wide}" height="{HIGH}">'
    title = "<title>Needed facts in view against dollars</title>"
    return "\n".join([head, title, f"<style>{STYLE}</style>", paper(wide, HIGH), *panels, "</svg>\n"])


def _panel(bills: Sequence[Bill]) -> str:
    """Axes, a point a method, and its name at the edge."""
    low, high = min(b.dollars for b in bills) * 0.9, max(b.dollars for b in bills) * 1.1
    places = {_name(bill): Place(_across(bill.dollars, low, high), _height(bill.bound)) for bill in bills}
    ours = sorted(places[_name(bill)] for bill in bills if bill.method == EARLY)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in ours)
    curve = f'<polyline class="curve first" stroke="var(--c0)" points="{points}"/>'
    parts = [text(Place(LEFT, 20), str(bills[0].setting), "title"), *_axes(low, high), curve]
    heights, edge = apart(places), WIDE - RIGHT + 10
    for bill in bills:
        name, colour = _name(bill), f"var(--c{_colour(bill, bills)})"
        at, y = places[name], heights[name]
        parts.append(f'<circle cx="{at.x:.1f}" cy="{at.y:.1f}" r="3" fill="{colour}"/>')
        parts.append(line(at, Place(edge - 2, y), "lead", colour))
        parts.append(f'<text class="name" x="{edge}" y="{y + 4:.1f}" style="fill:{colour}">{escape(name)}</text>')
    return "\n".join(parts)


def _axes(low: float, high: float) -> Iterator[str]:
    """Grid, ticks, and what is measured."""
    yield text(Place(LEFT, 35), "share of far needed facts in view, with a word of their context", "soft")
    for share in (0.7, 0.8, 0.9, 1.0):
        y = _height(share)
        yield line(Place(LEFT, y), Place(WIDE - RIGHT, y), "grid")
        yield text(Place(LEFT - 8, y + 4), f"{share:.0%}", "soft", "end")
    for tick in (n * 10.0**power for power in range(-6, 6) for n in (1, 2, 5)):
        if low <= tick <= high:
            yield text(Place(_across(tick, low, high), HIGH - BOTTOM + 16), f"{tick:g}", "soft", "middle")
    yield text(Place((LEFT + WIDE - RIGHT) / 2, HIGH - BOTTOM + 33), "US dollars, all sessions", "soft", "middle")


def _colour(bill: Bill, bills: Sequence[Bill]) -> int:
    """A method has one colour in all its rows."""
    return list(dict.fromkeys(b.method for b in bills)).index(bill.method) % COLOURS


def _across(dollars: float, low: float, high: float) -> float:
    """By the logarithm: who drops the oldest pays many times as much."""
    return LEFT + (WIDE - LEFT - RIGHT) * log10(dollars / low) / log10(high / low)


def _height(share: float) -> float:
    return HIGH - BOTTOM - (HIGH - TOP - BOTTOM) * (max(share, LOWEST) - LOWEST) / (1 - LOWEST)
