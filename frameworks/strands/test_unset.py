"""Without `proactive_compression`, the messages are those that Strands' own managers leave, whatever happens."""

from collections.abc import AsyncIterator, Iterator
from random import Random
from typing import Any

import pytest
from frameworks.strands.talking import read
from strands import Agent, tool
from strands.agent import conversation_manager as theirs
from strands.hooks import MessageAddedEvent
from strands.models import Model
from strands.types.exceptions import ContextWindowOverflowException

from clew.adapters import strands as ours

TURNS = 9
WORDS = ["remember this", "ünïcode 雪 🧵", "half a character \ud83e", "x" * 3_000, " ", "line\n" * 40]
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("NullConversationManager", {}),
    ("NullConversationManager", {"proactive_compression": True}),
    ("SlidingWindowConversationManager", {}),
    *(
        ("SlidingWindowConversationManager", {"window_size": size, "per_turn": turn, "pin_first": pins})
        for size, turn, pins in [
            (4, False, None),
            (5, True, None),
            (6, 2, 2),
            (7, False, 1),
            (2, True, 6),
            (3, 3, 9),
            (0, False, None),
            (0, True, 2),
        ]
    ),
    ("SlidingWindowConversationManager", {"window_size": 4, "should_truncate_results": False}),
    ("SummarizingConversationManager", {}),
    ("SummarizingConversationManager", {"summary_ratio": 0.5, "preserve_recent_messages": 2, "pin_first": 1}),
]


@tool
def fail(path: str) -> str:
    """Never works."""
    raise OSError(f"{path} is gone")


class Talkative(Model):
    """Says and calls what chance tells it to; now and then it fails."""

    def __init__(self, seed: int, refuses: bool) -> None:
        self._chance = Random(seed)
        self._refuses = refuses
        self._calls = 0

    def get_config(self) -> Any:
        return {"model_id": "gpt-4o", "context_window_limit": 1_000}  # long exceeded: nobody may care

    def update_config(self, **model_config: Any) -> None:
        raise NotImplementedError

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """One answer."""
        what = self._chance.choices(["text", "calls", "error", "too long"], [6, 6, 1, self._refuses])[0]
        if what == "error":
            raise RuntimeError("the provider is down")
        if what == "too long":
            raise ContextWindowOverflowException("too long")
        yield {"messageStart": {"role": "assistant"}}
        for event in self._called() if what == "calls" else self._text(self._chance.choice(WORDS)):
            yield event
        yield {"messageStop": {"stopReason": "tool_use" if what == "calls" else "end_turn"}}
        yield {"metadata": {"usage": {"inputTokens": 9, "outputTokens": 9, "totalTokens": 18}, "metrics": {}}}

    def _text(self, words: str) -> Iterator[Any]:
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": words}}}
        yield {"contentBlockStop": {}}

    def _called(self) -> Iterator[Any]:
        yield from self._text("Let me look.")
        for _ in range(self._chance.randint(1, 3)):
            self._calls += 1
            name = self._chance.choice(["read", "read", "fail", "nowhere"])
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": f"t{self._calls}", "name": name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"path": "a.py"}'}}}}
            yield {"contentBlockStop": {}}


def held(agent: Agent) -> list[Any]:
    """What an agent holds, and what of it is pinned."""
    return [(m["role"], m["content"], m.get("metadata", {}).get("custom")) for m in agent.messages]


async def told(agent: Agent, prompt: Any) -> str:
    """What comes of a turn: an answer, or an error's name."""
    try:
        return str(await agent.invoke_async(prompt, limits={"turns": 4}))
    except Exception as error:
        return type(error).__name__


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("name", "given"), SETTINGS, ids=str)
async def test_unset_the_messages_are_those_of_strands(name: str, given: Any, seed: int) -> None:
    managers = getattr(theirs, name)(**given), getattr(ours, name)(**given, engine="clew.db")
    one, other = (
        Agent(
            Talkative(seed, refuses=name == "NullConversationManager"),  # the others do better after a refusal
            tools=[read, fail],
            conversation_manager=manager,
            callback_handler=None,
            retry_strategy=None,
        )
        for manager in managers
    )
    added = []
    other.add_hook(lambda event: added.append(event.message), MessageAddedEvent)
    chance = Random(-seed - 1)
    for n in range(TURNS):
        prompt: Any = f"{n}: {chance.choice(WORDS)}"
        if chance.random() < 0.2:
            prompt = [{"text": prompt}, {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}]
        assert await told(other, prompt) == await told(one, prompt)
        assert held(other) == held(one)
    ours_now, theirs_now = (agent.conversation_manager.get_state() for agent in (other, one))
    # Strands counts what is gone, pins apart: a session needs to know where the rest begins.
    gone = ours_now.pop("removed_message_count") - len(ours_now.pop("head"))
    assert gone + len(other.messages) == len(added)
    assert bool(theirs_now.pop("removed_message_count")) == bool(gone)
    assert ours_now == theirs_now
