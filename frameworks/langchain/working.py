"""An agent of LangChain that reads one file after another."""

from typing import Any

from frameworks.langchain.talking import blocking
from frameworks.reading import WINDOW, Worked, contents
from langchain.agents import create_agent
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from clew import Engine
from clew.adapters.langchain import ClewMiddleware
from clew.testing import StrictProvider

__all__ = ["WINDOW", "work"]


@tool
def read(path: str) -> str:
    """Read a file."""
    return contents(path, 40)


class Counting(BaseCallbackHandler):
    """How many calls of models LangChain told its callbacks of."""

    calls = 0

    def on_chat_model_start(self, serialized: Any, messages: Any, **given: Any) -> None:
        self.calls += 1


def work(provider: StrictProvider, engine: Engine) -> Worked:
    counting = Counting()
    model = ChatOpenAI(
        model="gpt-4o",
        base_url=f"{provider.url}/v1",
        api_key="none",  # type: ignore[arg-type]
        max_retries=0,
        callbacks=[counting],
    )
    agent = create_agent(model, tools=[read], middleware=[ClewMiddleware(engine)])
    done = blocking(agent, "Read all parts, and tell me their keys.", {"recursion_limit": 200})
    return Worked(str(done["messages"][-1].content), counting.calls)
