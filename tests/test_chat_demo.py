"""`clew chat --demo`: with no key, somebody sees the meter, a compaction and its undo."""

from chatting import SIZE, Hand
from clew.chat import Chat, ChatBackend
from clew.chat.demo import DEMO_WINDOW, demonstration
from clew.chat.permitting import Permitting
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
            assert "F7" in hand.shown
            await hand.press("f9")
            await hand.hears("Compaction undone: ")
            await hand.say("And before?")
            await hand.enter("Count them.")
            await hand.sees(Permitting)
            await hand.press("y")
            await hand.hears("These are worth a try")
            await hand.until(lambda: not hand.chat.busy)
            await hand.say("Again.")  # the script begins anew
        await backend.close()
        await store.close()
        assert places.store().is_relative_to(places.home)
    assert not places.home.exists()
