"""Tables of figures in docs, from the JSON in bench/results: python bench/figures.py writes them anew."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = (
    ROOT / "bench" / "README.md",
    ROOT / "docs" / "stores.md",
    ROOT / "docs" / "batch.md",
    ROOT / "docs" / "audit.md",
    ROOT / "docs" / "configuration.md",
)
RESULTS = ROOT / "bench" / "results"
PLACE = re.compile(r"(<!-- figures: (\w+) -->\n\n).*?(\n\n<!-- end of figures -->)", re.DOTALL)


def scale(result: Mapping[str, Any]) -> list[str]:
    """A large store beside a small one."""
    given = result["settings"]
    sizes = [f"{given[f'{name}_items']:,} items" for name in ("small", "large")]
    rows = [f"| | {sizes[0]}, ms | {sizes[1]}, ms | ratio | ratio of blocks |", "|---|---|---|---|---|"]
    for what, f in result["figures"].items():
        blocks = f"{f['blocks_ratio']:.2f}" if "blocks_ratio" in f else ""
        rows.append(f"| {what} | {f['small_ms']:,.0f} | {f['large_ms']:,.0f} | {f['ratio']:.2f} | {blocks} |")
    server, gigabytes = given["server"].split()[0], given["large_bytes"] / 1e9
    made = f"Made {result['made']} with PostgreSQL {server}. The large store takes {gigabytes:.1f} GB"
    filled = f"and was filled in {given['large_filled_seconds'] / 60:.0f} minutes"
    rows += ["", f"{made} {filled}. Medians of {given['rounds']} rounds, and of {given['purges']} purges of each kind."]
    return rows


def scale_sqlite(result: Mapping[str, Any]) -> list[str]:
    """A large file beside a small one."""
    given = result["settings"]
    sizes = [f"{given[f'{name}_items']:,} items" for name in ("small", "large")]
    rows = [f"| | {sizes[0]}, ms | {sizes[1]}, ms | ratio |", "|---|---|---|---|"]
    for what, f in result["figures"].items():
        rows.append(f"| {what} | {f['small_ms']:,.1f} | {f['large_ms']:,.1f} | {f['ratio']:.2f} |")
    files = f"The files take {given['small_bytes'] / 1e6:,.0f} and {given['large_bytes'] / 1e6:,.0f} MB"
    rounds = f"Medians of {given['rounds']} rounds, and of {given['purges']} purges"
    return [*rows, "", f"Made {result['made']}. {files}. {rounds}."]


def backups(result: Mapping[str, Any]) -> list[str]:
    """Backups of both kinds of store."""
    rows = ["| | seconds | MB |", "|---|---|---|"]
    for what, f in result["figures"].items():
        size = f"{f['bytes'] / 1e6:,.0f}" if "bytes" in f else ""
        rows.append(f"| {what} | {f.get('seconds', '')} | {size} |")
    return [
        *rows,
        "",
        f"Made {result['made']}, on a busy machine, with {result['settings']['items']:,} items in each store.",
    ]


def audit(result: Mapping[str, Any]) -> list[str]:
    """What compactions kept, counted in two ways, beside what somebody published."""
    rows = ["| | `clew audit` | of | their way | of | published | of |", "|---|---|---|---|---|---|---|"]
    kinds = result["kinds"]
    for kind, title in (
        ("decisions", "decisions"),
        ("paths", "file paths"),
        ("commands", "commands"),
        ("numbers", "numbers"),
    ):
        f = kinds[kind]
        told = [f"{_share(f[way])} | {f[way]['of']:,}" for way in ("clew_audit", "their_way")]
        rows.append(f"| {title} | {' | '.join(told)} | {f['published']['share']} | {f['published']['of']:,} |")
    loose, close = (_share(kinds["decisions"][way]) for way in ("their_way_by_chance", "by_chance"))
    return [
        *rows,
        "",
        f"Made {result['made']}: {result['compactions']} compactions in {result['sessions']} sessions of Claude Code.",
        f"By chance, decisions found in the summary of another session: {loose} their way, {close} ours.",
        f"Rules found there our way: {_share(kinds['rules']['by_chance'])}.",
    ]


def _share(counted: Mapping[str, int]) -> str:
    return f"{counted['kept'] / counted['of']:.1%}"


def batch_costs(result: Mapping[str, Any]) -> list[str]:
    """What each act costs on real sessions."""
    every = result["real"]
    rows = ["| | CPU seconds per MB | written per MB read |", "|---|---|---|"]
    rows += [
        f"| {act} | {f['cpu_seconds'] / _mb(f):.2f} | {_written_share(f) * 1000:.0f} KB |" for act, f in _acts(every)
    ]
    one = every["compress"]
    size = f"{one['conversations']} real sessions of {_mb(one):.1f} MB, read by one process"
    memory = max(f["worker_bytes"] for f in every.values()) / 1e6
    return [
        *rows,
        "",
        f"Made {one['made']}: {size}, which had at most {memory:,.0f} MB in memory. {_load(every.values())}",
    ]


def batch_runs(result: Mapping[str, Any]) -> list[str]:
    """A made-up archive through a pool of processes."""
    rows = ["| | seconds | conversations per second | CPU seconds | command, MB | a worker, MB | load | digest |"]
    rows += ["|---|---|---|---|---|---|---|---|"]
    for name, f in sorted(result["made"].items()):
        rate, (first, last) = f["conversations"] / f["seconds"], f["load"]
        memory = f"{f['parent_bytes'] / 1e6:,.0f} | {f['worker_bytes'] / 1e6:,.0f}"
        times = f"{f['seconds']:,.0f} | {rate:,.0f} | {f['cpu_seconds']:,.0f}"
        rows.append(f"| {name} | {times} | {memory} | {first:.0f} to {last:.0f} | {f['digest'][:8]} |")
    return rows


def _acts(figures: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    return [(act, figures[act]) for act in ("search", "compress")]


def _mb(figures: Mapping[str, Any]) -> float:
    return float(figures["bytes_in"] / 1e6)


def _written_share(figures: Mapping[str, Any]) -> float:
    return float(figures["bytes_out"] / figures["bytes_in"])


def redaction(result: Mapping[str, Any]) -> list[str]:
    """What is taken for a secret, and what is missed, by policy."""
    found, missed = result["found"], result["missed"]
    keys, redact = (found["policies"][policy] for policy in ("keys", "redact"))
    rows = ["| | `keys` | `redact` |", "|---|---|---|"]
    rows.append(f"| found in these conversations | {keys['found']} | {redact['found']} |")
    for title, sort in (
        ("keys with a form of their own", "known by themselves"),
        ("random values behind a name", "random, behind a name"),
        ("random passwords", "random, as a password"),
        ("chosen passwords", "chosen by a person"),
    ):
        f = missed[sort]
        rows.append(f"| missed, of {f['planted']:,} made-up {title} | {f['keys']:,} | {f['redact']:,} |")
    rows.append(f"| ms of CPU for a new MB of text | {keys['ms_per_mb']} | {redact['ms_per_mb']} |")
    size = f"{found['items']:,} messages, calls and results, {found['mb']:,.0f} MB"
    return [*rows, "", f"Made {result['made']}, on a busy machine: {size}."]


def _load(every: Iterable[Mapping[str, Any]]) -> str:
    loads = [load for figures in every for load in figures["load"]]
    return f"Other work ran on the two cores: the load was {min(loads):.0f} to {max(loads):.0f}."


TABLES = {
    "scale": ("scale", scale),
    "scale_sqlite": ("scale_sqlite", scale_sqlite),
    "backups": ("backups", backups),
    "audit": ("audit", audit),
    "batch_costs": ("batch", batch_costs),
    "batch_runs": ("batch", batch_runs),
    "redaction": ("redaction", redaction),
}


def written(page: str) -> str:
    """The page with the figures of today."""

    def fill(found: re.Match[str]) -> str:
        name, table = TABLES[found[2]]
        result = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
        return found[1] + "\n".join(table(result)) + found[3]

    return PLACE.sub(fill, page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
