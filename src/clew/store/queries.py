"""The statements of `queries.sql`, by name."""

import re
from importlib.resources import files


def _read() -> dict[str, str]:
    text = files("clew.store").joinpath("queries.sql").read_text(encoding="utf-8")
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


SQL = _read()
