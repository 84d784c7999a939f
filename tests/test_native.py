"""The provider's own compaction as a step: asked over real HTTP, its answer sent on, its originals brought back."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest

from clew import Budget, Engine, Pipeline, Request, View, body
from clew.engine.settings import Settings
from clew.llm.anthropic import AnthropicModel
from clew.llm.openai import OpenAIModel
from clew.steps import Native, Summarize, Trim
from clew.store.sql import SQLStore
from clew.testing import Answer, ScriptedCompactor, StrictProvider, view_of
from clew.tokens.target import Target
from clew.wire import check

MODEL = "model-of-these-tests"
BUDGET = Budget(window=90_000, reserve=8_000, tail=6_000, high=0.7, low=0.5)
SEALED = "gAAAAAB-only-the-provider-reads-this"
FORMATS = {"openai_responses": "input", "anthropic": "messages"}
ASK = "Build all parts. Never touch the billing tables."

Message = dict[str, Any]


def session(format: str, parts: int) -> list[Message]:
    """An agent builds one part after the other; at every tenth the user says something."""
    said: list[Message] = [{"role": "user", "content": ASK}]
    for n in range(parts):
        said += CALLED[format](f"call_{n}", f"make part_{n}", f"handler_{n} took {n * 7} ms in src/part_{n}.py\n" * 160)
        if n % 10 == 9:
            said += [
                {"role": "assistant", "content": f"Parts up to {n} are built."},
                {"role": "user", "content": f"Go on after part {n}, but leave port {5_000 + n} alone."},
            ]
    return said


def _responses(id: str, command: str, output: str) -> list[Message]:
    call = {"type": "function_call", "call_id": id, "name": "bash", "arguments": f'{{"command": "{command}"}}'}
    return [call, {"type": "function_call_output", "call_id": id, "output": output}]


def _messages(id: str, command: str, output: str) -> list[Message]:
    use = {"type": "tool_use", "id": id, "name": "bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": id, "content": output}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


CALLED = {"openai_responses": _responses, "anthropic": _messages}


def request(format: str, said: list[Message]) -> Message:
    tool: Message = {"name": "bash", "description": "Run a command."}
    if format == "anthropic":
        tools = [{**tool, "input_schema": {"type": "object"}}]
        return {"model": MODEL, "max_tokens": 1_000, "system": "You build.", "tools": tools, "messages": said}
    tools = [{**tool, "type": "function", "parameters": {"type": "object"}}]
    return {"model": MODEL, "instructions": "You build.", "tools": tools, "input": said}


@dataclass
class Session:
    """An engine that asks a provider to compact, and a client that sends what comes out of it to the same provider."""

    format: str
    provider: StrictProvider
    engine: Engine
    client: Any

    async def turn(self, said: list[Message]) -> View:
        view = await self.engine.prepare(Request(request(self.format, said), format=self.format))
        sent = body(view)
        assert check(sent, self.format) == []
        if self.format == "anthropic":
            beta = {"anthropic-beta": "compact-2026-09-04"}
            answer = await self.client.post("/v1/messages", body=sent, cast_to=object, options={"headers": beta})
        else:
            answer = await self.client.post("/responses", body=sent, cast_to=object)
        assert answer["usage"]["input_tokens"] > 0
        return view

    def compactions(self) -> list[Message]:
        """What the provider was asked to compact."""
        if self.format == "anthropic":
            return [h.body for h in self.provider.heard if "compaction" in h.body]
        return [h.body for h in self.provider.heard if h.path.endswith("/compact")]


@asynccontextmanager
async def running(format: str, provider: StrictProvider, store: SQLStore) -> AsyncIterator[Session]:
    model: AnthropicModel | OpenAIModel
    client: Any
    if format == "anthropic":
        model = AnthropicModel(MODEL, base_url=provider.url)
        client = anthropic.AsyncAnthropic(api_key="none", base_url=provider.url, max_retries=0)
    else:
        model = OpenAIModel(MODEL, base_url=f"{provider.url}/v1")
        client = openai.AsyncOpenAI(api_key="none", base_url=f"{provider.url}/v1", max_retries=0)
    engine = Engine(store, BUDGET, Settings(step=Pipeline(Native(model), Summarize(), Trim()), expand=False))
    try:
        yield Session(format, provider, engine, client)
    finally:
        await client.close()
        await model.close()
        await engine.close()


@pytest.fixture
def provider() -> Iterator[StrictProvider]:
    with StrictProvider([Answer(SEALED)]) as provider:
        yield provider


def by(view: View) -> list[str]:
    return [edit.by.partition("(")[0] for edit in view.edits]


def named(line: str) -> str:
    """The id in a line that stands for something."""
    return line.split("recall ")[1].strip("]")


def sealed(view: View) -> list[Any]:
    """What only the provider can read, as it will be sent."""
    return [n.item.wire for n in view.nodes if n.item.kind == "opaque"]


@pytest.mark.parametrize("format", FORMATS)
async def test_a_view_goes_on_from_what_the_provider_made_of_it(
    format: str, provider: StrictProvider, store: SQLStore
) -> None:
    said = session(format, 75)
    async with running(format, provider, store) as run:
        before = await run.turn(session(format, 20))
        view = await run.turn(said)
        again = await run.turn(session(format, 77))
    assert (by(before), {*by(view)}, by(again)) == ([], {"Native"}, by(view))
    (block,) = sealed(view)
    assert block["type"] == "compaction"
    assert block["content" if format == "anthropic" else "encrypted_content"] == SEALED
    sent = body(view)[FORMATS[format]]
    assert len(str(sent)) < 0.5 * len(str(said))
    assert sent[-2:] == said[-2:]
    assert body(again)[FORMATS[format]][: len(sent)] == sent, "while nothing is compacted, the prefix stays"
    (asked,) = run.compactions()
    assert asked[FORMATS[format]] == said[: len(asked[FORMATS[format]])], "the part before the tail, as it was said"


@pytest.mark.parametrize("format", FORMATS)
async def test_all_that_went_comes_back_byte_for_byte(format: str, provider: StrictProvider, store: SQLStore) -> None:
    said = view_of(request(format, session(format, 75)), format)
    async with running(format, provider, store) as run:
        view = await run.turn(session(format, 75))
        shown = {n.id: n.item for n in view.nodes if n.id not in view.stand_ins()}
        lines = [n.item.text for n in view.nodes if n.item.kind == "summary"]
        for line in lines:
            back = await run.engine.recall(view.scope, named(line), view.branch)
            shown |= {n.id: n.item for n in back}
        for edit in view.edits:
            for node in edit.stand_ins:
                assert {n.id for n in await run.engine.recall(view.scope, node.id)} == {*edit.sources}
        (call,) = await store.calls(view.scope, view.branch)
        assert body(await run.engine.resume(view.scope, call)) == body(view)
    assert sorted(map(repr, shown.values())) == sorted(repr(n.item) for n in said.nodes)


@pytest.mark.parametrize("format", FORMATS)
async def test_the_second_compaction_is_made_of_the_first_and_what_is_new(
    format: str, provider: StrictProvider, store: SQLStore
) -> None:
    async with running(format, provider, store) as run:
        first = await run.turn(session(format, 75))
        provider.script = [Answer("the second")]
        second = await run.turn(session(format, 150))
        lines = [n.item.text for n in second.nodes if n.item.kind == "summary"]
        back = [n for line in lines for n in await run.engine.recall(second.scope, named(line))]
    assert {*by(first), *by(second)} == {"Native"}
    (block,) = sealed(second)
    assert "the second" in block.values()
    _, asked = run.compactions()
    assert SEALED in str(asked)
    assert "handler_3 " not in str(asked)
    assert any("handler_3 " in n.item.text for n in back), "behind the second stands all that was behind the first"


async def test_a_host_that_stores_what_was_sent_is_recognised(provider: StrictProvider, store: SQLStore) -> None:
    format = "openai_responses"
    async with running(format, provider, store) as run:
        view = await run.turn(session(format, 75))
        stored = [*body(view)[FORMATS[format]], *CALLED[format]("call_new", "make more", "made")]
        again = await run.turn(stored)
    assert again.branch == view.branch
    assert body(again)[FORMATS[format]] == stored


@pytest.mark.parametrize("format", FORMATS)
async def test_pins_first_exchange_and_newest_turn_stand_where_the_provider_reads_them(format: str) -> None:
    said = [*session(format, 40), *session(format, 60)[1:]]
    view = view_of(request(format, said), format)
    pin = next(n for n in view.nodes if "handler_7 " in n.item.text)
    view = View(view.frame, view.nodes, view.digests, pinned=frozenset({pin.id}))
    after = await Native(ScriptedCompactor(SEALED))(view, Target.of(Budget(40_000, tail=2_000)))
    sent = body(after)[FORMATS[format]]
    assert check(body(after), format) == []
    place = next(i for i, message in enumerate(sent) if SEALED in str(message))
    texts = [str(message) for message in sent]
    ask, newest, pinned = (
        next(i for i, t in enumerate(texts) if text in t) for text in (ASK, "port 5059", "handler_7 ")
    )
    assert newest > place
    if format == "anthropic":
        assert (place, min(ask, pinned) > place) == (0, True), "what stands before the block would be dropped"
    else:
        assert ask < pinned < place < newest, "the order in which it was said"
    users = [t for t in texts if "leave port" in t]
    assert len(users) == (1 if format == "anthropic" else 10), "OpenAI gives back what the user said"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "answer", [Answer(status=500, error="overloaded"), Answer(raw=b"[]"), Answer("too long " * 90_000)]
)
@pytest.mark.parametrize("format", FORMATS)
async def test_where_the_provider_is_of_no_help_code_goes_on(format: str, answer: Answer, store: SQLStore) -> None:
    def answers(sent: Message) -> Answer:
        compacts = "compaction" in sent if format == "anthropic" else "tools" not in sent
        return answer if compacts else Answer()

    with StrictProvider(answers) as provider:
        async with running(format, provider, store) as run:
            view = await run.turn(session(format, 75))
    assert run.compactions()
    assert {*by(view)} == {"Summarize"}
    assert "handler_3" in str(body(view))


async def test_a_format_without_such_a_thing_is_left_to_code() -> None:
    view = view_of({"model": "gpt-4o", "messages": [{"role": "user", "content": "word " * 9_000}] * 9}, "openai_chat")
    assert await Native(ScriptedCompactor())(view, Target.of(Budget(8_000))) is view


async def test_nobody_is_asked_twice_about_the_same() -> None:
    view = view_of(request("anthropic", session("anthropic", 40)), "anthropic")
    budget = Target.of(Budget(12_000, tail=2_000))
    after = await Native(ScriptedCompactor("word " * 5_000))(view, budget)
    assert budget.excess(after)
    assert after is not view
    assert await Native(ScriptedCompactor("word " * 5_000))(after, budget) is after


class Echo:
    """A provider that gives back what the user said, and nothing of its own."""

    async def compact(self, view: View) -> list[Message]:
        return [m for m in body(view)["input"] if m.get("role") == "user"]


async def test_nothing_goes_where_the_provider_wrote_nothing() -> None:
    view = view_of(request("openai_responses", session("openai_responses", 40)), "openai_responses")
    assert await Native(Echo())(view, Target.of(Budget(12_000, tail=2_000))) is view
