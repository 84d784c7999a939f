"""Damage in a store file: what comes out is what was said, or a StoreError that says what to do."""

import random
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from amounts import cases
from clew import Budget, Engine, Request, SQLite
from clew.engine.append import Addition
from clew.errors import ClewError, Conflict, NotFound, StoreError
from clew.sessions.export_log import export
from clew.store.sqlite.damage import damage_at
from made_once import copied
from test_exports import busy

FLIPS = cases(20, dear=True)


async def exported(store: SQLite, branch: str) -> list[bytes]:
    return [line async for line in export(store, "default", [branch])]


async def asked(store: SQLite, branches: list[str], ids: list[str]) -> AsyncIterator[tuple[str, Any]]:
    """All that can be asked of a store, each with its answer, or with the error that came instead."""
    engine = Engine(store, Budget(window=100_000))
    questions: dict[str, Callable[[str], Coroutine[Any, Any, Any]]] = {
        "load": lambda branch: store.load("default", branch),
        "calls": lambda branch: store.calls("default", branch),
        "view": lambda branch: engine.view("default", branch),
        "export": lambda branch: exported(store, branch),
    }
    for name, ask in questions.items():
        for branch in branches:
            yield f"{name} {branch}", await _answer(ask(branch))
    for id in ids:
        yield f"recall {id}", await _answer(store.originals("default", id))
    yield "sessions", await _answer(store.sessions("default"))
    yield "search", await _answer(store.search("default", "value line", None, 50))


async def _answer(work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    except ClewError as error:
        return error


async def asked_after(store: SQLite) -> tuple[list[str], list[str]]:
    """A busy store: its branches, and the ids of all that was said."""
    await busy(store)
    branches = [b.id for b in await store.branches("default")]
    return branches, sorted({p.id for branch in branches for p in (await store.load("default", branch)).said})


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(2))
async def test_a_flipped_bit_gives_what_was_said_or_a_clear_error(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "clew.db"
    branches, ids = await copied(path, asked_after)
    ids = ids[::9]
    store = SQLite(path)
    said = {id: await store.originals("default", id) for id in ids}
    await store.close()
    whole, chance = path.read_bytes(), random.Random(seed)
    for _ in range(FLIPS):
        data = bytearray(whole)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        try:
            store = SQLite(path)
        except StoreError:
            continue
        async for question, answer in asked(store, branches, ids):
            # A branch or frame whose own name is damaged is not there.
            assert not isinstance(answer, ClewError) or isinstance(answer, StoreError | NotFound), (question, answer)
            if question.startswith("recall") and not isinstance(answer, ClewError):
                assert [n.item.text for n in answer] == [n.item.text for n in said[question.split()[1]]]
        await store.close()
        for beside in tmp_path.glob("clew.db-*"):
            beside.unlink()


async def three(store: SQLite) -> dict[str, str]:
    """Three conversations, each about something else: their branches."""
    engine, branches = Engine(store, Budget(window=100_000)), dict[str, str]()
    for name in ("orchid", "malachite", "cobalt"):
        messages = list[dict[str, Any]]()
        for n in range(24):
            messages.append({"role": ("user", "assistant")[n % 2], "content": f"{name} {n} " + "and so on " * 30})
            body = {"model": "gpt-4o", "messages": list(messages)}
            branches[name] = (await engine.prepare(Request(body, "openai_chat", session=name))).branch
    return branches


@pytest.mark.few(4)
@pytest.mark.parametrize("way", ["copied", "swapped"])
@pytest.mark.parametrize("table", ["event", "body", "node", "session", "branch", "meta", "body_text_idx", "scope"])
async def test_pages_in_the_place_of_others_tell_nothing_of_another_conversation(
    tmp_path: Path, table: str, way: str
) -> None:
    path = tmp_path / "clew.db"
    branches = await copied(path, three)
    whole, size = path.read_bytes(), int.from_bytes(path.read_bytes()[16:18])
    try:
        with closing(sqlite3.connect(path)) as db:
            pages = [
                n for (n,) in db.execute("select pageno from dbstat where name = ? and pagetype = 'leaf'", [table])
            ]
            others = [n for (n,) in db.execute("select pageno from dbstat where name <> ?", [table])]
    except sqlite3.OperationalError:
        pytest.skip("this SQLite does not tell which pages are whose")
    alike = [n for n in others if whole[(n - 1) * size] == whole[(pages[0] - 1) * size]][:2]
    for one, other in [*permutations(pages[: cases(6)], 2), *((pages[0], n) for n in alike)]:
        data = bytearray(whole)
        here, there = (slice((n - 1) * size, n * size) for n in (one, other))
        data[there] = whole[here]
        data[here] = whole[there] if way == "swapped" else whole[here]
        await _tells_nothing_else(path, bytes(data), branches)


async def _tells_nothing_else(path: Path, data: bytes, branches: dict[str, str]) -> None:
    for beside in path.parent.glob("clew.db*"):
        beside.unlink()
    path.write_bytes(data)
    try:
        store = SQLite(path)
    except StoreError:
        return
    engine = Engine(store, Budget(window=100_000))
    for name, branch in branches.items():
        said = {"role": "user", "content": f"{name} more"}
        for told in (
            await _answer(engine.view("default", branch)),
            await _answer(exported(store, branch)),
            await _answer(engine.find("default", "and so on", branch, 40)),
            await _answer(engine.append(Addition({"messages": [said]}, name, "openai_chat"))),
            await _answer(store.check(deep=True)),
        ):
            assert not isinstance(told, ClewError) or isinstance(told, StoreError | NotFound | Conflict), repr(told)
            assert not any(other in str(told) for other in branches if other != name), (name, branch)
    await store.close()


SHORT = "(select min(id) from body where packed = 0 and kind = 't')"
LONG = "(select min(id) from body where packed = 2)"


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "damage",
    [
        f"update body set data = x'00' where id = {LONG}",
        f"update body set data = substr(data, 1, 20) where id = {LONG}",
        f"update body set data = x'ff' || substr(data, 2) where id = {SHORT}",
        f"update body set data = replace(cast(data as text), 'text', 'tixt') where id = {SHORT}",
        f"update body set data = cast(replace(cast(data as text), 'a', 'e') as blob) where id = {SHORT}",
        "update body set kind = 'tezt'",
        "update event set note = replace(note, 'evidence', 'evidense')",
        "update event set note = substr(note, 2)",
        "delete from node where content in (select content from body where packed = 0)",
        "update frame set data = x'00'",
    ],
)
async def test_each_damage_is_a_clear_error(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "clew.db"
    branches, ids = await copied(path, asked_after)
    with closing(sqlite3.connect(path)) as db:
        db.execute(damage)
        db.commit()
    store = SQLite(path)
    errors = [answer async for _, answer in asked(store, branches, ids) if isinstance(answer, ClewError)]
    assert errors
    assert {type(error) for error in errors} <= {StoreError, *StoreError.__subclasses__()}
    assert all("clew doctor" in str(error) for error in errors)
    await store.close()


async def test_a_file_that_lacks_its_last_page_is_told_to_be_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "clew.db"
    await copied(path, asked_after)
    whole = path.read_bytes()
    path.write_bytes(whole[: -int.from_bytes(whole[16:18])])
    [found] = damage_at(path)
    assert found.what.startswith("the file was cut off: ")
    assert found.count == 1
