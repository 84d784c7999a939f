"""The crew's own model writes what stands in for old messages, and crewAI sees these calls as its own."""

import json
import re
from collections.abc import Callable
from typing import Any

import crewai
import pytest
from crewai import Agent
from crewai.events import crewai_event_bus
from crewai.events.types.llm_events import LLMCallStartedEvent
from crewai.tools import tool

from clew import Engine
from clew.adapters.crewai import ClewCrewCompaction
from clew.testing import Answer, Call, StrictProvider

pytestmark = pytest.mark.usefixtures("as_shipped")
FIGURE = re.compile(r"programme \d+ cut costs by [\d.]+ percent")
FILLER = "The report describes methods, participants and limits; readers should consult its annex. "


@tool("web")
def web(q: str) -> str:
    """Search the web."""
    return f"programme {q} cut costs by {int(q) * 13 % 89}.{int(q) % 10} percent.\n{FILLER * 22}"


def said(body: Any) -> str:
    return json.dumps(body["messages"])


def research(steps: int, write: Callable[[list[str]], Answer]) -> Callable[[dict[str, Any]], Answer]:
    done = iter(range(1, steps + 1))

    def script(body: dict[str, Any]) -> Answer:
        if "<full>" in said(body):
            return write([*dict.fromkeys(FIGURE.findall(said(body)))])
        n = next(done, None)
        return Answer("Report.") if n is None else Answer(calls=(Call("web", {"q": str(n)}),), seconds=0.02)

    return script


def go(provider: StrictProvider, engine: Callable[..., Engine], clerk: Callable[..., Agent]) -> crewai.Crew:
    agent = clerk(provider, tools=[web], max_iter=200)
    task = crewai.Task(description="Which programmes save money?", expected_output="A figure for each", agent=agent)
    crew = crewai.Crew(agents=[agent], tasks=[task])
    ClewCrewCompaction(engine()).attach(crew)
    crew.kickoff()
    return crew


def test_all_its_words_are_in_the_next_request(engine: Callable[..., Engine], clerk: Callable[..., Agent]) -> None:
    told: list[LLMCallStartedEvent] = []

    def write(found: list[str]) -> Answer:
        return Answer("<full>\n" + "\n".join(f"- {one}." for one in found) + "\n</full>", seconds=0.02)

    with (
        crewai_event_bus.scoped_handlers(),
        StrictProvider(research(30, write), window=8_000) as provider,
    ):
        crewai_event_bus.on(LLMCallStartedEvent)(lambda _, event: told.append(event))
        crew = go(provider, engine, clerk)
    questions = [heard for heard in provider.heard if "<full>" in said(heard.body)]
    assert questions
    last = said([heard.body for heard in provider.heard if heard not in questions][-1])
    assert {f"programme {n} cut" for n in range(1, 31)} <= {one.partition(" costs")[0] for one in FIGURE.findall(last)}
    # A question that is begun last may not be sent any more.
    assert 0 <= len(told) - len(provider.heard) <= 1, "its listeners hear of each of them"
    assert crew.usage_metrics is not None
    counted = crew.usage_metrics.successful_requests
    # crewAI sums up when the crew ends: the answer to a question that was asked last may come after that.
    assert len(provider.heard) - 1 <= counted <= len(provider.heard), "and they are counted"
