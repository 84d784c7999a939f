"""The compaction of Pydantic AI's harness beside clew's, on the same conversation.

Without a model that summarises: the figures are of what code does, and the same in every run.
"""

import json
from collections.abc import Callable
from typing import Any

from frameworks.pydantic_ai.talking import read, reading, talk
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai_harness.compaction import (
    ClampOversizedMessages,
    ClearToolResults,
    SlidingWindowCompaction,
    TieredCompaction,
)

from clew import Engine
from clew.adapters.pydantic_ai import ClewCapability

MEASURED_TURNS = 14


def harness(share: float) -> TieredCompaction[None]:
    tiers = [
        ClampOversizedMessages(max_part_tokens=2_000),
        ClearToolResults(max_tokens=1),
        SlidingWindowCompaction(max_messages=1, keep_messages=12),
    ]
    return TieredCompaction(tiers, target_fraction=share, context_window=8_000)


async def test_beside_the_harness(engine: Engine, provide: Callable[..., Any], agent: Callable[..., Any]) -> None:
    facts = [f"KEY_{n} = {n * 4711}" for n in range(2 * MEASURED_TURNS)]
    tried = {"harness to 80 %": harness(0.8), "harness to 60 %": harness(0.6), "clew": ClewCapability(engine)}
    for name, capability in tried.items():
        said = reading(MEASURED_TURNS)
        provider = provide(lambda _, said=said: next(said))
        failed = ""
        try:
            history = await talk(agent(provider, capability, tools=[read]), MEASURED_TURNS)
        except ModelHTTPError as error:
            failed = str(error.body)
        sent = sum(one.spent.input for one in provider.heard)
        last = json.dumps(provider.heard[-1].body["messages"])
        seen = sum(fact in last for fact in facts)
        print(
            f"{name}: {len(provider.heard)} requests, {sent:,} tokens sent, {seen} of {len(facts)} facts in the last",
            failed,
        )
    conversation = await engine.store.session("default", str(history[0].conversation_id))
    recallable = 0
    for fact in facts:
        found = await engine.search("default", fact.partition(" =")[0], conversation)
        recallable += any(fact in node.item.text for node in found)
    print(f"clew: {recallable} of {len(facts)} facts found in its log")
    assert not failed
    assert recallable == len(facts)
