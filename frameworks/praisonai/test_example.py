"""The example runs, and prints what happened."""

import runpy
from pathlib import Path

import pytest


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).with_name("example.py")), run_name="__main__")
    printed = capsys.readouterr().out
    assert "agent: Read parts 36 to 39." in printed
    assert "agent: It is 14133." in printed
    assert "in the log: 1: KEY_3 = 14133" in printed
    assert "is a child of parts, by compaction" in printed
