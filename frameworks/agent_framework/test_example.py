"""The example runs, and prints what happened."""

import runpy
from pathlib import Path

import pytest


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).with_name("example.py")), run_name="__main__")
    printed = capsys.readouterr().out
    assert "model: All are read." in printed
    assert "50 messages in the history" in printed
    assert "sessions of parts: start, compaction" in printed
