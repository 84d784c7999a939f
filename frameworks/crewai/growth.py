"""Eight tasks that each put out about 3,000 tokens: how long the prompt of each is, with crewAI alone and with clew."""

from typing import Any

import crewai
from crewai import LLM, Agent

from clew.adapters.crewai import Crew, Task
from clew.testing import Answer, StrictProvider

TASKS = 8
OUTPUT = "\n".join(f"Store {n}: the ledger of {2_000 + n} is off by {n * 7} euros, page {n}." for n in range(205))
SUMMARY = "In 205 stores the ledgers are off, by 0 to 1,428 euros; the worst is store 204."


def answer(body: dict[str, Any]) -> Answer:
    """Long outputs, and summaries of them."""
    return Answer(SUMMARY if "hands to the tasks that come after it" in str(body["messages"][0]) else OUTPUT)


def sizes(crew: type[crewai.Crew], task: type[crewai.Task], **given: Any) -> tuple[list[int], int]:
    """The tokens of each task's prompt, as the provider counted them; and of all requests, summaries too."""
    with StrictProvider(answer) as provider:
        llm = LLM(model="openai/gpt-4o", base_url=f"{provider.url}/v1", api_key="none")
        agent = Agent(role="Auditor", goal="Audit the books.", backstory="Careful.", llm=llm)
        tasks = [task(description=f"Audit year {n}.", expected_output="Findings.", agent=agent) for n in range(TASKS)]
        crew(agents=[agent], tasks=tasks, **given).kickoff()
    asked = [heard.spent.input for heard in provider.heard if "Audit year" in str(heard.body["messages"][-1])]
    return asked, sum(heard.spent.input for heard in provider.heard)


def main() -> None:
    """Both, side by side."""
    plain, all_plain = sizes(crewai.Crew, crewai.Task)
    short, all_short = sizes(Crew, Task, context_strategy="summarized")
    print(f"{'task':>8} {'crewAI alone':>14} {'summarized':>12}")
    for n, (before, after) in enumerate(zip(plain, short, strict=True), 1):
        print(f"{n:>8} {before:>14,} {after:>12,}")
    print(f"{'all sent':>8} {all_plain:>14,} {all_short:>12,}   (requests for summaries included)")


if __name__ == "__main__":
    main()
