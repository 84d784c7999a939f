"""Draw the chat for the docs: `python scripts/chat_screens.py [FOLDER]` writes SVG files, docs/images unless given.

It is `clew chat --demo` with somebody at the keyboard: a scripted model, and nothing outside a temporary folder.
"""

import asyncio
import sys
from collections.abc import Callable, Collection
from pathlib import Path

from textual.pilot import Pilot

from clew.chat import Chat, ChatBackend
from clew.chat.demo import demonstration
from clew.store import open_store

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SCREENS = {(80, 24): {"compacted"}, (140, 45): {"commands", "permission"}}  # those that docs/chat.md shows


async def main(folder: Path) -> None:
    for size, wanted in SCREENS.items():
        with demonstration() as places:
            store = open_store(places.store(), True)
            backend = ChatBackend(places, store, session="demo")
            chat = Chat(backend)
            async with chat.run_test(size=size) as pilot:
                await _walk(chat, pilot, folder, f"{size[0]}x{size[1]}", wanted)
            await backend.close()
            await store.close()


async def _walk(chat: Chat, pilot: Pilot[None], folder: Path, size: str, wanted: Collection[str]) -> None:
    async def until(holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(300):
            while not holds():
                await pilot.pause(0.02)
        await pilot.pause(0.6)  # the clock ticks, and the meter is drawn

    def draw(name: str) -> None:
        if name in wanted:
            drawn = chat.export_screenshot(title="clew chat")
            (folder / f"chat-{name}-{size}.svg").write_text(drawn, encoding="utf-8")

    async def say(text: str) -> None:
        chat.prompt.replace_with(text)
        await pilot.press("enter")

    await say("What is in this folder?")
    await until(lambda: not chat.busy)
    await say("What failed?")
    await until(lambda: not chat.busy)
    draw("compacted")
    await pilot.press("/")
    await until(lambda: bool(chat.prompt.offers.display))
    draw("commands")
    chat.prompt.replace_with("")
    await say("And the day before?")
    await until(lambda: not chat.busy)
    await say("How often?")
    await until(lambda: bool(chat.questions.children))
    draw("permission")
    await pilot.press("y")
    await until(lambda: not chat.busy)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES))
