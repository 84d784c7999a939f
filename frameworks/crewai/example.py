"""A crew that reads more than its window holds. Runs offline: a server on loopback answers by a script."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crewai import LLM, Agent
from crewai.tools import tool

from clew import Budget, Engine, SQLite, run
from clew.adapters.crewai import ClewCrewCompaction, Crew, Task
from clew.testing import Answer, Call, StrictProvider

WINDOW = 8_000
YEARS = iter(range(2001, 2013))


@tool("read_ledger")
def read_ledger(year: int) -> str:
    """Read the ledger of a year."""
    return "\n".join(f"{year}-{n:03d}: store {n} is off by {n * year % 97} euros." for n in range(120))


def answer(body: dict[str, Any]) -> Answer:
    """What a model would say: it reads ledgers for the first task, and writes for the second."""
    asked = str(body["messages"])
    if "hands to the tasks that come after it" in asked:
        return Answer("All ledgers from 2001 to 2012 were read; store 41 is off most often.")
    if "Read the ledgers" not in asked:
        return Answer("Dear board, the books are off, and store 41 is why.")
    if year := next(YEARS, None):
        return Answer(calls=(Call("read_ledger", {"year": year}),))
    return Answer("\n".join(f"Page {n}: store 41 is off again." for n in range(60)))


def main(folder: Path) -> None:
    """Run the crew, and say what was sent."""
    store = SQLite(folder / "clew.db")
    with StrictProvider(answer, window=WINDOW) as provider:
        llm = LLM(model="openai/gpt-4o", base_url=f"{provider.url}/v1", api_key="none")
        auditor = Agent(role="Auditor", goal="Audit.", backstory="Careful.", llm=llm, tools=[read_ledger])
        writer = Agent(role="Writer", goal="Write.", backstory="Plain.", llm=llm)
        audit = Task(description="Read the ledgers.", expected_output="Findings.", agent=auditor)
        letter = Task(description="Write to the board.", expected_output="A letter.", agent=writer)

        # What clew adds: a strategy for what tasks tell each other, and windows that are never too small.
        crew = Crew(agents=[auditor, writer], tasks=[audit, letter], context_strategy="summarized")
        ClewCrewCompaction(Engine(store, Budget(window=WINDOW, reserve=500))).attach(crew)
        result = crew.kickoff()

    sent = [heard.spent.input for heard in provider.heard]
    print(result.raw)
    print(f"{len(sent)} requests, none refused; the largest had {max(sent):,} of {WINDOW:,} tokens")
    print(f"The writer was told: {result.tasks_output[0].context_summary}")
    run(store.close())


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(Path(folder))
