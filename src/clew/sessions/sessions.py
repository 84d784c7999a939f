"""The conversations of a scope, by the names and ids that people give them."""

from collections.abc import Sequence

from clew.core.items import Node, Scope
from clew.core.view import View
from clew.engine.engine import Engine
from clew.engine.recall import Hit, everywhere
from clew.engine.undo import Undone
from clew.sessions.conversation import Conversation, NumberedCall, Within
from clew.sessions.diffs import Diff
from clew.sessions.names import meant
from clew.store.records import Session

__all__ = ["Diff", "Sessions"]


class Sessions:
    """The conversations of one scope.

    A name is a host's name for a conversation, or the conversation's id, of which the beginning will do: all of it is
    meant, as it stands. `name.3` is the third session of it, and so is that session's id.

    >>> engine = clew.Engine(clew.SQLite(":memory:"), clew.Budget(window=8_000))
    >>> said = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}
    >>> view = clew.run(engine.prepare(clew.Request(said, session="greeting")))
    >>> [session.name for session in clew.run(clew.Sessions(engine).all())]
    ['greeting']
    """

    def __init__(self, engine: Engine, scope: Scope = "default") -> None:
        self.engine = engine
        self.scope = scope
        self._store = engine.store

    async def all(self) -> list[Session]:
        """Every session, newest first."""
        return await self._store.sessions(self.scope)

    async def get(self, name: str) -> Session:
        """The session of that name: of a conversation, its newest. Raises `NotFound`, or `Ambiguous`."""
        return meant(name, await self.all()).session

    async def conversation(self, name: str) -> Conversation:
        """The conversation, or the session of one, that a name means."""
        every = await self.all()
        session, is_whole = meant(name, every)
        return Conversation(self.engine, self.scope, session.branch, None if is_whole else session, every)

    async def recall(self, id: str) -> Sequence[Node]:
        """The originals that an id stands for, wherever in the scope that was said."""
        return await self.engine.recall(self.scope, id)

    async def search(
        self, text: str, name: str | None = None, within: Within = "lineage", limit: int = 20
    ) -> list[Hit]:
        """What was said about something: in a session, in all that led to it, or anywhere in the scope."""
        if name is None or within == "all":
            return await everywhere(self._store, self.scope, text, limit)
        return await (await self.conversation(name)).search(text, within, limit)

    # --- acts of a conversation, by its name --------------------------------------------------------------------------

    async def lineage(self, name: str) -> list[Session]:
        """The sessions that led to this one, from the first to itself."""
        return await (await self.conversation(name)).lineage()

    async def calls(self, name: str) -> list[NumberedCall]:
        """The calls made in it, each with its number."""
        return await (await self.conversation(name)).calls()

    async def view(self, name: str, call: int | None = None) -> View:
        """What was sent in a call, by its number; without one, all as it stands, or stood when the session ended."""
        return await (await self.conversation(name)).view(call)

    async def diff(self, name: str) -> Diff:
        """What the newest compaction that led here took out of view; of a session, the one that it began with."""
        return await (await self.conversation(name)).diff()

    async def preview(self, name: str, focus: str = "") -> Diff:
        """What a compaction would do now. Nothing is written."""
        return await (await self.conversation(name)).preview(focus)

    async def undo(self, name: str, count: int = 1, dry_run: bool = False) -> Undone:
        """Take back the newest compactions; what was said since stays. Raises `OverBudget`."""
        return await (await self.conversation(name)).undo(count, dry_run)

    async def fork(self, name: str, to: str, call: int | None = None) -> Session:
        """A conversation of its own that goes on from there."""
        made = (await (await self.conversation(name)).fork(to, call)).session
        assert made is not None, "it was made"
        return made
