"""An agent of Pydantic AI that reads one file after another."""

from frameworks.reading import WINDOW, Worked, contents
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

from clew import Engine
from clew.adapters.pydantic_ai import ClewCapability
from clew.testing import StrictProvider

__all__ = ["WINDOW", "work"]


def read(path: str) -> str:
    """Read a file."""
    return contents(path, 40)


def work(provider: StrictProvider, engine: Engine) -> Worked:
    client = AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0)
    model = OpenAIChatModel("gpt-4o", provider=OpenAIProvider(openai_client=client))
    agent = Agent(model, tools=[read], capabilities=[ClewCapability(engine)])
    done = agent.run_sync("Read all parts, and tell me their keys.", usage_limits=UsageLimits(request_limit=None))
    return Worked(done.output, done.usage.requests)
