"""The context status: what an agent is told of its window, at the end of each request and nowhere else."""

import json

from clew.engine.cue import Cue
from clew.tokens.target import Filled


def status(filled: Filled, cue: Cue = Cue()) -> str:  # noqa: B008
    """How full a window is, in whole numbers; and from where on to act, if the user's word comes too late."""
    told: dict[str, int | str] = {
        "used_pct": filled.percent,
        "remaining_tokens": filled.left,
        "context_window": filled.window,
    }
    if (heeded := cue.heeded(filled)) != cue:
        late = f"{cue.percent}%" if cue.tokens is None else f"{cue.tokens:,} tokens"
        told["note"] = f"{late} is too late here: act when used_pct >= {heeded.percent}"
    return f"<context_status>{json.dumps(told, separators=(',', ':'))}</context_status>"
