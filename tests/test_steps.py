"""What the steps write, whole; and how they combine."""

import asyncio
import json
from typing import Any

import pytest

from bodies import judge_anthropic, judge_openai
from clew import Budget, body, wire
from clew.core.items import Item
from clew.core.limits import Size
from clew.core.view import View
from clew.errors import BadRequest
from clew.steps import ClearReasoning, ClearResults, Cut, Dedupe, Offload, ShrinkCalls, Trim, default
from clew.steps.calls import shrunk
from clew.steps.chapters.model import Prompt
from clew.steps.lines import preview
from clew.steps.outcome import outcome
from clew.steps.protocol import Fallback, Pipeline, Step, When
from clew.steps.shorten import arguments
from clew.testing import PICTURE, ScriptedModel, check_laws, conversation, view_of
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.tokens.target import Target
from clew.wire import FORMATS, decode, encode
from clew.wire.convert import convert
from conftest import conversations


def talk(*results: str) -> View:
    return work(*(("bash", {"cmd": f"cat {n}"}, result) for n, result in enumerate(results)))


def work(*done: tuple[str, dict[str, Any], str], asked: str = "look") -> View:
    """A conversation of calls: tool, arguments, result."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": asked}]
    for n, (name, given, result) in enumerate(done):
        function = {"name": name, "arguments": json.dumps(given)}
        call = {"id": f"c{n}", "type": "function", "function": function}
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
        messages += [{"role": "tool", "tool_call_id": f"c{n}", "content": result}]
    return view_of({"model": "gpt-4o", "messages": messages})


def ids(view: View) -> list[str]:
    """The recall ids of the results."""
    return [n.id[:10] for n in view.nodes if n.item.kind == "result"]


def results(view: View) -> list[str]:
    return [n.item.text for n in view.nodes if n.item.kind == "result"]


LONG = "ok: 3 files\n" + "a line of output\n" * 200


async def test_old_results_become_one_informative_line() -> None:
    before = talk(LONG, LONG, "short", "newest")
    view = await ClearResults()(before, Target.of(Budget(window=1_000, reserve=0, model="gpt-4o")))
    first, second = before.nodes[2].id[:10], before.nodes[4].id[:10]
    said = "3,412 characters in 202 lines, out of view; recall"
    assert results(view) == [
        f'[result of bash {{"cmd": "cat 0"}}, {said} {first}: ok: 3 files]',
        f'[result of bash {{"cmd": "cat 1"}}, {said} {second}: ok: 3 files]',
        "short",
        "newest",
    ]
    assert [n for n in view.nodes if n.item.kind == "call"] == [n for n in before.nodes if n.item.kind == "call"]


async def test_what_a_call_brought_does_not_stay_because_a_system_message_stands_before_the_call() -> None:
    def turn(n: int, result: str) -> list[dict[str, Any]]:
        call = {"type": "tool_use", "id": f"t{n}", "name": "bash", "input": {"cmd": f"cat {n}"}}
        brought = {"type": "tool_result", "tool_use_id": f"t{n}", "content": result}
        return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [brought]}]

    messages = [{"role": "user", "content": "look"}, {"role": "system", "content": "Be brief."}]
    messages += [row for n in range(30) for row in turn(n, f"{n}\n{LONG}{n}")]
    tools = [{"name": "bash", "input_schema": {"type": "object"}}]
    asked = {"model": "claude-sonnet-4-5", "messages": messages, "max_tokens": 100, "tools": tools}
    before = view_of(asked, "anthropic")
    view = await default()(before, Target.of(Budget(window=12_000, reserve=0, model="claude-sonnet-4-5")))
    texts = [n.item.text for n in view.nodes]
    assert texts[1:2] == ["Be brief."]
    assert texts[3].startswith('[result of bash {"cmd":'), "else it would take its room to the end"
    assert wire.check(body(view)) == []


async def test_an_oversized_result_keeps_its_head_and_tail() -> None:
    before = talk("begin " + "x " * 20_000 + " end")
    view = await Offload(head=10, tail=8)(before, Target.of(Budget(window=8_000, model="gpt-4o")))
    id = before.nodes[2].id[:10]
    assert results(view) == [f"begin x x \n[… 39,992 of 40,010 characters out of view; recall {id} …]\nx x  end"]


TIGHT = Target.of(Budget(window=400, reserve=0, model="gpt-4o"))
FILE = "import os\n" + "x = 1\n" * 40
NEWER = "import sys\n" + "x = 2\n" * 40


async def test_older_copies_of_a_result_point_to_the_newest() -> None:
    before = work(
        ("read", {"path": "a.py"}, FILE), ("grep", {"q": "x"}, FILE), ("read", {"path": "b.py"}, FILE), ("ls", {}, "c")
    )
    first, second, *_ = ids(before)
    said = '[same output as the newer result of read {"path": "b.py"}, recall'
    assert results(await Dedupe()(before, TIGHT)) == [f"{said} {first}]", f"{said} {second}]", FILE, "c"]


async def test_a_read_is_superseded_by_a_newer_one() -> None:
    a, part = {"file_path": "/src/a.py"}, {"file_path": "/src/a.py", "offset": 40, "limit": 40}
    before = work(("Read", a, FILE), ("Read", part, FILE + "1"), ("Read", a, NEWER), ("Read", a, "Error: is gone"))
    line = (
        '[result of Read {"file_path": "/src/a.py"}, 250 characters in 42 lines, superseded by a newer read; '
        f"recall {ids(before)[0]}]"
    )
    assert results(await Dedupe()(before, TIGHT)) == [line, FILE + "1", NEWER, "Error: is gone"]


async def test_a_read_is_superseded_by_the_whole_text_written_later() -> None:
    edit = {"path": "b.py", "old_str": "1", "new_str": "2"}
    write = {"command": "create", "path": "a.py", "file_text": "x = 3"}
    before = work(
        ("view", {"path": "a.py", "view_range": [1, 40]}, FILE),
        ("view", {"path": "b.py"}, NEWER),
        ("edit", edit, "ok"),
        ("edit", write, "ok"),
        ("view", {"path": "b.py", "view_range": [1, 2]}, "x\nx"),
    )
    line = (
        '[result of view {"path": "a.py", "view_range": [1, 40]}, 250 characters in 42 lines, '
        f"superseded by the text written later; recall {ids(before)[0]}]"
    )
    assert results(await Dedupe()(before, TIGHT)) == [line, NEWER, "ok", "ok", "x\nx"]


@pytest.mark.parametrize(
    ("command", "again", "old"),
    [
        ("cat a.py", "cat a.py", True),
        ("cd /src && sed -n '1,80p' a.py", "cd /src && sed -n '1,80p' a.py", True),
        ("sed -n '1,80p' a.py", "sed -n '80,90p' a.py", False),
        ("pytest -q", "pytest -q", False),  # what failed before is no older copy of what fails now
        ("cat > a.py <<EOF", "cat > a.py <<EOF", False),
    ],
)
async def test_of_commands_only_the_same_printing_one_supersedes(command: str, again: str, old: bool) -> None:
    before = work(("bash", {"cmd": command}, FILE), ("bash", {"cmd": again}, NEWER))
    assert (results(await Dedupe()(before, TIGHT))[0] != FILE) == old


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("<returncode>1</returncode>\n<output>\nls: cannot access 'x'\n</output>", "exit 1: ls: cannot access 'x'"),
        ("Exit code: 0\nWall time: 1 seconds\nOutput:\nSuccess.", "exit 0: Success."),
        ("     1→package cli\n     2→", "package cli"),
        ('Traceback (most recent call last):\n  File "a.py"\nKeyError: 3\n', "KeyError: 3"),
        ("Exit code 2\ncollected 3 items\n====\nmain.go:3: fatal: no\n", "exit 2: main.go:3: fatal: no"),
        ("=== test session starts ===\na.py F\n=== 1 failed, 2 passed in 0.1s ===", "1 failed, 2 passed in 0.1s"),
        ("a.py:12: warning", "a.py:12: warning"),
        ("\n---\n", ""),
    ],
)
def test_the_outcome_of_a_result(text: str, line: str) -> None:
    assert outcome(Item("result", "tool", text)) == line


def test_a_flag_of_the_provider_makes_it_an_error() -> None:
    text = "reading a.py\nan error of some sort"
    assert outcome(Item("result", "tool", text)) == "reading a.py"
    assert outcome(Item("result", "tool", text, wire={"content": text, "is_error": True})) == "an error of some sort"


def test_arguments_are_shortened_inside_their_json() -> None:
    assert arguments('{"a": 1}', 60) == '{"a": 1}'
    assert arguments("no json", 60) == ""
    path = "/very/long/path/" + "d/" * 40 + "file.py"
    short = arguments(json.dumps({"path": path, "ids": list(range(50)), "text": "word " * 90}), 120)
    assert json.loads(short) == {
        "path": "…d/d/d/d/d/d/d/d/d/d/d/file.py",
        "ids": [0, 1, 2, 3, "… 46 more"],
        "text": "word word word word word word…",
    }
    assert json.loads(arguments(json.dumps({f"key{n}": {"a": [n] * 9} for n in range(99)}), 120))


async def test_old_media_become_one_line() -> None:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "yes?"},
        {"role": "user", "content": [{"type": "text", "text": "see"}, picture]},
        {"role": "assistant", "content": "seen"},
        {"role": "user", "content": "and?"},
    ]
    before = view_of({"model": "gpt-4o", "messages": messages})
    view = await ClearResults()(before, Target.of(Budget(window=400, reserve=0, images=0, model="gpt-4o")))
    line = f"[image_url, {len(json.dumps(picture)):,} bytes, out of view; recall {before.nodes[3].id[:10]}]"
    assert [n.item.text for n in view.nodes] == ["hi", "yes?", "see", line, "seen", "and?"]


async def test_text_does_not_go_because_of_images() -> None:
    view = view_of(conversation(5, 9))
    tokens = TIGHT.size(view).tokens
    budget = Target.of(Budget(window=tokens, reserve=0, high=1, low=1, images=0, model="gpt-4o"))
    after = await ClearResults()(view, budget)
    assert budget.size(view).images > budget.size(after).images
    assert results(after) == results(view)


async def test_a_preview_shows_the_lines_that_were_asked_for() -> None:
    lines = [f"row {n}" for n in range(1, 2_001)]
    lines[899], lines[1199], lines[1499] = "def load_all(path):", "see lib/cache.py", "KeyError: 3"
    before = work(("grep", {"pattern": "load_all"}, "\n".join(lines)), asked="why does lib/cache.py fail?")
    view = await Offload(head=600, tail=300)(before, Target.of(Budget(window=8_000, model="gpt-4o")))
    whole, text = before.nodes[2].item, results(view)[0]
    first, last = whole.text[:400].rpartition("\n")[0], whole.text[-200:].partition("\n")[2]
    assert text == (
        f"{first}\n[… {len(whole.text) - len(first) - len(last):,} of {len(whole.text):,} characters out of view; "
        f"recall {ids(before)[0]}; lines that match:\n"
        f"900: def load_all(path):\n1200: see lib/cache.py\n1500: KeyError: 3\n …]\n{last}"
    )
    assert len(text) <= len(preview(whole, ids(before)[0], 600, 300).text)


async def test_reasoning_of_earlier_turns_goes_into_what_it_led_to() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "answer", "reasoning_content": "why " * 400},
        {"role": "user", "content": "two"},
        {"role": "assistant", "content": None, "reasoning_content": "hm " * 400, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
        {"role": "user", "content": "three"},
        {"role": "assistant", "content": None, "reasoning_content": "now " * 40, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
    ]
    body = {"model": "gpt-4o", "messages": messages}
    after = await ClearReasoning()(view_of(body), Target.of(Budget(window=300, reserve=0, model="gpt-4o")))
    for message in messages[:4]:
        message.pop("reasoning_content", None)
    assert encode(after.frame, (n.item for n in after.nodes)) == body


async def test_reasoning_stays_where_items_refer_to_it() -> None:
    view = view_of(conversation(3, 8, "openai_responses"), "openai_responses")
    sealed = encode(view.frame, (n.item for n in view.nodes))
    for n, item in enumerate(sealed["input"]):
        if item.get("type") == "function_call":
            item["id"] = f"fc_{n}"
    tight = Target.of(Budget(window=1_000, reserve=0, model="gpt-5"))
    assert (await ClearReasoning()(view, tight)).edits
    for edit in (await ClearReasoning()(view_of(sealed, "openai_responses"), tight)).edits:
        assert [n.item.kind for n in edit.new] == ["text"]


async def test_long_arguments_of_old_calls_are_cut_inside_their_json() -> None:
    before = work(("write", {"path": "a.py", "content": "x = 1\n" * 5_000}, "ok"), ("ls", {}, "c"), ("ls", {}, "d"))
    view = await ShrinkCalls()(before, TIGHT)
    mark = f"[… 29,880 of 30,000 characters out of view; recall {before.nodes[1].id[:10]}]"
    assert json.loads(view.nodes[1].item.text) == {"path": "a.py", "content": "x = 1\n" * 20 + mark}
    assert view.nodes[2:] == before.nodes[2:]


LONG_CALLS: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "messages": [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "w", "arguments": "$"}, "extra": {"sig": "s"}},
                    {"id": "d", "type": "custom", "custom": {"name": "p", "input": "$"}},
                ],
            }
        ]
    },
    "anthropic": {
        "messages": [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c", "name": "w", "input": "$", "caller": {"type": "direct"}}],
            }
        ]
    },
    "openai_responses": {
        "input": [{"type": "custom_tool_call", "call_id": "c", "name": "w", "input": "$", "status": "completed"}]
    },
    "bedrock": {
        "messages": [
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "w", "input": "$", "extra": 1}}]}
        ]
    },
    "gemini": {
        "contents": [
            {"role": "model", "parts": [{"functionCall": {"name": "w", "args": "$"}, "thoughtSignature": "c2ln"}]}
        ]
    },
}


def filled(value: Any, arguments: Any) -> Any:
    if isinstance(value, dict):
        return {k: filled(v, arguments) for k, v in value.items()}
    return [filled(v, arguments) for v in value] if isinstance(value, list) else arguments if value == "$" else value


@pytest.mark.parametrize("format", sorted(LONG_CALLS))
def test_what_else_a_call_carries_stays(format: str) -> None:
    long: Any = {"path": "a", "text": "y" * 900}
    short: Any = {"path": "a", "text": "y" * 120 + "[… 780 of 900 characters out of view; recall 0123456789]"}
    if format == "openai_chat":
        long, short = (json.dumps(v, separators=(",", ":"), ensure_ascii=False) for v in (long, short))
    if format == "openai_responses":
        long, short = long["text"], short["text"]
    frame, items = decode(filled(LONG_CALLS[format], long), format)
    cut = [shrunk(item, "0123456789") for item in items]
    if format == "openai_chat":  # of free form, so cut as the text it is
        assert cut[1] is not None
        assert (
            cut[1].text
            == long[:120] + f"[… {len(long) - 120} of {len(long)} characters out of view; recall 0123456789]"
        )
        cut, wanted = cut[:1], filled(LONG_CALLS[format], short)
        del wanted["messages"][0]["tool_calls"][1]
    else:
        wanted = filled(LONG_CALLS[format], short)
    kept = [item for item in cut if item is not None]
    assert encode(frame, kept) == wanted
    assert decode(wanted, format)[1] == kept  # a host that sends it back is recognised


CHEAP: list[Step] = [Offload(), Dedupe(), ClearReasoning(), ClearResults(), ShrinkCalls()]


async def test_real_conversations_stay_valid() -> None:
    edited: set[str] = set()
    formats, meters = sorted(FORMATS), {format: Meter(counter_for("gpt-4o", format)) for format in FORMATS}
    for n, real in enumerate(conversations()):
        format = formats[n % len(formats)]
        messages = real["messages"][: 150 if n else None]  # the longest take as long as all others; the first is ours
        view = view_of(convert({"messages": messages}, format, "openai_chat"), format)
        tokens = meters[format].nodes(view.nodes).tokens
        for share in (0.1, 0.3, 0.7) if tokens < 20_000 or not n else ():
            window = max(64, int(share * tokens))
            budget = Target.of(Budget(window, reserve=0, high=1, low=1), meters[format])
            for step in CHEAP:
                edited |= {e.by for e in (await check_laws(step, view, budget)).edits}
    # Nothing of theirs is said there: no reasoning, and nothing too large at the very end.
    idle: tuple[type, ...] = (ClearReasoning, Offload) if n else (ClearReasoning, Offload, Dedupe)
    assert edited >= {repr(step) for step in CHEAP if not isinstance(step, idle)}


SOME = "a line of output\n" * 60


async def test_old_spans_become_one_line_that_counts_them() -> None:
    budget = Target.of(Budget(window=1_250, reserve=0, model="gpt-4o"))
    view = await Trim()(talk(*[SOME] * 6), budget)
    assert [n.item.kind for n in view.nodes] == ["text", "summary", "call", "result"]
    line = view.nodes[1].item.text
    assert line.startswith("[earlier conversation out of view: 5 tool calls, 5 tool results; recall ")
    assert budget.size(view).within(budget.goal)


async def test_what_no_model_has_read_yet_goes_before_the_first_exchange() -> None:
    budget = Target.of(Budget(window=1_250, reserve=0, model="gpt-4o"))
    first = [{"role": "user", "content": "look " * 60}, {"role": "assistant", "content": "seen " * 60}]
    calls = [("bash", {"cmd": f"cat {n}"}, SOME) for n in range(4)]
    done = body(work(*calls, asked="go on " * 60))["messages"]
    view = view_of({"model": "gpt-4o", "messages": [*first, *done]})
    after = await check_laws(Trim(), view, budget, fits=True)
    assert after.nodes[-1] == view.nodes[-1]
    assert view.nodes[0] not in after.nodes  # there is no room for both


async def test_a_cut_shortens_no_result_though_trim_would() -> None:
    budget = Target.of(Budget(window=1_250, reserve=0, model="gpt-4o"))
    held = talk(SOME, SOME * 20, SOME)
    cut, trimmed = await Cut()(held, budget), await Trim()(held, budget)
    assert [n.item.kind for n in cut.nodes] == ["text", "summary", "call", "result"]
    assert results(cut) == [SOME]
    assert len(results(trimmed)) > 1  # one of them is a line
    assert set(results(await Cut()(talk(SOME * 20), budget))) <= {SOME * 20}


async def test_a_second_trim_adds_to_the_first_line() -> None:
    budget = Target.of(Budget(window=1_250, reserve=0, model="gpt-4o"))
    view = await Trim()(talk(*[SOME] * 6), budget)
    more = talk(*[SOME] * 9).nodes[13:]
    again = await Trim()(View(view.frame, (*view.nodes, *more), view.digests, view.edits), budget)
    assert [n.item.kind for n in again.nodes] == ["text", "summary", "call", "result"]
    line = again.nodes[1].item.text
    assert line.startswith("[earlier conversation out of view: 8 tool calls, 8 tool results; recall ")


async def test_a_pipeline_stops_as_soon_as_it_fits() -> None:
    ran: list[str] = []

    def step(name: str) -> Any:
        async def run(view: View, target: Target) -> View:
            ran.append(name)
            return await ClearResults()(view, target)

        return run

    view = talk(LONG, LONG, "new")
    await Pipeline(step("a"), step("b"))(view, Target.of(Budget(window=10_000, reserve=0, model="gpt-4o")))
    await Pipeline(step("c"), step("d"))(view, Target.of(Budget(window=1_200, reserve=0, model="gpt-4o")))
    assert ran == ["c"]


async def test_when_and_fallback() -> None:
    async def broken(view: View, target: Target) -> View:
        raise RuntimeError("no luck")

    view, tight = talk(LONG, LONG, "new"), Target.of(Budget(window=1_000, reserve=0, model="gpt-4o"))
    assert await When(lambda v, b: False, broken)(view, tight) is view
    assert (await Fallback(broken, ClearResults())(view, tight)).edits
    with pytest.raises(RuntimeError, match="no luck"):
        await Fallback(broken, ClearResults(), on=(KeyError,))(view, tight)


async def test_a_scripted_model_says_its_lines() -> None:
    model = ScriptedModel(["one", TimeoutError("slow")])
    assert (await model(Prompt("please", 9))).text == "one"
    with pytest.raises(TimeoutError):
        await model(Prompt("again", 9))
    assert model.prompts == [Prompt("please", 9), Prompt("again", 9)]


@pytest.mark.few(5)
@pytest.mark.parametrize("seed", range(30))
def test_compacted_bodies_satisfy_the_official_types(seed: int) -> None:
    for format, judge in (("openai_chat", judge_openai), ("anthropic", judge_anthropic)):
        view = view_of(conversation(seed, 8, format), format)
        budget = Target.of(Budget(window=2_000, reserve=0, model=view.frame.model))
        sent = body(asyncio.run(default()(view, budget)))
        for message in sent["messages"]:
            message.pop("reasoning_content", None)  # what compatible servers add is not OpenAI's
        assert judge(sent) == []
        assert wire.check(sent, format) == []


def test_a_budget_says_what_is_wrong_with_it() -> None:
    for settings, says in (
        ({"window": 0}, "less than the window 0"),
        ({"window": 100, "reserve": 100}, "reserve 100 must be at least 0 and less than the window 100"),
        ({"window": 100, "low": 0.9}, "low is 0.9, high is 0.8"),
        ({"window": 100, "images": -1}, "at least 0"),
    ):
        with pytest.raises(BadRequest, match=says):
            Budget(**settings)


def test_a_budget_starts_high_and_stops_low_in_each_dimension_that_is_over() -> None:
    budget = Target.of(Budget(window=1_000, reserve=0, images=10, bytes=1_000, messages=50))
    assert not budget.exceeded(Size(800, 1_000, 10, 50))
    assert budget.exceeded(Size(801, 0, 0, 0))
    assert budget.exceeded(Size(0, 0, 11, 0))
    assert budget.aim(Size(0, 0, 11, 0)).goal == Size(1_000, 1_000, 6, 50)
    assert budget.aim(Size(900, 0, 0, 0)).goal == Size(600, 1_000, 10, 50)
