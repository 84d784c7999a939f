"""The tasks of a run through Ray Data, on machines that share the folders of archive and results.

The cluster is the user's: one that clew started would listen on all addresses of a machine.

A process that ends is Ray's to replace; the task finds what is done, as in a pool.
"""

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody

from clew.batch.folder import TaskDone, as_json, done_from
from clew.batch.sources import BatchTask, as_line, from_line
from clew.batch.work import Job, work
from clew.errors import BadRequest, MissingExtra

try:
    import ray
    import ray.data
except ImportError:
    raise MissingExtra("--ray needs Ray Data", "ray") from None

# Ray 2.60 begins a cluster with a token where it finds one, but sends it only if told to.
TOKEN_HINT = "a cluster that wants a token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"  # noqa: S105
MOST_BLOCKS = 20_000  # of a run: more would be much to know for the one that shares them out


def through_ray(job: Job, tasks: Sequence[BatchTask], address: str) -> Iterator[TaskDone]:
    """What comes of each task, as soon as it is done."""
    _connect(address)
    try:
        # Of a process that ended, Ray tells on standard output; that is for results.
        with redirect_stdout(sys.stderr):
            yield from _done(job, tasks)
    finally:
        ray.shutdown()


def _done(job: Job, tasks: Sequence[BatchTask]) -> Iterator[TaskDone]:
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    rows = [{"task": as_line(task)} for task in tasks]
    found = ray.data.from_items(rows, override_num_blocks=max(1, min(len(rows), MOST_BLOCKS)))
    with warnings.catch_warnings():  # there is no other way yet to say how often; pyproject.toml has the bound
        warnings.simplefilter("ignore", DeprecationWarning)
        done = found.map(OnRay(job), ray_remote_args_fn=_without_end)
    for row in done.iter_rows():
        yield done_from(row["done"])


def _without_end() -> dict[str, Any]:
    """A process that ends is replaced, as often as it takes: a conversation that ends two is left out by `work`."""
    return {"max_retries": -1}


def _connect(address: str) -> None:
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except Exception as error:  # Ray raises no class of its own, such as where no cluster is at an address
        told = "" if os.environ.get("RAY_AUTH_MODE") else f" ({TOKEN_HINT})"
        raise BadRequest(f"--ray {address}: {error}{told}") from None


class OnRay:
    """What Ray calls, on whichever machine."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        return {"done": as_json(work(self._job, from_line(row["task"])))}
