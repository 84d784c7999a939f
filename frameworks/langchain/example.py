"""An agent of LangChain that reads twenty-four files through a small window, and a state that stays whole.

Runs offline: the provider is a server in this process, which refuses what is longer than its window.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

os.environ |= {"OPENAI_API_KEY": "none", "LANGSMITH_TRACING": "false"}

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

from clew import Budget, Engine, Sessions, SQLite, run
from clew.adapters.langchain import ClewMiddleware
from clew.testing import Answer, Call, StrictProvider

WINDOW = 8_000
FILES = 24


@tool
def read(path: str) -> str:
    """Read a file."""
    number = int(path.removeprefix("part_").removesuffix(".py"))
    return "\n".join([f"KEY_{number} = {number * 4711}", *(f"{path} line {n} of no interest" for n in range(100))])


def model() -> Iterator[Answer]:
    """What the model says: a file at a time, then that it is done."""
    for n in range(FILES):
        yield Answer(calls=(Call("read", {"path": f"part_{n}.py"}),))
    yield Answer("All are read.")


def main(folder: Path) -> None:
    engine = Engine(SQLite(folder / "clew.db"), Budget(window=WINDOW, reserve=500))
    answers = model()
    with StrictProvider(lambda _: next(answers), window=WINDOW) as provider:
        agent = create_agent(
            ChatOpenAI(model="gpt-4o-mini", base_url=f"{provider.url}/v1"),
            [read],
            middleware=[ClewMiddleware(engine)],
            checkpointer=InMemorySaver(),
        )
        config = {"configurable": {"thread_id": "parts"}, "recursion_limit": 100}
        state = agent.invoke({"messages": [("user", "Read all parts.")]}, config)
    print("model:", state["messages"][-1].content)
    largest = max(heard.spent.input for heard in provider.heard)
    print(f"{len(provider.heard)} requests, the largest of {largest:,} tokens; the window has {WINDOW:,}")
    sent = provider.heard[-1].body["messages"]
    print(f"{len(state['messages'])} messages in the state, {len(sent)} in the last request")
    chain = run(Sessions(engine).lineage("parts"))
    print(f"sessions of {chain[0].name}: {', '.join(session.cause for session in chain)}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
