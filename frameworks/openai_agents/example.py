"""An agent of OpenAI's SDK that reads twenty-four files through a small window, and a session that stays whole.

Runs offline: the provider is a server in this process, which refuses what is longer than its window.
"""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_AGENTS_DISABLE_TRACING": "1"}

from agents import Agent, OpenAIProvider, RunConfig, Runner, SQLiteSession, function_tool

from clew import Budget, Engine, Sessions, SQLite
from clew.adapters.openai_agents import ClewSession
from clew.testing import Answer, Call, StrictProvider

WINDOW = 8_000
FILES = 24


@function_tool
def read(path: str) -> str:
    """Read a file."""
    number = int(path.removeprefix("part_").removesuffix(".py"))
    return "\n".join([f"KEY_{number} = {number * 4711}", *(f"{path} line {n} of no interest" for n in range(100))])


def model() -> Iterator[Answer]:
    """What the model says: a file at a time, then that it is done."""
    for n in range(FILES):
        yield Answer(calls=(Call("read", {"path": f"part_{n}.py"}),))
    yield Answer("All are read.")


async def main(folder: Path) -> None:
    engine = Engine(SQLite(folder / "clew.db"), Budget(window=WINDOW, reserve=500))
    answers = model()
    with StrictProvider(lambda _: next(answers), window=WINDOW) as provider:
        session = ClewSession(SQLiteSession("parts", folder / "sessions.db"), engine)
        agent: Agent[Any] = Agent("Reader", model="gpt-4o-mini", tools=[read, *session.tools])
        served = OpenAIProvider(base_url=f"{provider.url}/v1", api_key="none")
        config = session.run_config(RunConfig(model_provider=served))
        done = await Runner.run(agent, "Read all parts.", session=session, run_config=config, max_turns=50)
    print("model:", done.final_output)
    largest = max(heard.spent.input for heard in provider.heard)
    print(f"{len(provider.heard)} requests, the largest of {largest:,} tokens; the window has {WINDOW:,}")
    items = await session.get_items()
    print(f"{len(items)} items in the session, {len(provider.heard[-1].body['input'])} in the last request")
    chain = await Sessions(engine).lineage("parts")
    print(f"sessions of {chain[0].name}: {', '.join(one.cause for one in chain)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
