"""What `clew sessions --totals` shows."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from clew.screens.lines import called, count, dollars, line, table, words
from clew.sessions.totals import Totals
from clew.store.records import Session

LARGEST_SHOWN = 5


def stats(console: Console, found: Totals, largest: Sequence[Sequence[Session]]) -> None:
    """Sums, and which conversations they are mostly made of."""
    rows = [
        ("conversations", f"{found.conversations:,} in {count(found.sessions, 'session')}"),
        ("compactions", f"{found.compactions:,}{f', {found.undone:,} of them undone' if found.undone else ''}"),
        *([("chapters", f"by {written_by(found)}")] if found.authors else ()),
        ("said", f"{found.said:,} tokens"),
        ("sent in all", f"{found.sent:,} tokens in {count(found.calls, 'call')}"),
        ("sending everything", f"{found.everything:,} tokens"),
        ("saved", f"{found.saved:.0%}"),
    ]
    if found.input or found.output:
        rows.append(("reported", f"{found.input:,} in ({found.cached:,} cached), {found.output:,} out"))
    if found.cost:
        rows.append(("paid", f"{dollars(found.cost)}, where the provider reported it"))
    rows += [(name, f"{dollars(amount)}{f', {about}' if about else ''}") for name, amount, about in found.bill]
    grid = Table.grid(padding=(0, 2))
    for row in rows:
        grid.add_row(*row)
    console.print(grid)
    if len(largest) > 1:
        _largest(console, largest)


def written_by(found: Totals) -> str:
    """Who wrote the chapters, and how many."""
    return ", ".join(f"{words(who, 40)} ({n:,})" for who, n in found.authors.most_common())


def _largest(console: Console, chains: Iterable[Sequence[Session]]) -> None:
    line(console, "")
    shown = table("largest", "sessions", "calls", "sent", "cost")
    for chain in chains:
        calls, sent = (sum(getattr(s, name) for s in chain) for name in ("calls", "sent"))
        paid = dollars(sum(s.cost for s in chain))
        shown.add_row(Text(called(chain[0])), f"{len(chain):,}", f"{calls:,}", f"{sent:,}", paid)
    console.print(shown)


def as_json(found: Totals, largest: Sequence[Sequence[Session]]) -> dict[str, Any]:
    """The same, for a program."""
    named = [{"session": called(chain[0]), "sent": sum(s.sent for s in chain)} for chain in largest]
    return asdict(found) | {"authors": dict(found.authors), "saved": found.saved, "largest": named}


def largest(sessions: Iterable[Session]) -> list[list[Session]]:
    """The branches on which most was sent."""
    chains: dict[str, list[Session]] = {}
    for session in sessions:
        chains.setdefault(session.branch, []).append(session)
    return sorted(chains.values(), key=lambda chain: -sum(s.sent for s in chain))[:LARGEST_SHOWN]
