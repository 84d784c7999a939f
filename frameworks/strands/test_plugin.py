"""The plugin and the strategy: each call sends what fits, and the agent's own messages stay as it had them."""

import json
from pathlib import Path
from typing import Any

import pytest
from frameworks.strands.talking import LONG, read, reading, said, texts
from strands import Agent, tool
from strands.agent import conversation_manager as theirs
from strands.agent.conversation_manager.compression.pin_message import pin_message, unpin_message
from strands.multiagent import Swarm
from strands.session import FileSessionManager

import clew
from clew.adapters.strands import ClewAgentPlugin, ClewStrategy
from clew.errors import ClewError
from clew.sessions.sessions import Sessions
from clew.store.places import open_store
from clew.testing import Answer, Call

LOOKING = ["recall", "search_history"]


def offered(heard: Any) -> list[str]:
    return [tool["function"]["name"] for tool in heard.body["tools"]]


def status(heard: Any) -> dict[str, int]:
    last = str(heard.body["messages"][-1]["content"])
    told: dict[str, int] = json.loads(last.split("<context_status>")[1].split("</context_status>")[0])
    return told


def test_growth_past_the_window_is_never_refused_and_loses_nothing(provide: Any, agent: Any, found: Any) -> None:
    provider = provide([Answer("Noted.")])
    talking = agent(provider, plugins=[ClewAgentPlugin("clew.db", session="talk")])
    for n in range(16):
        talking(f"Turn {n}: the port of host{n}.example is {9000 + n}. {LONG}")
    assert len(provider.heard) == 16
    assert max(heard.spent.input for heard in provider.heard) < 0.85 * 4_000
    assert len(talking.messages) == 32  # as they were said
    assert offered(provider.heard[-1]) == LOOKING
    assert "recall" in "".join(texts(provider.heard[-1].body))
    assert "host2.example is 9002" in found("talk", "host2.example")


def test_while_nothing_is_compacted_the_prefix_stands(provide: Any, agent: Any) -> None:
    provider = provide([Answer("Noted.")])
    talking = agent(provider, plugins=[ClewAgentPlugin("clew.db")], system_prompt="Be brief.")
    talking("Hello.")  # by how it begins, the provider knows a conversation again
    for n in range(14):
        talking(f"Turn {n}: {LONG}")
    assert provider.moved
    for moved in provider.moved:  # only where something was compacted
        assert moved.before is not None
        assert moved.spent.input < moved.before.spent.input


def test_an_oversized_result_is_sent_as_a_preview_that_can_be_recalled(provide: Any, agent: Any) -> None:
    @tool
    def dump() -> str:
        """Dump everything."""
        return "\n".join(f"row {n} is {n * 7}" for n in range(6_000))

    def script(body: dict[str, Any]) -> Answer:
        last = str(body["messages"][-1]["content"])
        if "Dump it" in last:
            return Answer(calls=(Call("dump"),))
        if "out of view" in last:
            id = last.split("recall ")[1].split()[0].strip("];,")
            return Answer(calls=(Call("recall", {"id": id, "pattern": "row 3000 "}),))
        return Answer("It is 21000.")

    provider = provide(script)
    talking = agent(provider, tools=[dump], plugins=[ClewAgentPlugin("clew.db")])
    talking("Dump it.")
    assert len(provider.heard) == 3
    assert "row 3000 is 21000" not in str(provider.heard[1].body)
    assert "row 3000 is 21000" in str(provider.heard[2].body["messages"][-1])
    assert "row 3000 is 21000" in str(talking.messages[2])


def test_parallel_calls_stay_in_pairs(provide: Any, agent: Any) -> None:
    def script(body: dict[str, Any]) -> Answer:
        return Answer("Seen.") if body["messages"][-1]["role"] == "tool" else reading(4)

    provider = provide(script)
    talking = agent(provider, tools=[read], plugins=[ClewAgentPlugin("clew.db")])
    for n in range(10):
        talking(f"{n}: look at these. {LONG}")
    assert len(provider.heard) == 20


def test_a_refusal_is_answered_with_less(provide: Any, agent: Any) -> None:
    provider = provide([Answer("Noted.")], 2_500)  # the model is thought to have more
    talking = agent(provider, window=100_000, plugins=[ClewAgentPlugin("clew.db")])
    for n in range(12):
        talking(f"Turn {n}: {LONG}")
    assert len(provider.heard) == 14  # once too long; then it was known, and once tried whether that still holds
    assert len(talking.messages) == 24


def test_pinned_messages_are_always_sent(provide: Any, agent: Any) -> None:
    provider = provide([Answer("Noted.")])
    talking = agent(provider, plugins=[ClewAgentPlugin("clew.db")])
    for n in range(12):
        talking(f"Turn {n}: {LONG}")
        if n == 3:
            pin_message(talking.messages, 4)
    assert f"Turn 2: {LONG}" in "".join(texts(provider.heard[-1].body))
    assert f"Turn 3: {LONG}" not in "".join(texts(provider.heard[-1].body))
    unpin_message(talking.messages, 4)
    for n in range(6):
        talking(f"More {n}: {LONG}")
    assert f"Turn 2: {LONG}" not in "".join(texts(provider.heard[-1].body))


# --- the method llm -----------------------------------------------------------------------------------------------


def test_the_agent_is_told_how_full_its_window_is_and_begins_a_new_session(
    provide: Any, agent: Any, found: Any
) -> None:
    def script(body: dict[str, Any]) -> Answer:
        last = str(body["messages"][-1]["content"])
        told = json.loads(last.split("<context_status>")[1].split("</context_status>")[0])
        if told["used_pct"] >= 60:
            return Answer(calls=(Call("new_session", {"summary": "Done: turns so far. Next: go on with the ports."}),))
        return Answer("Noted.")

    provider = provide(script)
    talking = agent(provider, plugins=[ClewAgentPlugin("clew.db", session="talk", method="llm", when="60%")])
    for n in range(12):
        talking(f"Turn {n}: you must keep port {9000 + n}. {LONG}")
    pcts = [status(heard)["used_pct"] for heard in provider.heard]
    begun = [i for i, heard in enumerate(provider.heard) if "go on with the ports" in texts(heard.body)[0]]
    assert begun
    assert {heard.body["messages"][-1]["role"] for heard in provider.heard} == {"system"}
    assert all("<context_status>" not in str(heard.body["messages"][:-1]) for heard in provider.heard)
    assert pcts[begun[0]] < pcts[begun[0] - 1] / 2  # told anew at once
    first = provider.heard[begun[0]].body["messages"][0]
    assert "you must keep port 9000" in str(first)
    assert all("<context_status>" not in str(message) for message in talking.messages)
    assert offered(provider.heard[0])[0] == "new_session"
    assert "when used_pct >= 60" in str(provider.heard[0].body["tools"])
    assert "must keep port 9001" in found("talk", "port 9001")


async def test_the_method_is_switched_at_any_time_and_remembered(provide: Any, agent: Any, tmp_path: Path) -> None:
    provider = provide([Answer("Noted.")])

    def resumed(plugin: ClewAgentPlugin) -> Agent:
        sessions = FileSessionManager("s1", storage_dir=str(tmp_path / "sessions"))
        made: Agent = agent(provider, plugins=[plugin], session_manager=sessions)
        return made

    plugin = ClewAgentPlugin("clew.db")
    talking = resumed(plugin)
    await talking.invoke_async("One")
    await plugin.switch(talking, "llm")
    await talking.invoke_async("Two")
    again = resumed(ClewAgentPlugin("clew.db"))
    await again.invoke_async("Three")
    assert offered(provider.heard[0]) == LOOKING
    for heard in provider.heard[1:]:
        assert "new_session" in offered(heard)
        assert status(heard)["context_window"] == 4_000


def test_a_blank_summary_begins_nothing(provide: Any, agent: Any) -> None:
    provider = provide([Answer(calls=(Call("new_session", {"summary": " "}),)), Answer("Noted.")])
    talking = agent(provider, plugins=[ClewAgentPlugin("clew.db", method="llm")])
    talking("Begin anew.")
    assert "the summary is blank" in str(talking.messages[2])
    assert "Begin anew." in texts(provider.heard[1].body)[0]


# --- sessions and sub-agents --------------------------------------------------------------------------------------


def test_a_restart_goes_on_where_it_was(provide: Any, agent: Any, found: Any, tmp_path: Path) -> None:
    provider = provide([Answer("Noted.")])

    def resumed() -> Agent:
        sessions = FileSessionManager("s1", storage_dir=str(tmp_path / "sessions"))
        made: Agent = agent(provider, plugins=[ClewAgentPlugin("clew.db")], session_manager=sessions)
        return made

    talking = resumed()
    talking("Hello.")
    for n in range(10):
        talking(f"Turn {n}: host{n}.example. {LONG}")
    again = resumed()
    assert said(again.messages) == said(talking.messages)
    again("Go on.")
    assert provider.moved
    sent = provider.heard[-1]
    assert sent.spent.input < 0.7 * 4_000
    assert "recall" in "".join(texts(sent.body))
    assert {name for name, _ in lineage("s1")} == {"s1"}
    assert "host1.example" in found("s1", "host1.example")


def test_a_session_of_strands_own_is_taken_over_and_given_back(provide: Any, agent: Any, tmp_path: Path) -> None:
    provider = provide([Answer("Noted.")])

    def resumed(**given: Any) -> Agent:
        sessions = FileSessionManager("s1", storage_dir=str(tmp_path / "sessions"))
        manager = theirs.SlidingWindowConversationManager(window_size=4)
        made: Agent = agent(provider, conversation_manager=manager, session_manager=sessions, **given)
        return made

    talking = resumed()
    for n in range(4):
        talking(f"Turn {n}")
    with_clew = resumed(plugins=[ClewAgentPlugin("clew.db")])
    assert said(with_clew.messages) == said(talking.messages)
    with_clew("One more")
    assert len(with_clew.messages) == 6
    assert said(resumed().messages) == said(with_clew.messages)


def lineage(session: str) -> list[tuple[str, str]]:
    """A session and those it comes from."""

    async def look() -> list[tuple[str, str]]:
        store = open_store("clew.db")
        found = await Sessions(clew.Engine(store)).lineage(session)
        await store.close()
        return [(s.name, s.cause) for s in found]

    return clew.run(look())


def test_an_agent_that_is_a_tool_hangs_under_its_caller(provide: Any, agent: Any) -> None:
    theirs = ClewAgentPlugin("clew.db")
    helper = agent(provide([Answer("The port is 8080.")]), name="helper", description="Looks.", plugins=[theirs])
    provider = provide([Answer(calls=(Call("helper", {"input": "Which port?"}),)), Answer("It is 8080.")])
    talking = agent(provider, tools=[helper], plugins=[ClewAgentPlugin("clew.db", session="main", method="llm")])
    talking("Ask the helper.")
    assert offered(provider.heard[0])[0] == "helper"
    (main, begun), (below, cause) = lineage(str(theirs.thread(helper).session))
    assert (main, begun, cause) == ("main", "start", "subagent")
    assert below.startswith("main-helper-")
    talking("And another agent in the same task is nobody's.")
    helper("Who asks?")
    assert theirs.thread(helper).session == below


def test_an_agent_that_a_swarm_hands_over_to_hangs_under_the_one_before(provide: Any, agent: Any) -> None:
    def first(body: dict[str, Any]) -> Answer:
        if body["messages"][-1]["role"] == "tool":
            return Answer("Handed over.")
        return Answer(calls=(Call("handoff_to_agent", {"agent_name": "writer", "message": "Write it."}),))

    one, two = ClewAgentPlugin("clew.db", session="work"), ClewAgentPlugin("clew.db")
    looker = agent(provide(first), name="looker", plugins=[one])
    writer = agent(provide([Answer("Written.")]), name="writer", plugins=[two])
    Swarm([looker, writer])("Look, then write.")
    assert [cause for _, cause in lineage(str(two.thread(writer).session))] == ["start", "handoff"]


# --- beside others, and in the other facade -----------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"per_turn": True}, {"proactive_compression": True}], ids=str)
def test_a_manager_that_drops_messages_before_calls_is_refused(given: Any, provide: Any, agent: Any) -> None:
    manager = theirs.SlidingWindowConversationManager(window_size=4, **given)
    with pytest.raises(ClewError, match="remove per_turn and proactive_compression"):
        agent(provide([]), conversation_manager=manager, plugins=[ClewAgentPlugin("clew.db")])


def test_after_a_restart_as_much_is_sent_as_without_one(provide: Any, agent: Any) -> None:
    sizes = []
    for each in (1, 100):
        provider, held = provide([Answer("Noted.")]), list[Any]()
        for n in range(10):
            if n % each == 0:
                talking = agent(provider, plugins=[ClewAgentPlugin(f"{each}.db", session="talk")], messages=held)
            talking(f"Turn {n}: {LONG}")
            held = talking.messages
        sizes.append([heard.spent.input for heard in provider.heard])
    assert sizes[0] == sizes[1]


def test_tools_are_offered_only_where_they_are_wanted(provide: Any, agent: Any) -> None:
    provider = provide([Answer("Noted.")])
    agent(provider, tools=[read], plugins=[ClewAgentPlugin("clew.db", offer=False)])("Hello")
    assert offered(provider.heard[0]) == ["read"]


def test_a_strategy_in_a_pipeline_of_them(provide: Any, agent: Any, found: Any) -> None:
    provider = provide([Answer("Noted.")])
    strategy = ClewStrategy("clew.db", session="talk")
    talking = agent(provider, context_manager={"strategies": [strategy], "stash": False})
    for n in range(15):
        talking(f"Turn {n}: host{n}.example. {LONG}")
    assert len(provider.heard) == 15
    assert len(talking.messages) < 20
    assert "host1.example" in found("talk", "host1.example")


def test_a_strategy_after_a_refusal(provide: Any, agent: Any) -> None:
    provider = provide([Answer("Noted.")], 2_500)
    strategy = ClewStrategy("clew.db")
    talking = agent(provider, window=100_000, context_manager={"strategies": [strategy], "stash": False})
    for n in range(10):
        talking(f"Turn {n}: {LONG}")
    assert 10 < len(provider.heard) < 14
    assert "recall" in "".join(texts(provider.heard[-1].body))
