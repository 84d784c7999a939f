"""What the benchmark found, as tables that fit 80 columns."""

from rich.table import Table

from benchmark.folds import Folds
from benchmark.judging import Curve
from benchmark.methods import CLEW
from benchmark.suite import Costs, row_of


def curve_table(curve: Curve, goal: float) -> Table:
    """A row a method: what is bound at every size, and more about the size that counts."""
    table = _table(f"{curve.name} · {curve.needs} needed, {curve.far} of them far")
    table.add_column("bound at", no_wrap=True)
    for size in curve.sizes():
        table.add_column(_size(size), justify="right")
    for heading in (f"at {_size(goal)}:", "kept", "1 call", "CPU s"):
        table.add_column(heading, justify="right", no_wrap=True)
    for method in dict.fromkeys(row.method for row in curve.rows):
        bound = [row_of(curve, method, size).bound for size in curve.sizes()]
        row = row_of(curve, method, goal)
        left = f"{row.size:.1%}" if goal <= 1 else f"{row.tokens:,}"
        told = [f"{b:.3f}" for b in bound] + [left, f"{row.kept:.3f}", f"{row.one_call:.3f}", f"{row.cpu:.2f}"]
        table.add_row(method, *told, style="bold" if method == CLEW else "")
    return table


def too_large(curve: Curve) -> list[str]:
    """A line for every method whose results were over the size, which counts as nothing kept."""
    over: dict[str, int] = {}
    for row in curve.rows:
        over[row.method] = over.get(row.method, 0) + row.over
    return [f"{method}: {n} results over the size, counted as nothing kept" for method, n in over.items() if n]


def fold_table(folds: Folds) -> Table:
    """A row a fold."""
    table = _table("folds of one growing session")
    for heading in ("fold", "said", "view", "goal", "facts", "in view", "1 call", "gone", "drifted"):
        table.add_column(heading, justify="right", no_wrap=True)
    for f in folds.rows:
        gone = f.planted - f.in_view - f.recallable
        counts = (f.number, f.said, f.tokens, f.goal, f.planted, f.in_view, f.in_view + f.recallable, gone, f.drifted)
        table.add_row(*(f"{n:,}" for n in counts))
    return table


def cost_table(costs: Costs) -> Table:
    """A row a session."""
    table = _table("CPU of one compaction, beside one count")
    for heading in ("tokens", "to", "CPU s", "counting s", "ratio", "µs a token"):
        table.add_column(heading, justify="right", no_wrap=True)
    for c in costs.rows:
        each = 1e6 * c.seconds / c.tokens
        row = f"{c.tokens:,}", f"{c.goal:,}", f"{c.seconds:.2f}", f"{c.counting:.2f}", f"{c.ratio:.1f}", f"{each:.1f}"
        table.add_row(*row)
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0), pad_edge=False)


def _size(size: float) -> str:
    return f"{size:.0%}" if size <= 1 else f"{size / 1000:g}k"
