"""What a user would write runs, and shows what clew is for."""

import runpy
from pathlib import Path

import pytest


def test_the_example_shows_the_difference(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(Path(__file__).parent / "example.py"), run_name="__main__")
    _, alone, manager, plugin = capsys.readouterr().out.strip().split("\n\n")
    assert "I do not know any more." in alone
    assert "refused 0 times" in manager
    assert "refused 0 times; 34 messages held; host0: It is 8000." in plugin
