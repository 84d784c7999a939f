"""A host's own list of messages: what every adapter does with it."""

from typing import Any

import pytest

from clew import BadRequest, Budget, Engine
from clew.adapters.thread import Thread, warn
from clew.agentic import Helm
from clew.items import Digests
from clew.store.sql import SQLStore
from clew.wire import decode

SAID: list[dict[str, Any]] = [{"role": "user", "content": [{"text": "Which port is it?"}]}]


async def test_a_report_after_a_failure_is_of_nothing_that_was_sent_before(store: SQLStore) -> None:
    thread = Thread(Helm(Engine(store, Budget(window=4_000))), "talk")
    view = (await thread.fit({"messages": SAID}, "bedrock")).view
    with pytest.raises(BadRequest):
        await thread.fit({"messages": "none"}, "bedrock")
    await thread.heard({"inputTokens": 10, "outputTokens": 2})
    (call,) = await store.calls("default", view.branch)
    assert call.usage is None


def test_what_a_host_notes_about_a_message_is_not_what_was_said() -> None:
    noted = [{**SAID[0], "tracking_id": "7", "metadata": {"custom": {"pinned": True}}}]
    digests = Digests()
    (plain,), (marked,) = (digests.chain(decode({"messages": m}, "bedrock")[1]) for m in (SAID, noted))
    assert plain.id == marked.id
    assert marked.item.opens is not None
    assert marked.item.opens.keys["tracking_id"] == "7"


def test_a_warning_says_what_clew_says_and_of_other_errors_only_the_name(caplog: pytest.LogCaptureFixture) -> None:
    warn("it goes on", BadRequest("there is no list of messages"))
    warn("it goes on", ValueError("the key is sk-hunter2"))
    assert caplog.messages == ["it goes on: there is no list of messages", "it goes on: ValueError"]
