"""A turn and its compaction take time in proportion to what was said, whatever that is."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import pytest

from amounts import MANY
from clew import Budget, Engine, Request, SQLite
from clew.core.align import Match, matches, patches
from clew.core.bounds import MESSAGES_TOLD, TEXT_READ
from clew.core.items import Digests, Item
from clew.recognition.client_edits import Change, keeps_newest
from clew.recognition.other_format import rewriting
from clew.secrets.masking import find
from clew.steps.worklog.log import Log
from clew.wire import decode
from straining import SHAPES, TRIES, Shape, grown, numbered, repeated, seconds

Messages = list[dict[str, Any]]

FEW, MOST = 25_000, 100_000  # messages
AT_NIGHT = pytest.mark.nightly  # so many messages that squares show take minutes
BRIEF = 0.3  # seconds: what takes less is not compared

# Texts that patterns alone do not show to be slow: what is compared with what was said before or after it.
TEXTS: dict[str, Shape] = {
    **SHAPES,
    "lines that stand there again": lambda size: "a\n" * (size // 4) + numbered("a\nv#")(size // 2),
    "folders in folders": lambda size: "cat /" + repeated("a/")(size - 6),
    "asked again": numbered("Use tool_# for name_#, never name_#."),
    "taken back": numbered("The rule about name_# is off. Never use name_#."),
    "pipes": lambda size: "ls " + repeated("| cat ")(size - 3),
    "texts in a command": numbered("cat > f# <<EOF\nx\nEOF"),
    "texts without an end": numbered("cat > f# <<E#\nx"),
    "set in place": lambda size: "sed -i " + repeated("-e ")(size - 7),
}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def after(*said: dict[str, Any]) -> Messages:
    """What was said, and enough after it that it is old."""
    tail = [{"role": role, "content": f"Step {n}."} for n in range(4) for role in ("assistant", "user")]
    return [{"role": "user", "content": "Please do it."}, *said, *tail]


def called(made: dict[str, Any], result: str = "ok") -> Messages:
    told = {"role": "assistant", "content": "I do.", "tool_calls": [made]}
    return after(told, {"role": "tool", "tool_call_id": "c1", "content": result})


PLACES: dict[str, Callable[[str], Messages]] = {
    "user": lambda text: after({"role": "assistant", "content": "Yes?"}, {"role": "user", "content": text}),
    "assistant": lambda text: after({"role": "assistant", "content": text}, {"role": "user", "content": "Go on."}),
    "result": lambda text: called(call("read", path="a.py"), text),
    "output": lambda text: called(call("bash", command="make"), text),
    "command": lambda text: called(call("bash", command=text)),
    "edit": lambda text: called(call("edit", path="a.py", old_string=text, new_string=text[::-1])),
    "added": lambda text: called(call("edit", path="a.py", old_string=text, new_string=f"{text}x")),
    "file": lambda text: called(call("write", path="a.py", content=text)),
    "patch": lambda text: called(call("patch", input=f"*** Begin Patch\n*** Update File: a\n{text}\n*** End Patch")),
    "name": lambda text: called(call(text[:20_000], path=text)),
}


def turn(messages: Messages) -> None:
    """A turn whose history does not fit."""

    async def taken() -> None:
        store = SQLite(":memory:")
        await Engine(store, Budget(window=8_000)).prepare(Request({"model": "gpt-4o", "messages": messages}))
        await store.close()

    asyncio.run(taken())


# What once took time by the square of its length, with sizes that show it; at night, every text in every place.
SLOW_ONCE = [
    (repr("a."), "edit", 3_000),
    ("texts without an end", "command", 2_000),
    ("rules", "user", 50_000),
]
EVERY = [(name, place, 50_000) for name in TEXTS for place in PLACES]


@pytest.mark.parametrize(("name", "place", "size"), EVERY if MANY > 1 else SLOW_ONCE)
def test_a_text_takes_time_by_its_length(name: str, place: str, size: int) -> None:
    said = grown(lambda size: partial(turn, PLACES[place](TEXTS[name](size))), size, 4 * size, BRIEF)
    assert not said, f"{name} as {place}: {said}"


def _act(made: dict[str, Any], n: int, result: str) -> Messages:
    return [
        {"role": "assistant", "content": None, "tool_calls": [{**made, "id": f"c{n}"}]},
        {"role": "tool", "tool_call_id": f"c{n}", "content": result},
    ]


def said(n: int, text: str) -> Messages:
    return [{"role": "user" if n % 2 == 0 else "assistant", "content": text}]


# Many of one kind, each by its number: at least one message.
SERIES: dict[str, Callable[[int], Messages]] = {
    "tiny": lambda n: said(n, f"m{n}"),
    "equal": lambda n: said(n, "ok"),
    "short": lambda n: said(n, f"Ok, go on with {n}."),
    "of the user alone": lambda n: said(0, f"And then {n}."),
    "rules": lambda n: [*said(0, f"Never use lib{n}, always use tool{n}."), *said(1, "ok")],
    "edits": lambda n: _act(call("edit", path="a.py", old_string=f"x{n}", new_string=f"x{n} = {n}"), n, "ok"),
    "files": lambda n: _act(call("write", path=f"/a/b/f{n}.py", content=f"x{n}"), n, "ok"),
    "failures": lambda n: _act(call("bash", command=f"make t{n}"), n, f"FAILED t{n}.py::t - x\nexit code 1"),
    "mended": lambda n: SERIES[("failures", "files")[n % 2]](n),
    "refused": lambda n: _act(call("bash", command=f"rm -r d{n}"), n, "The user rejected this."),
    "refused and done": lambda n: SERIES[("refused", "edits")[n % 2]](n),
    "in the background": lambda n: _act(call("bash", command=f"serve {n} &"), n, f"id: p{n}"),
    "tasks": lambda n: _act(call("task", taskId=str(n), subject=f"Do {n}.", status="open"), n, "ok"),
    "calls without a result": lambda n: _act(call("read", path=f"f{n}"), n, "")[:1] + said(0, f"Well, {n}?"),
    "results without a call": lambda n: _act(call("read", path=f"f{n}"), n, f"r{n}")[1:],
    "the same id": lambda n: [{**m, "tool_call_id": "c0"} if "tool_call_id" in m else m for m in SERIES["edits"](0)],
}


def series(kind: str, count: int) -> Messages:
    """So many messages of a kind, and a question."""
    found: Messages = said(0, "Please begin.")
    for n in range(count):
        found += SERIES[kind](n)
        if len(found) >= count:
            break
    return [*found, *said(1, "Done."), *said(0, "Go on.")]


@AT_NIGHT
@pytest.mark.parametrize("kind", SERIES)
def test_many_messages_take_time_by_their_number(kind: str) -> None:
    said = grown(lambda count: partial(turn, series(kind, count)), FEW, MOST, BRIEF)
    assert not said, f"{kind}: {said}"


def many_calls(count: int) -> Messages:
    """One message with so many calls, and their results."""
    made = [{**call("read", path=f"f{n}"), "id": f"c{n}"} for n in range(count)]
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": f"r{n}"} for n in range(count)]
    return after({"role": "assistant", "content": None, "tool_calls": made}, *results)


def many_parts(count: int) -> Messages:
    """One message with so many parts."""
    return after({"role": "user", "content": [{"type": "text", "text": f"Part {n}."} for n in range(count)]})


def many_edits(count: int) -> Messages:
    """One call with so many edits."""
    return called(
        call("edit", path="a.py", edits=[{"old_string": f"a{n}", "new_string": f"b{n}"} for n in range(count)])
    )


def many_tasks(count: int) -> Messages:
    """One list of so many tasks."""
    return called(call("todo", todos=[{"content": f"Do {n}.", "status": "open"} for n in range(count)]))


@AT_NIGHT
@pytest.mark.parametrize("made", [many_calls, many_parts, many_edits, many_tasks])
def test_much_in_one_message_takes_time_by_its_number(made: Callable[[int], Messages]) -> None:
    said = grown(lambda count: partial(turn, made(count)), FEW // 3, MOST // 3, BRIEF)
    assert not said, f"{made.__name__}: {said}"


def test_a_log_of_very_many_messages_tells_the_newest_and_says_how_many_it_does_not_tell() -> None:
    pairs = 3 * MESSAGES_TOLD // 4  # of a message and its answer
    items = [Item("text", role, f"Word {n}.") for n in range(pairs) for role in ("user", "assistant")]
    (told,) = Log([Digests().chain(items)]).texts(200_000)
    assert f"({2 * pairs - MESSAGES_TOLD:,} messages not shown)" in told
    assert f"Word {pairs - 1}." in told
    assert "Word 7." not in told


@pytest.mark.few(2)
@pytest.mark.parametrize("place", ["user", "assistant", "output", "edit"])
def test_a_log_says_how_much_of_a_very_long_text_was_not_looked_at(place: str) -> None:
    text = numbered("Word number #.")(TEXT_READ + 5_000)
    _, items = decode({"messages": PLACES[place](text)}, "openai_chat")
    (told,) = Log([Digests().chain(items)]).texts(20_000)
    assert "characters not looked at)" in told


def test_a_value_of_signs_that_escape_is_masked_in_time_by_its_length() -> None:
    numbers = count()  # what was masked before is known

    def work(size: int) -> Callable[[], object]:
        return lambda: find(f'{next(numbers)} password="{size * chr(92)}')

    said = grown(work, 2_000, 8_000, brief=0.1)
    assert not said, said


def test_a_history_in_another_format_and_other_words_is_compared_in_time_by_its_length() -> None:
    def told(word: str, count: int) -> list[Item]:
        return [Item("text", ("user", "assistant")[n % 2], f"{word} {n}") for n in range(count)]

    said = grown(lambda count: partial(rewriting, told("a", count), told("b", count)), 500, 2_000, brief=0.1)
    assert not said, said


def test_whether_the_newest_words_are_there_is_told_in_time_by_what_was_taken_away() -> None:
    def work(count: int) -> Callable[[], object]:
        """Every second of so many was taken away, and as many stand behind them that the assistant did not say."""
        found = [*(Match(2 * n, n) for n in range(count)), *(Match(2 * count + n, count + n) for n in range(count))]
        new = [Item("text", "user", f"u{n}") for n in range(2 * count)]
        gaps = patches(found, 3 * count, len(new))
        old = {2 * n + 1: Item("text", "user", f"v{n}") for n in range(count)}
        return partial(keeps_newest, Change(gaps, old, new, found, [], 3 * count))

    said = grown(work, 1_000, 4_000, brief=0.05)
    assert not said, said


@pytest.mark.nightly
def test_equal_words_between_others_are_compared_up_to_a_bound() -> None:
    def told(words: str, count: int) -> list[str]:
        return [part for n in range(count) for part in (f"{n}", *(words[k % 2] for k in range(200)))]

    few, many = (partial(matches, ["x", *told("ab", n)], ["y", *told("ac", n)]) for n in (25, 100))
    assert min(seconds(many) for _ in range(TRIES)) < 2 * min(seconds(few) for _ in range(TRIES))
    assert {Match(1 + n * 201, 1 + n * 201) for n in range(100)} <= {*many()}
