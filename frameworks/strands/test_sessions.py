"""What stays, and what comes back: pins, redactions, sessions of Strands with our managers."""

from pathlib import Path
from typing import Any

import pytest
from frameworks.strands.talking import LONG, said, texts
from strands import Agent
from strands.agent import conversation_manager as theirs
from strands.agent.conversation_manager.compression.pin_message import pin_message, unpin_message
from strands.session import FileSessionManager, SnapshotSessionManager
from strands.storage import LocalFileStorage
from strands.types.exceptions import ContextWindowOverflowException

from clew.adapters import strands as ours
from clew.testing import Answer

MANAGERS = ["SlidingWindowConversationManager", "SummarizingConversationManager"]


@pytest.mark.parametrize("name", MANAGERS)
def test_pinned_messages_stay_byte_for_byte(name: str, provide: Any, agent: Any) -> None:
    provider = provide([Answer("Noted.")])
    manager = getattr(ours, name)(pin_first=2, proactive_compression=True, engine="clew.db")
    talking = agent(provider, conversation_manager=manager)
    for n in range(14):
        talking(f"Turn {n}: {LONG}")
        if n == 2:
            pin_message(talking.messages, 4)
    assert said(talking.messages)[:2] == [("user", [{"text": f"Turn 0: {LONG}"}]), ("assistant", [{"text": "Noted."}])]
    pinned = [m for m in talking.messages if m.get("metadata", {}).get("custom", {}).get("pinned")]
    assert len(pinned) == 3
    assert {"text": f"Turn 2: {LONG}"} in pinned[2]["content"]  # in one message with a stand-in: roles must alternate
    assert f"Turn 3: {LONG}" not in str(talking.messages)


@pytest.mark.parametrize("name", MANAGERS)
def test_a_message_that_is_unpinned_leaves_though_others_were_joined_with_it(
    name: str, provide: Any, agent: Any
) -> None:
    manager = getattr(ours, name)(proactive_compression=True, engine="clew.db")
    talking = agent(provide([Answer("Noted.")]), conversation_manager=manager)
    pinned = f"Turn 2: {LONG}"
    for n in range(24):
        talking(f"Turn {n}: {LONG}")
        if n == 2:
            pin_message(talking.messages, 4)
        if n == 12:
            (at,) = (i for i, m in enumerate(talking.messages) if {"text": pinned} in m["content"])
            assert len(talking.messages[at]["content"]) > 1
            unpin_message(talking.messages, at)
    assert pinned not in str(talking.messages)


@pytest.mark.parametrize(("proactive", "pins"), [(True, None), (None, 1)])
@pytest.mark.parametrize("name", MANAGERS)
def test_a_session_restores_what_was_there(
    name: str, proactive: Any, pins: Any, provide: Any, agent: Any, found: Any, tmp_path: Path
) -> None:
    provider = provide([Answer("Noted.")])

    def resumed() -> Agent:
        manager = getattr(ours, name)(pin_first=pins, proactive_compression=proactive, engine="clew.db")
        sessions = FileSessionManager("s1", storage_dir=str(tmp_path / "sessions"))
        return agent(provider, conversation_manager=manager, session_manager=sessions)

    talking = resumed()
    for n in range(12):
        talking(f"Turn {n}: host{n}.example. {LONG}")
    manager = talking.conversation_manager
    assert manager.removed_message_count > 0
    assert manager.removed_message_count + len(talking.messages) - len(manager.get_state()["head"]) == 24
    again = resumed()
    assert said(again.messages) == said(talking.messages)
    again("Go on.")
    assert said(resumed().messages) == said(again.messages)
    assert "host1.example" in found("s1", "host1.example")


def test_a_snapshot_restores_what_was_there(provide: Any, agent: Any, tmp_path: Path) -> None:
    provider = provide([Answer("Noted.")])

    def resumed() -> Agent:
        manager = ours.SummarizingConversationManager(proactive_compression=True, engine="clew.db")
        sessions = SnapshotSessionManager("s1", storage=LocalFileStorage(str(tmp_path / "sessions")))
        return agent(provider, conversation_manager=manager, session_manager=sessions)

    talking = resumed()
    for n in range(12):
        talking(f"Turn {n}: {LONG}")
    again = resumed()
    assert said(again.messages) == said(talking.messages)
    assert again.conversation_manager.get_state() == talking.conversation_manager.get_state()


def test_a_state_that_strands_saved_is_restored(provide: Any, agent: Any, tmp_path: Path) -> None:
    provider = provide([Answer("A summary.")], 100_000)
    sessions = FileSessionManager("s1", storage_dir=str(tmp_path / "sessions"))
    talking = agent(
        provider, conversation_manager=theirs.SummarizingConversationManager(0.5, 2), session_manager=sessions
    )
    for n in range(6):
        talking(f"Turn {n}")
    talking.conversation_manager.reduce_context(talking, ContextWindowOverflowException("too long"))
    sessions.sync_agent(talking)
    again = agent(
        provider,
        conversation_manager=ours.SummarizingConversationManager(engine="clew.db"),
        session_manager=FileSessionManager("s1", storage_dir=str(tmp_path / "sessions")),
    )
    assert said(again.messages) == said(talking.messages)


def test_a_message_that_is_redacted_in_place_stays_redacted(provide: Any, agent: Any) -> None:
    provider = provide([Answer("Noted.")])
    manager = ours.SlidingWindowConversationManager(proactive_compression=True, engine="clew.db")
    talking = agent(provider, conversation_manager=manager)
    talking("The password is hunter2.")
    talking.messages[0]["content"] = [{"text": "[redacted]"}]
    for n in range(8):
        talking(f"Turn {n}: {LONG}")
    assert "[redacted]" in "".join(texts(provider.heard[-1].body))
    assert all("hunter2" not in str(heard.body) for heard in provider.heard[1:])
