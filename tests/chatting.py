"""Somebody at the keyboard of `clew chat`, and what a provider says to them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot
from textual.screen import Screen

from clew.chat import Chat, ChatBackend
from clew.chat.permitting import Permitting
from clew.config import Places
from clew.store.protocol import Store
from clew.testing.provider import Answer, StrictProvider

SIZE = (80, 24)


class Hand:
    """Somebody at the keyboard, who looks before going on."""

    def __init__(self, chat: Chat, pilot: Pilot[None]) -> None:
        self.chat = chat
        self.pilot = pilot

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(300):
            while not holds():
                await self.pilot.pause(0.01)
        await self.pilot.pause()

    async def enter(self, text: str) -> None:
        self.chat.prompt.replace_with(text)
        await self.pilot.press("enter")

    async def say(self, text: str) -> None:
        """Say something, and wait for the end of the turn."""
        await self.enter(text)
        await self.until(lambda: not self.chat.busy and not self.chat._waiting)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def sees(self, screen: type[Screen[Any]]) -> None:
        await self.until(lambda: isinstance(self.chat.screen, screen) and self.chat.screen.is_mounted)

    async def hears(self, words: str) -> None:
        """Wait until something is said in the conversation."""
        await self.until(lambda: words in self.shown)

    async def page(self, title: str) -> str:
        """Wait until a text with this title stands in the conversation; the newest such text."""
        await self.until(lambda: bool(self.pages(title)))
        return self.pages(title)[-1]

    def pages(self, title: str = "") -> list[str]:
        return [e.text for e in self.chat.transcript.entries if e.kind == "page" and e.text.startswith(title)]

    async def asked(self) -> Permitting:
        """Wait until something is asked above the prompt, and has the keys."""
        await self.until(lambda: any(one.has_focus_within for one in self.chat.questions.query(Permitting)))
        return self.chat.questions.query(Permitting).last()

    @property
    def screen(self) -> list[str]:
        """The lines of the screen."""
        return [strip.text for strip in self.chat.screen._compositor.render_strips()]

    @property
    def shown(self) -> str:
        return "\n".join(entry.visible for entry in self.chat.transcript.entries)

    @property
    def problem(self) -> str:
        """Why the last command could not be done."""
        told = [entry.text for entry in self.chat.transcript.entries if entry.kind == "problem"]
        return told[-1].partition(": ")[2] if told else ""


def places(folder: Path, model: str = "") -> Places:
    env = {"HOME": str(folder / "home")}
    return Places(env | ({"CLEW_AGENT_MODEL": model} if model else {}), folder)


@asynccontextmanager
async def chatting(
    store: Store,
    folder: Path,
    url: str = "",
    session: str = "work",
    size: tuple[int, int] = SIZE,
    model: str = "",
    light: bool = False,
) -> AsyncIterator[Hand]:
    backend = ChatBackend(places(folder, model or (f"{url}/v1#gpt-4o" if url else "")), store, session=session)
    chat = Chat(backend, light)
    async with chat.run_test(size=size) as pilot:
        await pilot.pause()
        yield Hand(chat, pilot)
    await backend.close()


def sent(provider: StrictProvider) -> str:
    return json.dumps(provider.heard[-1].body)


def report(n: int) -> Answer:
    return Answer(f"Report {n}. " + " ".join(f"file{n}_{i}.py has value {n * 100 + i}." for i in range(60)))
