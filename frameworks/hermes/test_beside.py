"""Hermes' own compressor and clew with the same conversation; `-s` prints the figures."""

import asyncio
from collections.abc import Callable
from typing import Any

from frameworks.hermes.talking import FACT, PARTS, Model, contents

from clew.exchange.thread import engine_at
from clew.testing import StrictProvider

ASKED = 2  # times that all parts are read


def recallable() -> set[str]:
    async def read() -> set[str]:
        engine = engine_at()
        branch = await engine.store.session("default", "clew")
        told = [await engine.answer("default", f"code{n}x", branch, 8_000) for n in range(PARTS)]
        return set(FACT.findall("\n".join(filter(None, told))))

    return asyncio.run(read())


def test_beside_hermes_own(agent: Callable[..., Any], model: Model) -> None:
    planted = {FACT.findall(contents(n))[0] for n in range(PARTS)}
    found: dict[str, tuple[int, set[str]]] = {}
    for engine in ("compressor", "clew"):
        model.answered = 0
        with StrictProvider(model, window=64_000) as provider:
            hermes, history = agent(engine, base_url=f"{provider.url}/v1", session_id=engine), []
            for _ in range(ASKED):
                model.next = 0
                came = hermes.run_conversation("Read all parts.", conversation_history=history)
                history = came["messages"]
            refused = len(provider.heard) - model.answered
            shown = set(FACT.findall(str(provider.heard[-1].body["messages"])))
            kept = shown | (recallable() if engine == "clew" else set())
            sent = sum(one.spent.input for one in provider.heard)
            print(f"{engine}: {len(provider.heard)} requests, {sent:,} tokens sent, {refused} refused,", end=" ")
            print(
                f"{len(shown)} of {PARTS} facts in the last request, {len(kept & planted)} there or recalled,", end=" "
            )
            print(f"{len(history)} messages; {came['final_response']}")
        found[engine] = refused, kept & planted
    assert found["clew"] == (0, planted)
