"""Inspect's own strategies beside clew's, on the same conversation: what was sent, refused, and is still known."""

from pathlib import Path
from typing import Any

import pytest
from frameworks.inspect_ai.reading import THRESHOLD, WINDOW, asked, evaluated, model_of, reading
from inspect_ai.model import CompactionEdit, CompactionSummary, CompactionTrim

from clew import Engine, Sessions, SQLite, run
from clew.adapters.inspect_ai import ClewCompaction
from clew.testing import Answer, Call, StrictProvider

ROUNDS = 12
STRATEGIES: dict[str, Any] = {
    "CompactionTrim": CompactionTrim,
    "CompactionEdit": CompactionEdit,
    "CompactionSummary": CompactionSummary,
    "clew": lambda threshold: ClewCompaction("clew.db", threshold=threshold),
}


def known(said: str) -> int:
    """Of the keys in the files that were read, how many have their values here."""
    return sum(f"KEY_{n} = {n * 4711}" in said for n in range(2 * ROUNDS))


def is_found(n: int) -> bool:
    """Whether clew's log has the value of a key, where there is a log."""
    if not Path("clew.db").exists():
        return False
    engine = Engine(SQLite("clew.db"))
    (branch,) = {session.branch for session in run(Sessions(engine).all())}
    nodes = run(engine.search("default", f"KEY_{n}", branch))
    run(engine.close())
    return any(f"KEY_{n} = {n * 4711}" in node.item.text for node in nodes)


@pytest.mark.parametrize("name", STRATEGIES)
def test_beside(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    looks = [Answer(calls=(Call("search_history", {"query": f"KEY_{n}"}),)) for n in range(0, 8, 2)]
    script = reading(ROUNDS, *(looks if name == "clew" else ()))

    def answer(body: dict[str, Any]) -> Answer:
        return Answer("Files were read.") if "tools" not in body else script(body)

    strategy = STRATEGIES[name](threshold=THRESHOLD)
    with StrictProvider(answer, window=WINDOW) as provider:
        log = evaluated(model_of(provider), strategy, *getattr(strategy, "tools", []))
    heard = asked(provider)
    sent = sum(one.spent.input for one in heard)
    refused = sum(one.spent.input > WINDOW for one in heard)
    read = [one for one in heard if "tools" in one.body][: ROUNDS + 1]
    last, end = known(str(read[-1].body)), known(str(heard[-1].body))
    had = sum(f"KEY_{n} = {n * 4711}" in str(read[-1].body) or is_found(n) for n in range(2 * ROUNDS))
    with capsys.disabled():
        print(
            f"\n{name:18} {log.status}, {len(heard)} requests, {sent:,} tokens, {refused} refused; "
            f"keys in the last request: {last} of {2 * ROUNDS}, after four look-ups: {end}; to be had: {had}"
        )
    if name == "clew":
        assert log.status == "success", log.error
        assert refused == 0
        assert had == 2 * ROUNDS
        found = "".join(str(one.body) for one in heard[-4:])
        assert all(f"KEY_{n} = {n * 4711}" in found for n in range(0, 8, 2))
