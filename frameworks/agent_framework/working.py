"""An agent of Agent Framework that reads one file after another."""

import asyncio
from collections.abc import Awaitable, Callable

from agent_framework import Agent, ChatContext, chat_middleware
from agent_framework.openai import OpenAIChatCompletionClient
from frameworks.reading import WINDOW, Worked, contents
from openai import AsyncOpenAI

from clew import Engine
from clew.adapters.agent_framework import ClewProvider
from clew.testing import StrictProvider

__all__ = ["WINDOW", "work"]


def read(path: str) -> str:
    """Read a file."""
    return contents(path, 40)


def work(provider: StrictProvider, engine: Engine) -> Worked:
    counted = 0

    @chat_middleware
    async def counting(context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        nonlocal counted
        counted += 1
        await call_next()

    asking = AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0)
    client = OpenAIChatCompletionClient(
        model="gpt-4o",
        async_client=asking,
        middleware=[counting],
        function_invocation_configuration={"max_iterations": 100},
    )
    agent = Agent(client, instructions="You read.", tools=[read], context_providers=[ClewProvider(engine)])
    done = asyncio.run(agent.run("Read all parts, and tell me their keys."))
    return Worked(done.text, counted)
