"""The log on a server that is shared, restarted, killed and damaged."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import psycopg
import pytest

import postgres
from clew import Budget, Engine, Request, open_store
from clew.errors import ForeignFile, NewerFile, StoreError
from clew.store import patience
from clew.store.postgres import Postgres
from clew.store.postgres.database import translate
from clew.store.postgres.opening import Address, connect
from clew.store.sqlite.opening import migrations
from clew.testing import conversation

WRITER = """
import asyncio, sys, clew
from clew.testing import conversation
async def main(place):
    engine = clew.Engine(clew.open_store(place), clew.Budget(window=3000))
    for n in range(10_000):
        view = await engine.prepare(clew.Request(conversation(n % 50, 4), session=f"s{n}"))
        print(view.branch, view.seq, len(view.nodes), flush=True)
asyncio.run(main(sys.argv[1]))
"""


@pytest.fixture
def url(server: postgres.Server) -> Iterator[str]:
    """A database with an empty store in it."""
    with server.lent() as url:
        yield url


@pytest.fixture
def own(server: postgres.Server) -> Iterator[postgres.Server]:
    """A server to be killed, as careful with its files as servers are."""
    own = postgres.Server(server.programs)
    own.start()
    yield own
    own.remove()


def change(url: str, *statements: str) -> None:
    """Do something to a store behind its back."""
    with psycopg.connect(url, autocommit=True, options="-c search_path=clew") as db:
        for statement in statements:
            db.execute(statement)


def test_statements_are_translated() -> None:
    given = "select x::int, 'a%' -- why: :not\nfrom json_each(:ids) j cross join n indexed by n_x on n.x = :x;\n"
    assert translate(given) == "select x::int, 'a%%' \nfrom json_each(%(ids)s) j join n on n.x = %(x)s"


def test_migrations_are_numbered_without_gaps() -> None:
    from importlib.resources import files

    folder = files("clew.store").joinpath("postgres/migrations")
    names = sorted(f.name for f in folder.iterdir() if f.name.endswith(".sql"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))


def test_a_newer_store_is_refused(url: str) -> None:
    change(url, "update meta set value = '999' where key = 'version'")
    with pytest.raises(NewerFile, match=f"version 999, this one knows {len(migrations('postgres'))}.*upgrade clew"):
        open_store(url)


async def test_a_process_that_runs_writes_nothing_once_a_newer_clew_was_at_its_tables(url: str) -> None:
    store = open_store(url)
    await Engine(store).prepare(Request(conversation(1, 2), session="first"))
    change(url, "update meta set value = '999' where key = 'version'")
    with pytest.raises(NewerFile, match="version 999"):
        await Engine(store).prepare(Request(conversation(2, 2), session="second"))
    with pytest.raises(NewerFile, match="version 999"):
        await store.purge("default", [branch.id for branch in await store.branches("default")], "test")
    assert [branch.session for branch in await store.branches("default")] == ["first"]
    await store.close()


@pytest.mark.parametrize("table", ["cats (name text)", "meta (x int)", "meta (key text, value bytea)"])
def test_tables_of_somebody_else_are_refused_untouched(url: str, table: str) -> None:
    change(url, "drop schema clew cascade", "create schema clew", f"create table {table}")
    with pytest.raises(ForeignFile, match="has tables of another program; choose another database"):
        open_store(url)
    with psycopg.connect(url) as db:
        assert db.execute("select count(*) from pg_tables where schemaname = 'clew'").fetchone() == (1,)


async def test_tables_elsewhere_in_the_database_are_no_matter(url: str) -> None:
    change(url, "drop schema clew cascade", "create table public.body (x int)", "create schema clew")
    store = open_store(url)
    await Engine(store).prepare(Request(conversation(1, 2)))
    assert await store.check(deep=True) == []
    await store.close()


async def test_a_role_that_has_only_the_schema_is_enough(url: str) -> None:
    change(url, "drop schema clew cascade", "create role guest login", "create schema clew authorization guest")
    store = open_store(url.replace("clew:sesame@", "guest@"))
    view = await Engine(store).prepare(Request(conversation(1, 2)))
    assert (await store.purge("default", [view.branch], "test")).wiped
    await store.close()
    change(url, "drop schema clew cascade")
    with pytest.raises(StoreError, match="permission denied for database"):
        open_store(url.replace("clew:sesame@", "guest@"))
    change(url, "drop role guest")


@pytest.mark.parametrize("setting", ["off", "local", "on", "remote_apply"])
def test_what_is_acknowledged_is_on_disk_whatever_the_server_thinks(url: str, setting: str) -> None:
    change(url, f"alter role clew in database {url.split('?')[0].split('/')[-1]} set synchronous_commit = {setting}")
    with closing(connect(Address(url, "clew"))) as db:
        expected = "remote_apply" if setting == "remote_apply" else "on"
        assert db.execute("show synchronous_commit").fetchone() == (expected,)


async def test_a_server_that_was_away_is_used_again(own: postgres.Server) -> None:
    store = open_store(own.url())
    engine = Engine(store)
    talk = conversation(1, 3)
    view = await engine.prepare(Request(talk))
    await asyncio.gather(*(store.branches("default") for _ in range(8)))  # on several connections
    own.stop()
    talk["messages"] += [{"role": "assistant", "content": "new"}, {"role": "user", "content": "more"}]
    for _ in range(2):
        with pytest.raises(StoreError, match=r"^postgresql://clew:\*\*\*@/postgres"):
            await engine.prepare(Request(talk))
    own.start()
    again = await engine.prepare(Request(talk))
    assert again.branch == view.branch
    assert [b.calls for b in await store.branches("default")] == [2]
    assert await store.check(deep=True) == []
    await store.close()


async def test_who_is_cancelled_while_asking_for_a_turn_does_not_keep_it(url: str) -> None:
    store = Postgres(url)
    for _ in range(20):
        asking = asyncio.ensure_future(store.alone("default", "b").__aenter__())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    async with store.alone("default", "b"):
        pass  # whatever was asked before was answered
    assert advisory_locks(url) == 0
    await store.close()


async def test_who_waits_for_a_turn_gets_it_when_it_is_free_and_others_need_not_wait(url: str) -> None:
    one, two = Postgres(url), Postgres(url)
    had: list[str] = []

    async def turn(store: Postgres, branch: str) -> None:
        async with store.alone("default", branch):
            had.append(branch)

    async with one.alone("default", "b"):
        waits = [asyncio.create_task(turn(store, "b")) for store in (two, one, two)]
        while not waiting(url):
            await asyncio.sleep(0.01)
        await turn(two, "c")
        assert had == ["c"]
    await asyncio.gather(*waits)
    assert had == ["c", "b", "b", "b"]
    assert advisory_locks(url) == 0
    for store in (one, two):
        await store.close()


async def test_who_waits_for_a_turn_in_vain_goes_on_without_it(url: str) -> None:
    one, two, three = Postgres(url), Postgres(url, patience=0.3), Postgres(url)
    async with one.alone("default", "b"):
        async with two.alone("default", "b"):
            assert advisory_locks(url) == 1
        with patience(0.1):
            async with three.alone("default", "b"):
                assert advisory_locks(url) == 1
    async with two.alone("default", "b"):
        assert advisory_locks(url) == 1
    for store in (one, two, three):
        await store.close()


async def test_who_is_cancelled_in_line_leaves_it(url: str) -> None:
    one, two = Postgres(url), Postgres(url, patience=1_000)
    async with one.alone("default", "b"):
        asking = asyncio.ensure_future(two.alone("default", "b").__aenter__())
        while not waiting(url):
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        while waiting(url):
            await asyncio.sleep(0.01)
    async with two.alone("default", "b"):
        pass
    assert advisory_locks(url) == 0
    for store in (one, two):
        await store.close()


def advisory_locks(url: str) -> int:
    with psycopg.connect(url) as db:
        return len(db.execute("select 1 from pg_locks where locktype = 'advisory'").fetchall())


async def test_a_turn_that_was_written_counts_although_the_server_went_away_after_it(own: postgres.Server) -> None:
    store = Postgres(own.url("postgres"))
    async with store.alone("default", "b"):
        own.stop()
    own.start()
    await store.close()


async def test_connections_that_the_server_closed_are_not_missed(url: str) -> None:
    store = open_store(url)
    await asyncio.gather(*(store.branches("default") for _ in range(8)))
    others = "pid != pg_backend_pid() and backend_type = 'client backend' and datname = current_database()"
    change(url, f"select pg_terminate_backend(pid, 60000) from pg_stat_activity where {others}")
    await asyncio.gather(*(store.branches("default") for _ in range(8)))
    await store.close()


async def test_a_server_with_no_connection_left_is_waited_for_with_those_there_are(own: postgres.Server) -> None:
    own.stop()
    own.start("max_connections=12", "superuser_reserved_connections=0")
    with ExitStack() as held:
        store = open_store(own.url())
        engine = Engine(store)
        await engine.prepare(Request(conversation(0, 2)))
        with suppress(psycopg.OperationalError):
            while True:
                held.enter_context(closing(psycopg.connect(own.url())))
        views = await asyncio.gather(*(engine.prepare(Request(conversation(n, 2), session=f"s{n}")) for n in range(20)))
        assert len({view.branch for view in views}) == 20
        with pytest.raises(StoreError, match="too many clients"):
            open_store(own.url())
    await store.close()


@pytest.mark.nightly
async def test_nothing_acknowledged_is_lost_by_a_crash_of_the_server(own: postgres.Server) -> None:
    command = [sys.executable, "-c", WRITER, own.url()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(12)]
        own.stop(signal.SIGQUIT)
        rest, told = writer.communicate()
    assert told.splitlines()[-1].startswith("clew.errors.StoreError: postgresql://clew:***@/")
    own.start()
    store = open_store(own.url())
    for branch, seq, count in map(str.split, [*lines, *rest.splitlines()]):
        calls = {c.seq: c for c in await store.calls("default", branch)}
        assert len((await Engine(store).resume("default", calls[int(seq)])).nodes) == int(count)
    assert await store.check(deep=True) == []
    await store.close()


async def test_a_deadlock_is_a_conflict_and_the_turn_is_tried_again(url: str) -> None:
    store = open_store(url)
    with psycopg.connect(url, options="-c search_path=clew") as other:
        other.execute("set deadlock_timeout = '1min'")  # so that it is the turn that gives way
        other.execute("lock table body in exclusive mode")
        turn = asyncio.create_task(Engine(store).prepare(Request(conversation(1, 3))))
        while not waiting(url):
            await asyncio.sleep(0.01)
        await asyncio.to_thread(other.execute, "lock table node in exclusive mode")  # which the turn has written to
        other.rollback()
    assert (await turn).nodes
    assert await store.check(deep=True) == []
    await store.close()


def waiting(url: str) -> bool:
    with psycopg.connect(url) as db:
        return db.execute("select 1 from pg_locks where not granted").fetchone() is not None


async def test_many_writers_and_purges_at_once_lose_no_body(url: str) -> None:
    stores = [open_store(url) for _ in range(3)]

    async def talk(n: int) -> None:
        for turn in range(4):  # the same words in all of them, in another order
            messages = [{"role": "user", "content": f"{(turn * n + i) % 7} " * 20} for i in range(7)]
            await Engine(stores[n % 3], Budget(window=1_000, reserve=100)).prepare(Request({"messages": messages}))

    async def purge() -> None:
        for _ in range(4):
            gone = [b.id for b in await stores[0].branches("default")][::2]
            await stores[0].purge("default", gone, "test")

    await asyncio.gather(*(talk(n) for n in range(1, 7)), purge())
    assert [p for p in await stores[1].check(deep=True) if "purges" not in p.what] == []
    for store in stores:
        await store.close()


async def test_bytes_are_not_called_wiped_while_somebody_can_still_see_them(url: str) -> None:
    store = open_store(url)
    view = await Engine(store).prepare(Request(conversation(1, 3)))
    with psycopg.connect(url) as other:
        other.execute("begin isolation level repeatable read")
        other.execute("select 1 from pg_class limit 1")
        assert not (await store.purge("default", [view.branch], "test")).wiped
        [problem] = await store.check()
        assert (problem.what, problem.count) == ("purges whose bytes may still be in the file", 1)
    assert await store.repair()
    assert await store.check() == []
    await store.close()


SAMPLED = """select tablename, attname from pg_stats where schemaname = 'clew' and
    concat(most_common_vals, most_common_elems, histogram_bounds) ilike '%orchid%'"""
DEFAULT = "alter table body_text alter column words set statistics -1"


async def test_the_servers_samples_hold_nothing_that_was_said(url: str) -> None:
    store = open_store(url)
    for n in range(30):
        said = {"role": "user", "content": f"orchid {n}"}
        await Engine(store).prepare(Request({"model": "gpt-4o", "messages": [said]}, session=f"s{n}"))
    stored = "select attname, attstorage from pg_attribute where attrelid in ('body'::regclass, 'frame'::regclass)"
    with psycopg.connect(url, autocommit=True, options="-c search_path=clew") as db:
        db.execute("analyze")
        assert db.execute(SAMPLED).fetchall() == []
        kept = db.execute(stored).fetchall()
        # As it was before version 8.
        db.execute(DEFAULT)
        db.execute("analyze")
        assert db.execute(SAMPLED).fetchall() == [("body_text", "words")]
        db.execute("update meta set value = '7' where key = 'version'")
        await store.close()
        await open_store(url).close()
        db.execute("analyze")
        assert db.execute(SAMPLED).fetchall() == []
        assert db.execute(stored).fetchall() == kept
        assert ("data", "e") in kept


BODY = "(select max(id) from body where packed = 2)"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("damage", "what", "mended"),
    [
        ("delete from branch where session = 's0'", "events of no branch", False),
        ("update branch set parent = 'nobody' where session = 's0'", "branches that fork from no branch", False),
        (f"delete from body where id = {BODY}", "nodes without a body", False),
        ("delete from frame", "calls whose frame is not there", False),
        ("update handle set seq = 99999", "recall ids of no event", False),
        ("update head set branch = 'nobody'", "histories of no branch", False),
        (f"update body set data = '' where id = {BODY}", "bodies that cannot be read", False),
        (
            "delete from node where content = (select content from body where id = " + BODY + ")",
            "bodies that no node refers to",
            True,
        ),
        ("insert into body_text values (99999, 0, '')", "search entries of no body", True),
        ("delete from body_text", "bodies missing from the search index", True),
    ],
)
async def test_each_damage_is_found_and_what_cannot_lose_anything_is_mended(
    url: str, damage: str, what: str, mended: bool
) -> None:
    store = open_store(url)
    await Engine(store, Budget(window=3_000)).prepare(Request(conversation(0, 20), session="s0"))
    change(url, damage)
    found = await store.check(deep=True)
    assert any(p.what.startswith(what) and p.count for p in found), found
    assert all(p.remedy == ("`clew doctor --repair`" if mended else "restore a backup with pg_restore") for p in found
               if p.what.startswith(what))  # fmt: skip
    if mended:
        assert await store.repair()
        assert [p for p in await store.check(deep=True) if "--repair" in p.remedy] == []
    await store.close()


async def test_backups_are_the_servers(url: str) -> None:
    store = open_store(url)
    with pytest.raises(StoreError, match="use pg_dump and pg_restore for PostgreSQL"):
        await store.backup("copy")
    await store.close()


async def test_schemas_are_stores_of_their_own(url: str) -> None:
    one, two = Postgres(url), Postgres(url, schema='odd "name"')
    assert one.secret != two.secret
    view = await Engine(two).prepare(Request(conversation(1, 2)))
    assert await one.branches("default") == []
    assert (await two.purge("default", [view.branch], "test")).wiped
    for store in (one, two):
        await store.close()
