"""What real clients send goes through the gateway, a session each, far past the window."""

import hashlib
import json
import re
from typing import Any

import pytest

from clew.gateway.settings import ClientCompaction, GatewaySettings
from clew.testing import Answer, StrictProvider
from made_clients import CLIENTS, ClientRequest
from made_clients.judging import ClientJudge, ClientTally
from made_clients.shape import play, script
from made_clients.wording import Pen
from serving import Got, Served, serving

SUMMARY = "SUMMARY-OF-THE-CLIENT"
NAMES = [*CLIENTS]
WINDOW = 90_000


class Playing:
    """A client at work: what it was told in place of a summary, it goes on with."""

    def __init__(self, served: Served, name: str, turns: int, seed: int = 0) -> None:
        self.served = served
        pen = Pen(name, "amber", seed)
        client = CLIENTS[name](pen, "amber")
        steps = script(pen, "amber", turns, client.in_loop, client.delegates)
        for step in steps:
            if hasattr(step, "summary"):
                object.__setattr__(step, "summary", SUMMARY)
        self.requests = play(client, steps)
        self.summary = SUMMARY
        self.asked = self.answered = 0  # compactions, and those of them that no model was asked for
        self.judge = ClientJudge(served.gateway.engine, ClientTally(), "default")

    def run(self) -> None:
        for request in self.requests:
            before = len(self.served.provider.heard)
            got = self.take(request)
            assert got.status == 200, (request.kind, got.raw[:1_000])
            heard = self.served.provider.heard[before:]
            if request.kind == "compaction":
                self.asked += 1
                self.answered += not heard
                self.summary = self.told(got, request)
            elif heard:
                self.judge.look(request, heard[-1].body, fits=False)

    def take(self, request: ClientRequest) -> Got:
        raw = json.dumps(request.body).replace(SUMMARY, json.dumps(self.summary)[1:-1]).encode()
        return self.served.ask(request.path, raw, request.headers)

    def told(self, got: Got, request: ClientRequest) -> str:
        spoken = got.spoken(request.format)
        items = [m for m in spoken.messages if m.get("type") == "compaction"]
        if items:
            assert len(items) == 1
            return str(items[0]["encrypted_content"])
        text = json.dumps(spoken.messages, ensure_ascii=False)
        assert "amber" in text
        return str(spoken.text)


BOTH = ("claude-2.1.325", "codex", "opencode", "pi")  # whose usage decides when they compact


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "mode"), [*((name, "prevent") for name in NAMES), *((name, "answer") for name in NAMES if name in BOTH)]
)
def test_a_session_far_past_the_window(name: str, mode: ClientCompaction) -> None:
    with serving(window=WINDOW, settings=GatewaySettings(compaction=mode)) as served:
        playing = Playing(served, name, turns=28)
        playing.run()
        assert "clew_failed_open_total 0" in served.gateway.metrics.text()
        assert playing.judge.tally.faults() == {}
        assert playing.answered == playing.asked


def summed_up(body: dict[str, Any]) -> Answer:
    """What a model answers: to whoever wants a summary, one that nobody else gets."""
    asked = json.dumps(body)
    words = " ".join(f"amber-{hashlib.sha256(f'{n}{asked}'.encode()).hexdigest()[:9]}" for n in range(40))
    return Answer(f"<summary>\nThe work so far: {words}.\n</summary>" if ASKS.search(asked) else "Go on.")


ASKS = re.compile("TEXT ONLY|CHECKPOINT COMPACTION|summarization a|state_snapshot|detailed summary|Sum up all")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("aider", "codex-lite")]
)  # one asks for none, one gets an item
async def test_what_goes_on_from_a_models_own_summary_is_linked_to_what_that_sums_up(name: str) -> None:
    provider = StrictProvider(summed_up, window=200_000)
    with serving(provider=provider, window=200_000, settings=GatewaySettings(compaction="pass")) as served:
        playing = Playing(served, name, turns=16)
        playing.run()
        assert (playing.answered, playing.asked > 0) == (0, True)
        sessions = await served.gateway.engine.store.sessions("default")
        linked = {s.branch for s in sessions if s.number == 1 and s.cause == "compaction"}
        assert any(s.branch in linked and s.calls > 1 for s in sessions)


@pytest.mark.parametrize("format", ["openai_chat", "openai_responses"])
async def test_a_short_session_that_copilot_resumes_goes_on(format: str) -> None:
    """It then has notes on the results, or no thoughts any more."""
    given = {"name": "bash", "arguments": "{}"}
    if format == "openai_chat":
        path, key = "/v1/chat/completions", "messages"
        call = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": given}],
        }
        back = {"role": "tool", "tool_call_id": "c", "content": "amber"}
        was, now = [{**call, "refusal": None}, back], [call, {**back, "__copilotMessageSource": {"kind": "tool"}}]
    else:
        path, key = "/v1/responses", "input"
        thought = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "What next?"}]}
        work = {"type": "function_call", "call_id": "c", **given}
        now = [work, {"type": "function_call_output", "call_id": "c", "output": "amber"}]
        was = [thought, *now]
    user = {"role": "user", "content": "list files"}
    answered = [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "and again"}]
    with serving() as served:
        for history in ([user], [user, *was], [user, *now, *answered]):
            assert served.ask(path, {"model": "gpt-5.4", key: history}).status == 200
        assert len(await served.gateway.engine.store.branches("default")) == 1
