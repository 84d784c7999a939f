"""Sessions, for people: the chain of compactions, what each one took out of view, and the ways back."""

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, NamedTuple

from clew.catalog.cost import cost
from clew.catalog.usage import Spent
from clew.core.items import SHORT, Edit, Node, Scope
from clew.core.view import View, originals
from clew.engine.engine import Engine
from clew.engine.recall import Hit, among, everywhere, lineage, remembered
from clew.engine.undo import Undone
from clew.errors import Ambiguous, NotFound
from clew.facts.coverage import CoverageLedger
from clew.sessions.composition import Shown, shown
from clew.store.records import Call, Session
from clew.tokens.meter import Meter

Within = Literal["session", "lineage", "all"]
NAMES_OFFERED = 5  # names to choose from


class StandIn(NamedTuple):
    """What took the place of some nodes, and what those were."""

    id: str  # by which what it stands for can be recalled
    by: str  # the step that made it
    nodes: tuple[Node, ...]
    said: tuple[Node, ...]  # the originals behind it
    before: int  # tokens of what was in view
    after: int


class Price(NamedTuple):
    """Dollars of one prompt: read anew, and read from the provider's cache."""

    fresh: float
    cached: float


@dataclass(frozen=True, slots=True)
class Diff:
    """What a compaction did."""

    session: Session  # the one that it began, or would end
    left: tuple[Shown, ...]  # what was in view before it and is not any more, earlier stand-ins among it
    stand_ins: tuple[StandIn, ...]
    before: int  # tokens of the whole request
    after: int
    limit: int  # of the call it was made for
    coverage: CoverageLedger
    price_before: Price | None  # of such a call
    price_after: Price | None
    spent: int  # tokens that the compaction itself took
    cost: float | None  # dollars for them, where known

    @property
    def removed(self) -> tuple[Node, ...]:
        """The originals behind its stand-ins, each once."""
        return tuple({n.id: n for stand_in in self.stand_ins for n in stand_in.said}.values())


class Sessions:
    """The sessions of one scope.

    A name is a host's name for a conversation (its newest session is meant), `name.3` for the third session of it, or
    the id of a session, of which the beginning will do.
    """

    def __init__(self, engine: Engine, scope: Scope = "default") -> None:
        self.engine = engine
        self.scope = scope
        self._store = engine.store

    async def all(self) -> list[Session]:
        """Every session, newest first."""
        return await self._store.sessions(self.scope)

    async def get(self, name: str) -> Session:
        """The session of that name."""
        return chosen(name, await self.all())

    async def lineage(self, name: str) -> list[Session]:
        """The sessions that led to this one, from the first to itself."""
        every = await self.all()
        by_id = {s.id: s for s in every}
        line, at = [], by_id.get(chosen(name, every).id)
        while at is not None:
            line.append(at)
            at = by_id.get(at.parent or "")
        return line[::-1]

    async def calls(self, name: str) -> list[Call]:
        """The calls made in a session."""
        session = await self.get(name)
        last = await self._last(session)
        made = await self._store.calls(self.scope, session.branch)
        return [c for c in made if session.seq <= c.seq and (last is None or c.seq <= last)]

    async def view(self, name: str, call: int | None = None) -> View:
        """What was sent in a call; with none given, all as it stood when the session ended, or stands now."""
        session = await self.get(name)
        if call is None:
            return await self.engine.view(self.scope, session.branch, await self._last(session))
        made = {c.seq: c for c in await self._store.calls(self.scope, session.branch)}
        if call not in made:
            near = ", ".join(str(seq) for seq in sorted(made, key=lambda seq: abs(seq - call))[:NAMES_OFFERED])
            raise NotFound(f"no call {call} in {name}; there are {near or 'none'}")
        return await self.engine.resume(self.scope, made[call])

    async def diff(self, name: str) -> Diff:
        """What the compaction that began a session took out of view, and what it put there."""
        session = await self.get(name)
        trace = await self._store.load(self.scope, session.branch, await self._last(session))
        fold = next((f for f in trace.folds if f.session == session.id), None)
        if fold is None and session.cause == "compaction" and session.parent:
            return await self.diff(session.parent)  # a client's own: the summary was made where it came from
        if fold is None:
            raise NotFound(f"{name} began with {session.cause}, not with a compaction: there is nothing to compare")
        calls = await self._store.calls(self.scope, session.branch)
        call = next((c for c in calls if c.seq > fold.last), None)  # that it was made for
        frame = await self._store.frame(self.scope, call.frame) if call else None
        before = await self.engine.view(self.scope, session.branch, fold.seq - 1, frame)
        after = await self.engine.view(self.scope, session.branch, fold.last, frame)
        edits = [e for e in after.edits if not set(fold.made).isdisjoint(n.id for n in e.stand_ins)]
        return await self._compared(session, before, after, edits, call.limit if call else None)

    async def last_diff(self, session: Session) -> Diff:
        """What the newest compaction that led to a session took out of view."""
        if session.cause != "compaction":
            # What a fork shows is what its past was made into; what another conversation is, is not shown in this one.
            own = takewhile(lambda s: s.cause in ("compaction", "fork"), reversed(await self.lineage(session.id)))
            past = [s for s in own if s.cause == "compaction"]
            if not past:
                raise NotFound(f"{session.name or session.id} has no compaction to show")
            session = past[0]
        return await self.diff(session.id)

    async def preview(self, name: str, focus: str = "") -> Diff:
        """What a compaction would do now: what would leave the view, and what would stand there. Nothing is written."""
        session = (await self._store.sessions(self.scope, (await self.get(name)).branch))[0]
        before = await self.engine.view(self.scope, session.branch)
        after = await self.engine.preview(before, focus)
        if len(after.edits) == len(before.edits):
            raise NotFound(f"{name}: a compaction would change nothing")
        return await self._compared(session, before, after, after.edits[len(before.edits) :], None)

    async def _compared(
        self, session: Session, before: View, after: View, edits: Sequence[Edit], limit: int | None
    ) -> Diff:
        """A view beside what some edits make of it."""
        target = await self.engine.limits.target(self.scope, after.frame)
        after = await self.engine.with_originals(after)
        covered = await self.engine.covered(after)
        was, now = (target.size(view).tokens for view in (before, after))
        stay = {n.id for n in after.nodes}
        paid = [e.evidence["cost"] for e in edits if e.evidence.get("cost") is not None]
        return Diff(
            session,
            tuple(shown((n for n in before.nodes if n.id not in stay), before.edits, target.meter)),
            tuple(_stand_ins(before, after, edits, target.meter)),
            was,
            now,
            target.limit.tokens if limit is None else limit,
            covered,
            await self._price(after, was),
            await self._price(after, now),
            spent=sum(e.spent for e in edits),
            cost=sum(paid) if paid else None,
        )

    async def undo(self, name: str, count: int = 1, dry_run: bool = False) -> Undone:
        """Take back the newest compactions of a conversation; what was said since stays. Raises `OverBudget`."""
        return await self.engine.undo(self.scope, (await self.get(name)).branch, count, dry_run)

    async def fork(self, name: str, to: str, call: int | None = None) -> Session:
        """A conversation of its own that goes on from where a session ended or is now, or from one of its calls."""
        if await self._store.session(self.scope, to) is not None:
            raise Ambiguous(f"a conversation named {to} already exists; choose another name")
        view = await self.view(name, call)
        branch = await self.engine.fork(self.scope, view.branch, view.seq, to)
        return (await self._store.sessions(self.scope, branch))[0]

    async def search(
        self, text: str, name: str | None = None, within: Within = "lineage", limit: int = 20
    ) -> list[Hit]:
        """What was said about something: in a session, in all that led to it, or anywhere in the scope."""
        if name is None or within == "all":
            return await everywhere(self._store, self.scope, text, limit)
        session = await self.get(name)
        last = await self._last(session)
        if within == "session":
            before = len((await self._store.load(self.scope, session.branch, session.seq - 1)).said)
            said = (await self._store.load(self.scope, session.branch, last)).said[before:]
        else:
            traces = await lineage(self._store, self.scope, session.branch, last)
            said = await remembered(self._store, self.scope, traces)
        index = await among(self._store, self.scope, text, said)
        return [Hit(session.branch, found) for found in index.find(text, limit)]

    async def _last(self, session: Session) -> int | None:
        """The last event of a session; None: it goes on."""
        every = await self._store.sessions(self.scope, session.branch)
        later = [s.seq for s in every if s.number > session.number]
        return min(later) - 1 if later else None

    async def _price(self, view: View, tokens: int) -> Price | None:
        prices = self.engine.limits.windows.prices(view.frame.model)
        if prices is None:
            return None
        return Price(cost(prices, Spent(tokens, 0, 0, tokens)), cost(prices, Spent(tokens, 0, tokens)))


def _stand_ins(before: View, after: View, edits: Sequence[Edit], meter: Meter) -> Iterator[StandIn]:
    """What each edit of a compaction put in place of what; edits that a later one covered are part of that one."""
    by_id = after.edits.made
    sizes = {n.id: meter.node(n).tokens for n in before.nodes}
    shown = {n.id: n for n in after.nodes}
    for edit in edits:
        nodes = tuple(shown[n.id] for n in edit.stand_ins if n.id in shown)
        if not nodes:
            continue
        was = _shown_behind(edit, by_id, sizes)
        said = [after.behind.get(id) for id in originals(edit.sources, by_id)]
        yield StandIn(
            after.digests.handle(edit.old)[:SHORT],
            edit.by,
            nodes,
            tuple(n for n in said if n is not None),
            sum(sizes[id] for id in was),
            meter.nodes(nodes).tokens,
        )


def _shown_behind(edit: Edit, by_id: Mapping[str, Edit], shown: Container[str]) -> Iterator[str]:
    """The nodes of an earlier view that an edit covers, through edits that were made in between."""
    for id in edit.sources:
        if id in shown:
            yield id
        elif inner := by_id.get(id):
            yield from _shown_behind(inner, by_id, shown)


def chosen(name: str, sessions: Collection[Session]) -> Session:
    """The session meant by a name. Raises `NotFound`, or `Ambiguous` where it fits several."""
    stem, _, number = name.rpartition(".")
    for fits in (str.__eq__, str.startswith):  # run.1 is the first session of run, whoever is called run.12
        if found := _named(name, sessions, fits):
            return found
        if number.isdecimal() and stem and (found := _named(stem, sessions, fits)):
            for session in sessions:
                if (session.branch, session.number) == (found.branch, int(number)):
                    return session
            raise NotFound(f"{stem} has {found.number} sessions; there is no {number}")
    raise NotFound(f"no conversation or session matches {name!r}: clew sessions lists them; or try another scope")


def _newest(sessions: Collection[Session]) -> Session:
    """The last session of the newest branch of a conversation, whatever the clock said when they began."""
    branches = {session.id: session.branch for session in sessions}
    firsts: dict[str, Session] = {}
    for session in sessions:
        first = firsts.setdefault(session.branch, session)
        firsts[session.branch] = min(first, session, key=lambda s: (s.seq, s.number))
    older = {branches.get(first.parent or "") for first in firsts.values()}
    newest = max(firsts, key=lambda branch: (branch not in older, firsts[branch].at))
    return max((s for s in sessions if s.branch == newest), key=lambda s: (s.seq, s.number))


def _named(name: str, sessions: Collection[Session], fits: Callable[[str, str], bool]) -> Session | None:
    """The newest session of a conversation, or the one of an id."""
    found: dict[str, Session] = {}
    named: dict[str, list[Session]] = {}
    for session in sessions:
        if session.name is not None and fits(session.name, name):
            named.setdefault(session.name, []).append(session)
        elif fits(session.id, name):
            found.setdefault(session.id, session)
    found |= {own: _newest(those) for own, those in named.items()}
    if len(found) > 1:
        main = min(found, key=len)
        if all(own == main or own.startswith((f"{main}-fork-", f"{main}-subagent-")) for own in found):
            return found[main]  # an imported conversation; the others are called after it
        few = ", ".join(list(found)[:NAMES_OFFERED])
        raise Ambiguous(f"{name} matches {len(found)} sessions; give more of it: {few}")
    return next(iter(found.values()), None)
