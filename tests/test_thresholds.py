"""One scale for all thresholds: shares of the room that frame and reserve leave; and what fits is never taken away."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace as with_
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from shutil import copyfile
from typing import Any

import pytest

from amounts import combined
from clew import Budget, Engine, Request, SQLite, body, compress
from clew.config import load
from clew.control import ContextController
from clew.core.items import Frame
from clew.engine.cue import Cue, spare
from clew.engine.settings import Settings
from clew.errors import BadRequest, OverBudget
from clew.steps import PRESETS, Trim
from clew.steps.handoff import BEGUN
from clew.steps.threshold import OfWindow, of_window
from clew.testing import view_of
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.tokens.target import Filled, Target
from clew.wire.convert import convert
from clew.wire.convert.extras import answer_of

MODEL = "gpt-4o"
FORMATS = ("openai_chat", "anthropic", "openai_responses", "gemini")
COUNTER = counter_for(MODEL)
STATUS = re.compile(r"<context_status>(\{.*?\})</context_status>$")


@cache
def words(tokens: int, seed: int) -> str:
    """A text of about so many tokens, always the same for a seed."""
    pick = Random(seed)
    lines = (
        f"{n}: the {pick.choice(NOUNS)}/{pick.choice(NOUNS)}_{pick.randrange(999)}.py of {pick.choice(NOUNS)} is set"
        for n in range(tokens // 14)
    )
    return "\n".join(lines)


NOUNS = "harbour ledger parser window branch token budget cache meter reserve village engine".split()


def loop(turns: int, frame: int, size: int) -> dict[str, Any]:
    """A chat of an agent that reads a page a turn, which stand below a system prompt of so many tokens."""
    tool = {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": words(frame, -1)},
        {"role": "user", "content": "Read all pages, and say what is odd."},
    ]
    for n in range(turns):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": json.dumps({"page": n})}}
        messages += [
            {"role": "assistant", "content": f"Page {n}.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"page {n}\n{words(size, n)}\nend of {n}"},
        ]
    return {"model": MODEL, "messages": messages, "tools": [tool]}


# --- the scale ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "frame", "room", "goal", "start"),
    [
        (31_000, 8_000, 15_250, 17_150, 20_200),
        (64_000, 32_000, 23_808, 36_761, 51_046),
        (200_000, 32_000, 159_808, 63_961, 143_865),
        (1_000_000, 32_000, 959_808, 223_961, 703_865),
    ],
)
def test_high_and_low_are_shares_of_the_room(window: int, frame: int, room: int, goal: int, start: int) -> None:
    budget = with_(Target.of(Budget(window=window)), frame=frame)
    assert (budget.room, budget.goal.tokens, budget.threshold) == (room, goal, start)
    size = budget.limit._replace(tokens=start)
    assert not budget.exceeded(size)
    assert budget.exceeded(size._replace(tokens=start + 1))
    assert budget.aim(size._replace(tokens=start + 1)).goal.tokens == goal


def test_where_nothing_is_paid_for_a_token_more_stays_in_view() -> None:
    assert [Budget(64_000, paid=paid).lower for paid in (True, False)] == [0.2, 0.6]
    assert Budget(31_000).lower == 0.6
    assert Budget(31_000, high=0.4).lower == pytest.approx(0.3)  # who compacts sooner stops sooner, too
    assert (Budget(64_000, high=0.1).lower, Budget(64_000, low=0.3).lower) == (0.1, 0.3)
    at = Target.of(Budget(33_000)).at(1.1)  # what is small is so as its provider counts
    assert (at.budget.upper, at.budget.lower) == (0.8, 0.2)


def test_a_low_that_somebody_set_is_never_above_a_hosts_threshold() -> None:
    for budget in (Budget(100_000, low=0.75), Budget(200_000, high=0.9, low=0.75), Budget(16_000, high=0.9, low=0.85)):
        found = of_window(True)
        assert found is not None
        target = found.apply(Target.of(budget))
        assert target.goal.tokens <= target.threshold


def test_who_compacts_a_small_window_sooner_stops_as_much_sooner() -> None:
    target = Target.of(Budget(16_000, start=6_000))
    assert target.goal.tokens == pytest.approx(0.75 * target.threshold, abs=2)
    assert target.threshold - target.goal.tokens >= target.least


def test_an_absolute_threshold_comes_first_where_it_is_lower() -> None:
    budget = with_(Target.of(Budget(window=1_000_000, start=140_000)), frame=32_000)
    assert budget.threshold == pytest.approx(172_000, abs=1)
    assert budget.goal.tokens == pytest.approx(72_000, abs=1)
    assert budget.least == pytest.approx(30_000, abs=1)
    assert Target.of(Budget(window=64_000, start=140_000)).threshold == Target.of(Budget(window=64_000)).threshold
    assert budget.at(2).threshold == pytest.approx(102_000, abs=2)
    with pytest.raises(BadRequest, match="start must be at least 1"):
        Budget(window=64_000, start=0)


@pytest.mark.parametrize(
    ("window", "frame", "asked", "reserve"),
    [
        (200_000, 10_000, 0, 8_192),
        (200_000, 10_000, 4_096, 8_192),
        (200_000, 10_000, 32_000, 32_000),
        (200_000, 10_000, 150_000, 100_000),
        (16_000, 1_000, 5_000, 5_000),
        # With that much kept free, little would be left beside the frame: no provider that held to it could be asked.
        (64_000, 32_000, 32_000, 8_192),
    ],
)
def test_the_reserve_is_what_is_asked_for_where_the_provider_adds_it(
    window: int, frame: int, asked: int, reserve: int
) -> None:
    assert with_(Target.of(Budget(window=window)), frame=frame, answer=asked).kept_free == reserve
    assert with_(Target.of(Budget(window=window, reserve=500)), frame=frame, answer=asked).kept_free == 500


@pytest.mark.parametrize(
    ("format", "given", "asked"),
    [
        ("openai_chat", {"max_completion_tokens": 9_000}, 9_000),
        ("openai_chat", {"max_tokens": 9_000}, 9_000),
        ("anthropic", {"max_tokens": 9_000}, 9_000),
        ("anthropic", {"max_tokens": "many"}, 0),
        ("openai_responses", {"max_output_tokens": 9_000}, 0),
        ("gemini", {"generationConfig": {"maxOutputTokens": 9_000}}, 0),
    ],
)
def test_only_some_providers_add_the_answer(format: str, given: dict[str, Any], asked: int) -> None:
    assert answer_of(Frame(format, body=given)) == asked


async def test_what_a_model_writes_beside_its_input_takes_nothing_from_it(store: SQLite) -> None:
    engine = Engine(store)
    frame = Frame("openai_chat", "gpt-5", body={"max_completion_tokens": 100_000})
    budget = await engine.limits.target("default", frame)
    assert (budget.window, budget.kept_free) == (272_000, 8_192)


@pytest.mark.parametrize(
    ("given", "window", "frame", "high"),
    [
        (True, 128_000, 0, 0.748),
        (True, 128_000, 32_000, 0.656),
        ({"compression_threshold": 0.5}, 32_000, 8_000, 0.5),
        ({"compression_threshold": 1.0}, 32_000, 8_000, 0.95),
        ({"compression_threshold": 0.5}, 64_000, 31_000, 0.3),
        ({"buffer_tokens": 40_000}, 128_000, 8_000, 0.716),
    ],
)
def test_a_share_of_the_window_becomes_one_of_the_room(given: Any, window: int, frame: int, high: float) -> None:
    found = of_window(given)
    assert isinstance(found, OfWindow)
    target = found.apply(with_(Target.of(Budget(window=window)), frame=frame))
    assert target.budget.high == pytest.approx(high, abs=0.001)
    assert target.budget.low == pytest.approx(high * (3 / 4 if window < 32_000 else 2 / 7), abs=0.001)


def test_a_model_may_have_a_start_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "clew.toml").write_text('[budget]\nstart = 150000\n[models."gpt-4o"]\nstart = 60000\n')
    config = load({"HOME": str(tmp_path)}, tmp_path)
    assert config.budget_for(config.model("gpt-4o")).start == 60_000
    assert config.budget_for(config.model("gpt-5")).start == 150_000


# --- what fits stays ------------------------------------------------------------------------------------------------


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("format", "size"),
    combined(list(FORMATS), [(8_000, 16_000), (16_000, 32_000), (32_000, 48_000), (32_000, 200_000)]),
)
async def test_no_turn_is_blind_to_what_it_just_asked_for(tmp_path: Path, format: str, size: tuple[int, int]) -> None:
    frame, window = size
    budget, turns = Budget(window=window), 14
    store = SQLite(tmp_path / "warm.db")
    await store.learned("default", "nothing")
    await store.close()
    copyfile(tmp_path / "warm.db", tmp_path / "cold.db")  # the same secret, so the same ids
    stores = [SQLite(tmp_path / name) for name in ("warm.db", "cold.db")]
    warm = Engine(stores[0], budget)
    room = Target.of(budget).limit.tokens - frame
    folds = 0
    for n in range(1, turns):
        given = convert(loop(n, frame, room // 7), format, "openai_chat")
        view = await warm.prepare(Request(given, format))
        exact = await warm.limits.target("default", view.frame)
        assert exact.size(view).tokens <= exact.limit.tokens
        text = f"page {n - 1}\n{words(room // 7, n - 1)}\nend of {n - 1}"
        assert view.nodes[-1].item.text == text
        folds += bool(view.edits)
        cold = await Engine(stores[1], budget).prepare(Request(given, format))
        assert body(cold) == body(view)
    assert folds
    for opened in stores:
        await opened.close()


@pytest.mark.few(4)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("size", [3_000, 30_000])
async def test_a_newest_exchange_that_does_not_fit_becomes_previews(store: SQLite, format: str, size: int) -> None:
    given = loop(4, 2_000, 500)
    last = given["messages"][-2:]
    calls = [{**last[0]["tool_calls"][0], "id": f"k{n}"} for n in range(5)]
    given["messages"][-2:] = [
        {"role": "assistant", "content": "Five at once.", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": f"k{n}", "content": f"page {n}\n{words(size, n)}"} for n in range(5)),
    ]
    engine = Engine(store, Budget(window=16_000))
    view = await engine.prepare(Request(convert(given, format, "openai_chat"), format))
    budget = await engine.limits.target("default", view.frame)
    assert budget.size(view).tokens <= budget.limit.tokens
    results = [n.item.text for n in view.nodes if n.item.kind == "result"][-5:]
    for n, text in enumerate(results):
        assert text.startswith(f"page {n}\n0: the")
        assert re.search(r"characters out of view; recall [0-9a-f]{10}", text)
        whole = f"page {n}\n{words(size, n)}"
        [id] = re.findall(r"out of view; recall ([0-9a-f]{10})", text)
        assert [node.item.text for node in await engine.recall("default", id)] == [whole]
    assert budget.room / 3 < sum(map(COUNTER.text, results)) < budget.room


@pytest.mark.few(4)
@pytest.mark.parametrize("preset", ["default", "clearing", "summarizing", "sliding"])
@pytest.mark.parametrize("room", [290, 700, 1_500, 4_000])
async def test_only_a_frame_that_leaves_no_room_is_refused(store: SQLite, preset: str, room: int) -> None:
    given = loop(6, 5_000, 800)
    meter = Meter(COUNTER)
    framed = meter.frame(view_of(given).frame).tokens
    engine = Engine(store, Budget(window=framed + room, reserve=0), Settings(step=PRESETS[preset]()))
    view = await engine.prepare(Request(given))
    assert meter.nodes(view.nodes).tokens <= room
    text = view.nodes[-1].item.text
    assert text.startswith("page 5\n")
    assert "…" not in {n.item.text for n in view.nodes}
    if room == 290:
        assert {edit.by.partition("(")[0] for edit in view.edits} <= {"Trim", "Offload"}
    with pytest.raises(OverBudget, match="the frame takes"):
        await Engine(store, Budget(window=framed + 30, reserve=0), Settings(step=PRESETS[preset]())).prepare(
            Request(given)
        )


async def test_beside_a_large_result_there_is_room_for_a_summary(store: SQLite) -> None:
    given = loop(8, 2_000, 1_500)
    given["messages"] += loop(1, 0, 5_000)["messages"][2:]  # more than the goal, less than the room
    view = await Engine(store, Budget(window=24_000)).prepare(Request(given))
    assert view.nodes[-1].item.text == given["messages"][-1]["content"]
    told = [n.item.text for n in view.nodes if n.item.kind == "summary"]
    assert all(text.startswith("[work log, ") for text in told)
    assert all(f"page {n}" in "\n".join(n.item.text for n in view.nodes) for n in range(8))


async def test_a_long_message_of_the_user_is_a_preview_beside_what_was_asked_for(store: SQLite) -> None:
    given = loop(1, 1_000, 800)
    given["messages"][1]["content"] = f"Read it.\n{words(20_000, 7)}\nWhich of these parsers is odd?"
    view = await Engine(store, Budget(window=8_000)).prepare(Request(given))
    [asked] = [n.item.text for n in view.nodes if n.item.role == "user"]
    assert re.match(r"\[work log, request 1; a record, not orders; recall [0-9a-f]{10}\]\nThe user: Read it\. ", asked)
    assert "\n  Which of these parsers is odd?" in asked
    assert view.nodes[-1].item.text.endswith("end of 0")


# --- how often ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("window", "turns", "share"), [(64_000, 24, 0.25), (100_000, 40, 0.1)])
async def test_between_two_compactions_there_is_some_growth(
    store: SQLite, window: int, turns: int, share: float
) -> None:
    engine, folds, edits = Engine(store, Budget(window=window)), 0, 0
    for n in range(1, turns):
        view = await engine.prepare(Request(loop(n, 32_000, 1_800)))
        folds += len(view.edits) > edits
        edits = len(view.edits)
    assert 1 <= folds <= share * turns


async def test_an_absolute_threshold_folds_again_in_a_large_window(store: SQLite) -> None:
    engine, meter, sizes = Engine(store, Budget(window=1_000_000, start=14_000)), Meter(COUNTER), []
    for n in range(1, 20):
        view = await engine.prepare(Request(loop(n, 4_000, 1_500)))
        sizes.append(meter.nodes(view.nodes).tokens)
    assert max(sizes) <= 14_000
    assert sum(b < a for a, b in pairwise(sizes)) >= 2


# --- an agent that decides ------------------------------------------------------------------------------------------


def told(sent: dict[str, Any]) -> dict[str, Any]:
    found = STATUS.search(sent["messages"][-1]["content"])
    assert found is not None
    status: dict[str, Any] = json.loads(found[1])
    return status


async def obey(controller: ContextController, page: int, turns: int, rate: float) -> Iterator[dict[str, Any]]:
    """The statuses that a model gets which does exactly as it is told; its provider counts `rate` of our tokens."""
    messages = loop(0, 500, 0)["messages"]
    statuses = []
    for n in range(turns):
        sent = await controller.prepare(Request({"model": MODEL, "messages": messages}, session="s"))
        counted = round(rate * COUNTER.text(json.dumps(sent.body)))
        await controller.engine.observe(sent.view, {"input_tokens": counted, "output_tokens": 9})
        statuses.append(told(sent.body))
        tool = sent.body["tools"][0]["function"]["description"]
        [percent] = re.findall(r"Call this when used_pct >= (\d+)", tool)
        if statuses[-1]["used_pct"] >= int(percent):
            name, given, answer = "new_session", {"summary": f"Pages until {n} are read."}, BEGUN
        else:
            name, given, answer = "read", {"page": str(n)}, f"page {n}\n{words(page, n)}"
        use = {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [use]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": answer},
        ]
    return iter(statuses)


@pytest.mark.few(2)
@pytest.mark.parametrize("window", [8_000, 32_000, 64_000, 128_000, 200_000])
@pytest.mark.parametrize(("when", "rate"), [(60, 1.0), (75, 0.9), (90, 1.2)])
async def test_an_obedient_agent_acts_before_clew_does(store: SQLite, window: int, when: int, rate: float) -> None:
    controller = ContextController(Engine(store, Budget(window=window)), when=f"{when}%")
    controller.method = "llm"
    statuses = list(await obey(controller, window // 12, 30, rate))
    causes = [s.cause for s in await store.sessions("default")]
    assert causes.count("handoff") >= 2
    assert "compaction" not in causes
    assert statuses[0]["used_pct"] <= 3
    assert {s["context_window"] for s in statuses} == {window}
    assert all(s["remaining_tokens"] > 0 for s in statuses)


@pytest.mark.parametrize("before", [0.3, 0.85])
async def test_an_arrival_past_the_net_is_a_preview_unless_the_agent_was_told(store: SQLite, before: float) -> None:
    controller = ContextController(Engine(store, Budget(window=32_000)))
    controller.method = "llm"
    empty = await controller.prepare(
        Request({"model": MODEL, "messages": loop(0, 500, 0)["messages"]}, session="probe")
    )
    room = (await controller.engine.limits.target("default", empty.view.frame)).room
    messages = loop(1, 500, int(before * room))["messages"]
    await controller.prepare(Request({"model": MODEL, "messages": messages}, session="s"))
    messages += loop(1, 0, int((1 - before) * room) + 200)["messages"][2:]
    sent = await controller.prepare(Request({"model": MODEL, "messages": messages}, session="s"))
    causes = [s.cause for s in await store.sessions("default")]
    assert ("compaction" in causes) == (before == 0.85)
    assert told(sent.body)["remaining_tokens"] > 0
    text = sent.view.nodes[-1].item.text
    assert text.startswith("page 0\n0: the")
    assert ("out of view; recall" in text) == (before == 0.3)
    if before == 0.3:
        assert not any("summary" in n.item.kind for n in sent.view.nodes)


@pytest.mark.parametrize("when", ["98%", "100%", "0%"])
def test_a_share_that_clew_comes_before_is_refused_in_words(store: SQLite, when: str) -> None:
    with pytest.raises(BadRequest, match=r"from 98% on, clew compacts by itself.*use 1% to 97%"):
        ContextController(Engine(store), when=when)
    controller = ContextController(Engine(store), when="97%")
    with pytest.raises(BadRequest, match=f"when is {when}"):
        controller.when = when
    assert controller.when == "97%"


async def test_a_number_of_tokens_that_does_not_fit_is_told_so(store: SQLite) -> None:
    controller = ContextController(Engine(store, Budget(window=32_000)), when="31,000 tokens")
    controller.method = "llm"
    request = Request({"model": MODEL, "messages": loop(0, 500, 0)["messages"]})
    assert "note" not in told((await controller.prepare(request)).body)
    controller.when = "32,000 tokens"
    status = told((await controller.prepare(request)).body)
    assert status["note"] == "32,000 tokens is too late here: act when used_pct >= 75"
    assert COUNTER.text(f"<context_status>{json.dumps(status)}</context_status>") <= 64


def test_a_cue_that_comes_after_the_net_gives_way() -> None:
    full = Filled(0, 10_000, 10_000, 20_000)
    assert spare(10_000) == 200
    assert Cue(97).heeded(full) == Cue(97)
    assert Cue(99).heeded(full) == Cue()
    assert Cue(tokens=19_000).heeded(full) == Cue(tokens=19_000)
    assert Cue(tokens=19_900).heeded(full) == Cue()


@pytest.mark.parametrize("lines", [1, 4_000])
async def test_a_new_session_begins_with_a_quarter_of_the_room_at_most(store: SQLite, lines: int) -> None:
    controller = ContextController(Engine(store, Budget(window=8_000)))
    controller.method = "llm"
    messages = loop(2, 500, 400)["messages"]
    summary = "\n".join(["Pages 0 and 1 are read. " + "More of it. " * (4_000 // lines)] * lines)
    use = {"id": "n", "type": "function", "function": {"name": "new_session", "arguments": ""}}
    use["function"]["arguments"] = json.dumps({"summary": summary})  # type: ignore[index]
    messages += [
        {"role": "assistant", "content": None, "tool_calls": [use]},
        {"role": "tool", "tool_call_id": "n", "content": BEGUN},
    ]
    sent = await controller.prepare(Request({"model": MODEL, "messages": messages}, session="s"))
    budget = await controller.engine.limits.target("default", sent.view.frame)
    [begun] = sent.view.nodes
    assert re.search(r"(?m)^By the assistant, not the user:\n  Pages 0 and 1 are read\.", begun.item.text)
    assert re.search(r"recall [0-9a-f]{10} for all of it\.\]$", begun.item.text)
    assert 0.1 * budget.room < budget.meter.node(begun).tokens <= 0.25 * budget.room + 10


# --- one call, no store ---------------------------------------------------------------------------------------------


def test_a_target_is_of_the_history() -> None:
    messages = loop(8, 10_000, 900)["messages"]
    found = compress(messages, model=MODEL, target_tokens=3_711)
    framed = COUNTER.text(messages[0]["content"])
    assert found.messages[0] == messages[0]
    assert 0 < found.tokens_after - framed <= 3_711 + 20
    assert found.messages[-1] == messages[-1]


def test_a_target_in_which_nothing_can_be_said_is_refused() -> None:
    messages = loop(8, 1_000, 900)["messages"]
    with pytest.raises(BadRequest, match=r"10 tokens are too few .* use at least 256"):
        compress(messages, model=MODEL, target_tokens=10)
    assert compress(messages[:2], model=MODEL, target_tokens=20).messages == messages[:2]
    least = compress(messages, model=MODEL, target_tokens=256)
    assert least.messages[-1]["content"].startswith("page 7\n")
    assert "…" not in {m["content"] for m in least.messages}


async def test_trim_alone_keeps_what_just_came() -> None:
    view = view_of(loop(6, 500, 800))
    budget = Target.of(Budget(window=4_000, reserve=0), Meter(COUNTER)).around(view.frame)
    after = await Trim()(view, budget.aim(budget.size(view)))
    assert after.nodes[-1] == view.nodes[-1]
    assert budget.size(after).tokens <= budget.limit.tokens
