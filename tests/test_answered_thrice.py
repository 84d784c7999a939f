"""Clients that compact three times in a row, each in its own shape, answered from the log."""

import json
import re
from typing import Any

import pytest

from clew.gateway.settings import GatewaySettings
from clew.testing import Answer, StrictProvider
from made_clients import CLIENTS, Client, ClientRequest
from made_clients.shape import UsedTool, Worked
from made_clients.wording import Pen
from serving import Got, Served, serving

WINDOW = 200_000
SUMMARY = "the-summary-that-clew-gives"
NAMES = (
    *("claude-2.1.197", "claude-2.1.325", "codex", "codex-lite", "gemini-cli", "qwen-code"),
    *("opencode", "opencode-messages", "opencode-responses", "pi"),
)
FILLERS = ("What did we do so far?", "You are performing", "<environment_context>", "AGENTS.md", "<session_context>")


def sent(served: Served, request: ClientRequest) -> Got:
    got = served.ask(request.path, request.body, request.headers)
    assert got.status == 200, got.raw[:500]
    return got


def taken(client: Client, told: str, raw: bytes) -> None:
    """Have a client go on from what it was answered."""
    inner = json.dumps(told.replace("<state_snapshot>\n", "").replace("\n</state_snapshot>", ""))[1:-1]
    own: Any = client
    own.history = json.loads(json.dumps(own.history).replace(SUMMARY, inner))
    if own.history[-1].get("type") == "compaction":
        own.history[-1] = sealed(raw)
    if hasattr(client, "before"):  # pi shows it beside what it quotes
        own.before = told
    if hasattr(client, "told"):  # opencode quotes what it has now
        own.told = ["[User]: What did we do so far?", f"[Assistant]: {told}", *own.told[own.quoted :]]


def sealed(raw: bytes) -> Any:
    events = [json.loads(line[6:]) for line in raw.decode().splitlines() if line.startswith("data: {")]
    done = events[-1]["response"] if events else json.loads(raw)
    return next(item for item in done["output"] if item["type"] == "compaction")


def compacted(served: Served, client: Client) -> str:
    heard, told, raw = len(served.provider.heard), "", b""
    for request in client.compact(SUMMARY):
        text = json.dumps(request.body).replace(SUMMARY, json.dumps(told)[1:-1])
        got = served.ask(request.path, text.encode(), request.headers)
        assert got.status == 200, got.raw[:500]
        raw = got.raw
        told = "sealed" if b'"compaction"' in raw else str(got.spoken(request.format).text)
    assert len(served.provider.heard) == heard, "no model was asked"
    taken(client, told, raw)
    return told


RULE = re.compile(r"^- “[^\n]*” \(request \d+\)", re.MULTILINE)


def shown(served: Served) -> str:
    """The summary as the model sees it: the newest text with clew's line in the last request."""
    return max((t for t in texts(served.provider.heard[-1].body) if "[clew log " in t), key=len)


def texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in texts(part)]


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(7, 10))
@pytest.mark.parametrize("name", NAMES)
def test_three_compactions_tell_each_request_once_in_order_and_at_one_length(name: str, seed: int) -> None:
    provider = StrictProvider([Answer("Go on.")], window=WINDOW)
    with serving(provider=provider, window=WINDOW, settings=GatewaySettings(compaction="answer")) as served:
        pen = Pen(name, "amber", seed)
        client, asked, sizes = CLIENTS[name](pen, "amber"), 0, list[int]()
        for _ in range(3):
            for _ in range(2):
                asked += 1
                text = f"Wish {asked}. The port of s{asked} is 4{asked:02d}7 and must never change; look at its files."
                begun = len(getattr(client, "told", ()))
                client.ask(text)
                client.asked, client.wants = text, (text,)
                sent(served, client.sent("main", client.body()))
                for n in range(4):
                    call = UsedTool(pen.id(), "shell", {"command": f"cat s{asked}/{n}.py"}, pen.output(3_000, f"x{n}"))
                    client.work(Worked("I should look.", f"Part {n} of s{asked}.", (call,)))
                    client.wants = (call.output,)
                    sent(served, client.sent("main", client.body()))
                client.answer(f"Wish {asked} is done, in words of its own.")
            if hasattr(client, "told"):
                client.quoted = begun  # type: ignore[attr-defined]
            compacted(served, client)
            client.ask("And now?")
            sent(served, client.sent("continued", client.body()))
            summary = shown(served)
            client.answer("Now the next one.")
            told = RULE.sub("", summary)  # which may be quoted once more among the rules
            wishes = [
                int(part.split(".")[0]) for part in told.split("Wish ")[1:] if part[:3].rstrip(" i").endswith(".")
            ]
            assert wishes == [*range(1, asked + 1)], "each once, in order"
            assert all(f"4{n:02d}7" in summary for n in range(1, asked + 1))
            assert summary.count("[clew log ") == 1
            assert not [filler for filler in FILLERS if filler in summary]
            sizes.append(len(summary))
        # What the newest has as its system message parts its log in more pieces.
        assert max(sizes) <= (1.21 if name == "claude-2.1.325" else 1.2) * min(sizes), sizes
        metrics = served.gateway.metrics.text()
        assert "clew_failed_open_total 0" in metrics
