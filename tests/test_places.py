"""What holds wherever a store is: a file or a database; and that a password is nowhere to be read."""

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import Any

import pytest
from typer.testing import Result

from clew import Budget, Engine, Request, SQLite, config, open_store
from clew.errors import NotFound, StoreError, install_line
from clew.store.addresses import hidden
from clew.store.places import Server, is_url
from clew.store.sql import SQLStore
from clew.testing import conversation
from processes import Begun
from shell import invoke
from store_promises import check_store

OPENER = """
import asyncio, sys, clew
from clew.testing import conversation
async def main(place):
    store = clew.open_store(place)
    view = await clew.Engine(store).prepare(clew.Request(conversation(1, 3), session=sys.argv[2]))
    print(store.secret.hex(), len(view.nodes))
    await store.close()
asyncio.run(main(sys.argv[1]))
"""
Message = dict[str, Any]


async def said(store: SQLStore, *texts: str) -> list[str]:
    """Say these in one conversation; their contents."""
    messages = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    view = await Engine(store, Budget(window=5_000_000)).prepare(Request({"messages": messages}))
    return [place.content for place in (await store.load("default", view.branch)).said]


async def test_a_store_keeps_what_its_protocol_promises(store: SQLStore) -> None:
    await check_store(store)
    assert await store.check(deep=True) == []


async def test_words_are_found_alike(store: SQLStore) -> None:
    texts = [
        "An Übergröße of naïve cafés",
        "the function count_tokens(view) in src/clew/view.py",
        "東京 and данные",
        "a b c 42 x86_64",
        "!!! ... ???",
    ]
    contents = await said(store, *texts)

    async def hits(words: str) -> set[int]:
        found = await store.search("default", words, contents, 10)
        assert set(await store.search("default", words, None, 10)) == set(found)  # there is nothing else here
        return {contents.index(c) for c in found}

    expected: dict[str, set[int]] = {
        "übergröße": {0}, "UBERGROßE": {0}, "cafe": {0}, "naïve": {0}, "count_tokens": {1}, "count": {1},
        "tokens": set(), "cou": set(), "view.py": {1}, "clew": {1}, "東京": {2}, "ДАННЫЕ": {2}, "данн": {2}, "42": {3},
        "x86_64": {3}, "x86": set(), "nowhere": set(), "tokyo 42 cafe": {0, 3},
        "'); drop table body; --": set(), "\0\ud800 42": {3},
    }  # fmt: skip
    assert {words: await hits(words) for words in expected} == expected
    assert await store.search("default", "cafe", contents[1:], 10) == []
    for among in (contents, None):
        assert await store.search("other", "cafe", among, 10) == []
    await Engine(store).prepare(Request({"messages": [{"role": "user", "content": "another café"}]}, scope="other"))
    assert await store.search("default", "cafe", None, 10) == contents[:1]
    assert len(await store.search("other", "cafe", None, 10)) == 1


async def test_rare_words_lead(store: SQLStore) -> None:
    contents = await said(store, *(f"common words, {n}" for n in range(20)), "common needle", "common words again")
    found = await store.search("default", "common needle", contents, 5)
    assert found[0] == contents[20]
    assert len(found) == 5


@pytest.mark.few(1)
async def test_a_text_of_many_words_is_found_by_each(store: SQLStore) -> None:
    random = Random(1)
    words = [f"{random.getrandbits(60):x}" for _ in range(70_000)]  # 1.1 MB; no two alike
    contents = await said(store, " ".join(words), "x" * 1_000_000)
    for n in (0, 35_000, 69_999):
        assert await store.search("default", words[n], contents, 10) == contents[:1]
    assert await store.search("default", "x" * 600, contents, 10) == contents[1:]
    assert await store.check(deep=True) == []


async def test_what_no_text_column_takes_is_kept(store: SQLStore) -> None:
    odd = "nul \0, lone \ud800, \\u0000 and \\ud800"
    message = {"role": "user", "content": odd, "metadata": {odd: odd}, "name": odd}
    messages = [message, {"role": "assistant", "content": "x " * 4_000}, {"role": "user", "content": "and?" + odd}]
    view = await Engine(store, Budget(window=2_000, reserve=100)).prepare(Request({"messages": messages}))
    places = (await store.load("default", view.branch)).said
    nodes = await store.nodes("default", [p.id for p in places])
    first = nodes[places[0].id].item
    assert (first.text, first.opens.keys["metadata"] if first.opens else None) == (odd, {odd: odd})
    again = await Engine(store).resume("default", (await store.calls("default", view.branch))[-1])
    assert again.nodes == view.nodes
    await store.learn("default", "odd", "name", {odd: odd})
    assert await store.learned("default", "odd") == {"name": {odd: odd}}


@pytest.mark.few(1)
def test_processes_that_open_an_empty_place_at_once_share_it(empty: str) -> None:
    with TemporaryFile() as errors:
        with (
            Begun("-c", OPENER, empty, "0", stderr=errors) as one,
            Begun("-c", OPENER, empty, "1", stderr=errors) as two,
        ):
            told = {one.stdout.read(), two.stdout.read()}
        errors.seek(0)
        assert errors.read() == b""
    assert len(told) == 1


async def test_looking_makes_nothing(empty: str) -> None:
    with pytest.raises(NotFound, match="no store found"):
        open_store(empty, create=False)
    with pytest.raises(NotFound, match="no store found"):
        open_store(empty, create=False)
    await open_store(empty).close()
    await open_store(empty, create=False).close()


async def test_what_a_store_takes_is_told(store: SQLStore, place: str) -> None:
    view = await Engine(store, Budget(window=3_000)).prepare(Request(conversation(1, 20), session="s"))
    found = await store.survey()
    assert found.path == hidden(place)
    assert found.file > found.body_pages > found.stored > 0
    assert found.file > found.index_pages > 0
    [scope] = found.scopes
    assert (scope.name, scope.branches, scope.sessions, scope.calls) == ("default", 1, 1, 1)
    assert await store.idle("default", 0) == []
    assert await store.idle("default", 1e12) == [view.branch]
    assert await store.repair()
    assert await store.check(deep=True) == []


# --- the commands -----------------------------------------------------------------------------------------------------


def run(place: str, *args: str) -> Result:
    env = {"CLEW_STORE": place, "COLUMNS": "80", "FORCE_COLOR": None, "TTY_COMPATIBLE": None}
    done = invoke(list(args), env=env)
    assert "sesame" not in done.output + done.stderr
    return done


def test_commands_work_wherever_the_store_is(place: str, tmp_path: Path) -> None:
    talk = tmp_path / "talk.json"
    talk.write_text(json.dumps(conversation(1, 30)))
    assert run(place, "import", str(talk), "--as", "talk").exit_code == 0
    listed = run(place, "show").stdout
    assert "talk" in listed
    assert run(place, "show", "--store", place).stdout == listed
    assert "no problem found" in run(place, "doctor").stdout
    assert run(place, "purge", "--all", "--yes").exit_code == 0
    assert "is empty" in run(place, "show").stderr


def test_a_place_without_a_store_is_told(empty: str) -> None:
    done = run(empty, "show", "anything")
    assert done.exit_code == 1
    assert f"{hidden(empty)}: no store found" in " ".join(done.stderr.split())


# --- URLs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:sesame@host/db", "postgresql://me:***@host/db"),
        ("postgres://me:ses@me/sesame@host:1/db?x=y", "postgres://me:***@host:1/db?x=y"),
        ("postgresql://host/db?user=me&password=sesame&x=y", "postgresql://host/db?user=me&password=***&x=y"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("host=x password=sesame", "host=x password=***"),
    ],
)
def test_a_password_is_not_shown(url: str, shown: str) -> None:
    assert hidden(url) == str(Server(url)) == shown
    assert "sesame" not in repr(Server(url))


@pytest.mark.parametrize(
    "url",
    ["postgresql://me:sesame@127.0.0.1:1/db", "postgresql://me:sesame@host:port:5/db", "postgresql://a:sesame@[::1/db"],
)
def test_no_error_quotes_a_password(url: str) -> None:
    with pytest.raises(StoreError) as error:
        open_store(url)
    told: BaseException | None = error.value
    while told:
        assert "sesame" not in str(told)
        told = told.__cause__


def test_the_configuration_takes_a_url_and_does_not_show_it_all(tmp_path: Path) -> None:
    url = "postgresql://me:sesame@host/db"
    found = config.load({"CLEW_STORE": url, "HOME": str(tmp_path)}, tmp_path)
    assert isinstance(found.store, Server)
    assert found.store.url == url
    for args in (["config"], ["config", "--json"], ["config", "get", "store"]):
        assert "postgresql://me:***@host/db" in run(url, *args).stdout
    assert "is restored with pg_restore" in run(url, "backup", "--restore", str(tmp_path / "x")).stderr


def test_without_the_extra_one_is_told_what_to_install() -> None:
    code = "import sys; sys.modules['psycopg'] = None; import clew; clew.open_store('postgresql://x/y')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith(f"needs psycopg: {install_line('postgres')}")


async def test_a_path_is_a_file(tmp_path: Path) -> None:
    assert not is_url(str(tmp_path))
    store = open_store(tmp_path / "clew.db")
    assert isinstance(store, SQLite)
    await store.close()
