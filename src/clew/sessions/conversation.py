"""A conversation, and all that can be done with it: what every face offers, each act once.

An act returns what it did, in numbers; with `dry_run` it says what it would do, and changes nothing.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal, NamedTuple, Self

from clew.core.items import SHORT, Node, Scope
from clew.core.threads import LONG, in_thread_if
from clew.core.view import View
from clew.engine.engine import Engine
from clew.engine.recall import Hit, among, lineage, remembered
from clew.engine.undo import Undone
from clew.errors import Ambiguous, BadRequest, NotFound
from clew.sessions.chains import conversations
from clew.sessions.chapters import ToldChapter, chapters_in
from clew.sessions.diffs import Diff, last_event, made, previewed
from clew.sessions.methods import keep_method, kept_methods
from clew.sessions.names import called
from clew.sessions.timeline import READ_ITEMS, Happening, happenings
from clew.sessions.window import Window
from clew.steps.protocol import Step
from clew.steps.worklog.blocks import CODE
from clew.store.records import Call, Method, Session
from clew.text.excerpts import SIZE

Within = Literal["session", "lineage", "all"]
LONGEST_NAME = 200  # characters of a tag, and of a name that is given: what a gateway takes as it is
BLANK_SUMMARY = "the summary is blank: say what is done, what remains, and what you must not forget"
NOTHING_LEAVES = "There is nothing that could leave the window."


class NumberedCall(NamedTuple):
    """A call, and which one of its conversation it is, from 1."""

    number: int
    call: Call


class PinnedItem(NamedTuple):
    """Something that is pinned; out of view, it is quoted there from the next request on."""

    node: Node
    in_view: bool


@dataclass(frozen=True, slots=True)
class PinEffect:
    """What a pin did: to which items, how many of them it brings back into view, and what that takes of each call."""

    items: tuple[Node, ...]
    off: bool
    size: int = 0  # tokens of the items
    quoted: int = 0  # items that were out of view
    tokens: int = 0  # of their quotes


@dataclass(frozen=True, slots=True)
class ForkEffect:
    """A conversation that goes on from another one."""

    name: str
    source: Session
    items: int  # that it begins with
    session: Session | None  # its own; None: it was not made


@dataclass(frozen=True, slots=True)
class TagEffect:
    """The tags of a conversation, before and after."""

    before: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArchiveEffect:
    """The branches that were put out of the way, or back: a conversation, and what came of it."""

    branches: tuple[str, ...]
    off: bool


@dataclass(frozen=True, slots=True)
class SwitchEffect:
    """Who decided when to compact, and who does from the next request on."""

    before: Method
    method: Method


@dataclass(frozen=True, slots=True)
class CompactEffect:
    """What a compaction came to, in tokens as the provider counts them."""

    before: int
    after: int
    changed: bool  # else nothing could leave the window


@dataclass(frozen=True, slots=True)
class RewriteEffect:
    """A chapter whose words are code's instead of a model's, and its tokens."""

    id: str
    author: str  # whose it was
    before: int
    after: int
    text: str


class Conversation:
    """One branch of a conversation as it stands, or as one of its sessions left it, if `session` is given."""

    def __init__(
        self,
        engine: Engine,
        scope: Scope,
        branch: str,
        session: Session | None = None,
        reach: Collection[Session] | None = None,
    ) -> None:
        self.engine, self.scope, self.branch = engine, scope, branch
        self._session = session
        self._reach = reach  # the sessions that may be told of; None: all
        self._view: View | None = None  # the newest that may be seen, where that is not all
        self._store = engine.store

    @classmethod
    def of(cls, engine: Engine, view: View) -> Self:
        """The conversation of a view, as far as it had come then."""
        found = cls(engine, view.scope, view.branch)
        found._view = view
        return found

    # --- what there is ------------------------------------------------------------------------------------------------

    async def sessions(self) -> list[Session]:
        """All its sessions, from the first. Raises `NotFound`."""
        found = await self._store.sessions(self.scope, self.branch)
        if not found:
            raise NotFound("this conversation is not in the log any more")
        return sorted(found, key=lambda s: s.number)

    async def at(self, session: str) -> Self:
        """It as one of its sessions left it, by the id of that one. Raises `NotFound`."""
        for one in await self.sessions():
            if one.id == session:
                return type(self)(self.engine, self.scope, self.branch, one, self._reach)
        raise NotFound(f"this conversation has no session {session[:SHORT]}")

    async def session(self) -> Session:
        """The session that is meant: the newest one, if it is all of the conversation."""
        return self._session or (await self.sessions())[-1]

    async def lineage(self) -> list[Session]:
        """The sessions that led to this one, from the first to itself."""
        by_id = await self._known()
        line, at = list[Session](), by_id.get((await self.session()).id)
        while at is not None:
            line.append(at)
            at = by_id.get(at.parent or "")
        return line[::-1]

    async def namesakes(self) -> list[Session]:
        """All its sessions, and those of other branches under its name: of what its user went back from.

        Raises `BadRequest` where one session is meant: what everything would have taken is known of the whole.
        """
        if (one := self._session) is not None:
            name = called(one)
            raise BadRequest(
                f"totals are of all of a conversation, not of {name}.{one.number}: use {name}; "
                f"`clew show {name}.{one.number} --calls` lists what was sent in it"
            )
        own, every = (await self.session()).name, (await self._known()).values()
        return [s for s in every if s.branch == self.branch or (own is not None and s.name == own)]

    async def calls(self) -> list[NumberedCall]:
        """The calls made in it, and in what it forked from; of a session, its own."""
        made = [NumberedCall(n, call) for n, call in enumerate(await self._store.calls(self.scope, self.branch), 1)]
        if self._session is None:
            return made
        first, last = self._session.seq, await self._last()
        return [one for one in made if first <= one.call.seq and (last is None or one.call.seq <= last)]

    async def last_call(self) -> NumberedCall | None:
        """The newest call of its session; None: nothing was sent in it yet."""
        first, found = (await self.session()).seq, await self.calls()
        return found[-1] if found and found[-1].call.seq >= first else None

    async def view(self, call: int | None = None) -> View:
        """What was sent in a call, by its number; without one, all as it stands, or stood when the session ended."""
        if call is None:
            return self._view or await self.engine.view(self.scope, self.branch, await self._last())
        made = await self._store.calls(self.scope, self.branch)
        if not 1 <= call <= len(made):
            there_are = f"1 to {len(made)}" if made else "none"
            raise NotFound(f"no call {call} in {called(await self.session())}; there are {there_are}")
        return await self.engine.resume(self.scope, made[call - 1])

    async def window(self, sent: bool = False, call: int | None = None) -> Window:
        """What fills its window as it stands; with `sent`, what its newest call did, if one was made; or what a call
        did, by its number."""
        last = await self.last_call() if sent else None
        number = last.number if last else call
        view = await self.view(number)
        if number is None:
            tokens = await self.engine.expected(view)
        else:
            tokens = (last.call if last else (await self._store.calls(self.scope, self.branch))[number - 1]).predicted
        return Window(view, number, tokens, await self.engine.target(view))

    async def originals_by_id(self, view: View) -> dict[str, Node]:
        """All that had been said when a view was made, by id and in order, in view or not."""
        return {node.id: node for node in await self.engine.history(self.scope, view.branch, view.seq)}

    async def newest(self, most: int = 0) -> AsyncIterator[Node]:
        """All that was said, the newest first, or so much of it."""
        places = (await self._store.load(self.scope, self.branch)).said[-most:]
        for stop in range(len(places), 0, -READ_ITEMS):
            ids = [place.id for place in reversed(places[max(0, stop - READ_ITEMS) : stop])]
            nodes = await self._store.nodes(self.scope, ids)
            for id in ids:
                yield nodes[id]

    def timeline(self, before: int | None = None) -> Happening:
        """What was asked, what was done for it, where it was compacted; newest first, from now or an item back."""
        return happenings(self._store, self.scope, self.branch, before)

    async def diff(self) -> Diff:
        """What the newest compaction that led here took out of view; of a session, the one that it began with."""
        session, known = await self.session(), await self._known()
        if self._session is None:
            # What a fork shows is what its past was made into; what another conversation is, is not shown in this one.
            own = takewhile(lambda s: _is_made(s) or s.cause == "fork", reversed(await self.lineage()))
            found = next(filter(_is_made, own), None)
            if found is None:
                raise NotFound(f"{called(session)} has no compaction to show")
            session = found
        return await made(self.engine, self.scope, session, known)

    async def chapters(self, id: str = "") -> list[ToldChapter]:
        """Who wrote what stands in for its history, and what models wrote that does not stand there; or one of these.

        Raises `NotFound`.
        """
        view = await self.view()
        trace = await self._store.load(self.scope, self.branch, await self._last())
        meter = (await self.engine.target(view)).meter
        every = await in_thread_if(len(trace.said) > LONG, lambda: chapters_in(view, trace.chapters, meter))
        found = [one for one in every if not id or id in (one.id, one.node)]
        if id and not found:
            raise NotFound(f"no chapter of this conversation has the id {id[:40]}")
        return found

    async def recall(self, id: str) -> Sequence[Node]:
        """The originals that an id of its own past stands for, byte for byte."""
        return await self.engine.recall(self.scope, id, self.branch, await self._seen())

    async def search(self, text: str, within: Within = "lineage", limit: int = 20) -> list[Hit]:
        """What was said about something: in its session alone, or in all that led here, too."""
        last = await self._last()
        if within == "session":
            before = len((await self._store.load(self.scope, self.branch, (await self.session()).seq - 1)).said)
            said = (await self._store.load(self.scope, self.branch, last)).said[before:]
        else:
            said = await remembered(self._store, self.scope, await lineage(self._store, self.scope, self.branch, last))
        index = await among(self._store, self.scope, text, said)
        return [Hit(self.branch, found) for found in index.find(text, limit)]

    async def answer(self, text: str, size: int = SIZE) -> str:
        """What was said in its own past that a question is about, in `size` characters."""
        return await self.engine.answer(self.scope, text, self.branch, size, self._until)

    # --- compactions --------------------------------------------------------------------------------------------------

    async def compact(self, focus: str = "", step: Step | None = None, method: str = "manual") -> CompactEffect:
        """Make the window shorter now; `preview` says what it would do."""
        view = self._view or await self.engine.reopen(self.scope, self.branch)
        before = await self.engine.expected(view)
        after = await self.engine.compact(view, focus, step, method)
        return CompactEffect(before, await self.engine.expected(after), after is not view)

    async def begin(self, summary: str) -> CompactEffect:
        """End its session, and begin one with this summary; nothing changes where all that was said is pinned."""
        if not summary.strip():
            raise BadRequest(BLANK_SUMMARY)
        view = self._view or await self.engine.reopen(self.scope, self.branch)
        before = await self.engine.expected(view)
        after = await self.engine.begin(view, summary)
        return CompactEffect(before, await self.engine.expected(after), after is not view)

    async def preview(self, focus: str = "") -> Diff:
        """What a compaction would do now: what would leave the view, and what would stand there. Nothing is written."""
        await self._check_goes_on("a compaction")
        return await previewed(self.engine, await self.session(), await self.view(), focus)

    async def undo(self, count: int = 1, dry_run: bool = False) -> Undone:
        """Take back the newest compactions; what was said since stays. Raises `OverBudget`."""
        await self._check_goes_on("an undo")
        return await self.engine.undo(self.scope, self.branch, count, dry_run)

    async def rewrite(self, id: str, dry_run: bool = False) -> RewriteEffect:
        """Have code tell what a model's chapter tells, by the id that recalls its originals; an undo takes that back.

        Raises `NotFound`, and `BadRequest` for a chapter of code's.
        """
        await self._check_goes_on("a rewrite")
        found = (await self.chapters(id))[0]
        if not found.node:
            raise BadRequest(f"chapter {found.id} is not in view: nothing stands there that could be rewritten")
        if found.author == CODE:
            raise BadRequest(f"code wrote chapter {found.id} already")
        view = self._view or await self.engine.reopen(self.scope, self.branch)
        after = await self.engine.rewrite(view, found.node, dry_run)
        new = after.nodes[next(at for at, node in enumerate(view.nodes) if node.id == found.node)]
        after_tokens = (await self.engine.target(view)).meter.node(new).tokens
        return RewriteEffect(found.id, found.author, found.tokens, after_tokens, new.item.text)

    async def take_back(self, rule: str, dry_run: bool = False) -> CompactEffect:
        """Keep one of the user's rules in mind no longer, by its words; an undo takes that back. Raises `NotFound`."""
        await self._check_goes_on("a rule")
        view = self._view or await self.engine.reopen(self.scope, self.branch)
        after = await self.engine.take_back(view, rule, dry_run)
        return CompactEffect(await self.engine.expected(view), await self.engine.expected(after), True)

    # --- other ways ---------------------------------------------------------------------------------------------------

    async def fork(self, name: str, call: int | None = None, dry_run: bool = False) -> ForkEffect:
        """A conversation of its own that goes on from here, or from a call."""
        name = name.strip()
        _check("a name", name)
        if await self._store.session(self.scope, name) is not None:
            raise Ambiguous(f"a conversation named {name} already exists; choose another name")
        view, source = await self.view(call), await self.session()
        items = len((await self._store.load(self.scope, view.branch, view.seq)).said)
        if dry_run:
            return ForkEffect(name, source, items, None)
        branch = await self.engine.fork(self.scope, view.branch, view.seq, name)
        return ForkEffect(name, source, items, (await self._store.sessions(self.scope, branch))[0])

    async def method(self) -> Method:
        """Who decides when to compact."""
        name = (await self.session()).name
        return (await kept_methods(self.engine, self.scope)).get(name or "", self.engine.settings.method)

    async def switch(self, method: str, dry_run: bool = False) -> SwitchEffect:
        """Have it decided by clew (`auto`) or by the agent (`llm`), from the next request on."""
        session, before = await self.session(), await self.method()
        if session.name is None:
            raise NotFound(
                f"{called(session)} has no name, and only conversations with one can be switched: its client sends "
                "none; it may send x-clew-session"
            )
        if method not in ("auto", "llm"):
            raise BadRequest(f"expected auto or llm, got {method[:40]!r}")
        wanted: Method = "llm" if method == "llm" else "auto"
        if not dry_run:
            await keep_method(self.engine, self.scope, session.name, wanted)
        return SwitchEffect(before, wanted)

    # --- what people say of it ----------------------------------------------------------------------------------------

    async def pins(self) -> list[PinnedItem]:
        """What is pinned, in the order in which it was said."""
        trace = await self._store.load(self.scope, self.branch)
        order = [p.id for p in trace.said] + [n.id for edit in trace.edits for n in edit.stand_ins]
        pinned = [id for id in dict.fromkeys(order) if id in trace.pinned]
        nodes = await self._store.nodes(self.scope, pinned)
        inside = {trace.quoted.get(n.id, n.id) for n in (await self.view()).nodes} if pinned else set[str]()
        return [PinnedItem(nodes[id], id in inside) for id in pinned]

    async def pin(self, ids: Sequence[str], off: bool | None = False, dry_run: bool = False) -> PinEffect:
        """Keep what these ids are of as it is in every later view, or no longer; None: turn each pin about.

        The id of a stand-in pins all that it stands for. Raises `NotFound`, and `OverBudget` where too much would come
        back into view.
        """
        trace = await self._store.load(self.scope, self.branch)
        seen = await self._seen()
        whole = [await self.engine.resolve(self.scope, id, self.branch, seen) for id in ids]
        own = {p.id for p in trace.said} | {n.id for edit in trace.edits for n in edit.stand_ins}
        nodes = await self._store.nodes(self.scope, [id for id in whole if id in own])
        items = [node for id in whole for node in ([nodes[id]] if id in own else await self._behind(id, own))]
        if off is None:
            off = bool(items) and all(node.id in trace.pins() for node in items)
        view = await self.view()
        size = (await self.engine.limits.target(self.scope, view.frame)).meter.nodes(items).tokens
        back = await self.engine.pin(view, *(node.id for node in items), off=off, dry_run=dry_run)
        return PinEffect(tuple(items), off, size, len(back.ids), back.tokens)

    async def _behind(self, id: str, own: Collection[str]) -> Sequence[Node]:
        """What a stand-in stands for, if that was said here."""
        found = await self._store.originals(self.scope, id)
        if strange := [node for node in found if node.id not in own]:
            raise NotFound(f"{strange[0].id[:SHORT]} is not an item of this conversation")
        return found

    async def tag(self, add: Sequence[str] = (), remove: Collection[str] = (), dry_run: bool = False) -> TagEffect:
        """Give it tags and take others away."""
        before = (await self.session()).tags
        add = [tag.strip() for tag in add]
        for tag in add:
            _check("a tag", tag)
            if "," in tag:
                raise BadRequest(f"a tag has no comma: {tag!r}")
        tags = tuple(dict.fromkeys([*(tag for tag in before if tag not in remove), *add]))
        if tags != before and not dry_run:
            await self._store.label(self.scope, self.branch, tags=tags)
        return TagEffect(before, tags)

    async def archive(self, off: bool = False, dry_run: bool = False) -> ArchiveEffect:
        """Put it out of the way with its forks and sub-agents, or bring them back; nothing is deleted."""
        chains = [c for root in conversations(await self._store.sessions(self.scope)) for c in root.all()]
        own = next((chain for chain in chains if chain.first.branch == self.branch), None)
        put = tuple(chain.first.branch for chain in own.all()) if own else (self.branch,)
        for branch in () if dry_run else put:
            await self._store.label(self.scope, branch, archived=not off)
        return ArchiveEffect(put, off)

    # ------------------------------------------------------------------------------------------------------------------

    @property
    def _until(self) -> int | None:
        return self._view.seq if self._view else None

    async def _seen(self) -> int | None:
        """The last event whose ids are its own: of folds since then, too, for they stand in its view."""
        return await self.engine.until(self._view) if self._view else None

    async def _last(self) -> int | None:
        """The last event that counts; None: it goes on."""
        return self._until if self._session is None else await last_event(self._store, self.scope, self._session)

    async def _known(self) -> Mapping[str, Session]:
        every = await self._store.sessions(self.scope) if self._reach is None else self._reach
        return {session.id: session for session in every}

    async def _check_goes_on(self, act: str) -> None:
        if self._session is not None and await self._last() is not None:
            name = called(self._session)
            raise BadRequest(
                f"{name}.{self._session.number} has ended, and {act} is of a conversation as it stands: use {name}, or "
                f"fork {name}.{self._session.number}"
            )


def _is_made(session: Session) -> bool:
    """Whether a session began with a compaction of what came before it on its branch, or with its client's own."""
    return session.cause == "compaction" or (session.cause == "handoff" and session.number > 1)


def _check(what: str, name: str) -> None:
    if not name or not name.isprintable() or len(name) > LONGEST_NAME:
        raise BadRequest(f"give {what} that can be printed, of 1 to {LONGEST_NAME} characters")
