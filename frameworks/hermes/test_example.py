"""The example runs, and prints what happened."""

import os
import subprocess
import sys
from pathlib import Path


def test_the_example_runs() -> None:
    """In a process of its own: Hermes reads where its folder is when it is imported."""
    example = Path(__file__).with_name("example.py")
    printed = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True, env=os.environ)
    assert "model: All are read." in printed.stdout
    assert "42 messages in the history" in printed.stdout
    assert "sessions of parts: start, compaction" in printed.stdout
