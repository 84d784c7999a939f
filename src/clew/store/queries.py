"""Our statements by name: those of `queries.sql`, which every database understands, and those of one dialect."""

import re
from pathlib import Path


def statements(dialect: str) -> dict[str, str]:
    """The statements for a database that speaks this dialect."""
    return _read("queries.sql") | _read(f"{dialect}/{dialect}.sql")


def _read(path: str) -> dict[str, str]:
    return parse((Path(__file__).parent / path).read_text(encoding="utf-8"))


def parse(text: str) -> dict[str, str]:
    """The statements of a file, each after a line with its name."""
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))
