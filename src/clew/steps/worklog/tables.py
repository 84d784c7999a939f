"""Tables in results: how many rows, which columns, the extremes of their numbers."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from clew.core.caches import remembers
from clew.steps.shorten import parsed
from clew.steps.worklog.wording import listed

RESULTS = 1024  # that were read
LINES_READ = 2_000  # of each
MARKS = "|\t;,"  # between cells
HEAD = 400  # characters in which one stands
ROWS = 4  # of a table at least
ALIKE = 0.8  # of its lines have as many cells as the first, of a column's cells are numbers
COLUMNS = 4  # with numbers, of which the extremes are told
NAMES = 160  # characters of the names of columns
_NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?%?")
_DIVIDES = re.compile(r"[\s|:+=-]*")


@remembers(RESULTS)
def tabled(text: str) -> str:
    """What a table has; nothing of a text that is none."""
    rows = list(_rows(text))
    return "; ".join(_table(rows)) if rows else ""


def _rows(text: str) -> Iterator[list[str]]:
    """The rows of a table, its head first; none if a text is no table."""
    if text[:1] in "[{" and isinstance(value := parsed(text), list | dict):
        yield from _records(value)
        return
    if not any(mark in text[:HEAD] for mark in MARKS):
        return
    lines = [line.strip().strip("|") for line in text.splitlines()[:LINES_READ] if line.strip()]
    lines = [line for line in lines if not _DIVIDES.fullmatch(line)]
    if len(lines) <= ROWS:
        return
    for mark in MARKS:
        width = lines[0].count(mark)
        if width and sum(line.count(mark) == width for line in lines) >= ALIKE * len(lines):
            rows = [[cell.strip() for cell in line.split(mark)] for line in lines if line.count(mark) == width]
            if any(_NUMBER.fullmatch(cell) for row in rows[1:] for cell in row):
                yield from rows
            return


def _records(value: object) -> Iterator[list[str]]:
    """Objects of one form as rows, or rows of cells under the names of their columns."""
    records, names = listed_in(value)
    if len(records) < ROWS:
        return
    if all(isinstance(one, dict) for one in records):
        names = [name for name, cell in records[0].items() if not isinstance(cell, dict | list)]
        yield names
        yield from ([str(one.get(name, "")) for name in names] for one in records)
    elif names:
        yield names
        yield from (list(map(str, one)) for one in records)


def listed_in(value: object) -> tuple[Sequence[Any], list[str]]:
    """What data lists, and the names of the columns where each entry is a list; nothing if it tells more than that."""
    values = list(value.values()) if isinstance(value, dict) else [value]
    lists = [one for one in values if isinstance(one, list)]
    records = max(lists, key=len, default=[])
    if isinstance(value, dict) and sum(not isinstance(one, dict | list) for one in values) >= len(records):
        return [], []  # an object that has a list, too
    if records and all(isinstance(one, dict) for one in records):
        return records, []
    widths = {len(one) if isinstance(one, list) else 0 for one in records}
    heads = [one for one in lists if one is not records and {len(one)} == widths]
    return (records, list(map(str, heads[0]))) if heads and len(widths) == 1 else ([], [])


@remembers(RESULTS)
def lists(text: str) -> bool:
    """Whether a text is a list of things of one kind: what was looked for, no receipt of something that was done."""
    return text[:1] in "[{" and len(listed_in(parsed(text))[0]) > 1


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """What a table has: how many rows, which columns, and the extremes of those with numbers."""
    head, *body = rows
    yield f"{len(body):,} rows of {listed(head, NAMES)}"
    numbers = [n for n in range(len(head)) if _is_number(n, body)]
    label = next((n for n in range(len(head)) if n not in numbers), 0)
    told = list[str]()
    for n in [n for n in numbers if n != label][:COLUMNS]:
        column = [(float(row[n].rstrip("%").replace(",", "")), row) for row in body if _NUMBER.fullmatch(row[n])]
        (_, least), (_, most) = min(column, key=lambda c: c[0]), max(column, key=lambda c: c[0])
        if least[n] != most[n]:
            told.append(f"{head[n]} from {least[n]} ({least[label]}) to {most[n]} ({most[label]})")
    if told:
        yield "; ".join(told)


def _is_number(n: int, body: Sequence[Sequence[str]]) -> bool:
    return sum(_NUMBER.fullmatch(row[n]) is not None for row in body) >= ALIKE * len(body)
