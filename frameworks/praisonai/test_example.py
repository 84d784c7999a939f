"""The example runs as a user would run it, and prints what happened."""

import subprocess
import sys
from pathlib import Path


def test_the_example_runs() -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("example.py"))], capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    assert "agent: Read parts 36 to 39." in done.stdout
    assert "agent: It is 14133." in done.stdout
    assert "in the log: 1: KEY_3 = 14133" in done.stdout
    assert "is a child of parts, by compaction" in done.stdout
