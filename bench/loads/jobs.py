"""The scenarios, and what each is told."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STALLS = ("no fold beside", "1M tokens come at once", "1M tokens are added at once", "1M tokens are compacted")
CLIENTS = ("claude-2.1.325", "codex", "opencode")
LONG, MANY = "kept 1x100000", "kept 1000x1000"  # stores that one process fills and another opens
MANY_ITEMS = {"sessions": 1_000, "items": 1_000}


@dataclass(frozen=True)
class Job:
    """One scenario, with what it is told."""

    group: str  # for --only
    name: str
    what: str  # the function
    given: Mapping[str, Any] = field(default_factory=dict)
    place: str = "sqlite"  # or postgres; or kept, with a name; or none


def jobs(turns: int, data: Path | None, full: bool) -> Iterator[Job]:
    """All that is asked for."""
    for kind in ("sqlite", "postgres"):
        for talkers in (1, 64, 512):
            for named in (True, False):
                name = f"{talkers} {_named(named)}, {kind}"
                yield Job("turns", name, "plain.many", {"talkers": talkers, "named": named}, kind)
    for named in (True, False):
        yield Job("large", f"80 of 800 items, {_named(named)}", "plain.long", {"talkers": 80, "named": named})
    for tidy in (False, True):
        for what in STALLS:
            yield Job("stalls", "", "stalls.beside", {"what": what, "tidy": tidy})
    yield Job("stalls", "", "stalls.first")
    for secrets in ("off", "redact"):
        yield Job("stalls", "", "stalls.body", {"secrets": secrets})
    yield from _bodies(CLIENTS if full else CLIENTS[:1])
    for adds in (False, True):
        told = {"turns": turns, "adds": adds}
        yield Job("growth", "additions" if adds else "whole bodies", "lengths.growth", told)
    yield from _stores(data, full)
    for adds in (False, True):
        for processes in (1, 2, 4):
            name = f"{processes} process{'es' * (processes > 1)}, {'additions' if adds else 'requests'}"
            yield Job("processes", name, "plain.crowd", {"processes": processes, "adds": adds})


def _bodies(clients: tuple[str, ...]) -> Iterator[Job]:
    for client in clients:
        for size in ("350 kB", "4 MB"):
            for way in ("bytes", "bytes with spaces", "dicts"):
                given = {"client": client, "size": size, "way": way}
                yield Job("bodies", f"{client}, {size}, {way}", "sizes.turn", given)


def _stores(data: Path | None, full: bool) -> Iterator[Job]:
    yield Job("open", "100,000 items, filled", "lengths.fill", {"sessions": 1, "items": 100_000}, LONG)
    yield Job("open", "100,000 items", "lengths.opened", {}, LONG)
    if full:
        yield Job("search", "1M items, filled", "lengths.fill", MANY_ITEMS, MANY)
        yield Job("search", "1M items", "lengths.searched", {}, MANY)
        yield Job("search", "1M items, postgres", "lengths.fill_and_search", MANY_ITEMS, "postgres")
    yield Job("size", "small items", "plain.size", {}, "none")
    if data:
        yield Job("size", "real sessions", "plain.size", {"data": str(data.resolve())}, "none")


def _named(named: bool) -> str:
    return "named" if named else "unnamed"
