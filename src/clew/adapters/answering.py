"""Calls of clew's own tools, as an adapter answers them."""

from collections.abc import Mapping
from typing import Any

from clew.agent.results import Outcome
from clew.exchange.thread import Thread, warn


async def answered(thread: Thread | None, name: str, given: Mapping[str, Any]) -> Outcome:
    """What one of clew's tools gives back to the agent, even where clew itself fails."""
    try:
        if thread is not None:
            return await thread.answer(name, given)
    except Exception as error:
        warn(f"clew could not answer a call of {name}", error)
    return Outcome("Error: recall is unavailable right now; continue without it", failed=True)
