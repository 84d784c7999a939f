"""ADK's own compaction beside clew's, on the same conversation.

The model that summarises for ADK is as good as can be: it repeats every fact that it is shown.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from frameworks.adk.talking import runner, talk
from frameworks.reading import read, reading
from google.adk.apps.app import EventsCompactionConfig
from google.adk.plugins.context_filter_plugin import ContextFilterPlugin
from google.genai.errors import ClientError

from clew import Engine
from clew.adapters.adk import ClewPlugin
from clew.testing import Answer

MEASURED_TURNS = 14
SUMMARISING = "conversation history between a user and an AI agent"


def answering(said: Iterator[Answer]) -> Callable[[dict[str, Any]], Answer]:
    def answer(body: dict[str, Any]) -> Answer:
        asked = json.dumps(body["contents"])
        if SUMMARISING not in asked:
            return next(said)
        return Answer("\n".join(sorted(set(re.findall(r"KEY_\d+ = \d+", asked)))) or "Nothing yet.")

    return answer


async def test_beside_adk(engine: Engine, provide: Callable[..., Any], agent: Callable[..., Any]) -> None:
    facts = [f"KEY_{n} = {n * 4711}" for n in range(2 * MEASURED_TURNS)]
    compaction = EventsCompactionConfig(token_threshold=5_000, event_retention_size=4)
    tried: dict[str, tuple[list[Any], dict[str, Any]]] = {
        "EventsCompactionConfig": ([], {"events_compaction_config": compaction}),
        "ContextFilterPlugin": ([ContextFilterPlugin(num_invocations_to_keep=3)], {}),
        "clew": ([ClewPlugin(engine)], {}),
    }
    for name, (plugins, given) in tried.items():
        provider = provide(answering(reading(MEASURED_TURNS)))
        failed = ""
        try:
            await talk(runner(agent(provider, tools=[read]), *plugins, **given), MEASURED_TURNS)
        except ClientError as error:
            failed = str(error)
        sent = sum(one.spent.input for one in provider.heard)
        last = json.dumps(next(one.body for one in reversed(provider.heard) if SUMMARISING not in str(one.body)))
        seen = sum(fact in last for fact in facts)
        print(
            f"{name}: {len(provider.heard)} requests, {sent:,} tokens, {seen} of {len(facts)} facts in the last", failed
        )
    conversation = await engine.store.session("default", "reading/me/port")
    recallable = 0
    for fact in facts:
        found = await engine.search("default", fact.partition(" =")[0], conversation)
        recallable += any(fact in node.item.text for node in found)
    print(f"clew: {recallable} of {len(facts)} facts found in its log")
    assert not failed
    assert recallable == len(facts)
