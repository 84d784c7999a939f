"""`clew chat --demo`: with no key, somebody sees the meter, a compaction and its undo."""

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from chatting import SIZE, Hand
from clew.chat import Chat, ChatBackend
from clew.chat.demo import DEMO_WINDOW, demonstration
from clew.store import open_store


async def test_a_demonstration_fills_the_window_compacts_undoes_and_leaves_nothing() -> None:
    with demonstration() as places:
        store = open_store(places.store(), True)
        backend = ChatBackend(places, store, session="demo")
        chat = Chat(backend)
        async with chat.run_test(size=SIZE) as pilot:
            hand = Hand(chat, pilot)
            await hand.say("Hello.")
            assert "This is a demonstration" in hand.shown
            assert f"{DEMO_WINDOW:,} tokens" in hand.shown
            await hand.say("What failed?")
            await hand.hears("Compacted: ")
            assert "/show" in hand.shown
            await hand.enter("/undo")
            await hand.hears("Compaction undone: ")
            await hand.say("And before?")
            await hand.enter("Count them.")
            await hand.asked()
            await hand.press("y")
            await hand.hears("These are worth a try")
            await hand.until(lambda: not hand.chat.busy)
            await hand.say("Again.")  # the script begins anew
        await backend.close()
        await store.close()
        assert places.store().is_relative_to(places.home)
    assert not places.home.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_in_a_terminal_alt_enter_begins_a_line_and_ctrl_q_leaves(tmp_path: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "clew.cli", "chat", "--demo"]
    env = {**os.environ, "HOME": str(tmp_path), "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as chat:
        os.close(theirs)
        shown = _until(ours, b"Ctrl+J")
        os.write(ours, b"abc\x1b\rxyz")  # as terminals without the kitty protocol send Alt+Enter
        shown += _until(ours, b"xyz")
        os.write(ours, b"\x11")
        shown += _until(ours, b"log are deleted")
    os.close(ours)
    assert chat.returncode == 0
    assert b"working" not in shown  # nothing was sent


def _until(terminal: int, words: bytes) -> bytes:
    """What a program shows until it shows this."""
    shown = b""
    while words not in shown:
        assert select.select([terminal], [], [], 300)[0], shown
        shown += os.read(terminal, 4_096)
    return shown
