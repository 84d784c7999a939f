"""A conversation of a host that keeps its own list of messages."""

import logging
from pathlib import Path

import pytest

from clew import Budget, Engine, SQLite, run
from clew.adapters.thread import Thread, best
from clew.agentic import Helm
from clew.errors import OverBudget, SecretFound

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
    parent = Thread(Helm(Engine(store, Budget(window=8_000))))
    run(parent.fit(BODY, "openai_chat"))
    assert len({parent.child("Clerk").session for _ in range(3_000)}) == 3_000
    run(store.close())
