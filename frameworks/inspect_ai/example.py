"""An evaluation whose agent reads forty files through a small window, and still finds what was in the fourth.

Runs offline: the provider is a server in this process, which refuses what is longer than its window.
"""

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from frameworks.inspect_ai.reading import THRESHOLD, WINDOW, asked, evaluated, model_of, reading

from clew.adapters.inspect_ai import ClewCompaction
from clew.testing import Answer, Call, StrictProvider


def main() -> None:
    looks = Answer(calls=(Call("search_history", {"query": "KEY_3"}),))
    with StrictProvider(reading(20, looks), window=WINDOW) as provider:
        strategy = ClewCompaction("clew.db", threshold=THRESHOLD)
        log = evaluated(model_of(provider), strategy, *strategy.tools)
    heard = asked(provider)
    largest = max(one.spent.input for one in heard)
    print(f"{log.status}: {len(heard)} requests, the largest of {largest:,} tokens; the window has {WINDOW:,}")
    print("found again:", "KEY_3 = 14133" in str(heard[-1].body["input"][-1]))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
