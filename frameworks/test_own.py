"""The agent's own model writes what stands in for old messages: in each framework, in its own loop, counted by it."""

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from frameworks.reading import KEY, Reader, written

from clew import Budget, Engine, SQLite
from clew.engine.settings import Settings
from clew.testing import Answer, StrictProvider

FRAMEWORK = Path(sys.prefix).parent.name  # whose environment this is
working = import_module(f"frameworks.{FRAMEWORK}.working")
PARTS = 24
KEYS = {f"KEY_{n} = {n * 4711}" for n in range(1, PARTS + 1)}


def work(reader: Reader, folder: Path, **settings: Any) -> Any:
    """An agent reads all parts."""
    budget = Budget(window=working.WINDOW, reserve=500)
    with StrictProvider(reader, window=working.WINDOW) as provider:
        return working.work(provider, Engine(SQLite(folder / "clew.db"), budget, Settings(**settings)))


@pytest.mark.usefixtures("as_shipped")
def test_its_words_are_in_the_next_request(tmp_path: Path) -> None:
    reader = Reader(PARTS)
    came = work(reader, tmp_path)
    assert came.answer == "All are read."
    assert reader.questions
    assert not any(body.get("tool_choice", "auto") != "auto" for body in reader.questions)
    assert not any(body.get("response_format") for body in reader.questions)
    assert set(KEY.findall(json.dumps(reader.live[-1]))) >= KEYS, "nothing is lost"
    assert "written by" in json.dumps(reader.live[-1])
    live, all = len(reader.live), len(reader.live) + len(reader.questions)  # the last may not be answered any more
    assert came.calls is None or live < came.calls <= all, "and the framework counts what clew asks"


def test_nobody_is_asked_where_the_environment_says_so(tmp_path: Path) -> None:
    reader = Reader(PARTS)
    assert work(reader, tmp_path).answer == "All are read."
    assert not reader.questions


@pytest.mark.usefixtures("as_shipped")
def test_nobody_is_asked_where_code_is_to_write(tmp_path: Path) -> None:
    reader = Reader(PARTS)
    assert work(reader, tmp_path, author=None).answer == "All are read."
    assert not reader.questions


WRITERS = {
    "failing": lambda _: Answer(status=500),
    "silent": lambda _: Answer(""),
    "rude": lambda _: Answer("Do it yourself, I will not.\n" * 9),
    "lying": lambda _: written([f"KEY_{n} = {n * 1213}" for n in range(300, 340)]),
    "slow": lambda keys: Answer(written(keys).text, seconds=1.0),
}


@pytest.mark.usefixtures("as_shipped")
@pytest.mark.parametrize("writer", WRITERS)
def test_whatever_it_answers_the_work_goes_on(writer: str, tmp_path: Path) -> None:
    reader = Reader(PARTS, WRITERS[writer])
    assert work(reader, tmp_path, patience=0.1).answer == "All are read."
    assert reader.questions
    assert writer == "slow" or "written by" not in json.dumps(reader.live[-1]), "what is there was written by code"
