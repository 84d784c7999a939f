"""What clients ask of a resident: each kind of line, over stores that are opened once."""

import asyncio
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from clew.config import Config, load
from clew.core.processes import file_mark
from clew.exchange.thread import warn
from clew.gateway.background import BackgroundGateway
from clew.hooks.previews import kept
from clew.hooks.running import answer
from clew.mcp.library import Library
from clew.mcp.opening import library
from clew.mcp.stdio import serve_lines
from clew.plugins.conversations import conversations
from clew.plugins.lines import converse
from clew.store import open_store
from clew.store.sql import SQLStore

EVENTS = 8  # that are answered at once


class _Opened(NamedTuple):
    store: SQLStore
    file: int  # by which it is known again


class _Lent(NamedTuple):
    library: Library
    config: Config
    users: set[object]


class Work:
    """What is kept for all who call."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        # Threads that wait for the loop: in a pool with those that do its work they could wait for one another.
        self._waiting = ThreadPoolExecutor(EVENTS, "clew-event")
        self._stores = dict[str, _Opened]()
        self._libraries = dict[Path, _Lent]()

    async def converse(
        self, asked: Mapping[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Do what a caller wants, until it ends."""
        folder, words = Path(asked["folder"]), asked["words"]
        match asked["kind"]:
            case "hook":
                writer.write(json.dumps(await self._event(folder, words[0], await reader.read())).encode() + b"\n")
                await writer.drain()
            case "plugin":
                self._ensure_gateway()
                config = load(self._env, folder)
                talk = conversations(words[0], config, self._store(config), config.scope)
                try:
                    await converse(talk.answer, reader, writer)
                finally:
                    await talk.close()
            case "mcp":
                self._ensure_gateway()
                await self._tools(folder, reader, writer)

    def _ensure_gateway(self) -> None:
        """Start the gateway beside other work, where clients were told to talk through it."""
        gateway = BackgroundGateway(self._env)
        if (plan := gateway.plan()) and plan.installed:
            asyncio.get_running_loop().run_in_executor(None, gateway.ensure)

    # --- events -------------------------------------------------------------------------------------------------------

    async def _event(self, folder: Path, client: str, said: bytes) -> str:
        loop = asyncio.get_running_loop()

        def keep(event: Mapping[str, Any], texts: list[str], recall: str) -> dict[str, str]:
            config = load(self._env, folder)
            work = kept(config, self._store(config), event, texts, recall)
            return asyncio.run_coroutine_threadsafe(work, loop).result()

        try:
            return await loop.run_in_executor(self._waiting, lambda: answer(client, said, keep))
        except Exception as error:  # the client goes on as without clew
            warn("clew failed at an event; the client goes on without it", error)
            return ""

    # --- tools --------------------------------------------------------------------------------------------------------

    async def _tools(self, folder: Path, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = object()
        try:
            await serve_lines(lambda: self._library(folder, me), reader, writer)
        finally:
            for at, lent in [*self._libraries.items()]:
                lent.users.discard(me)
                if not lent.users:
                    del self._libraries[at]
                    await lent.library.close()

    def _library(self, folder: Path, user: object) -> Library:
        """What may be told in a folder: for all that ask there, one reads session files."""
        config = load(self._env, folder)
        lent = self._libraries.get(folder)
        if lent is None or (lent.config != config and not lent.users - {user}):
            made = library(config, self._env, folder, shared=lambda create: self._store(config, create))
            lent = self._libraries[folder] = _Lent(made, config, set())
        lent.users.add(user)
        return lent.library

    # --- stores -------------------------------------------------------------------------------------------------------

    def _store(self, config: Config, create: bool = True) -> SQLStore:
        """The store of a configuration, opened once; anew where somebody put another file in its place."""
        where = str(config.store)
        file = file_mark(Path(where))[0]
        known = self._stores.get(where)
        if known is None or known.file != file:
            made = open_store(config.store, create)
            known = self._stores[where] = _Opened(made, file_mark(Path(where))[0])
        return known.store

    async def close(self) -> None:
        """Let go of everything."""
        for lent in self._libraries.values():
            await lent.library.close()
        for opened in self._stores.values():
            await opened.store.close()
