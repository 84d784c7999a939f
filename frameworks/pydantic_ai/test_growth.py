"""Conversations far past their window, in the loop of Pydantic AI."""

import json
from collections.abc import Callable
from typing import Any

from frameworks.pydantic_ai.talking import talk
from frameworks.reading import TURNS, read, reading
from pydantic_ai import Agent

from clew import Engine, Sessions
from clew.adapters.pydantic_ai import ClewCapability
from clew.events import Edited, Event
from clew.testing import StrictProvider

Make = Callable[..., Any]


async def test_a_long_conversation_fits_and_its_history_stays_whole(
    engine: Engine, heard: list[Event], provide: Make, agent: Make
) -> None:
    said = reading()
    provider: StrictProvider = provide(lambda _: next(said))
    asking: Agent = agent(
        provider, ClewCapability(engine), tools=[read], system_prompt="You read.", instructions="Be brief."
    )
    history = await talk(asking)
    assert len(provider.heard) == 2 * TURNS
    assert len(history) == 4 * TURNS
    last = provider.heard[-1].body["messages"]
    assert len(last) < 4 * TURNS
    assert "You read." in json.dumps(last[:2])
    assert "Be brief." in json.dumps(last[:2])
    assert any(isinstance(event, Edited) for event in heard)
    chain = await Sessions(engine).lineage(str(history[0].conversation_id))
    assert [session.cause for session in chain[:2]] == ["start", "compaction"]
