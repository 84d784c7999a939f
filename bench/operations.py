"""The tables of docs/operations.md, from the figures in bench/results: python bench/operations.py writes them anew."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "operations.md"
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


def partitions(result: Mapping[str, Any]) -> list[str]:
    """A store as it is beside one in partitions."""
    rows = ["| | as it is, ms | 16 partitions, ms | ratio |", "|---|---|---|---|"]
    for what, f in result["figures"].items():
        rows.append(f"| {what} | {f['plain_ms']:,.0f} | {f['parts_ms']:,.0f} | {f['ratio']:.2f} |")
    given = result["settings"]
    rounds = f"Medians of {given['rounds']} rounds, and of {given['purges']} purges"
    return [*rows, "", f"Made {result['made']}, in a store of {given['items']:,} items. {rounds}."]


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


TABLES = {"scale": scale, "scale_sqlite": scale_sqlite, "partitions": partitions, "backups": backups}


def written(page: str) -> str:
    """The page with the figures of today."""

    def fill(found: re.Match[str]) -> str:
        result = json.loads((RESULTS / f"{found[2]}.json").read_text(encoding="utf-8"))
        return found[1] + "\n".join(TABLES[found[2]](result)) + found[3]

    return PLACE.sub(fill, page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
