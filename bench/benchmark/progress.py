"""What goes on, on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmark.judging import Heard


@contextmanager
def bar(title: str) -> Iterator[Heard]:
    """A bar on a terminal that says what goes on; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda what, done, whole: None
        return
    columns = BarColumn(bar_width=20), TimeElapsedColumn(), TextColumn("{task.description}", markup=False)
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(title, total=None)
        yield lambda what, done, whole: shown.update(task, description=what[:48], completed=done, total=whole)
