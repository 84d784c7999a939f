"""Agent Framework's own compaction beside clew's, on the same conversation.

Without a model that summarises: the figures are of what code does, and the same in every run.
"""

import json
from collections.abc import Callable
from typing import Any

from agent_framework import AgentSession, ContextWindowCompactionStrategy
from agent_framework.exceptions import ChatClientException
from frameworks.agent_framework.talking import talk
from frameworks.reading import read, reading

from clew import Engine
from clew.adapters.agent_framework import ClewProvider

MEASURED_TURNS = 14


async def test_beside_agent_framework(engine: Engine, provide: Callable[..., Any], agent: Callable[..., Any]) -> None:
    facts = [f"KEY_{n} = {n * 4711}" for n in range(2 * MEASURED_TURNS)]
    window = ContextWindowCompactionStrategy(max_context_window_tokens=8_000, max_output_tokens=500)
    tried: dict[str, tuple[list[Any], dict[str, Any]]] = {
        "ContextWindowCompactionStrategy": ([], {"compaction_strategy": window}),
        "ClewProvider": ([ClewProvider(engine)], {}),
    }
    for name, (providers, given) in tried.items():
        said = reading(MEASURED_TURNS)
        provider = provide(lambda _, said=said: next(said))
        failed = ""
        try:
            await talk(
                agent(provider, *providers, tools=[read], **given), AgentSession(session_id="port"), MEASURED_TURNS
            )
        except ChatClientException as error:
            failed = str(error)
        sent = sum(one.spent.input for one in provider.heard)
        last = json.dumps(provider.heard[-1].body["messages"])
        seen = sum(fact in last for fact in facts)
        print(
            f"{name}: {len(provider.heard)} requests, {sent:,} tokens, {seen} of {len(facts)} facts in the last", failed
        )
    conversation = await engine.store.session("default", "port")
    recallable = 0
    for fact in facts:
        found = await engine.search("default", fact.partition(" =")[0], conversation)
        recallable += any(fact in node.item.text for node in found)
    print(f"clew: {recallable} of {len(facts)} facts found in its log")
    assert not failed
    assert recallable == len(facts)
