"""What hosts ask and say of where conversations come from."""

from collections.abc import Iterator, Sequence
from dataclasses import replace as with_
from typing import NamedTuple

from clew.clients.voices import kind_of, typed
from clew.core.items import BESIDE, Frame, Item, Node, Scope
from clew.core.view import View
from clew.engine.recall import remembered
from clew.engine.turns import Turns
from clew.recognition.continuation import SHARED_NAMES
from clew.recognition.proof import Past, answer_mark, logged
from clew.recognition.reach import ProvenPast
from clew.recognition.side_requests import ASKED_FIRST, summary_at
from clew.store.records import Origin
from clew.store.shapes import NOBODY
from clew.store.trace import Trace

SESSIONS = 100  # that are followed back
MESSAGES = 5_000  # the newest, that are told; of older ones what people said, as many again: more takes long to write
CHARACTERS = 20_000_000  # of them, read in all: what is older is told as the summary of it tells it
CUT_COPY = 200  # characters by which a copy that its client cut is known
_CUT = "truncated"  # the word that stands where it did


class FullConversation(NamedTuple):
    """What was said in all sessions, the oldest first, and what a model wrote of what nobody can look up."""

    nodes: list[Node]
    account: str = ""


class _Session(NamedTuple):
    nodes: list[Node]
    summary: int | None  # where the summary is that it goes on from
    is_proven: bool = False  # and of what


async def conversation_until_now(reach: ProvenPast, trace: Trace) -> FullConversation:
    """All that was said on a branch and, as far as that is proven, before it."""
    sessions, seen, left = list[_Session](), {trace.branch}, CHARACTERS
    while True:
        nodes = await _past_nodes(reach, trace)
        items = [node.item for node in nodes]
        past, at = await reach.summed_up(items, named=trace.session is not None)
        left -= sum(len(item.text) for item in items)
        if past is None or past.branch in seen or left < 0 or len(sessions) == SESSIONS:
            sessions.append(_Session(nodes, summary_at(items)))
            break
        sessions.append(_Session(nodes, at, is_proven=True))
        seen.add(past.branch)
        trace = await reach.store.load(reach.scope, past.branch, past.seq)
    sessions.reverse()
    first = sessions[0]
    account = "" if first.summary is None else first.nodes[first.summary].item.text
    said = _once(sessions, reach)
    older = [node for node in said[:-MESSAGES] if typed(node.item)]
    return FullConversation([*older[-MESSAGES:], *said[-MESSAGES:]], account)


async def _past_nodes(reach: ProvenPast, trace: Trace) -> list[Node]:
    places = await remembered(reach.store, reach.scope, [trace])
    nodes = await reach.store.nodes(reach.scope, [place.id for place in places])
    return [nodes[place.id] for place in places]


def _once(sessions: Sequence[_Session], reach: ProvenPast) -> list[Node]:
    """What was said in these, each thing once, without what clients and clew put there."""
    found, asked, before = dict[str, Node](), set[str](), list[Node]()
    for session in sessions:
        new = _since(session, before, asked)
        for node in _people_s(new):
            if not (node.item.kind == "text" and logged(reach.digests, node.item.text)):  # no answer is a source
                found.setdefault(node.id, node)
        asked |= {said for node in new if (said := typed(node.item))}
        before = session.nodes
    return list(found.values())


def _since(session: _Session, before: Sequence[Node], asked: set[str]) -> list[Node]:
    """What is new in a session."""
    if session.summary is None:
        return session.nodes
    head, tail = session.nodes[: session.summary], [*_people_s(session.nodes[session.summary + 1 :], is_begun=True)]
    before = [*_people_s(before, is_begun=True)]
    opened = {text[:CUT_COPY] for text in asked}
    kept = list[Node]()
    for node in head:
        said = typed(node.item)
        is_copy = said in asked or (_CUT in said and said[:CUT_COPY] in opened)
        if said and not is_copy and said != ASKED_FIRST:
            kept.append(node)
    return [*kept, *(tail[_kept(tail, before) :] if session.is_proven else tail)]


def _kept(tail: Sequence[Node], before: Sequence[Node]) -> int:
    """How many of these a client kept of what was said before; it may have an answer to its summary made up first."""
    is_answer = bool(tail) and tail[0].item.role == "assistant" and tail[0].item.kind == "text"
    again = _overlap(tail[1:], before) if is_answer else 0
    return _overlap(tail, before) or (again + 1 if again else 0)


def _overlap(tail: Sequence[Node], before: Sequence[Node]) -> int:
    """How many of the first of these are the last of what was said before: clients keep the newest word for word."""
    new, old = [_key(node) for node in tail[: len(before)]], [_key(node) for node in before[-len(tail) :]]
    # As Knuth, Morris and Pratt look for a word: how much of its beginning ends here.
    keys, reach = [*new, None, *old], [0]
    for key in keys[1:]:
        many = reach[-1]
        while many and keys[many] != key:
            many = reach[many - 1]
        reach.append(many + (keys[many] == key))
    return reach[-1] if old and new else 0


def _key(node: Node) -> tuple[str, ...]:
    """What is the same in a copy; of what a client has shortened since, the id of its call."""
    item = node.item
    if item.kind in ("call", "result") and item.call_id:
        return item.kind, item.call_id
    return item.kind, item.role, typed(item) or item.text


def _people_s(nodes: Sequence[Node], is_begun: bool = False) -> Iterator[Node]:
    """Without instructions and what only a provider reads: a client says those again by itself."""
    for node in nodes:
        item = node.item
        is_begun |= item.role == "assistant" or bool(typed(item))
        if item.kind not in ("text", "call", "result", "media"):
            continue
        if item.role == "system" and (not is_begun or kind_of(item) != "system"):
            continue
        if kind_of(item) == "filler":  # clients have the assistant say such, too
            continue
        yield node


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
