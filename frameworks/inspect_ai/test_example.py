"""The example does what it says."""

import pytest
from frameworks.inspect_ai import example


def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    example.main()
    said = capsys.readouterr().out
    assert "success: 22 requests" in said
    assert "found again: True" in said
