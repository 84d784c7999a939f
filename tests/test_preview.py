"""Before the fold: a preview says what the next compaction then does, and nothing is written."""

from pathlib import Path

import pytest

from amounts import cases
from clew import Budget, Engine, Request, Sessions, SQLite, wire
from clew.engine.settings import Settings
from clew.errors import NotFound
from clew.steps.chapters.by_model import ByModel
from clew.testing import ScriptedModel, conversation, write_chapter


@pytest.mark.few(1)
@pytest.mark.parametrize("part", range(2))
async def test_a_preview_is_what_the_compaction_then_does(part: int) -> None:
    formats, folded = sorted(wire.FORMATS), 0
    for number in range(part, cases(24, dear=True), 2):
        engine = Engine(SQLite(":memory:"), Budget(window=6_000, reserve=200))
        format = formats[number % len(formats)]
        body = conversation(number, 3 + number % 9, format, wordy=30)
        view = await engine.prepare(Request(body, format))
        seq = (await engine.store.load("default", view.branch)).seq
        for focus in ("", "the parser and src/clew/view.py"):
            would = await engine.preview(view, focus)
        assert (await engine.store.load("default", view.branch)).seq == seq, "nothing is written"
        cold = Engine(engine.store, engine.budget)
        again = await cold.preview(await cold.view("default", view.branch), focus)
        done = await engine.compact(view, focus)
        assert [(n.id, n.item.text) for n in would.nodes] == [(n.id, n.item.text) for n in done.nodes]
        assert [n.id for n in again.nodes] == [n.id for n in done.nodes], "whoever asks, from the log alone"
        folded += done is not view
        await engine.store.close()
    assert folded >= cases(8, dear=True)


async def test_no_model_is_asked(tmp_path: Path) -> None:
    model = ScriptedModel(write_chapter)
    engine = Engine(SQLite(tmp_path / "clew.db"), Budget(window=8_000, reserve=200), Settings(author=ByModel(model)))
    view = await engine.prepare(Request(conversation(3, 12), session="talk"))
    asked = len(model.prompts)
    found = await Sessions(engine).preview("talk")
    assert len(model.prompts) == asked
    assert found.after < found.before
    assert found.stand_ins
    assert len(found.coverage.fates) > 0
    assert [n.id for n in (await engine.view("default", view.branch)).nodes] == [n.id for n in view.nodes]
    await engine.close()
    await engine.store.close()


async def test_where_there_is_nothing_to_fold_it_says_so() -> None:
    engine = Engine(SQLite(":memory:"), Budget(window=8_000))
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello."}]}
    view = await engine.prepare(Request(body, session="short"))
    assert await engine.preview(view) is view
    with pytest.raises(NotFound, match="a compaction would change nothing"):
        await Sessions(engine).preview("short")
    await engine.store.close()
