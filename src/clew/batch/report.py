"""Tables over the results, and the results as Parquet: DuckDB reads them, whatever their size."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from clew.batch.folder import BatchFolder
from clew.errors import BadRequest, MissingExtra

try:
    import duckdb
except ImportError:
    raise MissingExtra("reports and Parquet need DuckDB: pip install 'clew[duckdb]'") from None

# What a record has, by act: what differs from conversation to conversation is JSON.
SHARED_COLUMNS: Mapping[str, str] = {
    "id": "varchar",
    "source": "varchar",
    "position": "varchar",
    "bytes": "bigint",
    "agent": "varchar",
    "session": "varchar",
    "model": "varchar",
    "format": "varchar",
    "said": "bigint",
}
SIZE_COLUMNS: Mapping[str, str] = {
    "tokens_before": "bigint",
    "tokens_after": "bigint",
    "exact": "boolean",
    "edits": "bigint",
    "broken_rules": "varchar[]",
}
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "compress": {**SHARED_COLUMNS, **SIZE_COLUMNS, "recall": "json", "messages": "json", "frame": "json"},
    "score": {
        **SHARED_COLUMNS,
        **SIZE_COLUMNS,
        "facts_before": "bigint",
        "facts_kept": "bigint",
        "facts": "json",
        "lost": "json",
    },
    "audit": {**SHARED_COLUMNS, "compactions": "json"},
    "search": {**SHARED_COLUMNS, "hits": "bigint", "found": "json"},
}
LARGEST_RECORD = 1 << 30  # bytes
PARQUET = "records.parquet"


class ReportTable(NamedTuple):
    """An answer."""

    title: str
    columns: list[str]
    rows: list[tuple[Any, ...]]


def report(out: Path) -> list[ReportTable]:
    """The tables for the act whose results are in a folder."""
    with _opened(out) as (db, act):
        return [_table(db, title, query) for title, query in _queries(act)]


def write_parquet(out: Path) -> Path:
    """All records as one file, in their order."""
    path = out / PARQUET
    unfinished = path.with_name(f"{PARQUET}.unfinished")
    with _opened(out) as (db, _):
        db.execute(f"copy records to '{_quoted(unfinished)}' (format parquet, compression zstd)")
    unfinished.replace(path)
    return path


@contextmanager
def _opened(out: Path) -> Iterator[tuple[Any, str]]:
    """The records of a folder as the table `records`, and the act that made them."""
    act = str(BatchFolder(out).wish().get("act", "")) if out.is_dir() else ""
    if not act:
        raise BadRequest(f"{out}: no results of clew batch; give the folder that was --out")
    columns = ", ".join(f"{name}: '{kind}'" for name, kind in COLUMNS[act].items())
    parts = _quoted(out / "parts" / "*.jsonl")
    with duckdb.connect(":memory:") as db:
        db.execute(
            f"create view records as select * from read_json('{parts}', format = 'newline_delimited', "  # noqa: S608
            f"columns = {{{columns}}}, maximum_object_size = {LARGEST_RECORD})"
        )
        yield db, act


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _queries(act: str) -> list[tuple[str, str]]:
    text = files("clew.batch").joinpath("sql/report.sql").read_text(encoding="utf-8")
    found = re.findall(r"^-- name: (\w+)\n-- title: (.*)\n((?:(?!^-- ).*\n?)*)", text, re.MULTILINE)
    return [(title, query) for name, title, query in found if name.startswith(f"{act}_")]


def _table(db: Any, title: str, query: str) -> ReportTable:
    answer = db.execute(query)
    return ReportTable(title, [column[0] for column in answer.description], answer.fetchall())
