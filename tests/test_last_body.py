"""A body that mostly repeats the last one is read at the cost of what is new, however it is written."""

import json
from collections.abc import Callable
from itertools import islice
from typing import Any

import orjson
import pytest

from clew.core.items import Digests
from clew.recognition.last_body import Body, Known
from clew.wire import decode
from made_clients import CLIENTS, session

Writing = Callable[[Any], bytes]

WRITINGS: dict[str, Writing] = {
    "compact": orjson.dumps,
    "spaces": lambda body: json.dumps(body).encode(),
    "indented": lambda body: json.dumps(body, indent=4, ensure_ascii=False).encode(),
    "tabs": lambda body: json.dumps(body, indent="\t").encode(),
}
AFTER = 6  # requests until a history is more than what stands before it


def take(known: Known, body: Body) -> int:
    """Read a body as the next one; how many messages were known."""
    incoming = known.read(body)
    assert incoming is not None
    frame, items = decode(json.loads(body.raw or b""), known.format)
    assert incoming.frame == frame
    start = known.starts[incoming.same]
    assert incoming.flat() == items[start:]
    known.take(incoming, ["x"] * len(incoming.flat()), Digests(), len(items), unfolded=False)
    assert len(known.messages) == incoming.same + len(incoming.messages)
    return incoming.same


@pytest.mark.few(5)
@pytest.mark.parametrize("writing", WRITINGS)
@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_only_what_is_new_is_parsed(client: str, writing: str) -> None:
    mains = (sent for sent in session(client, "amber", 60) if sent.kind == "main")
    known: Known | None = None
    parsed = turns = 0
    for n, sent in enumerate(islice(mains, 20)):
        body = Body(WRITINGS[writing](sent.body))
        known = known or Known(sent.format)
        take(known, body)
        turns += n >= AFTER
        parsed += n >= AFTER and body._parsed is not None
    assert turns > 10
    assert parsed <= 1  # a client that was opened again may begin otherwise


@pytest.mark.parametrize("writing", WRITINGS)
def test_a_changed_frame_costs_only_itself(writing: str) -> None:
    """Codex says something else about itself every turn, after the history."""
    write, known = WRITINGS[writing], Known("openai_responses")
    said: list[dict[str, Any]] = []
    for n in range(20):
        said += [{"role": "user", "content": f"{n} " + "word " * 50}, {"role": "assistant", "content": f"Yes, {n}."}]
        about = {"turn": f"{n:04x}", "odd": 'a] , "input": [ {'}
        body = Body(write({"model": "m", "input": said, "client_metadata": about, "store": False}), "openai_responses")
        same = take(known, body)
        assert same == max(0, len(said) - 2)
        assert n == 0 or body._parsed is None
