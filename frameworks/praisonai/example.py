"""An agent that reads forty files through a small window, and still knows what was in the fourth.

Runs offline: the provider is a server in this process, which refuses what is longer than its window.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ |= {"PRAISONAI_TELEMETRY_DISABLED": "true", "OPENAI_API_KEY": "none"}

from praisonaiagents import Agent
from praisonaiagents.session.store import DefaultSessionStore

from clew import Budget, Engine, Sessions, SQLite, run
from clew.adapters.praisonai import ClewBackend
from clew.testing import Answer, Call, StrictProvider

WINDOW = 8_000
TURNS = 10


def read(path: str) -> str:
    """Read a file."""
    number = int(path.removeprefix("part_").removesuffix(".py"))
    return "\n".join([f"KEY_{number} = {number * 4711}", *(f"{path} line {n} of no interest" for n in range(80))])


def model() -> Iterator[Answer]:
    """What the model says: four files a turn, two at a time; at last a question to the log, and what it found there."""
    for n in range(0, 4 * TURNS, 4):
        yield Answer(calls=(Call("read", {"path": f"part_{n}.py"}), Call("read", {"path": f"part_{n + 1}.py"})))
        yield Answer(calls=(Call("read", {"path": f"part_{n + 2}.py"}), Call("read", {"path": f"part_{n + 3}.py"})))
        yield Answer(f"Read parts {n} to {n + 3}.")
    yield Answer(calls=(Call("search_history", {"query": "KEY_3"}),))
    yield Answer("It is 14133.")


def main(folder: Path) -> None:
    os.environ["HOME"] = str(folder)  # where PraisonAI keeps things
    said = model()
    with StrictProvider(lambda _: next(said), window=WINDOW) as provider:
        engine = Engine(SQLite(folder / "clew.db"), Budget(window=WINDOW))
        sessions = DefaultSessionStore(str(folder / "sessions"))
        backend = ClewBackend("gpt-4o-mini", engine, session="parts", sessions=sessions, base_url=f"{provider.url}/v1")
        agent = Agent(
            instructions="You read files.",
            model=backend,
            tools=[read],
            output="silent",
        )
        for _ in range(TURNS):
            print("agent:", agent.chat("Read the next four parts."))
        print("agent:", agent.chat("What was KEY_3?"))
    largest = max(heard.spent.input for heard in provider.heard)
    print(f"{len(provider.heard)} requests, the largest of {largest:,} tokens; the window has {WINDOW:,}")
    result = provider.heard[-1].body["messages"][-1]["content"]
    print("in the log:", next(line for line in result.splitlines() if "KEY_3 =" in line))
    for session in run(Sessions(engine).lineage("parts"))[1:4]:
        parent = sessions.get_session(session.id).metadata["parent_session_id"]
        print(f"session {session.id} is a child of {parent}, by {session.cause}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
