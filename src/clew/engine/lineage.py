"""What hosts ask and say of where conversations come from."""

from collections.abc import Sequence

from clew.core.items import Frame, Item, Scope
from clew.engine.turns import Turns
from clew.recognition.continuation import SHARED_NAMES
from clew.recognition.proof import Past, answer_mark
from clew.store.records import Origin


class Lineage:
    """Whose a history is, whose child it is, and what proves it."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._store = turns.store

    async def whose(self, scope: Scope, frame: Frame, items: Sequence[Item], session: str | None) -> str | None:
        """The branch of which a history is, whoever asks about it; None if there is none."""
        return await self._turns.recogniser(scope, frame).whose(items, session)

    async def parent(self, scope: Scope, session: str) -> Origin | None:
        """The origin of a conversation that works for the one of this name; None if there is none.

        Where several that have nothing in common go by that name, nobody knows for which: it sees none of them.
        """
        branch = await self._store.session(scope, session)
        if branch is None:
            return None
        shared = session in await self._store.learned(scope, SHARED_NAMES)
        return Origin("beside" if shared else "subagent", branch)

    async def may_look(self, scope: Scope, branch: str, origin: Origin | None) -> bool:
        """Whether a history that says all that this branch does may see what the branch saw of others before it."""
        return await self._turns.reach(scope, origin).may_look(await self._store.load(scope, branch))

    async def answered(self, scope: Scope, past: Past, text: str) -> None:
        """Remember what a client was answered that compacts: a history that begins with it goes on from there."""
        [kept] = self._turns.guard(scope).admit([Item("text", "assistant", text)])
        if mark := answer_mark(self._turns.digests(scope), kept.text):
            await self._store.learn(scope, *mark.learned(past))
