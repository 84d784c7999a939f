"""Two processes on one conversation: a chapter is asked for, and paid for, once."""

import asyncio
from pathlib import Path

from clew import Budget, Engine, Request, SQLite
from clew.engine.settings import Settings
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Prompt, Reply
from clew.testing import ScriptedModel, write_chapter
from test_chapters import session

BUDGET = Budget(window=12_000, reserve=1_000, tail=1_000)


class Slow(ScriptedModel):
    async def __call__(self, prompt: Prompt) -> Reply:
        await asyncio.sleep(0.1)
        return await super().__call__(prompt)


async def test_two_processes_pay_once(tmp_path: Path) -> None:
    models = [Slow(write_chapter), Slow(write_chapter)]
    stores = [SQLite(tmp_path / "clew.db") for _ in models]
    made = [Settings(author=ByModel(model, size=300)) for model in models]
    engines = [Engine(store, BUDGET, own) for store, own in zip(stores, made, strict=True)]
    messages = session(60)
    for n in range(1, 60):
        for engine in engines:
            await engine.prepare(Request({"model": "gpt-4o", "messages": messages[: 1 + 2 * n]}, session="work"))
        await asyncio.sleep(0.03)
    await asyncio.sleep(0.3)
    read = [line for m in models for p in m.prompts for line in p.text.splitlines() if "call bash: " in line]
    assert len(read) > 20
    assert len(read) == len(set(read)), "nothing was read by both"
    for engine, store in zip(engines, stores, strict=True):
        await engine.close()
        await store.close()
