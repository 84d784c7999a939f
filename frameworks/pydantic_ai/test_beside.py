"""What Pydantic AI has itself beside clew, on the same conversation: its `ProcessHistory`, with the last five messages.

Its harness compacts better, but each release of it wants one release of Pydantic AI, which is not always the newest.
"""

import json
from collections.abc import Callable
from typing import Any

from frameworks.pydantic_ai.talking import talk
from frameworks.reading import read, reading
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage

from clew import Engine
from clew.adapters.pydantic_ai import ClewCapability

MEASURED_TURNS = 14


def newest(messages: list[ModelMessage]) -> list[ModelMessage]:
    return messages[-5:]


async def test_beside_a_processor_of_history(
    engine: Engine, provide: Callable[..., Any], agent: Callable[..., Any]
) -> None:
    facts = [f"KEY_{n} = {n * 4711}" for n in range(2 * MEASURED_TURNS)]
    tried = {"ProcessHistory": ProcessHistory[None](newest), "clew": ClewCapability(engine)}
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
