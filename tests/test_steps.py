"""What the steps write, whole; and how they combine."""

import asyncio
from typing import Any

import pytest

from bodies import judge_anthropic, judge_openai
from clew import BadRequest, Budget, Fallback, Pipeline, Size, View, When, body, wire
from clew.steps import ClearResults, Offload, Trim, default
from clew.testing import ScriptedModel, conversation, view_of


def talk(*results: str) -> View:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "look"}]
    for n, result in enumerate(results):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "bash", "arguments": f'{{"cmd": "cat {n}"}}'}}
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
        messages += [{"role": "tool", "tool_call_id": f"c{n}", "content": result}]
    return view_of({"model": "gpt-4o", "messages": messages})


def results(view: View) -> list[str]:
    return [n.item.text for n in view.nodes if n.item.kind == "result"]


LONG = "ok: 3 files\n" + "a line of output\n" * 200


async def test_old_results_become_one_informative_line() -> None:
    before = talk(LONG, LONG, "short", "newest")
    view = await ClearResults()(before, Budget(window=1_000, reserve=0, model="gpt-4o"))
    first, second = before.nodes[2].id[:10], before.nodes[4].id[:10]
    said = "3,412 characters in 202 lines, out of view; recall"
    assert results(view) == [
        f'[result of bash {{"cmd": "cat 0"}}, {said} {first}: ok: 3 files]',
        f'[result of bash {{"cmd": "cat 1"}}, {said} {second}: ok: 3 files]',
        "short",
        "newest",
    ]
    assert [n for n in view.nodes if n.item.kind == "call"] == [n for n in before.nodes if n.item.kind == "call"]


async def test_an_oversized_result_keeps_its_head_and_tail() -> None:
    before = talk("begin " + "x " * 20_000 + " end")
    view = await Offload(head=10, tail=8)(before, Budget(window=8_000, model="gpt-4o"))
    id = before.nodes[2].id[:10]
    assert results(view) == [f"begin x x \n[… 39,992 of 40,010 characters out of view; recall {id} …]\nx x  end"]


SOME = "a line of output\n" * 60


async def test_old_spans_become_one_line_that_counts_them() -> None:
    budget = Budget(window=1_500, reserve=0, model="gpt-4o")
    view = await Trim()(talk(*[SOME] * 6), budget)
    assert [n.item.kind for n in view.nodes] == ["text", "summary", "call", "result"]
    line = view.nodes[1].item.text
    assert line.startswith("[earlier conversation out of view: 5 tool calls, 5 tool results; recall ")
    assert budget.size(view).within(budget.goal)


async def test_a_second_trim_adds_to_the_first_line() -> None:
    budget = Budget(window=1_500, reserve=0, model="gpt-4o")
    view = await Trim()(talk(*[SOME] * 6), budget)
    more = talk(*[SOME] * 9).nodes[13:]
    again = await Trim()(View(view.frame, (*view.nodes, *more), view.digests, view.edits), budget)
    assert [n.item.kind for n in again.nodes] == ["text", "summary", "call", "result"]
    line = again.nodes[1].item.text
    assert line.startswith("[earlier conversation out of view: 8 tool calls, 8 tool results; recall ")


async def test_a_pipeline_stops_as_soon_as_it_fits() -> None:
    ran: list[str] = []

    def step(name: str) -> Any:
        async def run(view: View, budget: Budget) -> View:
            ran.append(name)
            return await ClearResults()(view, budget)

        return run

    view = talk(LONG, LONG, "new")
    await Pipeline(step("a"), step("b"))(view, Budget(window=10_000, reserve=0, model="gpt-4o"))
    await Pipeline(step("c"), step("d"))(view, Budget(window=1_200, reserve=0, model="gpt-4o"))
    assert ran == ["c"]


async def test_when_and_fallback() -> None:
    async def broken(view: View, budget: Budget) -> View:
        raise RuntimeError("no luck")

    view, tight = talk(LONG, LONG, "new"), Budget(window=1_000, reserve=0, model="gpt-4o")
    assert await When(lambda v, b: False, broken)(view, tight) is view
    assert (await Fallback(broken, ClearResults())(view, tight)).edits
    with pytest.raises(RuntimeError, match="no luck"):
        await Fallback(broken, ClearResults(), on=(KeyError,))(view, tight)


async def test_a_scripted_model_says_its_lines() -> None:
    model = ScriptedModel(["one", TimeoutError("slow")])
    assert (await model("please", max_tokens=9)).text == "one"
    with pytest.raises(TimeoutError):
        await model("again", max_tokens=9)
    assert model.prompts == ["please", "again"]


@pytest.mark.parametrize("seed", range(30))
def test_compacted_bodies_satisfy_the_official_types(seed: int) -> None:
    for format, judge in (("openai_chat", judge_openai), ("anthropic", judge_anthropic)):
        view = view_of(conversation(seed, 8, format), format)
        budget = Budget(window=2_000, reserve=0, model=view.frame.model)
        sent = body(asyncio.run(default()(view, budget)))
        for message in sent["messages"]:
            message.pop("reasoning_content", None)  # what compatible servers add is not OpenAI's
        assert judge(sent) == []
        assert wire.check(sent, format) == []


def test_a_budget_says_what_is_wrong_with_it() -> None:
    for settings, says in (
        ({"window": 0}, "less than the window 0"),
        ({"window": 100, "reserve": 100}, "reserve 100 must be at least 0 and less than the window 100"),
        ({"window": 100, "low": 0.9}, "low is 0.9, high is 0.7"),
        ({"window": 100, "images": -1}, "at least 0"),
    ):
        with pytest.raises(BadRequest, match=says):
            Budget(**settings)


def test_a_budget_starts_high_and_stops_low_in_each_dimension_that_is_over() -> None:
    budget = Budget(window=1_000, reserve=0, images=10, bytes=1_000, messages=50)
    assert not budget.exceeded(Size(700, 1_000, 10, 50))
    assert budget.exceeded(Size(701, 0, 0, 0))
    assert budget.exceeded(Size(0, 0, 11, 0))
    assert budget.aim(Size(0, 0, 11, 0)).goal == Size(1_000, 1_000, 5, 50)
    assert budget.aim(Size(900, 0, 0, 0)).goal == Size(500, 1_000, 10, 50)
