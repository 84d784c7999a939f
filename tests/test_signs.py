"""Languages without spaces between words: what a person types is found, in memory and in both stores."""

import sqlite3
from contextlib import closing
from typing import Any

import psycopg
import pytest

import clew
from clew import Budget, Engine, Request
from clew.store.places import is_url
from clew.store.signs import indexed
from clew.store.sql import SQLStore
from clew.text.search import Index, SearchText
from test_purging import ask, terms

SAID = {  # what is said, and what somebody may look for in it
    "会议改到下周三，地点在三楼的大会议室。": ("下周三", "会议室", "三楼", "楼"),
    "这个脚本使用python编写，配置在settings里。": ("python", "脚本", "settings", "配置在"),
    "昨日、東京駅でジョン・スミスさんと猫カフェに行きました。": ("東京", "スミス", "猫", "カフェに行き"),
    "그는 어제 학교에서 돌아왔습니다": ("학교", "돌아왔"),
    "พรุ่งนี้เราจะไปซื้อน้ำที่ตลาด": ("น้ำ", "ตลาด", "ซื้อน้ำ"),
    "ខ្ញុំរៀនភាសាខ្មែរនៅសាលា": ("ភាសា",),
    "𠮷野家で牛丼を食べた": ("𠮷野", "牛丼"),
}
ASKED = [(word, text) for text, words in SAID.items() for word in words]


@pytest.mark.parametrize(("word", "text"), ASKED)
def test_in_memory(word: str, text: str) -> None:
    index = Index([SearchText(said, "user", said) for said in SAID])
    assert index.find(word)[0].id == text


def test_a_sign_that_is_not_there_is_not_found() -> None:
    index = Index([SearchText(said, "user", said) for said in SAID])
    assert [index.find(word) for word in ("犬", "京東", "ดำ")] == [[], [], []]


async def held(store: SQLStore) -> Engine:
    engine = Engine(store, Budget(window=100_000))
    for n, text in enumerate(SAID):
        await engine.prepare(Request(talk(text), session=f"talk {n}"))
    return engine


def talk(text: str) -> dict[str, Any]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}


async def found(engine: Engine, word: str) -> list[str]:
    return [line.text for hit in await clew.Sessions(engine).search(word) for line in hit.found.lines]


async def test_in_a_store(store: SQLStore) -> None:
    engine = await held(store)
    for word, text in ASKED:
        assert (await found(engine, word))[0] == text, word
    for word in ("犬", "京東", "ดำ"):
        assert await found(engine, word) == [], word


async def test_a_purge_leaves_no_pair_in_the_index(store: SQLStore, place: str) -> None:
    engine = await held(store)
    branch = await store.session("default", "talk 0")
    assert branch is not None
    assert "_04f1a08bae" in terms(place)
    await store.purge("default", [branch], "test")
    assert "_04f1a08bae" not in terms(place)
    assert await found(engine, "会议") == []
    assert await store.check() == []


async def test_what_an_older_clew_indexed_is_noticed_mended_and_purged(store: SQLStore, place: str) -> None:
    engine = await held(store)
    for branch in await store.branches("default"):
        if branch.session != "talk 0":
            await store.purge("default", [branch.id], "test")
    index_as_before(place, next(iter(SAID)))
    [problem] = await store.check()
    assert (problem.count, problem.remedy) == (1, "`clew doctor --repair`")
    assert await found(engine, "会议") == []
    await store.repair()
    assert await store.check() == []
    assert await found(engine, "会议")
    index_as_before(place, next(iter(SAID)))
    await store.purge("default", [b.id for b in await store.branches("default")], "test")
    assert terms(place) == set()


def index_as_before(place: str, text: str) -> None:
    """The only body's words as they stand, without pairs."""
    if is_url(place):
        with psycopg.connect(place, autocommit=True) as db:
            plain = ["会议改到下周三", "地点在三楼的大会议室"]
            db.execute("update clew.body_text set words = array_to_tsvector(%s || array['#1'])", [plain])
        return
    [number] = ask(place, "select id from body")[0]
    with closing(sqlite3.connect(place, isolation_level=None)) as db:
        db.execute("insert into body_text (body_text, rowid, text) values ('delete', ?, ?)", [number, indexed(text)])
        db.execute("insert into body_text (rowid, text) values (?, ?)", [number, text])
