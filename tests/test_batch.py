"""Archives: whoever does the work, and however often it was stopped, the results are the same bytes."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

import clew
from archiving import SHARED, Deadly, make, results, serially, small
from clew import Engine, Request, open_store
from clew.batch import BatchCompress, BatchSearch, begin, finish
from clew.batch.folder import BatchFolder
from clew.batch.raw import RawConversation, conversations
from clew.batch.records import records
from clew.batch.sources import archive, from_line, tasks
from clew.batch.sources import as_line as line_of
from clew.batch.work import ProgressNote, work
from clew.errors import BadRequest, Busy
from clew.sessions.export_log import export
from clew.testing import conversation
from shell import invoke

SIZE = 8_000  # bytes of a task


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("archive") / "talks")


@pytest.fixture(scope="module")
def alone(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process finds."""
    out = tmp_path_factory.mktemp("alone") / "out"
    serially(BatchSearch("."), [folder], out, SIZE)
    return out


def lines(out: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for part in sorted((out / "parts").glob("*.jsonl")) for line in part.read_bytes().splitlines()
    ]


def failures(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "failures.jsonl").read_bytes().splitlines()]


def raw(value: object, source: str = "talk.json") -> RawConversation:
    return RawConversation(source, 0, json.dumps(value).encode())


# --- the same results -------------------------------------------------------------------------------------------------


def test_every_conversation_is_in_exactly_one_task_whatever_their_size(folder: Path) -> None:
    found = archive([folder])
    every = {size: list(tasks(found, size)) for size in (700, 2_001, SIZE, 1 << 22)}
    places = [[raw.place for task in made for raw in conversations(found.root, task)] for made in every.values()]
    assert len(places[0]) == len(set(places[0])) == 44
    assert all(sorted(other) == sorted(places[0]) for other in places), "each once"
    assert len(every[700]) > len(every[1 << 22]) == 1
    assert [from_line(line_of(task)) for task in every[SIZE]] == every[SIZE]
    assert sum(task.bytes for task in every[700]) == sum(size for _, size in found.files)


def test_a_pool_that_was_stopped_and_lost_a_worker_has_the_same_results(
    folder: Path, alone: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    (tmp_path / "marks").mkdir()
    act = Deadly(".", word="src/q.py", marks=str(tmp_path / "marks"), times=1)
    run = begin(act, [folder], out, SIZE)
    for task in run.tasks[:2]:  # as far as an earlier run came
        work(run.job, task)
    part = run.job.folder.part(3)
    part.with_name(f"{part.name}.1.unfinished").write_bytes(b'{"half')
    note = ProgressNote(run.job.folder.running(3), "an earlier run")
    note.at("export.jsonl#0")
    note.close()
    again = begin(act, [folder], out, SIZE)
    left, done = again.left()
    assert (len(done), len(left)) == (2, len(run.tasks) - 2)
    told: list[int] = []
    totals = finish(again, 2, progress=lambda done: told.append(done.task))
    assert len(list((tmp_path / "marks").iterdir())) == 1, "a worker was killed"
    assert sorted(told) == [task.number for task in left], "nothing twice"
    assert results(out) == results(alone)
    assert totals.conversations == 44
    assert not list(out.glob("*/*.unfinished"))
    assert not list((out / "running").iterdir())
    assert totals.digest == json.loads((alone / "summary.json").read_text())["digest"]


def test_a_conversation_that_ends_its_process_is_tried_once_more_and_then_listed(
    folder: Path, alone: Path, tmp_path: Path
) -> None:
    place = "packed.jsonl.gz#0"
    for deaths, failed in ((1, 2), (2, 3)):
        run = begin(BatchSearch("."), [folder], tmp_path / f"{deaths}", SIZE)
        [task] = [task for task in run.tasks if "packed.jsonl.gz" in dict(task.files)]
        for _ in range(deaths):  # as processes leave it that end there
            note = ProgressNote(run.job.folder.running(task.number), run.job.run)
            note.at("a longer place, where it was before")
            note.at(place)
            note.close()
        for one in run.tasks:
            work(run.job, one)
        assert run.job.folder.close().failures == failed
        listed = [one for one in failures(run.job.folder.path) if one["source"] == "packed.jsonl.gz"]
        assert [one["why"].partition(",")[0] for one in listed] == ["its process ended"] * (deaths - 1)
    assert results(tmp_path / "1") == results(alone), "the second time it went well"


def test_what_cannot_be_read_is_listed_and_the_rest_goes_on(folder: Path, alone: Path) -> None:
    broken, other = failures(alone)
    assert [broken["source"], other["source"]] == ["export.jsonl", "package.json"]
    assert "not JSON" in broken["why"]
    assert "unknown session format" in other["why"]
    assert {one["source"] for one in lines(alone)} >= {"export.jsonl", "packed.jsonl.gz"}


def test_a_file_that_grew_is_read_as_far_as_it_was_and_one_that_shrank_is_listed(tmp_path: Path) -> None:
    grown, shrunk = tmp_path / "a" / "grown.jsonl", tmp_path / "a" / "shrunk.jsonl"
    (tmp_path / "a").mkdir()
    for path in (grown, shrunk):
        path.write_text("".join(json.dumps(small(seed)) + "\n" for seed in range(3)))
    run = begin(BatchSearch("."), [tmp_path / "a"], tmp_path / "out")
    grown.write_text(grown.read_text() + json.dumps(small(9)) + "\n")
    shrunk.write_text("")
    work(run.job, run.tasks[0])
    totals = run.job.folder.close()
    assert (totals.conversations, totals.failures) == (4, 1)


# --- a folder has one run ---------------------------------------------------------------------------------------------


def test_another_wish_in_the_same_folder_is_refused(folder: Path, alone: Path, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"text: \. then, cat now.*another --out"):
        begin(BatchSearch("cat"), [folder], alone, SIZE)
    with pytest.raises(BadRequest, match="paths"):
        begin(BatchSearch("."), [folder / "export.jsonl"], alone, SIZE)
    with pytest.raises(BadRequest, match="is inside"):
        begin(BatchSearch("."), [folder], folder / "out")
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(BadRequest, match=r"thesis\.txt"):
        begin(BatchSearch("."), [folder], tmp_path)
    with pytest.raises(BadRequest, match="no such file"):
        begin(BatchSearch("."), [folder / "nothing"], tmp_path / "out")


def test_two_runs_do_not_work_in_one_folder(alone: Path, folder: Path) -> None:
    run = begin(BatchSearch("."), [folder], alone, SIZE)
    with BatchFolder(alone).alone(), pytest.raises(Busy, match="another run"):
        finish(run, 1)


# --- the acts ---------------------------------------------------------------------------------------------------------


def test_compress_is_what_clew_compress_gives_and_says_what_ids_stand_for() -> None:
    talk = conversation(3, 8, "anthropic", wordy=20)
    [record] = records(raw(talk), BatchCompress(600, "gpt-4o"))
    alone = clew.compress(talk["messages"], model="gpt-4o", target_tokens=600, format="anthropic")
    assert record["messages"] == alone.messages
    assert record["broken_rules"] == []
    assert record["tokens_after"] < record["tokens_before"]
    assert record["frame"]["system"] == talk["system"]
    assert record["recall"]
    for id, (first, last) in record["recall"].items():
        assert last - first + 1 >= len(alone.recall_nodes(id)) > 0
    assert records(raw(talk), BatchCompress(600, "gpt-4o")) == [record], "pure"
    [other] = records(raw(talk), BatchCompress(600, "gpt-4o", "sliding"))
    assert other["messages"] != record["messages"]
    with pytest.raises(BadRequest, match="unknown 'tiny'"):
        clew.compress(talk["messages"], target_tokens=600, preset="tiny")


def test_search_wants_all_words_in_one_message() -> None:
    talk = {
        "messages": [{"role": "user", "content": "The Größe of\nthe pool"}, {"role": "assistant", "content": "pool"}]
    }
    for text, count in (("POOL", 2), ("größe pool", 1), ('"of the"', 1), ('"the of"', 0), ("cat", 0)):
        found = records(raw(talk), BatchSearch(text))
        assert sum(one["hits"] for one in found) == count, text
    escaped = RawConversation("x", 0, json.dumps(talk).replace("pool", "p\\u006fol").encode())
    [record] = records(escaped, BatchSearch("pool", limit=1))
    assert (record["hits"], len(record["found"])) == (2, 1)
    assert record["found"][0] | {"excerpt": ""} == {
        "message": 0,
        "role": "user",
        "kind": "text",
        "name": "",
        "line": 2,
        "excerpt": "",
    }


def test_data_sets_and_exports_of_clew_are_read(tmp_path: Path) -> None:
    [record] = records(raw(SHARED), BatchCompress(1_000))
    assert record["messages"] == [
        {"role": "user", "content": "Where?"},
        {"role": "assistant", "content": "In src/q.py."},
    ]
    [other] = records(raw({"conversation": [{"role": "user", "content": "Hi"}]}), BatchCompress(1_000))
    assert other["messages"] == [{"role": "user", "content": "Hi"}]
    with pytest.raises(BadRequest, match=r"conversations\[0\]\.from: unknown 'cat'"):
        records(raw({"conversations": [{"from": "cat", "value": "Miau"}]}), BatchSearch("."))


async def test_what_clew_exports_is_read() -> None:
    store = open_store(":memory:")
    try:
        await Engine(store).prepare(Request(conversation(4, 2), scope="me", session="talk"))
        [branch] = await store.branches("me")
        data = b"".join([line async for line in export(store, "me", [branch.id])])
    finally:
        await store.close()
    [record] = records(RawConversation("talk.jsonl", 0, data), BatchCompress(100_000))
    assert record["session"] == "talk"
    assert record["messages"] == conversation(4, 2)["messages"]


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_command_finds_goes_on_and_refuses(tmp_path: Path) -> None:
    path = tmp_path / "talks.jsonl.gz"
    path.write_bytes(
        gzip.compress(json.dumps({"messages": [{"role": "user", "content": "a \x1b[31mred cat"}]}).encode())
    )
    out = tmp_path / "out"
    said = ["batch", "search", "red cat", str(path), "--out", str(out), "--processes", "1"]
    first = invoke(said)
    assert first.exit_code == 0, first.output
    assert "1 conversation, 1 record" in first.output
    assert "talks.jsonl.gz#0-" in first.output
    assert "\x1b" not in first.output
    assert invoke([*said, "--json"]).output.count('"conversations":1') == 1
    other = invoke(["batch", "compress", str(path), "--out", str(out), "--target", "900"])
    assert other.exit_code == 1
    assert "act: search then, compress now" in other.output
    short = invoke(["batch", "compress", str(path), "--out", str(tmp_path / "short"), "--target", "900"])
    assert re.match(r"(\d+) → \1 tokens, 0% less\n", short.output)
    missing = invoke(["batch", "compress", str(path), "--out", str(out), "--target", "9"])
    assert missing.exit_code == 2
