"""An upstream that compacts by itself where the gateway folds: signed thinking goes on behind its block."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from clew.testing import Answer, Call, StrictProvider
from clew.testing.provider.answers import ProviderBody
from serving import Served, serving

MODEL = "claude-opus-5-5"  # whose thinking is bound to what was said
WINDOW = 60_000
HEADERS = {"anthropic-version": "2023-06-01", "anthropic-beta": "a-1", "x-session-id": "amber"}
TOOL = {"name": "Bash", "description": "Runs.", "input_schema": {"type": "object"}}
RULE = {"role": "system", "content": "Never touch the billing tables."}

Message = dict[str, Any]


def answers(body: ProviderBody) -> Answer:
    """A thought and a call each time; asked to compact, a summary."""
    if "compaction" in body:
        return Answer(f"Summed up: {len(body['messages'])} messages.")
    done = sum("tool_result" in str(m["content"]) for m in body["messages"])
    return Answer(f"Step {done}.", (Call("Bash", {"command": "make"}),), reasoning=f"I think of step {done}.")


@contextmanager
def compacting(script: Any = answers, window: int = WINDOW) -> Iterator[Served]:
    with serving(":memory:", StrictProvider(script, window=window), window, compacts=True) as served:
        yield served


def ask(served: Served, history: list[Message], **more: Any) -> Message:
    body = {"model": MODEL, "max_tokens": 2_000, "system": "You build.", "tools": [TOOL], "messages": history, **more}
    got = served.ask("/v1/messages", body, HEADERS)
    assert got.status == 200, got.raw[:600]
    (message,) = got.spoken("anthropic").messages
    return dict(message)


def work(served: Served, history: list[Message], steps: int, **more: Any) -> None:
    """So many calls of a tool, each with 1,500 tokens of result; the client keeps all of it."""
    for n in range(len(history), len(history) + steps):
        said = ask(served, history, **more)
        (call,) = (block for block in said["content"] if block["type"] == "tool_use")
        text = f"fact-{n}\n" + "\n".join(f"line {i} of {n}" for i in range(350))
        history += [
            said,
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": text}]},
        ]


def thoughts(body: ProviderBody) -> list[str]:
    blocks = (b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"])
    return [b["thinking"] for b in blocks if b["type"] == "thinking"]


def split(served: Served) -> tuple[list[ProviderBody], list[ProviderBody]]:
    """What asked for a block, and the turns."""
    heard = [h.body for h in served.provider.heard]
    return [b for b in heard if "compaction" in b], [b for b in heard if "compaction" not in b]


def test_thinking_goes_on_behind_the_block_through_folds() -> None:
    with compacting() as served:
        history: list[Message] = [{"role": "user", "content": "Build the amber parts."}]
        work(served, history, 70)
        asked, turns = split(served)
        assert len(asked) >= 2
        assert len(turns) == 70, "nothing was refused"
        for n, body in enumerate(turns):
            if n and body["messages"][0]["content"] != turns[n - 1]["messages"][0]["content"]:
                kept = thoughts(body)
                assert kept, "thinking from before the fold is sent on"
                assert kept == [*thoughts(turns[n - 1]), kept[-1]][-len(kept) :]
                assert "Build the amber parts." in str(body["messages"][1:]), "what is worked on is said again"
        last = turns[-1]["messages"]
        assert last[0]["content"][0]["type"] == "compaction"
        assert last[0]["role"] == "assistant"
        assert "compaction" not in str([m["content"] for m in asked[0]["messages"]])
        assert asked[1]["messages"][0]["content"][0]["type"] == "compaction", "the second is made of the first"
        assert "context_management" not in asked[0]
        assert all(h.headers["anthropic-beta"] == "a-1,compact-2026-09-04" for h in served.provider.heard)


async def test_all_that_the_block_stands_for_is_recalled_and_undone() -> None:
    def talks(body: ProviderBody) -> Answer:
        return answers(body) if "compaction" in body else Answer("I see.", reasoning="I read on.")

    with compacting(talks) as served:
        history: list[Message] = []
        while not split(served)[0]:  # each turn ends: it is folded long before the limit
            text = f"fact-{len(history)}\n" + "\n".join(f"line {i} of {len(history)}" for i in range(350))
            history.append({"role": "user", "content": text})
            history.append(ask(served, history))
        engine = served.gateway.engine
        branch = await engine.store.session("default", "amber")
        assert branch
        view = await engine.view("default", branch)
        back = await engine.recall("default", view.nodes[0].id, branch)
        assert any(node.item.text.startswith("fact-2\n") for node in back)
        undone = await engine.undo("default", branch)
        assert undone.after > undone.before
        ask(served, [*history, {"role": "user", "content": "Which fact was the third?"}])
        sent = split(served)[1][-1]["messages"]
        assert sent[0]["content"].startswith("fact-0\n")
        assert "compaction" not in str(sent)


def test_a_rule_in_the_middle_stays_in_force() -> None:
    with compacting() as served:
        history: list[Message] = [{"role": "user", "content": "Build the amber parts."}, RULE]
        work(served, history, 40)
        asked, turns = split(served)
        assert asked
        assert RULE in turns[-1]["messages"][1:]
        assert thoughts(turns[-1])


@pytest.mark.few(1)
@pytest.mark.parametrize("refusal", [Answer(status=529), Answer(status=400, error="compaction: no"), Answer(raw=b"[]")])
def test_where_the_upstream_does_not_compact_clew_does(refusal: Answer) -> None:
    with compacting(lambda body: refusal if "compaction" in body else answers(body)) as served:
        history: list[Message] = [{"role": "user", "content": "Build the amber parts."}]
        work(served, history, 40)
        asked, turns = split(served)
        assert asked
        assert len(turns) == 40
        assert "[work log" in str(turns[-1]["messages"])


def test_a_client_that_has_its_provider_compact_is_let_alone() -> None:
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 900_000}}
    with compacting() as served:
        history: list[Message] = [{"role": "user", "content": "Build the amber parts."}]
        work(served, history, 40, context_management={"edits": [edit]})
        asked, turns = split(served)
        assert asked == []
        assert turns[-1]["context_management"] == {"edits": [edit]}


def test_without_the_setting_thinking_goes_at_a_fold() -> None:
    with serving(":memory:", StrictProvider(answers, window=WINDOW), WINDOW) as served:
        history: list[Message] = [{"role": "user", "content": "Build the amber parts."}]
        work(served, history, 40)
        asked, turns = split(served)
        assert asked == []
        assert min(len(thoughts(body)) for body in turns[1:]) == 0
