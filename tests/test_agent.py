"""The loop over a server as strict as providers are: tools, compaction in mid-loop, new sessions, cancel."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from clew import Budget, Engine, Sessions, SQLite
from clew.agent import Agent, AgentEvent, Answered, Compacted, Ran, Retrying, Running
from clew.agent.tools import Permissions, Plan, Tool, Toolbox
from clew.control import ContextController
from clew.errors import ModelError, NotFound
from clew.llm.streaming import Speaker, Text, speaker
from clew.store.protocol import Store
from clew.testing.provider import Answer, Call, StrictProvider
from clew.wire import decode
from clew.wire.formats import named
from clew.wire.rules.check import check

FORMATS = ("openai_chat", "openai_responses", "anthropic")


def page(n: int) -> str:
    return "\n".join(f"p{n}.txt line {i}: value {n * 1000 + i}" for i in range(40))


def reader() -> Tool:
    """A tool that reads a page."""

    async def planning(page_number: int) -> Plan:
        async def work() -> str:
            return page(page_number)

        return Plan("", work)

    schema = {"type": "object", "properties": {"page_number": {"type": "integer"}}, "required": ["page_number"]}
    return Tool("read_page", "Reads a page.", schema, "read", planning)


def talker(url: str, format: str) -> Speaker:
    base = url if format == "anthropic" else f"{url}/v1"
    text = "anthropic/claude-sonnet-4-5" if format == "anthropic" else "openai/gpt-4o"
    return speaker(text, format=format, base_url=base, api_key="none")


async def done(events: AsyncIterator[AgentEvent]) -> list[AgentEvent]:
    return [event async for event in events]


def agent(provider: StrictProvider, store: Store, format: str, window: int = 8_000, method: str = "auto") -> Agent:
    controller = ContextController(Engine(store, Budget(window=window, reserve=1_000)))
    controller.method = method  # type: ignore[assignment]
    shop = Toolbox([reader()], Permissions())
    return Agent(talker(provider.url, format), controller, shop, system="Be brief.", session="work", limit=1_000)


def reading(pages: int) -> Callable[[dict[str, Any]], Answer]:
    """A model that reads page after page, and then says so."""
    done = iter(range(pages))

    def answer(body: dict[str, Any]) -> Answer:
        n = next(done, None)
        return Answer("All read.") if n is None else Answer(f"Page {n}.", (Call("read_page", {"page_number": n}),))

    return answer


def without_status(sent: dict[str, Any], format: str) -> bytes:
    """What a provider would cache of a request: the status is at its very end, and new each time."""
    key = named(format).LIST
    messages = list(sent[key])
    if format == "anthropic":
        *blocks, last = messages[-1]["content"]
        assert "context_status" in last["text"]
        whole = blocks[0]["text"] if len(blocks) == 1 and blocks[0]["type"] == "text" else blocks
        messages[-1] = {**messages[-1], "content": whole}
    else:
        assert "context_status" in messages.pop()["content"]
    return json.dumps([sent["tools"], sent.get("system"), sent.get("instructions"), messages]).encode()


def moved(provider: StrictProvider, format: str) -> int:
    """How often a request did not begin with all of the one before it."""
    sent = [without_status(heard.body, format) for heard in provider.heard]
    return sum(not now.startswith(before[:-2]) for before, now in pairwise(sent))


@pytest.mark.few(1)
@pytest.mark.parametrize("format", FORMATS)
async def test_a_loop_is_compacted_in_its_middle(store: SQLite, format: str) -> None:
    with StrictProvider(reading(30), window=8_000) as provider:
        worker = agent(provider, store, format)
        events = await done(worker.run("Read all pages."))
        assert isinstance(events[-1], Answered)
        assert (events[-1].text, events[-1].steps) == ("All read.", 31)
        assert sum(isinstance(e, Ran) for e in events) == 30
        compactions = [e for e in events if isinstance(e, Compacted)]
        assert len(compactions) >= 2
        assert all(e.after < e.before for e in compactions[1:])
        for heard in provider.heard:
            assert check(heard.body, format) == []
        # Where the prefix moved, something was compacted; else each request is the last one and more.
        assert len(provider.moved) == len(compactions)
    engine = worker.controller.engine
    session = await Sessions(engine).get("work")
    assert session.number == len(compactions) + 1
    said = (await store.load("default", session.branch)).said
    nodes = await store.nodes("default", [p.id for p in said])
    results = [n.item.text for p in said if (n := nodes[p.id]).item.kind == "result"]
    assert results == [page(n) for n in range(30)]
    await worker.speaker.close()


@pytest.mark.few(1)
@pytest.mark.parametrize("format", FORMATS)
async def test_an_agent_begins_new_sessions_itself_with_its_tasks_intact(store: SQLite, format: str) -> None:
    todos = [{"content": f"read chapter {n}", "status": "pending"} for n in range(5)]
    steps = iter(range(51))
    begun: list[int] = []

    def answer(body: dict[str, Any]) -> Answer:
        n = next(steps)
        if n == 0:
            return Answer("I plan.", (Call("todo_write", {"todos": todos}),))
        if n == 50:
            return Answer("All read.")
        if n in (30, 31, 32):  # three in a row
            begun.append(n)
            beside = (Call("read_page", {"page_number": n}),) if n == 31 else ()
            return Answer("", (*beside, Call("new_session", {"summary": f"Summary {n}: pages up to {n} are read."})))
        return Answer(f"Page {n}.", (Call("read_page", {"page_number": n % 3}),))

    with StrictProvider(answer, window=200_000) as provider:
        worker = agent(provider, store, format, 200_000, "llm")
        worker.toolbox.tools["todo_write"] = todo()
        events = await done(worker.run("Read all chapters. Never skip a page."))
        assert isinstance(events[-1], Answered)
        for n in begun:
            sent = provider.heard[n + 1].body
            opening = decode(sent, format)[1][0].text
            asked = (
                "What the user asked for, word for word:\n- request 1: The user: Read all chapters. Never skip a page."
            )
            by = "By the assistant, not the user:"
            assert opening.startswith(f"{asked}\n\n{by}\n  Summary {n}: pages up to {n} are read.")
            assert opening.count("Never skip a page.") == 1
            for task in todos:
                assert f"open: {task['content']}" in opening
        assert all('"used_pct"' in json.dumps(h.body).replace("\\", "") for h in provider.heard)
        handoffs = [e for e in events if isinstance(e, Compacted) and e.cause == "handoff"]
        assert len(handoffs) == 3
        assert moved(provider, format) == 3  # the cached prefix breaks where a session began, and nowhere else
    engine = worker.controller.engine
    lineage = await Sessions(engine).lineage("work")
    assert [s.cause for s in lineage] == ["start", "handoff", "handoff", "handoff"]
    # Lossless: what the last view shows leads to all that was ever said.
    view = await Sessions(engine).view("work")
    behind = {n.content for shown in view.nodes for n in await engine.recall("default", shown.id)}
    assert {p.content for p in (await store.load("default", view.branch)).said} <= behind
    assert page(31).splitlines()[0] in decode(provider.heard[32].body, format)[1][0].text  # what came beside it
    await worker.speaker.close()


def todo() -> Tool:
    async def planning(todos: list[Any]) -> Plan:
        async def work() -> str:
            return f"{len(todos)} tasks"

        return Plan("", work)

    schema = {"type": "object", "properties": {"todos": {"type": "array"}}, "required": ["todos"]}
    return Tool("todo_write", "Writes the tasks down.", schema, "read", planning)


async def test_an_overflow_that_nobody_foresaw_is_mended_and_the_call_made_again(store: SQLite) -> None:
    with StrictProvider(reading(12), window=5_000) as provider:
        worker = agent(provider, store, "anthropic", window=100_000)  # as somebody believes
        events = await done(worker.run("Read all pages."))
        assert isinstance(events[-1], Answered)
        assert events[-1].text == "All read."
        assert [e.why for e in events if isinstance(e, Retrying)] == ["overflow"]
    await worker.speaker.close()


async def test_a_hook_hears_first_and_may_end_the_turn(store: SQLite) -> None:
    class Enough(Exception):
        pass

    heard: list[str] = []

    async def hook(worker: Agent, event: AgentEvent) -> None:
        heard.append(type(event).__name__)
        if isinstance(event, Ran) and heard.count("Ran") == 2:
            raise Enough

    with StrictProvider(reading(9)) as provider:
        worker = agent(provider, store, "openai_chat", 100_000)
        worker.hooks = (hook,)
        with pytest.raises(Enough):
            await done(worker.run("Read all pages."))
        worker.hooks = ()
        assert isinstance((await done(worker.run("Go on.")))[-1], Answered)
        assert all(check(h.body, "openai_chat") == [] for h in provider.heard)
    await worker.speaker.close()


async def test_what_cannot_be_mended_is_raised(store: SQLite) -> None:
    with StrictProvider([Answer(status=401)]) as provider:
        worker = agent(provider, store, "openai_chat")
        with pytest.raises(ModelError) as refusal:
            await done(worker.run("Hello."))
        assert refusal.value.fault == "auth"
        assert len(provider.heard) == 1
    await worker.speaker.close()


@pytest.mark.few(1)
@pytest.mark.parametrize("format", FORMATS)
async def test_cancel_at_any_moment_leaves_history_valid_and_complete(store: SQLite, format: str) -> None:
    """Cancelled after the first event, the second and so on; the next word goes on, and the provider takes it."""
    for moment in range(0, 24, 3):
        script = reading(3)
        with StrictProvider(script) as provider:
            worker = agent(provider, store, format, 100_000)
            worker.session = f"{format}-{moment}"
            seen: list[AgentEvent] = []

            async def watch(worker: Agent = worker, seen: list[AgentEvent] = seen, moment: int = moment) -> None:
                async for event in worker.run("Read all pages."):
                    seen.append(event)
                    if len(seen) > moment:
                        await asyncio.sleep(10)

            task = asyncio.create_task(watch())
            while len(seen) <= moment and not task.done():
                await asyncio.sleep(0.002)
            if task.done():
                break  # it has said all it had to say
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            again = await done(worker.run("Go on."))
            assert isinstance(again[-1], Answered)
            for heard in provider.heard:
                assert check(heard.body, format) == []
            texts = "".join(e.delta for e in seen if isinstance(e, Text))
            last = json.dumps(provider.heard[-1].body, ensure_ascii=False)
            assert all(part in last for part in texts.split(".") if part.strip())
            ran = [e for e in seen if isinstance(e, Running)]
            items = decode(provider.heard[-1].body, format)[1]
            assert {e.id for e in ran} <= {i.call_id for i in items if i.kind == "result"}
        await worker.speaker.close()


async def test_a_sub_agent_has_a_lineage_of_its_own_and_no_status(store: SQLite) -> None:
    with StrictProvider([Answer("Done.")]) as provider:
        worker = agent(provider, store, "openai_chat", 100_000, "llm")
        await done(worker.run("Read all pages."))
        child = worker.child("pages")
        await done(child.run("Read page 3."))
        assert "context_status" in json.dumps(provider.heard[0].body)
        assert "context_status" not in json.dumps(provider.heard[1].body)
        assert "new_session" not in json.dumps(provider.heard[1].body["tools"])
    lineage = await Sessions(worker.controller.engine).lineage(child.session)
    assert [s.cause for s in lineage] == ["start", "subagent"]
    await worker.speaker.close()


async def test_a_session_goes_on_in_another_process(store: SQLite, tmp_path: Path) -> None:
    with StrictProvider(reading(3)) as provider:
        first = agent(provider, store, "anthropic", 100_000)
        await done(first.run("Read all pages."))
        second = agent(provider, store, "anthropic", 100_000)
        await done(second.run("And now?"))
        one, other = provider.heard[-2].body["messages"], provider.heard[-1].body["messages"]
        assert other[: len(one)] == one
        assert other[-1]["content"] == "And now?"
    await first.speaker.close()
    await second.speaker.close()


@pytest.mark.few(1)
@pytest.mark.parametrize("format", FORMATS)
async def test_a_conversation_is_compacted_or_begun_anew_by_an_engine_that_never_sent_it(
    store: SQLite, format: str
) -> None:
    with StrictProvider(reading(8)) as provider:
        await done(agent(provider, store, format, window=60_000).run("Read all pages. Never touch the config."))
        provider.script = [Answer("Yes.")]
        other = agent(provider, store, format, window=60_000)
        view = await other.view()
        assert await other.controller.engine.compact(view) is not view
        shorter = await other.view()
        assert shorter.stand_ins()
        assert isinstance((await done(other.run("All of them?")))[-1], Answered)
        another = agent(provider, store, format, window=60_000)
        view = await another.view()
        begun = await another.controller.engine.begin(view, "All pages are read.")
        [node] = begun.nodes
        assert "\n\nBy the user:\nAll pages are read.\n" in node.item.text
        assert "Never touch the config." in node.item.text
        assert "the user's own" in node.item.text
        await done(another.run("And now?"))
        for heard in provider.heard:
            assert check(heard.body, format) == []
        assert b"All pages are read." in provider.heard[-1].raw
        assert b"p3.txt line 3" not in provider.heard[-1].raw
    sessions = await Sessions(another.controller.engine).lineage("work")
    assert [(s.cause, s.method) for s in sessions[-2:]] == [("compaction", "manual"), ("handoff", "manual")]


async def test_nothing_can_be_opened_where_nothing_was_said(store: SQLite) -> None:
    with StrictProvider() as provider:
        with pytest.raises(NotFound, match="conversation work is empty"):
            await agent(provider, store, "openai_chat").view()
        assert provider.heard == []
