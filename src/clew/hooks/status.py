"""The status line of Claude Code: how full its window is, what was folded, and what the session cost."""

from collections.abc import Mapping
from typing import Any

from clew.hooks.pending import DONE, RESULT, lines_of


def status_line(told: Mapping[str, Any]) -> str:
    """One line, of what the client says of itself and what hooks noted in this session."""
    lines = lines_of(told)
    results = [line.split() for line in lines if line.startswith(f"{RESULT} ")]
    saved = sum(int(before) - int(after) for _, before, after in results)
    window, cost = told.get("context_window") or {}, told.get("cost") or {}
    parts = ["clew"]
    size = window.get("context_window_size")
    if (used := window.get("used_percentage")) is not None:
        parts.append(f"{used:.0f}% of {size // 1000}k used" if size else f"{used:.0f}% used")
    if compacted := lines.count(DONE):
        parts.append(f"{compacted} compaction{'s' * (compacted > 1)}")
    if results:
        parts.append(f"{len(results)} large result{'s' * (len(results) > 1)} folded, {saved // 1000}k characters")
    if dollars := cost.get("total_cost_usd"):
        parts.append(f"${dollars:.2f}")
    return " · ".join(parts)
