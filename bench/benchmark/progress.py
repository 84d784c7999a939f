"""What goes on, on stderr."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmark.judging import Heard

PAUSE = 20.0  # seconds between two lines, where there is no terminal


@contextmanager
def bar(title: str) -> Iterator[Heard]:
    """A bar on a terminal that says what goes on; elsewhere a line now and then."""
    if not sys.stderr.isatty():
        yield lines(title)
        return
    columns = BarColumn(bar_width=20), TimeElapsedColumn(), TextColumn("{task.description}", markup=False)
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=None)
        yield lambda what, done, whole: shown.update(task, description=what[:48], completed=done, total=whole)


def lines(title: str) -> Heard:
    """Says what goes on, in lines that do not come too often."""
    last = time.monotonic()

    def heard(what: str, done: int, whole: int) -> None:
        nonlocal last
        if time.monotonic() - last >= PAUSE:
            last = time.monotonic()
            print(f"{title}: {what}, {done} of {whole}", file=sys.stderr, flush=True)

    return heard
