"""How much a test tries: little here, much at night (`make laws` sets CASES)."""

import os
from collections.abc import Sequence
from itertools import product
from typing import Any

MANY = float(os.environ.get("CASES", "1"))


def cases(few: int) -> int:
    """So many random cases, or several times as many."""
    return max(1, round(few * MANY))


def combined(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Parameters together: each value of each of them at least once here, every combination at night."""
    if MANY > 1:
        return list(product(*axes))
    return [tuple(axis[n % len(axis)] for axis in axes) for n in range(max(map(len, axes)))]
