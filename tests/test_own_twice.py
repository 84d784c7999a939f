"""Two processes on one conversation: a chapter is asked for, and paid for, once."""

from pathlib import Path

from clew import Budget, Engine, Request, SQLite
from clew.engine.settings import Settings
from clew.steps.chapters.by_model import ByModel
from clew.testing import write_chapter
from test_chapters import Held, drafts_end, session

BUDGET = Budget(window=12_000, reserve=1_000, tail=1_000)


async def test_two_processes_pay_once(tmp_path: Path) -> None:
    models = [Held(write_chapter), Held(write_chapter)]
    stores = [SQLite(tmp_path / "clew.db") for _ in models]
    made = [Settings(author=ByModel(model, size=300)) for model in models]
    engines = [Engine(store, BUDGET, own) for store, own in zip(stores, made, strict=True)]
    messages = session(48)
    for n in range(1, 48):
        for engine in engines:
            await engine.prepare(Request({"model": "gpt-4o", "messages": messages[: 1 + 2 * n]}, session="work"))
        for model in models:  # while one has the question, the other process comes with the same
            model.gate.set()
        await drafts_end()
        for model in models:
            model.gate.clear()
    read = [line for m in models for p in m.prompts for line in p.text.splitlines() if "call bash: " in line]
    assert len(read) > 20
    assert len(read) == len(set(read)), "nothing was read by both"
    for engine, store in zip(engines, stores, strict=True):
        await engine.close()
        await store.close()
