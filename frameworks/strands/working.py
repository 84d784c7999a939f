"""An agent of Strands that reads one file after another."""

from frameworks.reading import WINDOW, Worked, contents
from strands import Agent, tool
from strands.models.openai import OpenAIModel

from clew import Engine
from clew.adapters.strands import ClewAgentPlugin
from clew.testing import StrictProvider

__all__ = ["WINDOW", "work"]


@tool
def read(path: str) -> str:
    """Read a file."""
    return contents(path, 40)


def work(provider: StrictProvider, engine: Engine) -> Worked:
    args = {"base_url": f"{provider.url}/v1", "api_key": "none", "max_retries": 0}
    model = OpenAIModel(client_args=args, model_id="gpt-4o", context_window_limit=WINDOW)
    agent = Agent(model=model, tools=[read], callback_handler=None, plugins=[ClewAgentPlugin(engine)])
    return Worked(str(agent("Read all parts, and tell me their keys.")).strip())
