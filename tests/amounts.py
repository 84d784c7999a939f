"""How many random cases a test tries: few here, many at night (`make laws` sets CASES)."""

import os


def cases(few: int) -> int:
    """So many, or several times as many."""
    return max(1, round(few * float(os.environ.get("CASES", "1"))))
