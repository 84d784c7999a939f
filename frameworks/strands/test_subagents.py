"""What a sub-agent gives back, in short; and where all of it is."""

from typing import Any

from strands import Agent, tool

from clew.adapters.strands import ClewAgentPlugin, hosted
from clew.agent.tasks import Output, Summaries
from clew.testing import Answer, Call

REPORT = "\n".join(f"line {n}: the port is 8080, says a.conf" for n in range(100))


def script(body: dict[str, Any]) -> Answer:
    said = str(body["messages"])
    if "hands to the tasks that come after it" in said:
        return Answer("The port is 8080.")
    if "Look in a.conf" in said and "Which port" not in said:
        return Answer(REPORT)
    return Answer("It is 8080.") if "'tool'" in said else Answer(calls=(Call("find", {"question": "Look in a.conf."}),))


async def test_a_report_is_summed_up_and_all_of_it_is_in_the_childs_session(
    provide: Any, model: Any, found: Any
) -> None:
    served = model(provide(script, 20_000), 20_000)
    plugin, summaries = ClewAgentPlugin("clew.db"), Summaries(hosted(served))
    children: list[Agent] = []

    @tool
    async def find(question: str) -> str:
        """Delegate a question to a finder."""
        children.append(Agent(model=served, name="finder", plugins=[plugin], callback_handler=None))
        report = Output(str(await children[-1].invoke_async(question)))
        await summaries.summarize(report)
        return report.context_summary or report.raw

    agent = Agent(model=served, plugins=[plugin], tools=[find], callback_handler=None)
    assert str(await agent.invoke_async("Which port is it?")).strip() == "It is 8080."
    results = [
        block["toolResult"]["content"] for m in agent.messages for block in m["content"] if "toolResult" in block
    ]
    assert results == [[{"text": "The port is 8080."}]]
    thread, parent = plugin.thread(children[0]), plugin.thread(agent)
    assert thread.origin is not None
    assert parent.last is not None
    assert (thread.origin.cause, thread.origin.parent) == ("subagent", parent.last.view.branch)
    assert REPORT in found(thread.session, "what says a.conf")
