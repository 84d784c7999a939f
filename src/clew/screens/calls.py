"""What `clew calls` shows."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from clew.screens.lines import line
from clew.sessions.bill import CallBill


def bills(console: Console, rows: Sequence[CallBill]) -> None:
    """Calls in a table, and their sum: thought, then reported."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("call", "tokens", "limit", "reported", "cached", "reported", "cost", "reported"):
        table.add_column(title, justify="right")
    for bill in rows:
        shadow = "" if bill.shadow is None else f"  would be {bill.shadow['tokens_after']:,}"
        pairs = ((bill.tokens, bill.input), (bill.cached, bill.cache_read))
        counts = [_told(n, ",d") for pair in pairs for n in pair]
        counts.insert(1, f"{bill.limit:,}")
        table.add_row(f"{bill.number}{shadow}", *counts, _told(bill.foretold, ".4f"), _told(bill.cost, ".4f"))
    console.print(table)
    thought, paid = (sum(filter(None, costs)) for costs in zip(*((b.foretold, b.cost) for b in rows), strict=True))
    line(console, f"{len(rows):,} calls · {thought:.4f} dollars foretold · {paid:.4f} reported", "bold")


def _told(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
