"""The window of a very long conversation, beside the same one read as a whole."""

from pathlib import Path

from clew import Request, run
from clew.core.limits import Budget
from clew.engine.engine import Engine
from clew.sessions.conversation import Conversation
from clew.sessions.long_window import VERY_LONG, LongWindow, LongWindows
from clew.store.places import open_store

LATER = 40  # items that are said after the first call


async def _looked_at(place: Path) -> None:
    said = [{"role": ("user", "assistant")[n % 2], "content": f"Word {n} of many."} for n in range(VERY_LONG + LATER)]
    store = open_store(place)
    try:
        engine = Engine(store, Budget(window=1_000_000))
        for until in (VERY_LONG + 1, VERY_LONG + LATER - 1):
            view = await engine.prepare(Request({"model": "gpt-4o", "messages": said[:until]}, session="long"))
            await engine.observe(view, {"input_tokens": 9_000, "output_tokens": 5})
        whole = Conversation(engine, view.scope, view.branch)
        for call in await whole.calls():
            windows = LongWindows(engine)
            found, _ = await windows.of(view.scope, view.branch, call.call.seq, call.number, call.call.predicted)
            assert isinstance(found, LongWindow)
            assert not found.parts, "nobody has counted yet"
            read = await whole.window(call=call.number)
            assert [node.id for node in found.view.nodes] == [node.id for node in read.view.nodes]
            shown = await windows.some(view.scope, found, 100, 160)
            assert [one.node for one in shown] == list(read.view.nodes[100:160])
            counted = await windows.counted(view.scope, found, as_sent=True)
            assert (counted.sent, counted.parts) == (read.sent, read.parts)
    finally:
        await store.close()


def test_what_was_not_read_is_the_same(tmp_path: Path) -> None:
    run(_looked_at(tmp_path / "clew.db"))
