"""Notes are asked for on clew's own event loop, and connections belong to the loop that opened them."""

import asyncio
import logging
from collections.abc import AsyncIterable
from typing import Any

import httpx
import pytest
from frameworks.strands.talking import LONG
from strands import Agent
from strands.models.anthropic import AnthropicModel
from strands.models.openai import OpenAIModel

from clew.adapters.strands import ClewAgentPlugin, SummarizingConversationManager, hosted
from clew.steps.chapters.model import Prompt
from clew.testing import Answer, StrictProvider

pytestmark = pytest.mark.usefixtures("as_shipped")


class Watched(AnthropicModel):
    """A model that remembers which of its clients was used on which loop."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.used: list[tuple[Any, asyncio.AbstractEventLoop]] = []

    def stream(self, *args: Any, **given: Any) -> AsyncIterable[Any]:
        self.used.append((self.client, asyncio.get_running_loop()))
        return super().stream(*args, **given)

    def loops(self) -> int:
        return len({id(loop) for _, loop in self.used})

    def clients_on_two_loops(self) -> int:
        loops: dict[int, set[int]] = {}
        for client, loop in self.used:
            loops.setdefault(id(client), set()).add(id(loop))
        return sum(len(of) > 1 for of in loops.values())


def noting(body: dict[str, Any]) -> Answer:
    return Answer("## goal\n- none" if "Copy every name" in str(body["messages"][-1]) else "Noted.")


def watched(provider: StrictProvider, **more: Any) -> Watched:
    args = {"base_url": provider.url, "api_key": "none", "max_retries": 0, **more}
    return Watched(client_args=args, model_id="claude-sonnet-4-5", max_tokens=500, context_window_limit=4_000)


async def talk(agent: Agent) -> None:
    for n in range(12):
        await agent.invoke_async(f"Turn {n}: the port of host{n}.example is {9000 + n}. {LONG}")


@pytest.mark.parametrize("way", ["plugin", "manager", "agent"])
async def test_no_client_is_used_on_two_loops(way: str, provide: Any) -> None:
    model = watched(provide(noting))
    given: dict[str, Any] = {"plugins": [ClewAgentPlugin("clew.db")]}
    if way != "plugin":
        writer = Agent(model=model, callback_handler=None) if way == "agent" else None
        manager = SummarizingConversationManager(0.3, 2, writer, proactive_compression=True, engine="clew.db")
        given = {"conversation_manager": manager}
    await talk(Agent(model=model, callback_handler=None, **given))
    assert model.loops() == 2  # its own, and clew's
    assert model.clients_on_two_loops() == 0
    assert not model.client.is_closed()


async def test_a_question_leaves_no_client_open(provide: Any) -> None:
    model = watched(provide(noting))
    assert (await hosted(model)(Prompt("Copy every name.", 100))).text == "## goal\n- none"
    ((client, _),) = model.used
    assert client is not model.client
    assert client.is_closed()
    assert client.base_url == model.client.base_url
    assert client.api_key == "none"


@pytest.mark.parametrize("way", ["plugin", "manager"])
async def test_a_client_that_cannot_be_opened_anew_is_not_asked_for_notes(
    way: str, provide: Any, caplog: pytest.LogCaptureFixture
) -> None:
    provider = provide(noting)
    model = watched(provider, http_client=httpx.AsyncClient(verify=False))
    given: dict[str, Any] = {"plugins": [ClewAgentPlugin("clew.db")]}
    if way == "manager":
        manager = SummarizingConversationManager(0.3, 2, proactive_compression=True, engine="clew.db")
        given = {"conversation_manager": manager}
    with caplog.at_level(logging.INFO, "clew"):
        await talk(Agent(model=model, callback_handler=None, **given))
    assert model.loops() == 1
    assert len(provider.heard) == 12
    assert caplog.text.count("give the agent an aux_model") == 1


async def test_an_auxiliary_model_with_a_client_of_its_own_is_asked(provide: Any, model: Any) -> None:
    aux = provide(noting)
    served: OpenAIModel = model(aux, 100_000)  # whose client is made by hand
    agent = Agent(
        model=watched(provide(noting)), aux_model=served, plugins=[ClewAgentPlugin("clew.db")], callback_handler=None
    )
    await talk(agent)
    assert aux.heard
