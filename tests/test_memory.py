"""What was taken for a while is given back."""

import subprocess
import sys

import pytest

from clew.core.memory import _trim

TAKEN = """
import threading
from pathlib import Path
from clew.core.memory import give_back

def held():
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) // 1024

kept = []
def work():
    made = [bytes(2_000) for _ in range(60_000)]
    kept.append(bytes(2_000))  # above all that was made: nothing below it is given back by itself

before = held()
thread = threading.Thread(target=work)
thread.start()
thread.join()
after = held()
give_back()
print(before, after, held())
"""


@pytest.mark.skipif(_trim is None or sys.platform != "linux", reason="the C library of this system keeps what is free")
def test_what_is_free_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", TAKEN], capture_output=True, text=True, check=True)
    before, after, now = map(int, done.stdout.split())
    assert after - before > 60
    assert now - before < (after - before) / 4
