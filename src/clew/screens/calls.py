"""What `clew show --calls` shows."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from clew.engine.due import RULES
from clew.screens.lines import count, line
from clew.sessions.bill import CallBill
from clew.store.records import Call


def bills(console: Console, rows: Sequence[CallBill]) -> None:
    """Calls in a table, and their sum: thought, then reported."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("call", "tokens", "limit", "reported", "cached", "reported", "cost", "reported"):
        table.add_column(title, justify="right")
    for bill in rows:
        shadow = "" if bill.shadow is None else f"  would be {bill.shadow['tokens_after']:,}"
        pairs = ((bill.tokens, bill.input), (bill.cached, bill.cache_read))
        counts = [_formatted(n, ",d") for pair in pairs for n in pair]
        counts.insert(1, f"{bill.limit:,}")
        table.add_row(
            f"{bill.number}{shadow}", *counts, _formatted(bill.estimated, ".4f"), _formatted(bill.cost, ".4f")
        )
    console.print(table)
    thought, paid = (sum(filter(None, costs)) for costs in zip(*((b.estimated, b.cost) for b in rows), strict=True))
    line(console, f"{len(rows):,} calls · {thought:.4f} dollars foretold · {paid:.4f} reported", "bold")


def decided(call: Call) -> str:
    """Why there was a compaction before a call, or none, in words."""
    noted = call.due or {}
    rule = next((rule for rule in RULES if rule.why == noted.get("why")), None)
    if rule is None:
        return ""
    told = f"Compact? {rule.then[0].upper()}{rule.then[1:]}: {rule.when}."
    if "calls" not in noted:
        return told
    return (
        f"{told} Foretold: {noted['before']:,} → {noted['after']:,} tokens, of which {noted['kept']:,} stay in the "
        f"provider's cache; there were {count(noted['calls'], 'call')} since the last compaction."
    )


def _formatted(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
