"""What real clients send goes through the gateway, a session each, far past the window."""

import json

import pytest

from clew.gateway.settings import ClientCompaction, GatewaySettings
from clew.testing.clients import CLIENTS, ClientRequest
from clew.testing.clients.judging import ClientJudge, ClientTally
from clew.testing.clients.shape import play, script
from clew.testing.clients.wording import Pen
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
