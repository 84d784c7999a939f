"""The summaries of LangChain and of deepagents, and clew, on one conversation: what is sent, refused and forgotten.

`pytest -s` prints the figures. The model that writes the summaries of the others is a script which keeps the first line
of each message: no worse than a real one for what is looked for here, and the same in every run.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from deepagents.backends import StateBackend
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.summarization import create_summarization_middleware
from frameworks.langchain.talking import WINDOW, named
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from clew import Engine, run
from clew.adapters.langchain import ClewMiddleware
from clew.testing import Answer, Call, StrictProvider

TURNS = 12
FACT = "The port of host{n}.example is {port}."


@tool
def look(page: int) -> str:
    """Look at a page; one line of it is of interest."""
    lines = [f"page {page} line {n}: nothing to see here" for n in range(90)]
    return "\n".join([*lines[:45], FACT.format(n=page, port=9_000 + page), *lines[45:]])


def script(body: dict[str, Any]) -> Answer:
    """A model that looks at a page a turn; and the one that summarises, which is offered no tools."""
    last = body["messages"][-1]
    if not body.get("tools"):
        lines = re.findall(r"^(?:human|ai|tool): .{0,80}", str(last["content"]), re.MULTILINE | re.IGNORECASE)
        return Answer("\n".join(lines)[:2_000] or "Pages were looked at.")
    if last["role"] == "user" and (page := re.search(r"page (\d+)\.", str(last["content"]))):
        return Answer(calls=(Call("look", {"page": int(page[1])}),))
    return Answer("I have looked at it.")


class Figures(NamedTuple):
    sent: int  # tokens
    calls: int
    refused: int
    seen: int  # facts in the last request
    recalled: int  # and those that a call of a tool gives back


def talked(
    provider: StrictProvider, model: Any, middleware: list[AgentMiddleware[Any, Any, Any]], found: Any
) -> Figures:
    agent = create_agent(model, [look], middleware=middleware, checkpointer=InMemorySaver())
    refused = 0
    for n in range(TURNS):
        try:
            agent.invoke({"messages": [("user", f"Look at page {n}.")]}, named("beside"))
        except Exception:
            refused += 1
    facts = [FACT.format(n=n, port=9_000 + n) for n in range(TURNS)]
    last = str(provider.heard[-1].body)
    seen = sum(fact in last for fact in facts)
    state = agent.get_state(named("beside")).values
    known = sum(fact in last or found(n, fact, state) for n, fact in enumerate(facts))
    too_long = sum(one.spent.input > WINDOW for one in provider.heard)
    return Figures(
        sum(one.spent.input for one in provider.heard), len(provider.heard), max(refused, too_long), seen, known
    )


@pytest.fixture
def beside(provide: Any, chat: Any, engine: Engine) -> Callable[[], Iterator[tuple[str, Figures]]]:
    def figures() -> Iterator[tuple[str, Figures]]:
        def model(provider: StrictProvider) -> Any:
            return chat(provider, profile={"max_input_tokens": WINDOW})

        def nothing(n: int, fact: str, state: Any) -> bool:
            return False

        def filed(n: int, fact: str, state: Any) -> bool:
            return fact in str(state.get("files"))

        provider = provide(script)
        theirs = SummarizationMiddleware(model(provider), trigger=("fraction", 0.7), keep=("fraction", 0.3))
        yield "LangChain", talked(provider, model(provider), [theirs], nothing)
        provider = provide(script)
        backend = StateBackend()  # a file in which an agent may read what was taken out, whole
        deep = [FilesystemMiddleware(backend=backend), create_summarization_middleware(model(provider), backend)]
        yield "deepagents", talked(provider, model(provider), deep, filed)

        def found(n: int, fact: str, state: Any) -> bool:
            branch = run(engine.store.session("default", "beside"))
            return fact in run(engine.answer("default", f"port of host{n}.example", branch or ""))

        provider = provide(script)
        yield "clew", talked(provider, model(provider), [ClewMiddleware(engine)], found)

    return figures


def test_beside_their_own(beside: Callable[[], Iterator[tuple[str, Figures]]]) -> None:
    figures = dict(beside())
    for name, its in figures.items():
        print(f"{name:10} {its.sent:7,} tokens in {its.calls} calls, {its.refused} refused, ", end="")
        print(f"{its.seen} of {TURNS} facts in view, {its.recalled} in view or found")
    assert figures["clew"].refused == 0
    assert figures["clew"].recalled == TURNS
