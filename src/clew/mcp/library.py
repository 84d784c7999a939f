"""The log that a server answers from, as soon as there is one."""

from collections.abc import Callable

from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.errors import NotFound
from clew.mcp.answers import Answers
from clew.mcp.indexing import Indexer
from clew.mcp.reach import NOTHING_YET, Mine, Reach


class Library:
    """What a server has: a store that may not be there yet, what may be told of it, and who reads session files."""

    def __init__(
        self,
        engine: Callable[[bool], Engine],  # over the store; whether it may be made if it is not there
        scope: Scope,
        mine: Mine | None,
        conversation: str = "",
        indexer: Indexer | None = None,
        owns: bool = True,
    ) -> None:
        self._engine, self._scope, self._mine, self._only = engine, scope, mine, conversation
        self.indexer = indexer
        self._owns = owns
        self._reach: Reach | None = None

    async def reach(self) -> Reach:
        """What may be told. Raises `NotFound` while there is no store."""
        if self._reach is None:
            try:
                made = self._engine(False)
            except NotFound:
                raise NotFound(NOTHING_YET) from None
            self._reach = Reach(made, self._scope, self._mine, self._only)
        return self._reach

    async def answers(self) -> Answers:
        """Who answers."""
        return Answers(await self.reach(), self.reading)

    def reading(self) -> str:
        """What is still being read, in words."""
        return self.indexer.unread() if self.indexer else ""

    async def close(self) -> None:
        """Let go of everything, and of the store, if that is its own."""
        if self.indexer:
            self.indexer.stop()
        if self._reach is not None:
            await self._reach.engine.close(store=self._owns)
