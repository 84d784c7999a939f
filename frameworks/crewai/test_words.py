"""What crewAI adds to the words of a task is sent, and is nobody's words in the log."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from crewai import Agent, Crew, Task
from crewai.tools import BaseTool
from crewai.utilities.i18n import I18N_DEFAULT

from clew import Engine, Sessions, run
from clew.adapters.crewai import ClewCrewCompaction
from clew.adapters.crewai.llm import unworded
from clew.testing import Answer, Call, StrictProvider

ASKED = "Audit the books, and never write to ledger-3."
Clerk = Callable[..., Agent]
Engines = Callable[..., Engine]


def crew_of(agent: Agent) -> Crew:
    return Crew(agents=[agent], tasks=[Task(description=ASKED, expected_output="Findings.", agent=agent)])


def reading(pages: int) -> Callable[..., Answer]:
    asked = iter(range(pages))

    def answer(_: dict[str, Any]) -> Answer:
        page = next(asked, None)
        return Answer("Done.") if page is None else Answer(calls=(Call("read_page", {"path": f"ledger-{page}"}),))

    return answer


def first_words(body: dict[str, Any]) -> str:
    return next(str(m["content"]) for m in body["messages"] if m["role"] == "user")


def test_a_summary_quotes_the_user_and_the_model_is_asked_in_crewais_words(
    clerk: Clerk, read_page: BaseTool, engine: Engines
) -> None:
    kept = engine()
    with StrictProvider(reading(0)) as alone:
        crew_of(clerk(alone, tools=[read_page])).kickoff()
    with StrictProvider(reading(10), window=8_000) as provider:
        crew = crew_of(clerk(provider, tools=[read_page]))
        ClewCrewCompaction(kept).attach(crew)
        crew.kickoff()
    last = provider.heard[-1].body
    assert "you MUST return" in first_words(last)
    assert first_words(last) == first_words(alone.heard[0].body)
    told = "".join(str(m["content"]) for m in last["messages"] if "[work log" in str(m.get("content")))
    assert told
    assert "you MUST return" not in told
    (branch,) = {session.branch for session in run(Sessions(kept).all())}
    found = run(kept.search("default", "never write", branch))
    assert [node.item.text for node in found] == [f"{ASKED}\n\nExpected: Findings."]


@pytest.mark.parametrize("part", ["task", "task_no_tools", "native_task"])
def test_whatever_way_it_is_asked(part: str) -> None:
    wanted = I18N_DEFAULT.slice("expected_output").format(expected_output="Findings.")
    prompt = I18N_DEFAULT.slice(part).format(input=f"{ASKED}\n{wanted}")
    said = unworded({"role": "user", "content": prompt})
    assert said == {"role": "user", "content": f"{ASKED}\n\nExpected: Findings."}
    with_context = I18N_DEFAULT.slice("task_with_context").format(task=f"{ASKED}\n{wanted}", context=f"Found: {wanted}")
    said = unworded({"role": "user", "content": I18N_DEFAULT.slice(part).format(input=with_context)})
    assert said["content"].startswith(f"{ASKED}\n\nExpected: Findings.\n\nThis is the context")
    assert said["content"].endswith(f"Found: {wanted}")  # what another task put out stays as it is


def test_what_is_said_between_two_steps_is_nobodys_request() -> None:
    nudge = I18N_DEFAULT.slice("post_tool_reasoning")
    said = unworded({"role": "user", "content": nudge})["content"]
    assert said.startswith("<system-reminder>")
    assert nudge in said


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "Audit the books."},
        {"role": "assistant", "content": I18N_DEFAULT.slice("native_task").format(input="Audit.")},
        {"role": "user", "content": [{"type": "text", "text": "Audit."}]},
        {"role": "user", "content": ""},
    ],
    ids=lambda message: json.dumps(message)[:40],
)
def test_other_messages_stay_as_they_are(message: dict[str, Any]) -> None:
    assert unworded(message) == message
