"""An agent of ADK that reads twenty-four files through a small window, and a session that stays whole.

Runs offline: the provider is a server in this process, which refuses what is longer than its window.
"""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ |= {"OTEL_SDK_DISABLED": "true", "GOOGLE_API_KEY": "none"}

from google.adk.agents import Agent
from google.adk.apps import App
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.genai import types

from clew import Budget, Engine, Sessions, SQLite
from clew.adapters.adk import ClewPlugin
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
        agent = Agent(name="reader", model=Gemini(model="gemini-3-pro", base_url=provider.url), tools=[read])
        runner = InMemoryRunner(app=App(name="reading", root_agent=agent, plugins=[ClewPlugin(engine)]))
        session = await runner.session_service.create_session(app_name="reading", user_id="me", session_id="parts")
        asked = types.Content(role="user", parts=[types.Part(text="Read all parts.")])
        async for event in runner.run_async(user_id="me", session_id=session.id, new_message=asked):
            if event.is_final_response() and event.content and event.content.parts:
                print("model:", event.content.parts[0].text)
    largest = max(heard.spent.input for heard in provider.heard)
    print(f"{len(provider.heard)} requests, the largest of {largest:,} tokens; the window has {WINDOW:,}")
    known = await runner.session_service.get_session(app_name="reading", user_id="me", session_id="parts")
    assert known
    print(f"{len(known.events)} events in the session, {len(provider.heard[-1].body['contents'])} in the last request")
    chain = await Sessions(engine).lineage("reading/me/parts")
    print(f"sessions of {chain[0].name}: {', '.join(one.cause for one in chain)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
