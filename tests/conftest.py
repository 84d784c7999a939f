"""Where the real conversations are, if they are here: the project ships one, the others stay where they were put.
And stores of each kind, for tests of what all of them do."""

import asyncio
import gc
import gzip
import json
import os
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import postgres
from amounts import MANY, cases
from clew import open_store
from clew.store.sql import SQLStore

CORPUS = Path(os.environ.get("CLEW_CORPUS", Path(__file__).parents[2] / "shared" / "corpus" / "dev"))
COMPACTED = '"real_compactions"'  # in the line of a conversation that a product compacted
NO_BROWSER = "no chromium here: the tests that look at the page in a browser are left out; apt install chromium"
SAMPLE = Path(__file__).parents[1] / "src" / "clew" / "data" / "sample.jsonl.gz"

# Modules whose tests hold for every kind of store; elsewhere a store is a file.
EVERYWHERE = (
    "test_adopting test_checkpoints test_clock test_drill test_engine test_exports test_finding test_findings "
    "test_forks test_lineage test_locks test_packing test_page test_places test_purging test_quoted_words "
    "test_readonly test_recognition test_secrecy test_sessions test_signs test_switching"
).split()
# Of these, what they ask of a store others ask, too: on a server they are for the night.
SERVED_AT_NIGHT = (
    "test_adopting test_findings test_forks test_lineage test_quoted_words test_recognition test_secrecy test_sessions "
    "test_signs"
).split()
CLIENT = ("openai_chat", "bytes", False)

# Scripts answer what a test asks: a question of clew's own would take the next answer. Tests of those delete this.
os.environ.setdefault("CLEW_SUMMARY_MODEL", "none")
# A process that stays would outlive the test that needed it; tests of that one delete this.
os.environ.setdefault("CLEW_RESIDENT", "off")
# Looking for garbage takes a tenth of the tests' time, and tests leave little of it.
gc.set_threshold(200_000, 50, 50)

# How long an example takes says nothing of what it shows: machines are slow, and busy.
settings.register_profile("clew", max_examples=cases(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("clew")


# Stores wait for the disk with each commit. Where there is memory to write to instead, tests do not; whether what was
# acknowledged is still there asks for killed processes only, and memory outlives those.
MEMORY, ENOUGH = Path("/dev/shm"), 2_000_000_000


def pytest_configure() -> None:
    if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK):
        room = os.statvfs(MEMORY)
        if room.f_bavail * room.f_frsize > ENOUGH and not room.f_flag & os.ST_NOEXEC:
            os.environ["TMPDIR"] = str(MEMORY)
            tempfile.tempdir = None


def conversations() -> Iterator[dict[str, Any]]:
    """Real conversations: the shipped sample everywhere, the corpus where it is mounted; of those in it that no product
    compacted, each fifth by day."""
    files = [f for f in sorted(CORPUS.glob("*.jsonl.gz")) if f.name != "probes.jsonl.gz"]
    for file in [SAMPLE, *files]:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            yield from (json.loads(line) for n, line in enumerate(lines) if not n % 5 or COMPACTED in line or MANY > 1)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for name in {"place", "empty"}.intersection(metafunc.fixturenames):
        module = metafunc.module.__name__
        if module in EVERYWHERE:
            late = pytest.mark.nightly if module in SERVED_AT_NIGHT else ()
            metafunc.parametrize(name, ["sqlite", pytest.param("postgres", marks=late)], indirect=True)


@pytest.hookimpl(tryfirst=True)  # before marks are chosen by
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [item for item in items if not _once_too_often(getattr(item, "callspec", None))]
    forms: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        few, nightly = item.get_closest_marker("few"), item.get_closest_marker("nightly")
        if isinstance(item, pytest.Function) and few and not nightly:
            forms[item.nodeid.partition("[")[0]].append(item)
    for of_one_test in forms.values():
        _leave_to_the_night(of_one_test)


def pytest_collection_finish() -> None:
    gc.freeze()  # thousands of tests and all modules are no garbage: pytest looks through them five times in the end


def _leave_to_the_night(forms: list[pytest.Function]) -> None:
    """Of the forms of a test that is marked `few`, so many run here: one after the other that with most values of
    parameters that had no turn; among equals their names decide, so that not all tests take the same ones."""
    mark, seen, left = forms[0].get_closest_marker("few"), set[tuple[str, str]](), forms[:]
    values = {item: {(name, repr(value)) for name, value in item.callspec.params.items()} for item in forms}
    for _ in range(mark.args[0] if mark else 0):
        left.sort(key=lambda item: (len(values[item] - seen), sha256(item.nodeid.encode()).digest()))
        if left:
            seen |= values[left.pop()]
    for item in left:
        item.add_marker(pytest.mark.nightly)


def _once_too_often(call: Any) -> bool:
    """A server is slower than a file, and forms of a request are nothing to it: one of them is enough there."""
    return call is not None and call.params.get("place") == "postgres" and call.params.get("client", CLIENT) != CLIENT


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for missing in (postgres.MISSING, NO_BROWSER):
        skipped = [r for r in terminalreporter.stats.get("skipped", ()) if missing in str(r.longrepr)]
        if skipped:
            terminalreporter.section(f"{missing} ({len(skipped)} tests)", red=True, bold=True)


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    """A PostgreSQL server that runs while tests do, with an empty store in the database `template`."""
    programs = postgres.binaries()
    if programs is None:
        pytest.skip(postgres.MISSING)
    server = postgres.Server(programs)
    try:
        server.start("fsync=off", "full_page_writes=off")  # nobody pulls the plug here; test_postgres has one with both
        server.ask("create database template")
        asyncio.run(open_store(server.url("template")).close())
        yield server
    finally:
        server.remove()


@pytest.fixture
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where no store is yet: a path or a URL."""
    yield from _places(request, tmp_path, "template0")


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where a store is, in which nothing was said: a path or a URL."""
    yield from _places(request, tmp_path, "template")


@cache
def _nothing_said() -> bytes:
    """The file of a new store: to make one takes five times as long as to copy it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "clew.db"
        asyncio.run(open_store(path).close())
        return path.read_bytes()


def _places(request: pytest.FixtureRequest, folder: Path, template: str) -> Iterator[str]:
    if getattr(request, "param", "sqlite") == "sqlite":
        path = folder / "clew.db"
        if template == "template":
            path.write_bytes(_nothing_said())
        yield str(path)
        return
    server: postgres.Server = request.getfixturevalue("server")
    if template == "template":
        with server.lent() as url:
            yield url
        return
    name = server.database(template)
    yield server.url(name)
    server.ask(f"drop database {name} with (force)")


@pytest.fixture
async def store(place: str) -> AsyncIterator[SQLStore]:
    store = open_store(place)
    yield store
    await store.close()
