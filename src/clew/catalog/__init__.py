"""What is known of models by name: how much they read and write, and what that costs.

The snapshot in `models.json.gz` is made by `scripts/refresh_catalog.py`. What is not certain is said to be so.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from clew.catalog import names
from clew.core.unpacking import shipped

__all__ = ["DEFAULT", "Model", "Prices", "lookup", "window"]

DEFAULT = 128_000
_MILLION = 1_000_000
# Siblings of a model that read less than it does and say nothing of their family.
_SPECIAL = frozenset(
    "image audio live tts realtime search transcribe embed omni instruct vision ocr chat gemma instant".split()
)

LimitSource = Literal["given", "learned", "stated", "probed", "catalog", "family", "default"]
CatalogRow = list[Any]  # max_input, max_output, window, prices, tiers; see scripts/refresh_catalog.py
CatalogEntry = tuple[str, CatalogRow]


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million tokens; `tiers` are the prices of requests above so many tokens."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    tiers: tuple[tuple[int, "Prices"], ...] = ()


@dataclass(frozen=True, slots=True)
class Model:
    """A model's limits in tokens; `exact` is False where they are another host's, a relative's or a guess."""

    name: str
    window: int
    max_input: int | None = None
    max_output: int | None = None
    prices: Prices | None = None
    source: LimitSource = "catalog"
    exact: bool = True
    local: bool = False  # on a server of one's own: nothing is paid for a token


def window(model: str) -> int:
    """How many tokens may be sent to a model; `DEFAULT` for one that is not known."""
    known = lookup(model)
    return known.max_input or known.window


@lru_cache(maxsize=1024)
def lookup(model: str, provider: str | None = None) -> Model:
    """What is known of a model, as its provider serves it where that is known."""
    name = names.read(model)
    hosts = _snapshot()
    said = (names.HOSTS.get(provider.lower(), provider.lower()),) if provider else name.hosts
    host = next((h for h in said if provider or h in hosts or h in names.LOCAL or h == "openrouter"), None)
    if name.tagged and host is None:
        host = "ollama"
    found = _catalogued(name, host) or _related(name, host)
    if found is None:
        return Model(name=model, window=DEFAULT, source="default", exact=False)
    return replace(found, window=_MILLION, max_input=_MILLION) if name.long else found


def _catalogued(name: names.ParsedName, host: str | None) -> Model | None:
    """The entry of this name: of the host, else of the vendor, else the least of all hosts."""
    hosts = _snapshot()
    forms = [names.fold(form) for form in name.forms]
    sure = host not in names.LOCAL and not name.tagged
    for form in forms:
        if entry := hosts.get(host or "", {}).get(form):
            return _model(entry, exact=sure)
    for form in forms:
        for vendor in names.vendors(form):
            if entry := hosts.get(vendor, {}).get(form):
                return _model(entry, exact=sure and host in (None, vendor))
    for form in forms:
        if entries := _everywhere().get(form):
            agreed = len({row[0] for _, row in entries}) == 1
            return _model(_least(entries), exact=sure and agreed and host is None)
    return None


def _related(name: names.ParsedName, host: str | None) -> Model | None:
    """The nearest relative: the longest part of the name that is an entry, else those whose names begin alike."""
    for form in reversed(name.forms):
        start = names.family(names.fold(form).removeprefix("ft:"))
        parts = start.split("-") if start else []
        stems = ["-".join(parts[:size]) for size in range(len(parts), 0, -1)]
        for stem in stems:
            # A bare word such as "claude" names the oldest of a family, if anything.
            if "-" in stem and (nearest := _catalogued(names.ParsedName((), (stem,)), host)):
                return replace(nearest, source="family", exact=False)
        for stem in stems:
            if kin := sorted(_kin(stem, host), key=lambda entry: entry[1][0]):
                # Not the least, which is the oldest; yet a guess too low costs less than one too high.
                guess = _model(kin[len(kin) // 4], exact=False)
                return replace(guess, name=stem, prices=None, source="family")
    return None


def _kin(stem: str, host: str | None) -> list[CatalogEntry]:
    """Entries whose name begins so: those of the host, else of the vendor, else all."""
    hosts = _snapshot()
    tables = [hosts[h] for h in (host, *names.vendors(stem)) if h in hosts]
    for table in [*tables, {key: _least(entries) for key, entries in _everywhere().items()}]:
        kin = [entry for key, entry in table.items() if key == stem or key.startswith((f"{stem}-", f"{stem}:"))]
        plain = [entry for entry in kin if not _SPECIAL.intersection(entry[0].split("-"))]
        if plain or kin:
            return plain or kin
    return []


def _least(entries: Iterable[CatalogEntry]) -> CatalogEntry:
    return min(entries, key=lambda entry: entry[1][0])


def _model(entry: CatalogEntry, *, exact: bool) -> Model:
    key, row = entry
    max_input, max_output, whole, flat, tiers = (*row, *[0] * 5)[:5]
    prices = None
    if flat:
        prices = replace(_prices(flat), tiers=tuple((above, _prices(tier)) for above, *tier in tiers or ()))
    own = _spelled().get(key, key)
    return Model(own, whole or max_input, max_input, max_output or None, prices, exact=exact)


def _prices(flat: list[float | None]) -> Prices:
    sent, answered, read, written, written_1h = (*flat, *[None] * 5)[:5]
    return Prices(sent or 0.0, answered or 0.0, read, written, written_1h)


@lru_cache(maxsize=1)
def _file() -> dict[str, Any]:
    """The snapshot as it lies in the package; read when the first name is looked up."""
    packed = Path(__file__).with_name("models.json.gz").read_bytes()
    content: dict[str, Any] = json.loads(shipped(packed))
    return content


def _spelled() -> dict[str, str]:
    """Folded name, the name as its maker spells it."""
    spelled: dict[str, str] = _file()["spelled"]
    return spelled


@lru_cache(maxsize=1)
def _snapshot() -> dict[str, dict[str, CatalogEntry]]:
    """Host, folded name, entry."""
    hosts: dict[str, dict[str, CatalogRow]] = _file()["hosts"]
    return {host: {name: (name, row) for name, row in table.items()} for host, table in hosts.items()}


@lru_cache(maxsize=1)
def _everywhere() -> dict[str, list[CatalogEntry]]:
    """Folded name, the entries of all hosts that do not run on somebody's own machine."""
    found: dict[str, list[CatalogEntry]] = {}
    for host, table in _snapshot().items():
        if host not in names.LOCAL:
            for name, entry in table.items():
                found.setdefault(name, []).append(entry)
    return found
