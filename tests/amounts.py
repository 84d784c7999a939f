"""How much a test tries: two fifths of what it says here, or one; much at night (`make laws` sets CASES)."""

import os
from collections.abc import Sequence
from itertools import product
from typing import Any

MANY = float(os.environ.get("CASES", "0.4"))


def cases(few: int, dear: bool = False) -> int:
    """So many random cases: two fifths of them with every change, several times as many at night.

    `dear`: one costs more than 50 ms of CPU; a fifth of them with every change.
    """
    return max(1, round(few * (MANY / 2 if dear and MANY < 1 else MANY)))


def combined(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Parameters together: each value of each of them at least once here, every combination at night."""
    if MANY > 1:
        return list(product(*axes))
    return [tuple(axis[n % len(axis)] for axis in axes) for n in range(max(map(len, axes)))]
