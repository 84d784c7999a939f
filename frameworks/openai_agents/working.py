"""An agent of OpenAI's SDK that reads one file after another."""

import asyncio
from typing import Any

from agents import (
    Agent,
    OpenAIProvider,
    RunConfig,
    Runner,
    SQLiteSession,
    Tool,
    function_tool,
    set_trace_processors,
    set_tracing_disabled,
)
from agents.tracing import GenerationSpanData, ResponseSpanData, TracingProcessor
from frameworks.reading import WINDOW, Worked, contents
from openai import AsyncOpenAI

from clew import Engine
from clew.adapters.openai_agents import ClewSession
from clew.testing import StrictProvider

__all__ = ["WINDOW", "work"]


@function_tool
def read(path: str) -> str:
    """Read a file."""
    return contents(path, 40)


class Counting(TracingProcessor):
    """How many calls of models the SDK traced."""

    calls = 0

    def on_trace_start(self, trace: Any) -> None: ...
    def on_trace_end(self, trace: Any) -> None: ...
    def on_span_start(self, span: Any) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...

    def on_span_end(self, span: Any) -> None:
        self.calls += isinstance(span.span_data, GenerationSpanData | ResponseSpanData)


async def worked(provider: StrictProvider, engine: Engine, offer: bool) -> str:
    client = AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0)
    session = ClewSession(SQLiteSession("parts"), engine)
    config = session.run_config(RunConfig(model_provider=OpenAIProvider(openai_client=client, use_responses=False)))
    tools: list[Tool] = [read, *(session.tools if offer else ())]
    agent = Agent(name="reader", instructions="You read.", tools=tools, model="gpt-4o")
    done = await Runner.run(agent, "Read all parts.", session=session, run_config=config, max_turns=100)
    return str(done.final_output)


def work(provider: StrictProvider, engine: Engine, offer: bool = True) -> Worked:
    counting = Counting()
    set_tracing_disabled(False)
    set_trace_processors([counting])
    try:
        return Worked(asyncio.run(worked(provider, engine, offer)), counting.calls)
    finally:
        set_trace_processors([])
        set_tracing_disabled(True)
