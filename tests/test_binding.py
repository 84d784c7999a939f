"""Signed thinking after a fold: whatever happens to a history, each body that is sent is one its provider takes."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from dataclasses import replace as with_
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import anthropic
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from amounts import cases
from clew import Budget, Engine, Request, SQLite, body, compress
from clew.control import ContextController
from clew.core.view import View
from clew.engine.settings import Settings
from clew.errors import NotFound, OverBudget
from clew.steps import PRESETS
from clew.steps.bound import unbound
from clew.store.sql import SQLStore
from clew.testing import Answer, Call, StrictProvider, conversation, view_of
from clew.wire import check
from clew.wire.rules.binding import BETA, binds, signature, thinking_is_bound

MODEL = "claude-opus-5-5"
TOOL = {"name": "bash", "description": "Run a command.", "input_schema": {"type": "object", "properties": {}}}
WORDS = "the parser reads src/clew/view.py and fails with KeyError at line 42 of 93 tests".split()

Message = dict[str, Any]


def request(said: Sequence[Message], **frame: Any) -> Message:
    start = {"model": MODEL, "max_tokens": 500, "system": "You build.", "tools": [TOOL]}
    return {**start, **frame, "messages": list(said)}


def thoughts(sent: Message) -> list[str]:
    blocks = [b for m in sent["messages"] if isinstance(m["content"], list) for b in m["content"]]
    return [b.get("signature") or b["data"] for b in blocks if b["type"] in ("thinking", "redacted_thinking")]


def edited(view: View) -> set[str]:
    return {e.by.partition("(")[0] for e in view.edits}


@dataclass
class Client:
    """A client that re-sends all it knows, and a provider that signs what it thinks and checks what comes back."""

    random: Random
    said: list[Message] = field(default_factory=list)
    frame: Message = field(default_factory=dict)
    calls: int = 0
    had: int = 0  # thinking blocks that could be sent on
    kept: int = 0  # and that were

    def text(self, size: int) -> str:
        return " ".join(self.random.choices(WORDS, k=size))

    def ask(self) -> None:
        self.said.append({"role": "user", "content": self.text(self.random.choice((3, 20, 60)))})

    def answer(self, sent: Message) -> None:
        """What the model says to a body: it may think, openly or not, and call a tool or be done."""
        blocks: list[Message] = []
        seal = signature(sent)
        match self.random.randrange(4):
            case 0:
                blocks.append({"type": "redacted_thinking", "data": seal})
            case 1 | 2:
                blocks.append({"type": "thinking", "thinking": self.text(30), "signature": seal})
        if self.random.random() < 0.6:
            self.calls += 1
            blocks.append({"type": "text", "text": "Let me look."})
            use = {"type": "tool_use", "id": f"toolu_{self.calls}", "name": "bash", "input": {"cmd": self.text(4)}}
            back = {"type": "tool_result", "tool_use_id": f"toolu_{self.calls}", "content": self.text(90)}
            self.said += [{"role": "assistant", "content": [*blocks, use]}, {"role": "user", "content": [back]}]
        else:
            self.said.append({"role": "assistant", "content": [*blocks, {"type": "text", "text": self.text(40)}]})
            self.ask()

    def count(self, sent: Message) -> None:
        self.had += keepable(sent, self.said)
        self.kept += len(thoughts(sent))


def keepable(sent: Message, said: list[Message]) -> int:
    """How much thinking the provider would have taken: all of what is in view, put back, less what it refuses."""
    spoken = {_words(m): m for m in said if m["role"] == "assistant"}
    full = {**sent, "messages": [spoken.get(_words(m), m) for m in sent["messages"]]}
    while found := list(thinking_is_bound(full)):
        at, block = (int(n) for n in re.findall(r"\d+", found[0][0]))
        message = full["messages"][at]
        less = {**message, "content": [b for n, b in enumerate(message["content"]) if n != block]}
        full["messages"] = [less if n == at else m for n, m in enumerate(full["messages"])]
    return len(thoughts(full))


def _words(message: Message) -> str:
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return json.dumps([message["role"], [b for b in blocks if "thinking" not in b["type"]]])


def accepts(sent: Message) -> None:
    broken = check(sent, "anthropic")
    assert broken == [], broken[0]


async def play(
    client: Client,
    engine: Engine,
    turns: int,
    happen: Callable[[Engine, View], Any] | None = None,
    session: str | None = None,
) -> View:
    client.ask()
    for _ in range(turns):
        raw = json.dumps(request(client.said, **client.frame)).encode()
        view = await engine.prepare(Request(raw, "anthropic", session=session))
        sent = body(view)
        accepts(sent)
        client.count(sent)
        client.answer(sent)
        if happen:
            engine = await happen(engine, view) or engine
    return view


@pytest.mark.few(1)
@pytest.mark.parametrize("preset", ["default", "clearing", "summarizing", "sliding"])
async def test_each_body_is_taken_through_folds(store: SQLStore, preset: str) -> None:
    client = Client(Random(7))
    engine = Engine(store, Budget(window=4_000, reserve=400, tail=600), Settings(step=PRESETS[preset]()))
    view = await play(client, engine, 60)
    assert "Unbind" in edited(view), "no fold came before thinking: the test says nothing"
    assert client.kept >= 0.98 * client.had > 0  # where a fold must come amid an open turn, what was thought there goes


async def test_nothing_is_left_out_while_nothing_changes(store: SQLStore) -> None:
    client = Client(Random(3))
    view = await play(client, Engine(store, Budget(window=10**6)), 40)
    assert not view.edits
    assert client.kept == client.had > 100


async def test_leaving_out_the_oldest_keeps_the_newer(store: SQLStore) -> None:
    """Where clearing old reasoning is enough, no other thinking is lost."""
    said: list[Message] = []
    for n in range(20):
        said.append({"role": "user", "content": f"What about part {n}?"})
        thought = {"type": "thinking", "thinking": f"Part {n}: " + "hm " * 200, "signature": signature(request(said))}
        said.append({"role": "assistant", "content": [thought, {"type": "text", "text": "Fine."}]})
    said.append({"role": "user", "content": "Good."})
    view = await Engine(store, Budget(window=6_000, reserve=400, tail=500)).prepare(Request(request(said)))
    accepts(body(view))
    assert edited(view) == {"ClearReasoning"}
    assert 0 < len(thoughts(body(view))) < 20


def loop(calls: int, size: int = 300, ended: bool = False) -> list[Message]:
    """A turn in which the assistant thinks before each call, signed as by a provider that is sent all of it."""
    said: list[Message] = [{"role": "user", "content": "Build all of it."}]
    for n in range(calls):
        thought = {"type": "thinking", "thinking": f"Part {n} is next.", "signature": signature(request(said))}
        use = {"type": "tool_use", "id": f"toolu_{n}", "name": "bash", "input": {"cmd": f"make part_{n}"}}
        back = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{n}",
            "content": f"part_{n} of handler_{n}. " * (size // 8),
        }
        said += [{"role": "assistant", "content": [thought, use]}, {"role": "user", "content": [back]}]
    if ended:
        said += [{"role": "assistant", "content": "Built."}, {"role": "user", "content": "Thanks. And now?"}]
    return said


async def test_a_fold_waits_for_the_end_of_an_open_turn_while_it_fits(store: SQLStore) -> None:
    budget = Budget(window=12_000, reserve=500, high=0.3, low=0.2, tail=500)
    view = await Engine(store, budget).prepare(Request(request(loop(12))))
    assert not view.edits
    view = await Engine(store, budget).prepare(Request(request(loop(12, ended=True))))
    assert view.edits


async def test_an_open_turn_that_does_not_fit_is_folded_and_loses_its_thinking(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=4_000, reserve=500, tail=500))
    view = await engine.prepare(Request(request(loop(40))))
    sent = body(view)
    accepts(sent)
    assert thoughts(sent) == []
    [back] = [n for n in await engine.recall("default", view.nodes[-2].id) if n.item.kind == "reasoning"]
    assert back.item.text == "Part 39 is next."  # it is in the log


async def test_older_models_keep_thinking_after_a_fold(store: SQLStore) -> None:
    """Theirs is bound to nothing; and manual thinking asks for it at the beginning of an open turn."""
    said = conversation(4, 30, "anthropic", 40)
    view = await Engine(store, Budget(window=6_000, reserve=500)).prepare(Request(said, "anthropic"))
    assert view.edits
    assert "Unbind" not in edited(view)


async def test_who_has_the_provider_drop_it_is_left_alone(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=4_000, reserve=500, tail=2_000))
    asked = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    view = await engine.prepare(Request(request(loop(40), thinking=asked)))
    assert view.edits
    assert thoughts(body(view))
    accepts(body(view))


@pytest.mark.few(1)
@pytest.mark.parametrize("change", [{"system": "You test."}, {"tools": [TOOL, {**TOOL, "name": "read"}]}])
async def test_another_frame_ends_all_thinking_before_it(store: SQLStore, change: Message) -> None:
    client = Client(Random(1))
    engine = Engine(store, Budget(window=10**6))
    await play(client, engine, 20)
    client.frame = change
    view = await engine.prepare(Request(request(client.said, **change)))
    accepts(body(view))
    assert thoughts(body(view)) == []
    client.answer(body(view))
    await play(client, engine, 10)
    assert client.kept


async def test_a_host_that_starts_anew_in_between(place_of: Path) -> None:
    """Nothing that matters is only in memory."""
    client = Client(Random(11))
    for _ in range(12):
        store = SQLite(place_of)
        await play_on(client, Engine(store, Budget(window=4_000, reserve=400, tail=600)), 4)
        await store.close()
    assert client.kept


async def play_on(client: Client, engine: Engine, turns: int) -> View:
    if not client.said:
        client.ask()
    for _ in range(turns):
        view = await engine.prepare(Request(request(client.said, **client.frame), "anthropic"))
        accepts(body(view))
        client.count(body(view))
        client.answer(body(view))
    return view


@pytest.fixture
def place_of(tmp_path: Path) -> Path:
    return tmp_path / "clew.db"


async def test_the_status_of_the_window_is_not_told_where_thinking_is_bound(store: SQLStore) -> None:
    controller = ContextController(Engine(store, Budget(window=50_000)))
    controller.method = "llm"
    told = await controller.prepare(
        Request({**request([{"role": "user", "content": "Hi"}]), "model": "claude-opus-4-8"})
    )
    silent = await controller.prepare(Request(request([{"role": "user", "content": "Hello"}])))
    assert "context_status" in json.dumps(told.body["messages"])
    assert "context_status" not in json.dumps(silent.body["messages"])


async def test_a_switch_of_the_method_changes_the_tools_and_ends_thinking(store: SQLStore) -> None:
    controller, client = ContextController(Engine(store, Budget(window=10**6))), Client(Random(4))
    client.ask()
    for turn in range(24):
        controller.method = "llm" if turn >= 12 else "auto"
        sent = (await controller.prepare(Request(request(client.said)))).body
        accepts(sent)
        client.count(sent)
        client.answer(sent)
    assert client.kept == client.had > 50


async def test_nothing_is_put_back_before_thinking(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=5_000, reserve=500, tail=500, high=0.9), Settings(expand=True))
    client = Client(Random(2))
    client.said = loop(40, ended=True)
    view = await engine.prepare(Request(request(client.said)))
    sent = body(view)
    thought = {"type": "thinking", "thinking": "Hm.", "signature": signature(sent)}
    client.said += [{"role": "assistant", "content": [thought, {"type": "text", "text": "Nothing."}]}]
    client.said += [{"role": "user", "content": "What did make part_3 print, src/part_3.py and handler_3?"}]
    view = await engine.prepare(Request(request(client.said)))
    accepts(body(view))
    assert thoughts(body(view)) == [thought["signature"]]


def test_one_call_without_a_store_sends_no_bound_thinking() -> None:
    done = compress(loop(40, ended=True), model=MODEL, window=4_000, format="anthropic")
    assert done.tokens_after < done.tokens_before
    accepts(request(done.messages))
    assert thoughts({"messages": done.messages}) == []


def test_bedrock_drops_it_too() -> None:
    said = conversation(4, 12, "bedrock", 30)
    said["modelId"] = "us.anthropic.claude-opus-5-5-v1:0"
    before = view_of(said, "bedrock")
    assert any(n.item.kind == "reasoning" for n in before.nodes)
    first = next(i for i, n in enumerate(before.nodes) if n.item.kind == "text")
    changed = before.replace(first, first + 1, replace(before.nodes[first].item, text="Something else."), by="a test")
    after = unbound(changed, before)
    assert not any(n.item.kind == "reasoning" for n in after.nodes)
    assert check(body(after), "bedrock") == []
    assert binds("bedrock", said["modelId"])


async def anything(client: Client, engine: Engine, view: View, names: list[str]) -> Engine:
    """One of the things that hosts and people do between two calls."""
    name = client.random.choice(["", "", "", "", "undo", "pin", "compact", "frame", "preset", "restart", "edit"])
    names.append(name)
    try:
        match name:
            case "undo":
                await engine.undo("default", view.branch)
            case "pin":
                await engine.pin(view, *(n.id for n in client.random.sample(view.nodes, min(2, len(view.nodes)))))
            case "compact":
                await engine.compact(view)
            case "frame":
                client.frame = {"system": f"You build {client.random.choice('ab')}."}
            case "preset":
                engine.settings = with_(
                    engine.settings,
                    step=PRESETS[client.random.choice(["default", "clearing", "summarizing", "sliding"])](),
                )
            case "restart":
                return engine.variant()
            case "edit" if len(client.said) > 8:
                at = client.random.randrange(len(client.said) // 2)
                if client.said[at]["role"] == "user" and isinstance(client.said[at]["content"], str):
                    client.said[at] = {"role": "user", "content": client.said[at]["content"] + " Please."}
    except (NotFound, OverBudget):
        names[-1] += "?"
    return engine


@settings(max_examples=cases(4, dear=True), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 10**9))
@example(60477556)  # a restart after a block that quotes a message which was cut
def test_whatever_happens_each_body_is_taken(seed: int) -> None:
    async def run() -> None:
        with TemporaryDirectory() as folder:
            store = SQLite(Path(folder) / "clew.db")
            client, names = Client(Random(seed)), list[str]()
            engine = Engine(store, Budget(window=3_500, reserve=400, tail=500), Settings(step=PRESETS["default"]()))
            try:
                await play(client, engine, 40, lambda engine, view: anything(client, engine, view, names), "work")
            except OverBudget:  # too much was pinned
                assert "pin" in names
            finally:
                await store.close()

    asyncio.run(run())


# --- over HTTP ------------------------------------------------------------------------------------------------------


def script(sent: Message) -> Answer:
    n = len(sent["messages"])
    if n % 5:
        return Answer("", (Call("bash", {"cmd": f"make {n}"}),), f"Part {n} is next.", redacted=n % 3 == 0)
    return Answer("Done with that.", reasoning="It is done.")


async def test_a_session_with_the_provider_itself(store: SQLStore) -> None:
    with StrictProvider(script, window=6_000) as provider:
        client = anthropic.AsyncAnthropic(base_url=provider.url, api_key="none", max_retries=0)
        engine = Engine(store, Budget(window=6_000, reserve=1_000, tail=500))
        said: list[Message] = [{"role": "user", "content": "Build all of it."}]
        thought = False  # after a fold
        for n in range(40):
            view = await engine.prepare(Request(request(said)))
            thought |= bool(view.edits and thoughts(body(view)))
            answer: Any = await client.post("/v1/messages", body=body(view), cast_to=object)
            said.append({"role": "assistant", "content": answer["content"]})
            used = [b for b in answer["content"] if b["type"] == "tool_use"]
            back = [{"type": "tool_result", "tool_use_id": b["id"], "content": f"made {n} " * 60} for b in used]
            said.append({"role": "user", "content": back or "Go on."})
        assert "Unbind" in edited(view)
        assert thought


async def test_the_provider_refuses_what_is_bound_to_something_else() -> None:
    with StrictProvider([Answer("Hi.", reasoning="A greeting.")]) as provider:
        client = anthropic.AsyncAnthropic(base_url=provider.url, api_key="none", max_retries=0)

        async def post(sent: Message, **headers: str) -> Any:
            return await client.post("/v1/messages", body=sent, cast_to=object, options={"headers": headers})

        said: list[Message] = [{"role": "user", "content": "Hello"}]
        first = await post(request(said))
        said += [{"role": "assistant", "content": first["content"]}, {"role": "user", "content": "And now?"}]
        second = await post(request(said))
        said += [{"role": "assistant", "content": second["content"]}, {"role": "user", "content": "Go on."}]
        await post(request(said))
        oldest = [m if n != 1 else {**m, "content": m["content"][1:]} for n, m in enumerate(said)]
        await post(request(oldest))  # leaving out the oldest is no change
        edited = [{"role": "user", "content": "Hallo"}, *said[1:]]
        with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
            await post(request(edited))
        with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
            await post(request(said, tools=[TOOL, {**TOOL, "name": "read"}]))
        drop = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        with pytest.raises(anthropic.BadRequestError, match="anthropic-beta"):
            await post(request(edited, thinking=drop))
        await post(request(edited, thinking=drop), **{"anthropic-beta": BETA})
        await post(request(edited, model="claude-opus-4-8"))
