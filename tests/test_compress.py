"""One call, no store."""

import copy
import json
import random
from typing import Any

import pytest

import clew
import clew.wire
from clew.errors import BadRequest, NotFound
from clew.testing import conversation
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from conftest import conversations


def messages(seed: int = 1, turns: int = 12, format: str = "openai_chat") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = conversation(seed, turns, format)["messages"]
    return found


@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])
def test_messages_come_back_smaller_in_their_own_format(format: str) -> None:
    given = messages(format=format)
    before = copy.deepcopy(given)
    result = clew.compress(given, model="gpt-4o", target_tokens=2_000)
    assert given == before
    system = Meter(counter_for("gpt-4o")).frame(clew.wire.decode({"messages": given}, format)[0]).tokens
    assert result.tokens_after <= 2_000 + system < result.tokens_before, "the target is for the history"
    assert result.tokens_saved == result.tokens_before - result.tokens_after
    assert result.edits
    tools = {"tools": [{"name": "bash", "input_schema": {}}]} if format == "anthropic" else {}
    assert clew.wire.check({"messages": result.messages, **tools}, format) == []


@pytest.mark.parametrize("format", ["openai_responses", "bedrock", "gemini"])
def test_every_format_is_told_from_its_messages(format: str) -> None:
    given = conversation(2, 12, format)[clew.wire.FORMATS[format].LIST]
    result = clew.compress(given, model="gpt-4o", target_tokens=2_500)
    assert result.tokens_after <= 2_500 < result.tokens_before
    sent = {**conversation(2, 12, format), clew.wire.FORMATS[format].LIST: result.messages}
    assert clew.wire.check(sent, format) == []


def test_what_fits_comes_back_as_it_was() -> None:
    given = messages(turns=1)
    result = clew.compress(given, window=100_000)
    assert (result.messages, result.edits, result.tokens_saved) == (given, (), 0)


def test_every_stand_in_can_be_recalled_and_searched() -> None:
    given = messages()
    result = clew.compress(given, window=3_000)
    said = clew.wire.decode({"messages": given})[1]
    stand_ins = [e.stand_ins[0].id for e in result.edits]
    assert stand_ins
    for id in stand_ins:
        recalled = [node.item for node in result.recall_nodes(id)]
        assert recalled
        assert all(item in said for item in recalled)
    covered = {node.id for id in stand_ins for node in result.recall_nodes(id)}
    assert len(covered) > len(said) / 2
    word = "xylophone"
    marked = [*given[:2], {"role": "assistant", "content": f"the {word} is in the hall"}, *given[2:]]
    [(id, text)] = clew.compress(marked, window=3_000).search(f"{word} hall")
    assert text == f"the {word} is in the hall"
    assert clew.compress(marked, window=3_000).recall(id) == text


def test_the_same_input_gives_the_same_output() -> None:
    assert clew.compress(messages(), window=3_000).messages == clew.compress(messages(), window=3_000).messages


async def test_async_code_awaits_it() -> None:
    result = await clew.acompress(messages(), target_tokens=2_000)
    assert result.messages == clew.compress(messages(), target_tokens=2_000).messages


def test_tools_count() -> None:
    tool = {"type": "function", "function": {"name": "x", "description": "words " * 500, "parameters": {}}}
    plain, tooled = clew.compress(messages(), window=9_000), clew.compress(messages(), window=9_000, tools=[tool])
    assert tooled.tokens_before > plain.tokens_before + 500


@pytest.mark.parametrize(
    ("given", "settings", "says"),
    [
        ("hi", {}, "messages: expected a list of messages, got str"),
        ({"messages": []}, {}, "expected a list of messages, got dict"),
        ([{"role": "user", "content": "hi"}], {"window": 0}, "window: expected a positive number, got 0"),
        ([{"role": "user", "content": "hi"}], {"target_tokens": -5}, "target_tokens: expected a positive number"),
        ([{"role": "user", "content": "hi"}], {"format": "x"}, "unknown format 'x'"),
        ([{"role": "user"}, 3], {}, r"messages\[1\]: expected an object, got int"),
    ],
    ids=str,
)
def test_mistakes_are_told(given: Any, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(BadRequest, match=says):
        clew.compress(given, **settings)


def test_unknown_ids_and_impossible_targets_are_told() -> None:
    result = clew.compress(messages(), window=3_000)
    for id in ("", "zzz"):
        with pytest.raises(NotFound, match="no item has the id"):
            result.recall(id)
    with pytest.raises(BadRequest, match="10 tokens are too few for a history of"):
        clew.compress(messages(), target_tokens=10)


def test_a_real_conversation_fits_a_tenth() -> None:
    row = next(iter(conversations()))
    result = clew.compress(row["messages"], model="gpt-4o", target_tokens=8_000)
    assert result.exact
    assert result.tokens_after <= 8_000 < result.tokens_before / 10


def _ported(turns: int, seed: int) -> list[dict[str, Any]]:
    """A session with many rules, so that how things stand takes its whole share."""
    dice = random.Random(seed)
    said: list[dict[str, object]] = [
        {"role": "user", "content": "Port the themes of every selector."},
        {"role": "assistant", "content": "Yes."},
    ]
    for n in range(turns):
        rule = (
            f"Never use the colour {dice.randrange(10**6)} in part{n}.ts, always ask Ms Vogel {n} before you edit it."
        )
        said.append({"role": "user", "content": rule})
        for k in range(3):
            given = {"path": f"src/part{n}_{k}.ts", "old_string": f"a = {dice.random()}", "new_string": "b = 1"}
            call = {"id": f"c{n}_{k}", "type": "function", "function": {"name": "edit", "arguments": json.dumps(given)}}
            said.append({"role": "assistant", "content": f"Part {n}.{k} now.", "tool_calls": [call]})
            done = " ".join(str(dice.randrange(1000)) for _ in range(dice.randrange(10, 60)))
            said.append({"role": "tool", "tool_call_id": call["id"], "content": f"Done, {done}"})
        said.append({"role": "assistant", "content": f"Part {n} is ported: {dice.randrange(100)} of its tests pass."})
    return said


@pytest.mark.few(2)
@pytest.mark.parametrize("target", [1_500, 1_600, 2_000, 3_100])
def test_a_few_tokens_too_many_empty_no_view(target: int) -> None:
    for seed in range(2):
        taken = clew.compress(_ported(40, seed), model="gpt-4o", target_tokens=target).tokens_after
        assert 0.85 * target < taken <= target
