"""`make test-batch`: what the cheap tests leave out. Ray, DuckDB, and runs that are killed for good."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import archiving
from archiving import Deadly, make, results, serially, small
from clew.batch import BatchAudit, BatchCompress, BatchScore, BatchSearch, begin, finish
from clew.batch.report import report, write_parquet

SIZE = 8_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("archive") / "talks")


@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")  # Ray warns of what Ray itself uses
@pytest.mark.skipif("RAY" not in os.environ, reason="RAY names no cluster: ray start --head --num-cpus 2")
def test_ray_has_the_same_results_although_a_worker_was_killed(folder: Path, tmp_path: Path) -> None:
    from ray import cloudpickle

    cloudpickle.register_pickle_by_value(archiving)  # the cluster's processes have clew, not its tests
    (tmp_path / "marks").mkdir()
    serially(BatchSearch("."), [folder], tmp_path / "alone", SIZE)
    act = Deadly(".", word="src/q.py", marks=str(tmp_path / "marks"))
    totals = finish(begin(act, [folder], tmp_path / "out", SIZE), 2, ray=os.environ["RAY"])
    assert len(list((tmp_path / "marks").iterdir())) == 1
    assert totals.tasks == totals.of_tasks
    assert results(tmp_path / "out") == results(tmp_path / "alone")


def test_a_conversation_that_ends_every_process_is_listed(tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    path = tmp_path / "talks.jsonl"
    talks = [small(1), {"messages": [{"role": "user", "content": "the poison"}]}, small(2), small(3)]
    path.write_text("".join(json.dumps(talk) + "\n" for talk in talks))
    totals = finish(
        begin(Deadly(".", word="poison", marks=str(tmp_path / "marks"), times=99), [path], tmp_path / "o"), 1
    )
    assert (totals.conversations, totals.failures, len(list((tmp_path / "marks").iterdir()))) == (4, 1, 2)
    assert "process ended" in (tmp_path / "o" / "failures.jsonl").read_text()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_ended_goes_on(how: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "talks.jsonl"
    talks = [json.dumps(small(seed, 3)) + "\n" for seed in range(200)]
    path.write_text("".join(talks * 25))
    out = tmp_path / "out"
    said = ["search", ".", str(path), "--limit", "1", "--out", str(out), "--processes", "1"]
    command = [sys.executable, "-m", "clew", "batch", *said]
    first = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True)
    while not list((out / "done").glob("*.json")) and first.poll() is None:
        time.sleep(0.05)
    os.kill(first.pid, how)
    _, told = first.communicate()
    done = len(list((out / "done").glob("*.json")))
    tasks = len((out / "plan.jsonl").read_bytes().splitlines())
    assert 0 < done < tasks, "it was in the middle"
    if how == signal.SIGINT:
        assert first.returncode == 130
        assert b"the same command goes on" in told
    again = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "5,000 conversations" in again.stdout
    serially(BatchSearch(".", limit=1), [path], tmp_path / "alone", 4 << 20)
    assert results(out) == results(tmp_path / "alone")


@pytest.mark.parametrize(
    "act", [BatchCompress(300), BatchScore(300), BatchAudit(), BatchSearch(".")], ids=lambda act: act.name
)
def test_every_act_has_tables_and_parquet(act: BatchCompress, folder: Path, tmp_path: Path) -> None:
    import duckdb

    totals = serially(act, [folder], tmp_path / "out", SIZE)
    tables = report(tmp_path / "out")
    assert len(tables) >= 2
    assert all(table.rows for table in tables)
    path = write_parquet(tmp_path / "out")
    with duckdb.connect() as db:
        query = f"select id from '{path}'"
        found = [id for (id,) in db.execute(query).fetchall()]
    parts = sorted((tmp_path / "out" / "parts").glob("*.jsonl"))
    assert found == [json.loads(line)["id"] for part in parts for line in part.read_bytes().splitlines()]
    assert len(found) == totals.records
