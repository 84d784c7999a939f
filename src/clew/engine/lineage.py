"""What hosts ask and say of where conversations come from."""

from collections.abc import Sequence
from dataclasses import replace as with_

from clew.core.items import BESIDE, Frame, Item, Scope
from clew.core.view import View
from clew.engine.conversation import FullConversation, conversation_until_now
from clew.engine.turns import Turns
from clew.recognition.continuation import SHARED_NAMES
from clew.recognition.proof import Past, answer_mark
from clew.store.records import Origin
from clew.store.shapes import NOBODY


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

    async def full_conversation(self, scope: Scope, branch: str, until: int) -> FullConversation:
        """All that was said on a branch until an event, and before it as far as that is proven."""
        return await conversation_until_now(self._turns.reach(scope), await self._store.load(scope, branch, until))

    async def cite(self, view: View, told: View) -> None:
        """Let what stand-ins of another view stand for be recalled on this branch, by the ids that they name.

        That view was shown to somebody who goes on from it; on the branch itself nothing changes.
        """
        # Whom they quote beside those is kept: with a word that is purged, they go.
        edits = [with_(edit, evidence={BESIDE: (NOBODY, *edit.evidence.get(BESIDE, ()))}) for edit in told.edits]
        if edits:
            await self._turns.record(view.scope, view.branch, [*edits])
        if edits and (branch := self._turns.branches.get(view.scope, view.branch)):
            self._turns.branches.forget(view.scope, branch)  # its view does not know of them

    async def answered(self, scope: Scope, past: Past, text: str) -> None:
        """Remember what a client was answered that compacts: a history that begins with it goes on from there."""
        [kept] = self._turns.guard(scope).admit([Item("text", "assistant", text)])
        if mark := answer_mark(self._turns.digests(scope), kept.text):
            await self._store.learn(scope, *mark.learned(past))
