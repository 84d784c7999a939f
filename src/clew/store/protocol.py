"""THE protocol of stores: what the engine asks of a log, whatever it lies in."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from clew.core.items import Frame, Node, Scope
from clew.errors import Purged
from clew.store.records import Batch, BranchInfo, Call, Happened, KnownHead, Session, StoreState
from clew.store.trace import Trace


class Store(Protocol):
    """The log. Every call takes the scope: hashing is not access control.

    Nothing of another scope is found or changed. What is read is of one moment, and what `write` acknowledged is
    seen by whoever asks next, in any process. Anything may raise `StoreError` where the log cannot be read or written
    now. Calls may come from several event loops at once.
    """

    secret: bytes  # of this store, and the same for ever: ids are made with it

    async def write(self, scope: Scope, batch: Batch) -> None:
        """Write a batch, all of it or nothing; when this returns, it outlives the process.

        Its first event is number `seq`. Raises `Conflict`, and has written nothing, unless that is the number after the
        newest event of the branch; if the branch is not there, or is there and was to be `opened`; if the parent of its
        `fork` is not there. Raises `NotFound` if the parent of its `origin` is not there. A node or frame whose id is
        known already stays as it is. What is `learned` is put as `learn` puts it.
        """

    async def find(self, scope: Scope, chains: Sequence[str]) -> list[KnownHead]:
        """The branches without a session's name that have one of these among their `heads`.

        `known` is the place of the chain in the list, from 1. Longest first, then by the newest event, then the newest
        branch.
        """

    async def alike(self, scope: Scope, contents: Sequence[str]) -> list[str]:
        """The few branches without a session's name in which most of these contents were first said, that first which
        has the most of them, and of several the newest.

        What is said in very many places may be left out of account.
        """

    async def session(self, scope: Scope, session: str) -> str | None:
        """The newest branch that was opened under this name, or None."""

    async def load(self, scope: Scope, branch: str, until: int | None = None) -> Trace:
        """A branch replayed up to and with event `until`: what it has from its parents, and its own, through `apply`.

        It is the caller's to change. The nodes of its edits may have `ABSENT` for an item, that very object: whoever
        needs the body asks `nodes` for it. Raises `NotFound`, or `Purged` where that is why.
        """

    async def catch_up(self, scope: Scope, trace: Trace) -> set[str]:
        """Let the events of a branch from number `trace.seq` on happen to a trace of it; their kinds.

        A kind is what `EventRow` has as one. `purge` is among them if anything in the scope was purged since the trace
        was loaded: then it is to be loaded again, for it may hold words that are no more. Raises `NotFound` or `Purged`
        if the branch is not there any more.
        """

    async def nodes(self, scope: Scope, ids: Sequence[str]) -> dict[str, Node]:
        """These nodes with their bodies, by id. Raises `Conflict` if one is not there: it was purged meanwhile."""

    async def frame(self, scope: Scope, digest: str) -> Frame:
        """A frame by its digest. Raises `NotFound`."""

    async def originals(self, scope: Scope, id: str) -> list[Node]:
        """What was said behind an id, under any number of stand-ins, each once and in the order of the spans.

        The id may be that of a node or of a stand-in, or the handle (`Digests.handle`) of a span that an edit replaced.
        Raises `Purged` if all of it was purged, and `Conflict` if it is not there.
        """

    async def resolve(self, scope: Scope, short: str) -> list[str]:
        """All ids, of nodes and handles, that begin like this, each once; in any order."""

    async def purged(self, scope: Scope, short: str) -> Purged | None:
        """The error that says why nothing begins like this any more, if that is because it was purged; not raised."""

    async def search(self, scope: Scope, text: str, among: Sequence[str] | None, limit: int) -> list[str]:
        """Digests of at most `limit` contents, of those given or of all, in which words of a text are said; best first.

        A text is never a query language. A word of four letters or more is found by its beginning, too.
        """

    async def places(self, scope: Scope, contents: Sequence[str]) -> list[tuple[str, str]]:
        """Where these contents were said: ids of nodes, each with the branch it was first said on; in any order."""

    async def holders(self, scope: Scope, ids: Sequence[str]) -> list[tuple[str, str]]:
        """These ids of nodes, each with every branch on which it was said, and with all that forked from those.

        A fork may have left before it was said. In any order.
        """

    async def ancestry(self, scope: Scope, branch: str) -> list[tuple[str, int]]:
        """Branches whose events this one does not have, but which it comes after, each up to which event."""

    async def calls(self, scope: Scope, branch: str, since: int = 0) -> list[Call]:
        """The calls of a branch, those of its parents first, each with what was reported for it, if anything was; or
        those from an event on."""

    async def events(self, scope: Scope, branch: str, until: int | None = None) -> list[Happened]:
        """The events of a branch itself, up to and with `until`, in their order, each as `row_of` has it."""

    async def branches(self, scope: Scope) -> list[BranchInfo]:
        """All branches, newest first."""

    async def sessions(self, scope: Scope, branch: str | None = None) -> list[Session]:
        """Every session of a scope, or of a branch, newest first."""

    async def state(self, scope: Scope, branch: str | None = None) -> StoreState:
        """How far a scope, or a branch, has come: after a turn, an undo or a purge it is another one."""

    async def label(
        self, scope: Scope, branch: str, tags: Sequence[str] | None = None, archived: bool | None = None
    ) -> None:
        """Give a branch other tags, or put it out of the way, or back; None leaves either as it is."""

    async def learn(self, scope: Scope, kind: str, name: str, value: Mapping[str, Any]) -> None:
        """Put a value, which is JSON, under a name, in place of the one that is there."""

    async def learned(self, scope: Scope, kind: str) -> dict[str, dict[str, Any]]:
        """All values of a kind, by name."""

    def alone(self, scope: Scope, branch: str) -> AbstractAsyncContextManager[None]:
        """A turn in which nobody else is on a branch who asks for one, too; the turn of a process that dies ends.

        It saves work, and nothing depends on it: `write` decides who was first. A store may let everybody in at once,
        or after a while, or raise `StoreError` where somebody else has the turn for too long.
        """

    async def close(self) -> None:
        """Finish what was begun and let go of the log; once more is no error."""
