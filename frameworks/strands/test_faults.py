"""Faults of Strands 1.62, each shown on Strands alone and then right with clew.

Should the first test of a pair fail, Strands has mended it: take the pair away.
"""

import asyncio
import json
import struct
import threading
from pathlib import Path
from typing import Any

import pytest
from frameworks.strands.talking import LONG, grown, read, said, texts
from strands import Agent
from strands.agent import conversation_manager as theirs
from strands.experimental.context_manager import Offload
from strands.session import FileSessionManager
from strands.types.exceptions import ContextWindowOverflowException

import clew
from clew.adapters import strands as ours
from clew.adapters.strands.messages import STRANDS_FORMAT, request_of
from clew.testing import Answer, Call

ERROR = ContextWindowOverflowException("too long")


# --- a status that is out of date ---------------------------------------------------------------------------------


def compacting(body: dict[str, Any]) -> Answer:
    """Asks for a summary of what came before, once it is told to."""
    last = str([m.get("content") for m in body["messages"] if m["role"] != "system"][-1])
    if "Please summarize this conversation" in last:
        return Answer("A summary.")
    if "Now make room" in last:
        return Answer(calls=(Call("summarize_context", {}),))
    return Answer("Noted.")


def test_alone_the_status_is_of_before_the_summary(provide: Any, agent: Any) -> None:
    provider = provide(compacting, 100_000)
    talking = agent(provider, window=100_000, context_manager="agentic")
    for n in range(14):
        talking(f"Turn {n}: {LONG}")
    talking("Now make room.")
    before, after = (h for h in provider.heard[-3:] if "<context-status>" in str(h.body["messages"][-1]))
    assert after.spent.input < before.spent.input
    used = [float(str(h.body["messages"][-1]).split("tokens (")[1].split("%")[0]) for h in (before, after)]
    assert used[1] >= used[0]


def test_with_clew_the_status_is_of_what_is_sent(provide: Any, agent: Any) -> None:
    provider = provide(compacting, 100_000)
    talking = agent(provider, window=100_000, plugins=[ours.ClewAgentPlugin("clew.db", method="llm")])
    for n in range(14):
        talking(f"Turn {n}: {LONG}")
    talking("Now make room.")
    before, after = provider.heard[-2:]
    assert after.spent.input < before.spent.input
    left = [
        json.loads(texts(h.body)[-1].split("_status>")[1].split("</")[0])["remaining_tokens"] for h in (before, after)
    ]
    assert left[1] > left[0]


# --- an overflow with a small result in front ---------------------------------------------------------------------


def results_of(*sizes: int) -> list[Any]:
    """A task, results of these sizes, and a question."""
    held: list[Any] = [{"role": "user", "content": [{"text": "The task: find the port."}]}]
    for n, size in enumerate(sizes):
        use = {"toolUseId": f"t{n}", "name": "read", "input": {"path": f"{n}.py"}}
        result = {"toolUseId": f"t{n}", "content": [{"text": "line " * size}], "status": "success"}
        held += [{"role": "assistant", "content": [{"toolUse": use}]}]
        held += [{"role": "user", "content": [{"toolResult": result}]}]
    return [
        *held,
        {"role": "assistant", "content": [{"text": "Found."}]},
        {"role": "user", "content": [{"text": "And the host?"}]},
    ]


def test_alone_a_small_result_in_front_costs_the_whole_chat(provide: Any, agent: Any) -> None:
    talking = agent(provide([]), tools=[read], messages=results_of(5, 4_000))
    theirs.SlidingWindowConversationManager().reduce_context(talking, ERROR)
    assert said(talking.messages) == [("user", [{"text": "And the host?"}])]


def test_with_clew_the_large_result_goes_and_the_task_stays(provide: Any, agent: Any) -> None:
    talking = agent(provide([]), tools=[read], messages=results_of(5, 4_000))
    ours.SlidingWindowConversationManager(engine="clew.db").reduce_context(talking, ERROR)
    assert said(talking.messages)[0] == ("user", [{"text": "The task: find the port."}])
    assert "line " * 100 not in str(talking.messages)
    assert "recall" in str(talking.messages)


# --- compressing before it is too late ----------------------------------------------------------------------------


def test_alone_a_full_window_loses_two_messages(provide: Any, agent: Any) -> None:
    talking = agent(provide([]), messages=grown(11))
    theirs.SlidingWindowConversationManager(proactive_compression=True).reduce_context(talking)
    assert len(talking.messages) == 20


def test_with_clew_half_of_it_is_free_again(provide: Any, agent: Any) -> None:
    talking = agent(provide([]), messages=grown(11))
    ours.SlidingWindowConversationManager(proactive_compression=True, engine="clew.db").reduce_context(talking)
    assert len(str(said(talking.messages))) < 0.55 * len(str(said(grown(11))))


# --- few messages, all of them long -------------------------------------------------------------------------------


def test_alone_few_messages_cannot_be_summarised(provide: Any, agent: Any) -> None:
    talking = agent(provide([Answer("A summary.")]), messages=grown(5))
    with pytest.raises(ContextWindowOverflowException, match="insufficient messages"):
        theirs.SummarizingConversationManager().reduce_context(talking, ERROR)


def test_with_clew_few_messages_are(provide: Any, agent: Any) -> None:
    held = [{**message, "content": [{"text": message["content"][0]["text"] * 3}]} for message in grown(5)]
    talking = agent(provide([Answer("")]), messages=list(held))
    ours.SummarizingConversationManager(engine="clew.db").reduce_context(talking, ERROR)
    assert len(str(talking.messages)) < 0.6 * len(str(held))


# --- a summary that failed ----------------------------------------------------------------------------------------


def test_alone_a_failed_summary_counts_messages_as_removed(provide: Any, agent: Any) -> None:
    talking = agent(provide([Answer(status=500)], 100_000), messages=grown(10))
    manager = theirs.SummarizingConversationManager()
    manager.reduce_context(talking)
    assert len(talking.messages) == 20
    assert manager.removed_message_count == 6


def test_with_clew_what_is_counted_is_what_is_gone(provide: Any, agent: Any) -> None:
    talking = agent(provide([Answer(status=500)], 100_000), messages=grown(10))
    manager = ours.SummarizingConversationManager(engine="clew.db")
    manager.reduce_context(talking)
    assert len(talking.messages) < 20  # code wrote the summary
    assert manager.removed_message_count + len(talking.messages) - len(manager.get_state()["head"]) == 20


# --- pins and a session -------------------------------------------------------------------------------------------


def resumed(kind: Any, provider: Any, agent: Any, folder: Path) -> Agent:
    manager = kind.SlidingWindowConversationManager(window_size=4, pin_first=1)
    sessions = FileSessionManager("s1", storage_dir=str(folder / "sessions"))
    made: Agent = agent(provider, conversation_manager=manager, session_manager=sessions)
    return made


def test_alone_a_session_with_pins_restores_other_messages(provide: Any, agent: Any, tmp_path: Path) -> None:
    provider = provide([Answer("Noted.")])
    talking = resumed(theirs, provider, agent, tmp_path)
    for n in range(5):
        talking(f"Turn {n}")
    assert said(resumed(theirs, provider, agent, tmp_path).messages) != said(talking.messages)


def test_with_clew_it_restores_what_was_there(provide: Any, agent: Any, tmp_path: Path) -> None:
    provider = provide([Answer("Noted.")])
    talking = resumed(ours, provider, agent, tmp_path)
    for n in range(5):
        talking(f"Turn {n}")
    assert said(resumed(ours, provider, agent, tmp_path).messages) == said(talking.messages)


# --- images -------------------------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 1024, 768) + b"\x08\x02\x00\x00\x00"
SHOWN: Any = [{"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": PNG}}}]}]


async def test_alone_an_image_counts_nothing(provide: Any, agent: Any) -> None:
    assert await agent(provide([])).model.count_tokens(SHOWN) == 0


def test_with_clew_an_image_counts_what_it_costs(provide: Any, agent: Any) -> None:
    plugin = ours.ClewAgentPlugin("clew.db", offer=False)
    talking = agent(provide([]), messages=SHOWN, plugins=[plugin])
    thread = plugin.thread(talking)
    view = clew.run(thread.fit(request_of(talking), STRANDS_FORMAT)).view
    assert clew.run(thread.controller.engine.expected(view)) > 500


# --- what was summed up, and how to get it back -------------------------------------------------------------------


def summed_up(provide: Any, agent: Any, strategy: Any, stash: bool) -> Agent:
    talking: Agent = agent(provide([Answer("A summary.")]), context_manager={"strategies": [strategy], "stash": stash})
    for n in range(12):
        talking(f"Turn {n}: {LONG}")
    return talking


def test_alone_a_summary_does_not_say_where_the_rest_is(provide: Any, agent: Any) -> None:
    strategy = Offload.summarize("*").when(utilization=0.7, preserve_recent=4)
    talking = summed_up(provide, agent, strategy, stash=True)
    assert len(talking.messages) < 24
    assert "ref:" not in str(talking.messages)


def test_with_clew_a_summary_says_how_to_recall_it(provide: Any, agent: Any) -> None:
    talking = summed_up(provide, agent, ours.ClewStrategy("clew.db"), stash=False)
    assert len(talking.messages) < 24
    assert "recall " in str(talking.messages)


# --- the loop while a summary is written --------------------------------------------------------------------------


async def is_free(kind: Any, provide: Any, agent: Any, model: Any) -> list[bool]:
    """Whether the agent's loop went on, each time that its auxiliary model was at work."""
    loop, went_on = asyncio.get_running_loop(), list[bool]()

    def script(_: dict[str, Any]) -> Answer:
        turned = threading.Event()
        loop.call_soon_threadsafe(turned.set)
        went_on.append(turned.wait(0.3 if kind is theirs else 300))
        return Answer("A summary.")

    given = {"engine": "clew.db"} if kind is ours else {}
    manager = kind.SummarizingConversationManager(0.3, 2, proactive_compression=True, **given)
    talking = agent(provide([Answer("Noted.")]), conversation_manager=manager, aux_model=model(provide(script)))
    for n in range(10):
        await talking.invoke_async(f"Turn {n}: {LONG}")
    assert manager.removed_message_count > 0
    return went_on


async def test_alone_compressing_blocks_the_loop(provide: Any, agent: Any, model: Any) -> None:
    assert set(await is_free(theirs, provide, agent, model)) == {False}


@pytest.mark.usefixtures("as_shipped")
async def test_with_clew_it_is_awaited(provide: Any, agent: Any, model: Any) -> None:
    assert set(await is_free(ours, provide, agent, model)) == {True}
