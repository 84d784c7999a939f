"""The example and the growth of prompts, run as they are."""

import runpy
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def test_the_example_runs_offline(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(HERE / "example.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "Dear board" in shown
    assert "none refused" in shown
    assert "The writer was told: All ledgers" in shown


def test_prompts_grow_by_a_line_a_task_instead_of_by_all_that_was_written() -> None:
    growth = runpy.run_path(str(HERE / "growth.py"))
    (plain, all_plain), (short, all_short) = (
        growth["sizes"](growth["crewai"].Crew, growth["crewai"].Task),
        growth["sizes"](growth["Crew"], growth["Task"], context_strategy="summarized"),
    )
    assert len(plain) == len(short) == growth["TASKS"]
    assert plain[0] == short[0]
    assert plain[-1] - plain[0] > 7 * 3_000
    assert short[-1] - short[0] < 7 * 30
    assert all_short < all_plain / 3
