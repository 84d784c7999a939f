"""The context status: what an agent is told of its window, at the end of each request and nowhere else."""

import json


def status(used: int, window: int) -> str:
    """How full a window is, in whole numbers."""
    told = {
        "used_pct": min(100, 100 * max(0, used) // window),
        "remaining_tokens": max(0, window - used),
        "context_window": window,
    }
    return f"<context_status>{json.dumps(told, separators=(',', ':'))}</context_status>"
