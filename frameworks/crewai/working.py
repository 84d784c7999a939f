"""An agent of crewAI that reads one file after another."""

from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool
from frameworks.reading import WINDOW, Worked, contents

from clew import Engine
from clew.adapters.crewai import ClewCrewCompaction
from clew.testing import StrictProvider

__all__ = ["WINDOW", "work"]


@tool("read")
def read(path: str) -> str:
    """Read a file."""
    return contents(path, 40)


def work(provider: StrictProvider, engine: Engine) -> Worked:
    llm = LLM(model="openai/gpt-4o", base_url=f"{provider.url}/v1", api_key="none", max_retries=0)
    agent = Agent(
        role="Reader", goal="Read.", backstory="Careful.", llm=llm, tools=[read], max_iter=100, max_retry_limit=0
    )
    crew = Crew(agents=[agent], tasks=[Task(description="Read all parts.", expected_output="Keys.", agent=agent)])
    ClewCrewCompaction(engine).attach(crew)
    done = crew.kickoff()
    return Worked(done.raw, crew.usage_metrics.successful_requests if crew.usage_metrics else None)
