"""A conversation of a host that keeps its own list of messages."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from clew import Budget, Engine, SQLite, run
from clew.control import ContextController
from clew.core.items import Digests
from clew.errors import BadRequest, OverBudget, SecretFound
from clew.exchange.thread import Thread, best
from clew.store.sql import SQLStore
from clew.wire import decode

SAID: list[dict[str, Any]] = [{"role": "user", "content": [{"text": "Which port is it?"}]}]
BODY = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Audit the books."}]}


async def failing(error: Exception) -> str:
    raise error


async def test_where_clew_fails_a_host_goes_on_and_what_was_said_is_not_in_the_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert await best(failing(ValueError("a private word")), "all of it") == "all of it"
    too_long = OverBudget("9,000 tokens remain", needed=9_000, limit=8_000)
    assert await best(failing(too_long), "all of it") == "all of it"
    assert [(record.levelno, record.name) for record in caplog.records] == [(logging.WARNING, "clew")] * 2
    assert "ValueError" in caplog.text
    assert "9,000 tokens remain" in caplog.text
    assert "a private word" not in caplog.text


async def test_a_secret_that_is_to_be_refused_is_no_failure_to_go_on_after() -> None:
    with pytest.raises(SecretFound):
        await best(failing(SecretFound("github token")), "all of it")


def test_no_two_children_have_one_name(tmp_path: Path) -> None:
    store = SQLite(tmp_path / "clew.db")
    parent = Thread(ContextController(Engine(store, Budget(window=8_000))))
    run(parent.fit(BODY, "openai_chat"))
    assert len({parent.child("Clerk").session for _ in range(3_000)}) == 3_000
    run(store.close())


async def test_a_report_after_a_failure_is_of_nothing_that_was_sent_before(store: SQLStore) -> None:
    thread = Thread(ContextController(Engine(store, Budget(window=4_000))), "talk")
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


async def test_what_is_kept_is_no_call_and_is_known_when_it_comes_again(store: SQLStore) -> None:
    thread = Thread(ContextController(Engine(store, Budget(window=4_000))), "talk")
    view = (await thread.fit({"messages": SAID}, "bedrock")).view
    answered = [*SAID, {"role": "assistant", "content": [{"text": "8080."}]}]
    await thread.keep({"messages": answered}, "bedrock")
    asked = [*answered, {"role": "user", "content": [{"text": "And the host?"}]}]
    again = (await thread.fit({"messages": asked}, "bedrock")).view
    assert again.branch == view.branch
    assert [n.item.text for n in again.nodes] == ["Which port is it?", "8080.", "And the host?"]
    assert [call.said for call in await store.calls("default", view.branch)] == [1, 3]
    assert (await store.check(True)) == []


async def test_what_a_host_folds_by_itself_can_be_recalled_at_once(store: SQLStore) -> None:
    engine = Engine(store, Budget(window=20_000, reserve=500))
    thread, said = Thread(ContextController(engine), "talk"), list[dict[str, Any]]()
    for n in range(12):
        said += [{"role": "user", "content": f"Page {n} says okapi{n}. " + f"word{n} " * 300}]
        said += [{"role": "assistant", "content": f"Page {n} is read."}]
    view = (await thread.fit({"model": "gpt-4o", "messages": [*said, *BODY["messages"]]}, "openai_chat")).view
    folded = await engine.compact(view)
    ids = {id for node in folded.nodes for id in re.findall(r"recall ([0-9a-f]{10})", node.item.text)}
    assert ids
    assert not [id for id in ids if (await thread.answer("recall", {"id": id})).failed]
    # Another one who has said the same may go on meanwhile: of that nothing is its own.
    other = Thread(ContextController(engine), "talk")
    await other.fit({"model": "gpt-4o", "messages": [*said, *BODY["messages"], {"role": "assistant", "content": "Yes."},
                    {"role": "user", "content": "And zebu4711?"}]}, "openai_chat")  # fmt: skip
    trace = await store.load("default", view.branch)
    assert (await thread.answer("recall", {"id": trace.said[-1].id})).failed
