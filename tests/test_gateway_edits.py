"""Anthropic's context management, done by the gateway for an upstream that lacks it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from clew.engine.engine import Engine
from clew.gateway.managing import managed, without_betas
from clew.gateway.upstreams import Upstream, Upstreams
from clew.testing import Answer, Call, StrictProvider
from serving import Got, Served, serving

HEADERS = {"anthropic-version": "2023-06-01", "anthropic-beta": "context-management-2025-06-27,compact-2026-01-12,x"}
TOOL = {"name": "Bash", "description": "Runs.", "input_schema": {"type": "object"}}
MEMORY = {**TOOL, "name": "memory"}

Message = dict[str, Any]


@contextmanager
def lacking(provider: StrictProvider, window: int = 200_000) -> Iterator[Served]:
    """A gateway before an upstream that knows nothing of context management."""
    with serving(provider=provider, window=window) as served:
        served.gateway.upstreams.known = (Upstream("plain", "anthropic", provider.url, "key", edits=False),)
        yield served


def ran(n: int, tool: str = "Bash") -> list[Message]:
    """A command and what came back: 3,000 tokens."""
    given = {"command": f"make fact-{n}.o", "input": f"text {n} " * 200}
    call = {"type": "tool_use", "id": f"toolu_{n}", "name": tool, "input": given}
    said = f"built {n}\n" + "\n".join(f"line {i} of {n}" for i in range(700))
    back = {"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": said}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [back]}]


def worked(count: int) -> list[Message]:
    """A conversation with so many uses of a tool."""
    return [{"role": "user", "content": "Build the amber parts."}, *(one for n in range(count) for one in ran(n))]


def ask(served: Served, history: list[Message], edit: Message | None, **more: Any) -> Got:
    body: Message = {"model": "claude-sonnet-4-5", "max_tokens": 4_000, "system": "You work.", "tools": [TOOL, MEMORY]}
    body |= {"messages": history, **more} | ({"context_management": {"edits": [edit]}} if edit else {})
    got = served.ask("/v1/messages", body, {**HEADERS, "x-session-id": "amber"})
    assert got.status == 200, got.raw[:500]
    return got


def results(body: Message) -> dict[str, str]:
    """What a request has of results, by the ids of their calls."""
    found = (b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"])
    return {b["tool_use_id"]: str(b["content"]) for b in found if b["type"] == "tool_result"}


def clear(**given: Any) -> Message:
    return {"type": "clear_tool_uses_20250919", **given}


def compact(value: int, **given: Any) -> Message:
    return {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": value}, **given}


def uses(value: int) -> Message:
    return {"type": "tool_uses", "value": value}


def tokens(value: int) -> Message:
    return {"type": "input_tokens", "value": value}


def delta(got: Got) -> Message:
    """The event of a stream that says how it ended."""
    events = [line for line in got.raw.decode().splitlines() if line.startswith("data:")]
    (found,) = (event for line in events if (event := json.loads(line[5:]))["type"] == "message_delta")
    return dict(found)


# --- results of tools -------------------------------------------------------------------------------------------------


def test_old_results_are_cleared_and_that_is_told() -> None:
    with lacking(provider := StrictProvider()) as served:
        got = ask(served, worked(8), clear(trigger=uses(6), keep=uses(2)))
        sent = provider.heard[-1]
        assert "context_management" not in sent.body
        assert sent.headers["anthropic-beta"] == "x"
        whole = [id for id, text in results(sent.body).items() if "line 650" in text]
        assert whole == ["toolu_6", "toolu_7"]
        (edit,) = got.json()["context_management"]["applied_edits"]
        assert edit["type"] == "clear_tool_uses_20250919"
        assert edit["cleared_tool_uses"] == 6
        assert edit["cleared_input_tokens"] > 10_000
        # And again, as long as it holds; what came since stays until there is too much of it.
        again = ask(served, [*worked(8), *ran(8)], clear(trigger=uses(20), keep=uses(2)))
        assert again.json()["context_management"]["applied_edits"] == [edit]
        before, after = provider.heard[-2].body["messages"], provider.heard[-1].body["messages"]
        assert after[: len(before)] == before


@pytest.mark.parametrize("stream", [False, True])
def test_below_the_trigger_nothing_is_done_and_that_is_told(stream: bool) -> None:
    with lacking(provider := StrictProvider()) as served:
        got = ask(served, worked(3), clear(trigger=tokens(90_000)), stream=stream)
        assert provider.heard[-1].body["messages"] == worked(3)
        told = delta(got) if stream else got.json()
        assert told["context_management"] == {"applied_edits": []}


def test_a_stream_tells_of_it_in_its_end() -> None:
    with lacking(StrictProvider([Answer("Go on.")])) as served:
        got = ask(served, worked(8), clear(trigger=tokens(5_000), keep=uses(1)), stream=True)
        (edit,) = delta(got)["context_management"]["applied_edits"]
        assert edit["cleared_tool_uses"] == 7
        assert got.spoken("anthropic").text == "Go on."


def test_excluded_tools_stay_and_inputs_go_where_that_is_asked() -> None:
    history = [*worked(2), *ran(2, "memory"), *ran(3), *ran(4)]
    with lacking(provider := StrictProvider()) as served:
        ask(served, history, clear(trigger=uses(1), keep=uses(1), exclude_tools=["memory"], clear_tool_inputs=True))
        sent = provider.heard[-1].body
        assert [id for id, text in results(sent).items() if "line 650" in text] == ["toolu_2", "toolu_4"]
        calls = {b["id"]: str(b["input"]) for m in sent["messages"][1::2] for b in m["content"]}
        assert [id for id, text in calls.items() if len(text) > 1_000] == ["toolu_2", "toolu_4"]
        assert "make fact-0.o" in calls["toolu_0"]


def test_where_too_little_would_go_all_stays() -> None:
    with lacking(provider := StrictProvider()) as served:
        got = ask(served, worked(8), clear(trigger=uses(6), keep=uses(2), clear_at_least=tokens(90_000)))
        assert provider.heard[-1].body["messages"] == worked(8)
        assert got.json()["context_management"] == {"applied_edits": []}


async def test_what_was_cleared_is_in_the_log() -> None:
    with lacking(StrictProvider()) as served:
        ask(served, worked(8), clear(trigger=uses(6), keep=uses(2)))
        engine: Engine = served.gateway.engine
        branch = await engine.store.session("default", "amber")
        assert branch
        found = await engine.search("default", "built 3", branch)
        assert any(node.item.text.startswith("built 3\n") for node in found)


# --- summaries --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_long_history_becomes_a_summary_that_comes_back(stream: bool) -> None:
    answer = Answer("Go on.", calls=(Call("Bash", {"command": "make"}, "toolu_x"),))
    with lacking(provider := StrictProvider([answer])) as served:
        history = worked(20)
        got = ask(served, history, compact(50_000), stream=stream)
        (message,) = got.spoken("anthropic").messages
        block, said, call = message["content"]
        assert block["type"] == "compaction"
        assert "Build the amber parts" in block["content"]
        assert [n for n in range(20) if f"fact-{n}.o" not in block["content"]] == []
        assert (said["text"], call["name"]) == ("Go on.", "Bash")
        first = provider.heard[-1].body["messages"]
        # The model has the summary, and what it has not read yet, whole.
        assert provider.heard[-1].spent.input < 25_000
        assert "line 650 of 19" in results(provider.heard[-1].body)["toolu_19"]
        # The block comes back; what was before it counts no more, whether it is sent or not.
        result = {"type": "tool_result", "tool_use_id": "toolu_x", "content": "made"}
        history += [message, {"role": "user", "content": [result]}]
        ask(served, history, compact(50_000))
        second = provider.heard[-1].body["messages"]
        assert second[: len(first)] == first
        assert [m["role"] for m in second[len(first) :]] == ["assistant", "user"]
        assert len(provider.heard) == 2
        ask(served, history[-2:], compact(50_000))
        assert [m["role"] for m in provider.heard[-1].body["messages"]] == ["user", "assistant", "user"]
        assert "compaction" not in {b["type"] for b in provider.heard[-1].body["messages"][1]["content"]}


@pytest.mark.parametrize("stream", [False, True])
def test_who_wants_to_look_first_gets_the_summary_alone(stream: bool) -> None:
    with lacking(provider := StrictProvider()) as served:
        history = worked(20)
        got = ask(served, history, compact(50_000, pause_after_compaction=True), stream=stream)
        assert provider.heard == []
        spoken = got.spoken("anthropic")
        assert spoken.reason == "compaction"
        (message,) = spoken.messages
        assert [b["type"] for b in message["content"]] == ["compaction"]
        history += [message, {"role": "user", "content": "Now the blue ones."}]
        ask(served, history, compact(50_000, pause_after_compaction=True))
        assert "Now the blue ones." in str(provider.heard[-1].body["messages"][-1])
        assert provider.heard[-1].spent.input < 25_000


def test_a_short_history_is_not_summed_up() -> None:
    with lacking(provider := StrictProvider()) as served:
        got = ask(served, worked(3), compact(50_000))
        assert [b["type"] for b in got.json()["content"]] == ["text"]
        assert provider.heard[-1].body["messages"] == worked(3)


def test_more_is_told_of_what_its_instructions_name() -> None:
    odd = {"role": "assistant", "content": "The heron's code is X-4711, said in passing."}
    history = [*worked(4), odd, {"role": "user", "content": "Go on."}, *(one for n in range(5, 30) for one in ran(n))]
    with lacking(StrictProvider()) as served:
        got = ask(served, history, compact(50_000, instructions="Keep the heron's code.", pause_after_compaction=True))
        assert "X-4711" in got.json()["content"][0]["content"]


@pytest.mark.nightly
def test_a_session_far_past_the_window_is_summed_up_again_and_again() -> None:
    count = iter(range(1_000))

    def call(body: Message) -> Answer:
        n = next(count)
        return Answer(f"Step {n}.", calls=(Call("Bash", {"command": f"make fact-{n}.o"}, f"toolu_{n}"),))

    with lacking(provider := StrictProvider(call, window=60_000), 60_000) as served:
        history: list[Message] = [{"role": "user", "content": "Build the amber parts."}]
        blocks = 0
        for n in range(60):
            (message,) = ask(served, history, compact(25_000)).spoken("anthropic").messages
            if message["content"][0]["type"] == "compaction":
                block, blocks = message["content"][0], blocks + 1
            history += [message, ran(n)[1]]
        assert blocks > 3
        assert len(provider.heard) == 60
        assert "Build the amber parts" in str(provider.heard[-1].body["messages"][0])
        assert "Build the amber parts" in block["content"]


# --- requests ---------------------------------------------------------------------------------------------------------


def test_what_asks_for_nothing_is_let_alone() -> None:
    assert managed(b'{"messages": []}') is None
    assert managed(b'{"messages": [{"role": "user", "content": "\\"compaction\\""}]}') is None


def test_a_compaction_that_failed_counts_for_nothing() -> None:
    answer = [{"type": "compaction", "content": None}, {"type": "text", "text": "b"}]
    said = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": answer},
        {"role": "user", "content": "c"},
    ]
    found = managed(json.dumps({"messages": said}).encode())
    assert found
    assert [m["content"] for m in found.body["messages"]] == ["a", [{"type": "text", "text": "b"}], "c"]


def test_what_makes_no_sense_is_refused() -> None:
    with lacking(StrictProvider()) as served:
        body = {"model": "claude-sonnet-4-5", "max_tokens": 10, "messages": worked(0)}
        body["context_management"] = {"edits": [compact(-1)]}
        got = served.ask("/v1/messages", body, HEADERS)
        assert got.status == 400
        assert "compact_20260112.trigger.value" in got.json()["error"]["message"]


def test_only_what_the_gateway_does_is_taken_out_of_a_header() -> None:
    assert without_betas([("anthropic-beta", "compact-2026-01-12"), ("a", "")]) == [("a", "")]


def test_an_upstream_that_knows_it_gets_it_as_it_came() -> None:
    with serving(provider=(provider := StrictProvider())) as served:
        served.gateway.upstreams.known = Upstreams([Upstream("own", "anthropic", provider.url, "key")]).known
        ask(served, worked(2), clear(trigger=uses(1)))
        assert provider.heard[-1].body["context_management"] == {"edits": [clear(trigger=uses(1))]}
        assert provider.heard[-1].headers["anthropic-beta"] == HEADERS["anthropic-beta"]


def test_what_is_only_counted_asks_for_nothing_either() -> None:
    with lacking(provider := StrictProvider()) as served:
        body: Message = {"model": "claude-sonnet-4-5", "messages": worked(1), "tools": [TOOL]}
        body["context_management"] = {"edits": [clear()]}
        got = served.ask("/v1/messages/count_tokens", body, HEADERS)
        assert got.json().get("input_tokens", 0) > 1_000, got.raw
        assert "context_management" not in provider.heard[-1].body


def test_a_client_that_sums_up_by_itself_is_answered_once() -> None:
    asked = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is to create a detailed summary."
    with lacking(provider := StrictProvider()) as served:
        history = [*worked(20), {"role": "assistant", "content": "Done."}, {"role": "user", "content": asked}]
        got = ask(served, history, compact(50_000))
        assert provider.heard == []
        assert [block["type"] for block in got.json()["content"]] == ["text"]
        assert "Respond with TEXT ONLY" not in got.json()["content"][0]["text"]
