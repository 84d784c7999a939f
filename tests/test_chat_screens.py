"""Each screen of `clew chat`, small and large, dark and light; with CLEW_SCREENS=DIR they are written there as SVG."""

import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from amounts import combined
from chatting import Hand, chatting, report
from clew.store.protocol import Store
from clew.testing.provider import Answer, Call, StrictProvider

FOLDER = os.environ.pop("CLEW_SCREENS", "")  # clew itself knows no such variable, and says so
MARKUP = re.compile(r"\[/?(?:b|i|dim|bold|red|link|@click|\$)\b[^\]]*\]|\[/\]")


class Album:
    """Pictures of what somebody sees, each looked at as it is taken."""

    def __init__(self, hand: Hand, suffix: str) -> None:
        self.hand = hand
        self.suffix = suffix

    async def take(self, name: str, title: str, keys: str = "Esc ") -> None:
        """Wait for a screen, and see that it is whole."""
        await self.hand.until(lambda: title in "\n".join(self.hand.screen))
        await self.hand.pilot.pause()
        lines, size = self.hand.screen, self.hand.chat.size
        text = "\n".join(lines)
        assert {cell_len(line) for line in lines} == {size.width}, name
        assert len(lines) == size.height, name
        assert title in text, name
        assert keys in text, name
        assert not MARKUP.search(text), name
        assert "Traceback" not in text, name
        if FOLDER:
            drawn = self.hand.chat.export_screenshot(title=name)
            Path(FOLDER, f"{name}-{self.suffix}.svg").write_text(drawn, encoding="utf-8")

    async def visit(self, name: str, go: Callable[[], Awaitable[None]], title: str, keys: str = "Esc ") -> None:
        """Go to a screen, take a picture, and come back."""
        await go()
        await self.take(name, title, keys)
        await self.hand.press("escape")
        await self.hand.until(lambda: len(self.hand.chat.screen_stack) == 1)


@pytest.mark.few(1)
@pytest.mark.parametrize(("size", "light"), combined([(80, 24), (140, 45)], [False, True]))
async def test_every_screen_is_whole(store: Store, tmp_path: Path, size: tuple[int, int], light: bool) -> None:
    suffix = f"{size[0]}x{size[1]}-{'light' if light else 'dark'}"
    write = Call("write_file", {"path": "new.txt", "content": "hello 👩‍👩‍👧 שלום\n"})
    first = Answer("# What I found\n\n- **one** thing\n\n```python\nx = 1  # 👍🏽\n```\n" + report(1).text)
    async with chatting(store, tmp_path, session="first", size=size, light=light) as hand:
        await Album(hand, suffix).take("welcome", "No model is set", "/model")
    with StrictProvider([first, report(2), Answer("I write.", (write,)), Answer("Done.")]) as provider:
        async with chatting(store, tmp_path, provider.url, size=size, light=light) as hand:
            await walk(hand, Album(hand, suffix))


async def walk(hand: Hand, album: Album) -> None:
    """Through all screens that a conversation has."""

    def typed(text: str) -> Callable[[], Awaitable[None]]:
        return lambda: hand.enter(text)

    await hand.say("What is in the reports?")
    await album.take("chat", "159.", "/ commands")  # the end of the answer
    await hand.say("Another one.")
    await album.visit("method", typed("/method"), "Select Compaction Method")
    await album.visit("help", typed("/help"), "Keys", "/ commands")
    await album.visit("draft", typed("/handoff"), "New session with this summary", "Ctrl+S takes it")
    await album.visit("pins", typed("/pin"), "Pin or unpin")
    await album.visit("instructions", typed("/instructions"), "Instructions for new sessions")
    await album.visit("sessions", typed("/sessions"), "Sessions: Enter resumes")
    await album.visit("model", typed("/model"), "Model")
    await album.visit("search", typed("/search file1_7.py"), "about file1_7.py")
    await hand.enter("Write it.")
    await hand.asked()
    await album.take("permission", "Write new.txt?", "y yes")
    await hand.press("y")
    await hand.hears("Done.")
    await hand.until(lambda: not hand.chat.busy)
    await album.visit("preview", typed("/preview file1_7.py"), "If it were compacted now", "/ commands")
    await hand.enter("/compact file1_7.py")
    await hand.hears("Compacted: ")
    await album.visit("lineage", typed("/lineage"), "Lineage of work")
    await album.visit("lost", typed("/lost"), "What was lost in", "/ commands")
    await album.visit("window", typed("/window"), "The window", "/ commands")
    await hand.press("ctrl+o")
    await album.take("expanded", "word for word", "/ commands")
