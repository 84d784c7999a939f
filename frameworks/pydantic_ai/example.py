"""An agent of Pydantic AI that reads twenty-four files through a small window, and a history that stays whole.

Runs offline: the provider is a server in this process, which refuses what is longer than its window.
"""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from clew import Budget, Engine, Sessions, SQLite
from clew.adapters.pydantic_ai import ClewCapability
from clew.testing import Answer, Call, StrictProvider

WINDOW = 8_000
FILES = 24


def read(path: str) -> str:
    """Read a file."""
    number = int(path.removeprefix("part_").removesuffix(".py"))
    return "\n".join([f"KEY_{number} = {number * 4711}", *(f"{path} line {n} of no interest" for n in range(100))])


def script() -> Iterator[Answer]:
    """What the model says: a file at a time, then that it is done."""
    for n in range(FILES):
        yield Answer(calls=(Call("read", {"path": f"part_{n}.py"}),))
    yield Answer("All are read.")


async def main(folder: Path) -> None:
    engine = Engine(SQLite(folder / "clew.db"), Budget(window=WINDOW, reserve=500))
    answers = script()
    with StrictProvider(lambda _: next(answers), window=WINDOW) as provider:
        client = AsyncOpenAI(base_url=f"{provider.url}/v1", api_key="none")
        model = OpenAIChatModel("gpt-4o-mini", provider=OpenAIProvider(openai_client=client))
        agent = Agent(model, tools=[read], capabilities=[ClewCapability(engine)])
        result = await agent.run("Read all parts.", conversation_id="parts")
    print("model:", result.output)
    largest = max(heard.spent.input for heard in provider.heard)
    print(f"{len(provider.heard)} requests, the largest of {largest:,} tokens; the window has {WINDOW:,}")
    last = provider.heard[-1].body["messages"]
    print(f"{len(result.all_messages())} messages in the history, {len(last)} in the last request")
    chain = await Sessions(engine).lineage("parts")
    print(f"sessions of {chain[0].name}: {', '.join(session.cause for session in chain)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
