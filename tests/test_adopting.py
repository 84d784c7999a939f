"""Session files of other agents: imported as they happened, compacted, compared, resumed, and written again."""

import json
from collections.abc import Iterator
from dataclasses import replace as with_
from typing import Any

import pytest

from clew import Budget, Engine, Request, Sessions, body
from clew.engine.settings import Settings
from clew.errors import Conflict
from clew.sessions.export_agent import tell
from clew.sessions.import_agent import adopt
from clew.sessions.transcripts import (
    Transcript,
    TranscriptCompaction,
    TranscriptMessage,
    TranscriptStretch,
    read,
    write,
)
from clew.store.protocol import Store
from clew.wire.formats import named
from clew.wire.rules.check import check
from conftest import conversations
from test_sessions import message


def transcript(turns: int = 12, compacted: tuple[int, ...] = (5, 9), kept: int = 2) -> Transcript:
    """A session of an agent that compacted twice, and kept the last messages in view."""
    stretches, start = [], 0
    first = {"role": "user", "content": "Read all pages."}
    messages: list[dict[str, Any]] = [first, *(m for n in range(turns) for m in message(n))]
    for stop in (*compacted, turns):
        why = TranscriptCompaction(f"Pages up to {start} were read.", "auto", 9_000, kept) if start else None
        stretches.append(TranscriptStretch(tuple(messages[start and 1 + 4 * start : 1 + 4 * stop]), why))
        start = stop
    return Transcript("openai_chat", tuple(stretches), "abc-123", agent="pi", model="gpt-4o", system="Be brief.")


def quiet(store: Store) -> Engine:
    return Engine(store, Budget(window=200_000), Settings(compaction="off"))


async def test_a_session_is_imported_with_its_lineage(store: Store) -> None:
    told = transcript()
    assert await adopt(quiet(store), "default", told, "pi-1") == ["pi-1"]
    sessions = Sessions(Engine(store))
    chain = await sessions.lineage("pi-1")
    assert [s.cause for s in chain] == ["import", "compaction", "compaction"]
    assert sum(s.items for s in chain) == len(told.messages)
    view = await sessions.view("pi-1")
    assert "Pages up to 9 were read." in view.nodes[0].item.text
    kept = [m["content"] for m in told.stretches[1].messages[-2:]]
    assert [n.item.text for n in view.nodes[1:3]] == kept
    assert check(body(view)) == []
    originals = await sessions.engine.recall("default", view.nodes[0].id)
    assert [n.item.text for n in originals if n.item.kind == "text"][:2] == [
        "Read all pages.",
        "Page 0 is read: run-000 looks fine.",
    ]
    diff = await sessions.diff("pi-1.2")
    assert diff.after < diff.before
    assert diff.stand_ins[0].by == "Retold('pi')"


class Looked(tuple[TranscriptMessage, ...]):
    """Messages that count how often all of them are read."""

    times = 0

    def __iter__(self) -> Iterator[TranscriptMessage]:
        self.times += 1
        return super().__iter__()


async def test_what_an_import_reads_of_a_session_does_not_grow_with_its_calls(store: Store) -> None:
    looks = []
    for turns in (4, 40):
        [stretch] = transcript(turns, ()).stretches
        messages = Looked(stretch.messages)
        told = Transcript("openai_chat", (TranscriptStretch(messages),), "abc-123", model="gpt-4o")
        await adopt(quiet(store), "default", told, f"pi-{turns}")
        looks.append(messages.times)
    assert looks[0] == looks[1]


async def test_a_file_that_grew_goes_on_and_another_one_is_refused(store: Store) -> None:
    short, long = transcript(10), transcript(12)
    engine = quiet(store)
    await adopt(engine, "default", short, "pi-1")
    await adopt(quiet(store), "default", short, "pi-1")  # nothing new
    before = await store.sessions("default")
    await adopt(quiet(store), "default", long, "pi-1")
    assert len(await store.sessions("default")) == len(before)
    whole = Sessions(quiet(store))
    await adopt(whole.engine, "default", long, "pi-2")
    assert body(await whole.view("pi-1")) == body(await whole.view("pi-2"))
    other = Transcript("openai_chat", (TranscriptStretch(({"role": "user", "content": "Something else."},)),))
    with pytest.raises(Conflict, match="import it under another name"):
        await adopt(engine, "default", other, "pi-1")


async def test_an_import_that_was_cut_off_before_a_compaction_makes_no_call_of_its_own(store: Store) -> None:
    whole = transcript(10)
    first, *_ = whole.stretches
    await adopt(quiet(store), "default", with_(whole, stretches=(first,)), "cut off")
    await adopt(quiet(store), "default", whole, "cut off")
    await adopt(quiet(store), "default", whole, "at once")
    branches = [await store.session("default", name) for name in ("cut off", "at once")]
    calls = [[c.said for c in await store.calls("default", str(branch))] for branch in branches]
    assert calls[0] == calls[1]


async def test_children_know_whose_they_are(store: Store) -> None:
    told = transcript(6, ())
    agent = Transcript(
        "openai_chat", (TranscriptStretch(({"role": "user", "content": "Look into it."},)),), "a1", cause="subagent"
    )
    fork = Transcript(
        "openai_chat", (TranscriptStretch((*told.messages[:9], *message(99))),), "f1", cause="fork", shared=9
    )
    parent = Transcript(told.format, told.stretches, "abc", model="gpt-4o", children=(agent, fork))
    names = await adopt(quiet(store), "default", parent, "main")
    assert names == ["main", "main-subagent-a1", "main-fork-f1"]
    sessions = Sessions(Engine(store))
    found = {name: await sessions.get(name) for name in names}
    assert {s.parent for name, s in found.items() if name != "main"} == {found["main"].id}
    assert [found[name].cause for name in names] == ["import", "subagent", "fork"]
    assert (await sessions.view("main-fork-f1")).nodes[-1].item.text.startswith("Go on with page 100")


@pytest.mark.few(1)
@pytest.mark.parametrize("format", ["claude-code", "codex", "pi", "opencode"])
async def test_a_conversation_is_told_as_any_agent_would(store: Store, format: str) -> None:
    engine = Engine(store, Budget(window=6_000, reserve=500))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all pages."}]
    for n in range(40):
        messages += message(n)
        view = await engine.prepare(Request({"model": "gpt-4o", "messages": messages}, session="run"))
    told = await tell(engine, "default", view.branch)
    assert told.messages == [{k: v for k, v in m.items() if v is not None or k == "content"} for m in messages]
    assert len(told.compactions) == (await Sessions(engine).get("run")).number - 1
    again = read(write(told, format))
    assert [(at, c.summary) for at, c in again.compactions] == [(at, c.summary) for at, c in told.compactions]
    await adopt(quiet(store), "default", again, "again")
    lineage = await Sessions(engine).lineage("again")
    assert len(lineage) == len(told.compactions) + 1


@pytest.mark.nightly
@pytest.mark.parametrize("agent", ["claude-code", "codex"])
async def test_a_real_session_is_imported_compacted_compared_and_resumed(store: Store, agent: str) -> None:
    transcript = read(write(real_session(agent), agent))
    await adopt(quiet(store), "default", transcript, "real")
    small = Engine(store, Budget(window=30_000))
    sessions = Sessions(small)
    assert len(await sessions.lineage("real")) == len(transcript.compactions) + 1 > 1
    request = body(await sessions.view("real"))
    request[named(transcript.format).LIST].append({"role": "user", "content": "Go on."})
    view = await small.prepare(Request(request, transcript.format, session="real"))
    diff = await sessions.diff("real")
    assert diff.after < diff.before
    assert check(body(view)) == []
    assert body(await sessions.view("real", view.seq)) == body(view)
    recalled = [n for id in (n.id for n in view.nodes) for n in await small.recall("default", id)]
    said = (await store.load("default", view.branch)).said
    assert {p.content for p in said} <= {n.content for n in recalled}


def real_session(agent: str) -> Transcript:
    """The shortest real session of an agent that compacted it, from the corpus."""
    real = [c for c in conversations() if c.get("real_compactions") and c["agent"] == agent]
    if not real:
        pytest.skip("THE CORPUS IS NOT HERE: no real session to import")
    return read(json.dumps(min(real, key=lambda c: c["tokens_est"])).encode())


@pytest.mark.parametrize("kept", [2, 500])
async def test_a_file_that_is_read_again_after_an_undo_or_an_empty_compaction_compacts_nothing(
    store: Store, kept: int
) -> None:
    roomy = Sessions(Engine(store, Budget(window=200_000)))
    await adopt(quiet(store), "default", transcript(10, kept=kept), "pi-1")
    if kept == 2:  # else all was kept, and there is nothing to undo
        await roomy.undo("pi-1")
    before = body(await roomy.view("pi-1"))["messages"]
    await adopt(quiet(store), "default", transcript(12, kept=kept), "pi-1")
    after = body(await roomy.view("pi-1"))["messages"]
    assert after == before + [m for n in (10, 11) for m in message(n)]


@pytest.mark.parametrize("summary", ["All of it was read.", None])
async def test_a_session_that_goes_on_from_another_file_begins_with_its_summary(
    store: Store, summary: str | None
) -> None:
    said = transcript(3, ()).messages
    stretches = TranscriptStretch(()), TranscriptStretch(tuple(said), TranscriptCompaction(summary, "auto", 9, 0))
    fork = Transcript(
        "openai_chat",
        (TranscriptStretch(()), TranscriptStretch((*said[:5], *message(9)), stretches[1].began)),
        "f",
        cause="fork",
        shared=5,
    )
    told = Transcript("openai_chat", stretches, "n", children=(fork,))
    for _ in range(2):
        await adopt(quiet(store), "default", told, "pi-1")
    sessions = Sessions(Engine(store))
    assert [s.cause for s in await sessions.lineage("pi-1")] == ["import"]
    first = [{"role": "user", "content": summary}] if summary else []
    assert body(await sessions.view("pi-1"))["messages"] == [*first, *said]
    assert (await sessions.get("pi-1-fork-f")).items == len(message(9))
