"""PraisonAI: the strategies of `ContextCompactor`, each with what it has as a default; SMART is SLIDING."""

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from packages.standin import summary_of


class Compacting:
    """A strategy, and what its agent does when a provider still refuses."""

    def __init__(self, strategy: str, window: int) -> None:
        lib = import_module("praisonaiagents.compaction")
        named = lib.CompactionStrategy(strategy)
        self._window = window
        self._compactor = lib.ContextCompactor(
            max_tokens=window, strategy=named, llm_summarize_fn=_copied, message_formatter=Written()
        )

    def fit(self, messages: Sequence[Any]) -> list[Any]:
        found: list[Any] = self._compactor.compact([{**m, "content": m.get("content") or ""} for m in messages])[0]
        if self._compactor.count_total_tokens(found) > self._window:
            found = self._compactor.shrink_to_fit(found, int(self._window * 0.75))
        return found


class Written:
    """Messages as text, for whoever writes the summary."""

    def format_for_summary(self, messages: Sequence[Any]) -> str:
        return "\n".join(f"{m['role']}: {m.get('content') or ''}" for m in messages)


async def _copied(prompt: str) -> str:
    before, former, new = prompt.partition("[Previous Summary]: ")
    former, _, new = new.partition("\n[New Activity to Add]:") if former else ("", "", before)
    return summary_of(new, former)


STRATEGIES = ("truncate", "sliding", "summarize", "prune", "llm_summarize")
WAYS: dict[str, Callable[[int], Compacting]] = {name: partial(Compacting, name) for name in STRATEGIES}
