"""What a chat does, without a screen: its agent, its log, the user's settings."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from clew.agent import Agent
from clew.agent.tools import AskUser, Permissions, Toolbox, tools
from clew.agent.tools.walking import walk
from clew.chat.allowing import AllowedCommands
from clew.chat.guides import guides, instructed
from clew.chat.speaking import Absent, chosen_speaker
from clew.clients.voices import typed
from clew.config import Config, Places, assembled, edited, engine, read_key, write_key
from clew.control import ContextController
from clew.core.items import Scope
from clew.core.view import View
from clew.errors import NotFound
from clew.llm.streaming import speaker
from clew.screens import save
from clew.sessions.about import Abouts
from clew.sessions.conversation import Conversation
from clew.sessions.diffs import Diff
from clew.sessions.sessions import Sessions
from clew.sessions.window import Window
from clew.steps.worklog.writing import summary
from clew.store.protocol import Store
from clew.store.records import Method, Session

REMEMBERED = 10  # conversations whose messages can be brought back into the prompt
RECENT_ITEMS = 400  # items of each that are looked through
FILES = 20_000  # files of a folder that are offered
DRAFT = 6_000  # characters of a summary that is proposed


class WindowFilling(NamedTuple):
    """What fills the window, and what the conversation came to."""

    window: Window
    cost: float  # dollars
    compactions: int


class ChatBackend:
    """A conversation with an agent, and all that can be done with it."""

    def __init__(
        self,
        places: Places,
        store: Store,
        folder: Path | None = None,
        *,
        scope: Scope = "",
        model: str = "",
        session: str = "",
        ask: AskUser | None = None,
    ) -> None:
        self.places = places
        self.folder = (folder or places.folder).resolve()
        self.store = store
        self.ask = ask
        self.watch: Callable[[str], None] = lambda text: None  # hears what a command writes while it runs
        self.allowed = AllowedCommands(places.store().with_name("allowed.json"), self.folder)
        self.config: Config = replace(assembled(places), log="off")  # what it would write to is the screen
        self.scope = scope or self.config.scope
        self.model = model or self.config.agent.model or ""  # nothing: it is to be chosen
        self.engine = engine(self.config, store)
        self.sessions = Sessions(self.engine, self.scope)
        self._abouts = Abouts(self.engine.store)
        self.agent = self._agent(session)

    @property
    def controller(self) -> ContextController:
        return self.agent.controller

    def _agent(self, session: str) -> Agent:
        here, config = self.folder, self.config
        self.guides = guides(here)
        system = files("clew.agent").joinpath("prompts", "system.md").read_text(encoding="utf-8")
        words, own = config.new_session, tools(here, watch=lambda text: self.watch(text))
        return Agent(
            chosen_speaker(self.model),
            ContextController(self.engine, when=words.when, how=words.how),
            Toolbox(own, Permissions(ask=self._asked)),
            system=instructed(system.replace("{folder}", str(here)).strip(), self.guides),
            session=session or f"chat-{uuid4().hex[:6]}",
            scope=self.scope,
        )

    async def _asked(self, tool: Any, arguments: Mapping[str, Any], preview: str) -> bool:
        return self.ask is not None and await self.ask(tool, arguments, preview)

    async def close(self) -> None:
        await self.agent.speaker.close()
        await self.engine.close()

    # --- the conversation ---------------------------------------------------------------------------------------------

    async def open(self, session: str = "") -> View | None:
        """Go on with a conversation, or begin one; None where nothing was said in it yet."""
        name = (await self.sessions.get(session)).name if session else None
        await self.agent.speaker.close()
        self.agent = self._agent(name or "")
        return await self.start()

    async def start(self) -> View | None:
        """Have the conversation as it was left, with the method that it was left with."""
        await self.controller.load(self.scope, self.agent.session)
        try:
            return await self.agent.view()
        except NotFound:
            return None

    async def filling(self) -> WindowFilling | None:
        """What the window is made of now; None before anything was said."""
        try:
            view = await self.agent.view()
        except NotFound:
            return None
        one = Conversation.of(self.engine, view)
        own = await one.sessions()
        return WindowFilling(await one.window(), sum(s.cost for s in own), sum(s.is_folded for s in own))

    async def all(self) -> list[Session]:
        """The newest session of each conversation that has a name, newest first."""
        newest: dict[str, Session] = {}
        for session in await self.sessions.all():
            if session.name and not session.archived:
                newest.setdefault(session.name, session)
        return list(newest.values())

    async def titles(self) -> dict[str, str]:
        """The first words of each conversation, by its branch."""
        firsts = [session for session in await self.sessions.all() if session.number == 1]
        return {branch: about.title for branch, about in (await self._abouts.of(self.scope, firsts)).items()}

    async def asked(self) -> list[str]:
        """What the user said in the newest conversations, the newest last."""
        texts: list[str] = []
        for session in reversed((await self.all())[:REMEMBERED]):
            newest = [node async for node in Conversation(self.engine, self.scope, session.branch).newest(RECENT_ITEMS)]
            texts += [text for n in reversed(newest) if (text := typed(n.item))]
        return [text for text, _ in groupby(texts)]

    def files(self) -> list[str]:
        """The files of the folder that can be named in a text, without those that .gitignore names."""
        found = (Path(e).relative_to(self.folder).as_posix() for e in islice(walk(self.folder, self.folder), FILES))
        return [name for name in found if name.isprintable() and " " not in name]

    # --- its acts -----------------------------------------------------------------------------------------------------

    async def conversation(self) -> Conversation:
        """What it can be asked, and what can be done with it. Raises `NotFound` before anything was said."""
        return Conversation(self.engine, self.scope, (await self.agent.view()).branch)

    async def idle(self) -> Conversation:
        """The same, to be changed. Raises `Busy`."""
        self.controller.check_idle()
        return await self.conversation()

    async def draft(self) -> str:
        """What code would write of the conversation, to be edited."""
        one = await self.conversation()
        said = await one.originals_by_id(await one.view())
        return await asyncio.to_thread(summary, [*said.values()], DRAFT)

    async def lost(self, name: str = "") -> Diff:
        """What a compaction took out of view: the newest one, or that which a name means."""
        return await (await self.sessions.conversation(name) if name else await self.conversation()).diff()

    # --- settings -----------------------------------------------------------------------------------------------------

    async def switch(self, method: Method) -> str:
        """Have somebody else decide when to compact, from the next call on and for good. Raises `Busy`."""
        self.controller.method = method
        await self.controller.save(self.scope, self.agent.session)
        self.engine.settings = replace(self.engine.settings, method=method)  # for conversations that begin here
        return await self.set("compaction_method", method)

    async def instruct(self, when: str, how: str) -> str:
        """Tell the agent when to begin a new session, and what its summary shall be like."""
        self.controller.check_idle()
        self.controller.when, self.controller.how = when, how
        await self.set("new_session.when", when)
        return await self.set("new_session.how", how)

    async def use(self, model: str) -> str:
        """Talk to another model; where that one speaks another format, in a conversation of its own."""
        self.controller.check_idle()
        new = await asyncio.to_thread(speaker, model)  # an SDK may take a second to import
        told = await self.set("agent.model", model)
        before, self.model = self.agent, model
        same = isinstance(before.speaker, Absent) or new.format == before.speaker.format
        self.agent = self._agent(before.session if same else "")
        self.agent.controller.method = before.controller.method
        await before.speaker.close()
        await new.close()
        return told if same else f"{told}; it speaks {new.format}, so a new conversation begins"

    async def set(self, key: str, value: str) -> str:
        """Set something in the user's file, or take it out where it is blank, and say where it is."""
        path, text, holds = edited(self.places, key, value or None)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        await asyncio.to_thread(save, path, text.encode())
        self.config = replace(holds, log="off")
        source = holds.sources[write_key(read_key(key))]
        where = self.places.shown(path)
        if not value:
            return f"taken out of {where}"
        return f"saved in {where}" if source.endswith(where) else f"saved in {where}, but {source} counts more"

    async def write(self, path: str, text: str) -> Path:
        """Save a text where the user says."""
        there = self.places.path(path, self.folder)
        await asyncio.to_thread(save, there, text.encode("utf-8", "replace"))
        return there
