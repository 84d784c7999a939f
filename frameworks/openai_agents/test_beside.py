"""What the Agents SDK has against long histories, and clew, on one conversation: what is sent, refused and forgotten.

`pytest -s` prints the figures. What OpenAI's own compaction keeps cannot be read by anybody else: the provider here
seals what a script says, and facts in it count as out of view.
"""

import re
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from agents import Agent, OpenAIProvider, RunConfig, Runner, SQLiteSession, function_tool
from agents.extensions import ToolOutputTrimmer
from agents.memory import OpenAIResponsesCompactionSession
from frameworks.openai_agents.talking import is_result
from frameworks.reading import WINDOW
from openai import AsyncOpenAI

from clew import Engine
from clew.adapters.openai_agents import ClewSession
from clew.core.bridge import cross
from clew.testing import Answer, Call, StrictProvider

TURNS = 12
FACT = "The port of host{n}.example is {port}."


@function_tool
def look(page: int) -> str:
    """Look at a page; one line of it is of interest."""
    lines = [f"page {page} line {n}: nothing to see here" for n in range(90)]
    return "\n".join([*lines[:45], FACT.format(n=page, port=9_000 + page), *lines[45:]])


def script(body: dict[str, Any]) -> Answer:
    """A model that looks at a page a turn."""
    page = re.search(r"page (\d+)\.", str(body["input"][-1]))
    return Answer("I have looked at it.") if is_result(body) or not page else _look(int(page[1]))


def _look(page: int) -> Answer:
    return Answer(calls=(Call("look", {"page": page}),))


class Figures(NamedTuple):
    sent: int  # tokens
    calls: int
    refused: int
    last: str
    seen: int  # facts in the last request


async def talked(provider: StrictProvider, session: Any, config: RunConfig, tools: Any = ()) -> Figures:
    agent: Agent[Any] = Agent("Looker", model="gpt-4o-mini", tools=[look, *tools])
    refused = 0
    for n in range(TURNS):
        try:
            await Runner.run(agent, f"Look at page {n}.", session=session, run_config=config)
        except Exception:
            refused += 1
    last = str(provider.heard[-1].body)
    sent = sum(one.spent.input for one in provider.heard)
    seen = sum(FACT.format(n=n, port=9_000 + n) in last for n in range(TURNS))
    return Figures(sent, len(provider.heard), refused, last, seen)


async def figures(provide: Any, session: ClewSession) -> AsyncIterator[tuple[str, Figures]]:
    def served(provider: StrictProvider, **given: Any) -> tuple[AsyncOpenAI, RunConfig]:
        client = AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="none", max_retries=0)
        return client, RunConfig(model_provider=OpenAIProvider(openai_client=client), tracing_disabled=True, **given)

    provider = provide(script)
    yield "nothing", await talked(provider, SQLiteSession("plain"), served(provider)[1])
    provider = provide(script)
    trimmed = served(provider, call_model_input_filter=ToolOutputTrimmer())[1]
    yield "ToolOutputTrimmer", await talked(provider, SQLiteSession("trimmed"), trimmed)
    provider = provide(script)
    client, config = served(provider)
    own = OpenAIResponsesCompactionSession("own", SQLiteSession("own"), client=client, compaction_mode="input")
    yield "CompactionSession", await talked(provider, own, config)
    provider = provide(script)
    yield "clew", await talked(provider, session, session.run_config(served(provider)[1]), session.tools)


async def test_beside_their_own(provide: Any, engine: Engine) -> None:
    session = ClewSession(SQLiteSession("beside"), engine)
    found = {name: its async for name, its in figures(provide, session)}
    branch = await cross(engine.store.session("default", "beside"))
    facts = {n: FACT.format(n=n, port=9_000 + n) for n in range(TURNS)}
    answers = [await cross(engine.answer("default", f"port of host{n}.example", branch or "")) for n in facts]
    known = sum(fact in found["clew"].last or fact in answers[n] for n, fact in facts.items())
    for name, its in found.items():
        more = f", {known} in view or found" if name == "clew" else ""
        print(f"{name:18} {its.sent:7,} tokens in {its.calls} calls, {its.refused} of {TURNS} turns failed, ", end="")
        print(f"{its.seen} of {TURNS} facts in view{more}; window {WINDOW:,}")
    assert found["clew"].refused == 0
    assert known == TURNS
