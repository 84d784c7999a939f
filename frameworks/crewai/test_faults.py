"""What goes wrong in crewAI alone, and what becomes of it with clew; a test of the first kind that fails can go."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from crewai import Agent, Crew, Task
from crewai.tools import BaseTool
from openai import BadRequestError

from clew import Engine
from clew.adapters.crewai import ClewCrewCompaction, hosted
from clew.steps.chapters.by_model import ByModel
from clew.testing import Answer, Call, StrictProvider

MODEL = "gpt-4"  # a window of 8,192 tokens, as crewAI knows
Clerk = Callable[..., Agent]
Engines = Callable[..., Engine]
WORDINGS = {
    "Anthropic": "prompt is too long: 9000 tokens > 4000 maximum",
    "Gemini": "The input token count (9000) exceeds the maximum number of tokens allowed (4000).",
    "llama.cpp": "the request exceeds the available context size. try increasing the context size (4000 tokens)",
}


def crew_of(agent: Agent) -> Crew:
    return Crew(agents=[agent], tasks=[Task(description="Audit the books.", expected_output="Words.", agent=agent)])


def said(body: dict[str, Any]) -> str:
    return json.dumps(body["messages"], ensure_ascii=False)


def is_summary(body: dict[str, Any]) -> bool:
    """Whether a request is a summariser's: of crewAI's own, which has no tools, or of clew's writer."""
    return "tools" not in body or "Stop working for a moment" in said(body)


def auditing(pages: int, summary: str, limit: int | None = None, refusal: str = "") -> Callable[..., Answer]:
    """A script: pages are read, summaries are written so, and what is longer than the limit is refused."""
    asked = iter(range(pages))

    def answer(body: dict[str, Any]) -> Answer:
        if limit is not None and len(said(body)) > limit:
            return Answer(status=400, error=refusal)
        if is_summary(body):
            return Answer(summary)
        page = next(asked, None)
        if page is None:
            return Answer("All is well.")
        return Answer(calls=(Call("read_page", {"path": f"ledger-{page}"}),))

    return answer


@pytest.mark.parametrize("wording", WORDINGS.values(), ids=WORDINGS)
def test_alone_an_overflow_in_these_words_ends_the_task(clerk: Clerk, read_page: BaseTool, wording: str) -> None:
    with StrictProvider(auditing(5, "Notes.", 16_000, wording)) as provider:
        crew = crew_of(clerk(provider, tools=[read_page]))
        with pytest.raises(BadRequestError):
            crew.kickoff()


@pytest.mark.parametrize("wording", WORDINGS.values(), ids=WORDINGS)
def test_with_clew_it_is_asked_again_with_what_fits(
    clerk: Clerk, read_page: BaseTool, engine: Engines, wording: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with StrictProvider(auditing(5, "Notes.", 16_000, wording)) as provider:
        crew = crew_of(clerk(provider, tools=[read_page]))
        ClewCrewCompaction(engine(budget=None)).attach(crew)
        assert crew.kickoff().raw == "All is well."
    refused = [heard for heard in provider.heard if len(said(heard.body)) > 16_000]
    assert len(refused) == 1  # the window is known from then on
    assert "pairing mismatch" not in capsys.readouterr().out


def test_alone_a_call_that_failed_ends_what_is_around_it(clerk: Clerk, capsys: pytest.CaptureFixture[str]) -> None:
    with StrictProvider([Answer(status=400, error="no")]) as provider, pytest.raises(BadRequestError):
        crew_of(clerk(provider)).kickoff()
    assert "Event pairing mismatch" in capsys.readouterr().out


def test_alone_an_empty_summary_is_all_that_is_left(clerk: Clerk, read_page: BaseTool) -> None:
    with StrictProvider(auditing(8, "")) as provider:
        crew = crew_of(clerk(provider, model=MODEL, tools=[read_page]))
        crew.kickoff()
    bodies = [heard.body for heard in provider.heard]
    wiped = next(after for before, after in pairwise(bodies) if is_summary(before) and not is_summary(after))
    assert "Audit the books." not in said(wiped)
    assert "w0x0" not in said(wiped)


def test_with_clew_the_task_and_what_was_found_stay_whatever_a_summariser_says(
    clerk: Clerk, read_page: BaseTool, engine: Engines
) -> None:
    with StrictProvider(auditing(8, "")) as provider:
        agent = clerk(provider, model=MODEL, tools=[read_page])
        crew = crew_of(agent)
        ClewCrewCompaction(engine(author=ByModel(hosted(agent.llm)))).attach(crew)
        assert crew.kickoff().raw == "All is well."
    own = [heard.body for heard in provider.heard if not is_summary(heard.body)]
    assert len(own) == 9
    assert not any("<summary>" in said(heard.body) for heard in provider.heard)  # crewAI's own summariser is never due
    assert all("Audit the books." in said(body) for body in own)
    assert "ledger-0" in said(own[-1])


def test_alone_a_summariser_is_not_shown_the_arguments_of_calls(clerk: Clerk, read_page: BaseTool) -> None:
    with StrictProvider(auditing(8, "<summary>Notes.</summary>")) as provider:
        crew_of(clerk(provider, model=MODEL, tools=[read_page])).kickoff()
    shown = [said(heard.body) for heard in provider.heard if is_summary(heard.body)]  # parts of it, in any order
    assert any("w0x0" in part for part in shown)
    assert not any("ledger-" in part for part in shown)


def test_with_clew_it_is(clerk: Clerk, read_page: BaseTool, engine: Engines) -> None:
    with StrictProvider(auditing(8, "Notes.")) as provider:
        agent = clerk(provider, model=MODEL, tools=[read_page])
        crew = crew_of(agent)
        ClewCrewCompaction(engine(author=ByModel(hosted(agent.llm)))).attach(crew)
        crew.kickoff()
    shown = [said(heard.body) for heard in provider.heard if is_summary(heard.body)]
    assert "w0x0" in shown[0]
    assert "ledger-0" in shown[0]
