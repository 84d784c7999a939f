"""Where the real conversations are, if they are here: the project ships one, the others stay where they were put."""

import gzip
import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from clew import SQLite

CORPUS = Path(os.environ.get("CLEW_CORPUS", Path(__file__).parents[2] / "shared" / "corpus" / "dev"))
SAMPLE = Path(__file__).parents[1] / "src" / "clew" / "data" / "sample.jsonl.gz"


def conversations() -> Iterator[dict[str, Any]]:
    """Every real conversation at hand: the corpus where it is mounted, the shipped sample everywhere."""
    files = [f for f in sorted(CORPUS.glob("*.jsonl.gz")) if f.name != "probes.jsonl.gz"]
    for file in [SAMPLE, *files]:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SQLite]:
    store = SQLite(tmp_path / "clew.db")
    yield store
    await store.close()
