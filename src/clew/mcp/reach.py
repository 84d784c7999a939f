"""What a server may tell: the conversations of one project, one conversation and its past, or all of a scope."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from clew.core.items import SHORT, Node, Scope
from clew.engine.engine import Engine
from clew.engine.recall import Hit, everywhere, lineage, short_id
from clew.errors import Ambiguous, Conflict, NotFound
from clew.sessions.about import About, Abouts
from clew.sessions.chains import Chain, conversations
from clew.sessions.conversation import Conversation, Within
from clew.sessions.names import NAMES_OFFERED, meant
from clew.sessions.sessions import Sessions
from clew.store.records import Session, StoreState

FILE_KIND = "session_file"  # under which the store keeps which session files were read, and how far
TRIED_IDS = 100  # that a short id may fit
NOTHING_YET = "there is nothing yet: no conversation of this project was logged by clew or read from a session file."
DATED = 20  # conversations, the newest, of which it is looked up when something was last said

ASIDES = ("subagent", "task", "beside")  # causes of conversations that another one leads

Mine = Callable[[str], bool]  # whether a folder is one of those


class Reach(Sessions):
    """Sessions, and nothing beyond what may be told; what is out of reach is not there."""

    def __init__(self, engine: Engine, scope: Scope, mine: Mine | None, conversation: str = "") -> None:
        super().__init__(engine, scope)
        self._mine = mine  # None: all of the scope
        self._only = conversation  # if one is named, it and its past
        self._abouts = Abouts(engine.store)
        self._known: dict[str, tuple[StoreState, list[str]]] = {}  # what was said on each branch, by ids
        self._texts: tuple[StoreState, dict[str, str]] | None = None

    async def all(self) -> list[Session]:
        """Every session in reach, newest first."""
        every = await super().all()
        if self._only:
            one = meant(self._only, [s for s in every if _is_named(s, self._only)]).session
            return [s for s in every if s.branch == one.branch]
        if self._mine is None:
            return every
        own = await self._own(every, self._mine)
        return [s for s in every if s.branch in own]

    async def _own(self, every: Sequence[Session], mine: Mine) -> set[str]:
        """The branches of the project: those that were held in it, and what came of them and says nothing else."""
        roots = conversations(every)
        abouts = await self._abouts.of(self.scope, [chain.first for root in roots for chain in root.all()])
        return {
            chain.first.branch for root in roots for chain, folder in _held(root, abouts) if folder and mine(folder)
        }

    async def about(self, session: Session) -> About:
        """What a conversation is about."""
        own = await self._store.sessions(self.scope, session.branch)
        return await self._abouts.one(self.scope, min(own, key=lambda s: s.number))

    async def branch_by_id(self) -> dict[str, str]:
        """The ids of all that was said in reach, each with a branch on which it was."""
        state = await self._store.state(self.scope)
        if self._texts is None or self._texts[0] != state:
            branches = [session.branch for session in reversed(await self.listed())]
            self._known = {branch: await self._read(branch) for branch in branches}
            # What several branches share counts for the one that is listed first.
            said = {id: branch for branch in branches for id in self._known[branch][1]}
            self._texts = state, said
        return self._texts[1]

    async def _read(self, branch: str) -> tuple[StoreState, list[str]]:
        state = await self._store.state(self.scope, branch)
        known = self._known.get(branch)
        if known and known[0] == state:
            return known
        if self._only:  # its past, too, as far as that is its own
            traces = await lineage(self._store, self.scope, branch)
        else:
            traces = [await self._store.load(self.scope, branch)]
        return state, [id for trace in traces for id in ({p.id for p in trace.said} | {*trace.alias.values()})]

    async def search(
        self, text: str, name: str | None = None, within: Within = "lineage", limit: int = 20
    ) -> list[Hit]:
        """What was said about something, in a conversation and what led to it, or anywhere in reach."""
        own = await self.branch_by_id()
        if name is None:
            return await everywhere(self._store, self.scope, text, limit, own)
        return [hit for hit in await super().search(text, name, "lineage", limit) if hit.found.id in own]

    async def recall(self, id: str) -> Sequence[Node]:
        """The originals that an id stands for. Raises `NotFound` for what is out of reach."""
        return (await self.originals(id))[1]

    async def originals(self, id: str) -> tuple[str, Sequence[Node]]:
        """The whole of an id, and the originals that it stands for. Raises `NotFound` for what is out of reach."""
        fits, own = await self._store.resolve(self.scope, short_id(id)), await self.branch_by_id()
        if len(fits) > TRIED_IDS:
            raise Ambiguous(f"{id} matches very many ids; give more of it")
        found: dict[str, Sequence[Node]] = {}
        for full in fits:
            with suppress(NotFound, Conflict):  # purged: whose it was is no longer known
                nodes = await self._store.originals(self.scope, full)
                if nodes and all(node.id in own for node in nodes):
                    found[full] = nodes
        if not found:
            raise NotFound(f"no item has the id {id}: `search` names ids")
        if len(found) > 1:
            few = ", ".join(full[:16] for full in [*found][:NAMES_OFFERED])
            raise Ambiguous(f"{id} matches {len(found)} ids; give more of it: {few}")
        return next(iter(found.items()))

    async def holding(self, id: str) -> Conversation:
        """A conversation in reach in which it was said what an id stands for."""
        _, nodes = await self.originals(id)
        return Conversation(self.engine, self.scope, (await self.branch_by_id())[nodes[0].id])

    async def listed(self) -> list[Session]:
        """The newest session of each conversation in reach, that first in which something was said last.

        Those that nobody leads come after all others: sub-agents, and what a user went back from.
        """
        newest: dict[str, Session] = {}
        first: dict[str, Session] = {}
        every = await self.all()
        for session in sorted(every, key=lambda s: s.number):
            newest[session.branch] = session
            first.setdefault(session.branch, session)
        imported = {s.id for s in every if first[s.branch].cause == "import"}
        aside = {b for b, s in first.items() if s.cause in ASIDES or (s.cause == "fork" and s.parent in imported)}
        read = await self.read_at()
        dated = {}
        for n, session in enumerate(sorted(newest.values(), key=lambda s: s.at, reverse=True)):
            at = read.get(session.name or "")
            if at is None and n < DATED:
                calls = await self._store.calls(self.scope, session.branch)
                at = calls[-1].at if calls else None
            dated[session.branch] = session.at if at is None else at
        return sorted(newest.values(), key=lambda s: (s.branch in aside, -dated[s.branch]))

    async def read_at(self) -> dict[str, float]:
        """When the session files were last written from which conversations were read, by their names."""
        files = await self._store.learned(self.scope, FILE_KIND)
        return {str(kept.get("name")): kept.get("time", 0) / 1e9 for kept in files.values()}

    async def one(self, name: str = "") -> Conversation:
        """The conversation of a name, or the one in which something was said last."""
        if name:
            return await self.conversation(name)
        listed = await self.listed()
        if not listed:
            raise NotFound(NOTHING_YET)
        return Conversation(self.engine, self.scope, listed[0].branch, reach=await self.all())


def _is_named(session: Session, name: str) -> bool:
    """Whether a session is meant by a whole name, or by as much of an id as clew shows.

    What only begins so is another conversation: the one that is meant may not have begun.
    """
    return session.name == name or (len(name) >= SHORT and session.id.startswith(name))


def _held(root: Chain, abouts: dict[str, About]) -> Iterator[tuple[Chain, str]]:
    """A chain and all that came of it, each with its folder, or else with that of what it came of."""
    folders: dict[str, str] = {}
    for chain, _, above in root.nested():
        own = abouts[chain.first.branch].folder
        folders[chain.first.branch] = own or (folders[above.first.branch] if above else "")
        yield chain, folders[chain.first.branch]
