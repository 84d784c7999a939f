"""What becomes of real clients' sessions: every request goes through an engine, and what comes out is looked at."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import zip_longest
from typing import Any

from clew import events
from clew.core import rawjson
from clew.core.items import canonical
from clew.core.limits import Budget
from clew.core.view import View
from clew.engine.engine import Engine
from clew.engine.engine import body as body_of
from clew.engine.settings import Settings
from clew.engine.turns import Request
from clew.errors import ClewError
from clew.store.sqlite import SQLite
from clew.tokens.target import Target
from clew.wire import check, decode
from clew.wire.rules.binding import binds
from made_clients import TURNS, ClientRequest, session
from made_clients.binding import Bindings

CODE_WORDS = ("amber", "birch")  # two conversations side by side, in one folder
ALONE = "cedar"  # a third one, that was given up before anything was answered
ID = re.compile(r"[0-9a-f]{10}")
KEPT_ITEMS = frozenset({"additional_tools", "configuration_update", "compaction", "compaction_trigger"})
SECRET = frozenset({"thinking", "redacted_thinking", "reasoning"})
TURN_KINDS = ("main", "continued")
SESSION = ("x-claude-code-session-id", "session-id", "x-session-id", "session_id")  # headers that name one
LITTLE_ROOM = 0.13  # of the room beside the frame: less is not worth another fold
SURE = 1.03  # times our count: what a provider counts is known only so well before it is asked
STAND_IN_TOKENS = 500  # tokens that stand-ins need beside what must be seen


@dataclass
class ClientTally:
    """What one client's sessions came to in one window; all but the first three should be nought."""

    turns: int = 0  # of the conversations
    fits: int = 0  # of those: frame, newest exchange and newest request fit beside the reserve
    folds: int = 0
    refused: int = 0  # the rest is of turns that fit
    hasty: int = 0  # folds of what fits, with little grown since the last one
    blind: int = 0  # nothing is seen of something that the model just asked for
    cut: int = 0  # not all of it is seen
    task: int = 0  # the newest request of the user is not whole
    invalid: int = 0  # the provider would refuse what the client's own body did not make it refuse
    shared: int = 0  # calls beside a conversation, or of a sub-agent, on the branch of a conversation
    moved: int = 0  # turns on another branch than the one before
    joined: int = 0  # branches with turns of two conversations
    mixed: int = 0  # requests with words of another conversation
    folded: int = 0  # requests for a summary that fit, and were folded
    changed: int = 0  # items that must stay as they are, and did not
    bound: int = 0  # thinking kept behind what it was not thought after
    bodies: list[str] = field(default_factory=list, repr=False)  # all that was sent, without ids

    def faults(self) -> dict[str, int]:
        """Everything that should not be."""
        return {name: getattr(self, name) for name in FAULTS if getattr(self, name)}


WORDLESS_EDITS = ("Repair", "Unbind")  # edits that leave every word where it is
FAULTS = tuple(f.name for f in fields(ClientTally) if f.name not in ("turns", "fits", "folds", "bodies"))


class ClientJudge:
    """Sends what clients send through one engine, and keeps count."""

    def __init__(self, engine: Engine, tally: ClientTally, scope: str) -> None:
        self.engine, self.tally, self.scope = engine, tally, scope
        self.branch: dict[str, str] = {}  # of each conversation, now
        self.used: dict[str, set[tuple[str, str]]] = defaultdict(set)  # by branch: who sent something there, and what
        self.aside: list[str] = []  # branches of calls beside
        self.bindings: dict[str, Bindings] = defaultdict(Bindings)
        self.growth: dict[str, Growth] = defaultdict(Growth)

    async def take(self, sent: ClientRequest) -> None:
        """One request."""
        turn, room = sent.kind in TURN_KINDS, await self._room(sent)
        fits = SURE * (room.least() if turn else room.whole()) <= room.limit
        self.tally.turns += turn
        self.tally.fits += turn and fits
        folds = self.tally.folds
        try:
            view = await self.engine.prepare(request_of(sent, self.scope))
        except ClewError as error:
            self.tally.refused += fits
            self.tally.bodies.append(type(error).__name__)
            return
        body = body_of(view)
        await self.engine.observe(view, {"input_tokens": room.sized(view)})
        self.tally.bodies.append(ID.sub("0" * 10, rawjson.dumps(body).decode()))
        self.look(sent, body, fits)
        await self._place(sent, view, fits)
        if turn:
            after = room.sized(view)
            if sent.kind == "continued":  # the client itself has thrown most of it away
                self.growth[sent.conversation] = Growth()
            grown = self.growth[sent.conversation]
            self.tally.hasty += grown.is_hasty(room, after, folded=self.tally.folds > folds)

    def look(self, sent: ClientRequest, body: Mapping[str, Any], fits: bool) -> None:
        """Whether a body that goes out for a request shows what it must, and nothing else."""
        tally, told = self.tally, "\0".join(_strings(body))
        if fits:
            tally.blind += any(want.split("\n")[0][:60] not in told for want in sent.wants)
            tally.cut += any(want not in told for want in sent.wants)
            tally.task += sent.asked not in told and sent.asked in "\0".join(_strings(sent.body))
        was = {broken.rule for broken in check(sent.body, sent.format)}
        tally.invalid += any(broken.rule not in was for broken in check(body, sent.format))
        tally.mixed += any(word in told for word in (*CODE_WORDS, ALONE) if word != sent.conversation)
        tally.changed += _changed(sent.body, body)
        if binds(sent.format, body.get("model", "")) and sent.kind != "subagent":
            tally.bound += self.bindings[sent.conversation].broken(sent.body, body, answered=sent.kind in TURN_KINDS)

    async def _place(self, sent: ClientRequest, view: View, fits: bool) -> None:
        turn, before = sent.kind in TURN_KINDS, self.branch.get(sent.conversation)
        if sent.kind == "compaction":
            self.tally.folded += fits and any(not edit.by.startswith(WORDLESS_EDITS) for edit in view.edits)
            return
        if not turn:
            self.aside.append(view.branch)
            return
        self.used[view.branch].add((sent.conversation, "turn"))
        self.tally.moved += before not in (None, view.branch) and sent.kind == "main"
        self.branch[sent.conversation] = view.branch

    def settle(self) -> None:
        """What is known only in the end: which calls beside stand where a conversation is."""
        self.tally.shared += sum(branch in self.used for branch in self.aside)
        self.tally.joined += sum(len({who for who, _ in users}) > 1 for users in self.used.values())

    async def _room(self, sent: ClientRequest) -> "_Room":
        frame, _ = decode(sent.body, sent.format)
        return _Room(await self.engine.limits.target(self.scope, frame), sent)


class Growth:
    """How one conversation grows between two folds."""

    given = sent = folded = 0  # tokens of the last request, of what was sent for it, and after the last fold

    def is_hasty(self, room: "_Room", after: int, folded: bool) -> bool:
        """Whether this fold came though all would have fit and little was new."""
        given = room.whole()
        before = self.sent + given - self.given
        hasty = folded and before <= room.limit and self.folded > 0 and before - self.folded < LITTLE_ROOM * room.left()
        self.given, self.sent = given, after
        self.folded = after if folded else self.folded
        return hasty


class _Room:
    """How large a request is, by the engine's own count."""

    def __init__(self, target: Target, sent: ClientRequest) -> None:
        self._meter, self._sent = target.meter, sent
        self._frame, self._items = decode(sent.body, sent.format)
        self.limit = target.limit.tokens

    def whole(self) -> int:
        """Tokens of all of it."""
        return self._with(range(len(self._items)))

    def least(self) -> int:
        """Tokens of what a model must see: the frame, what the assistant said last and what came since, what the user
        wants, system messages; and of the lines that may stand for the rest."""
        items = self._items
        start = max((i for i, item in enumerate(items) if item.role == "assistant"), default=0)
        while start and items[start - 1].role == "assistant":
            start -= 1
        asked = max((i for i, item in enumerate(items) if self._sent.asked in item.text), default=0)
        system = {i for i, item in enumerate(items) if item.role == "system"}
        return self._with({asked, *system, *range(start, len(items))}) + STAND_IN_TOKENS

    def sized(self, view: View) -> int:
        """Tokens of what is sent in its place."""
        return self._meter.frame(view.frame).plus(self._meter.nodes(view.nodes)).tokens

    def left(self) -> int:
        """Tokens that the frame leaves."""
        return self.limit - self._meter.frame(self._frame).tokens

    def _with(self, places: Iterable[int]) -> int:
        said = self._meter.items(self._items[i] for i in places)
        return self._meter.frame(self._frame).plus(said).tokens


def request_of(sent: ClientRequest, scope: str) -> Request:
    """A client's request as a gateway would hand it on: under the name that its client gives the session, if any."""
    named = next((sent.headers[name] for name in SESSION if name in sent.headers), None)
    return Request(rawjson.dumps(sent.body), sent.format, scope, named)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from _strings(part)


def _said(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Messages or input items, and the blocks in them."""
    for message in body.get("messages") or body.get("input") or body.get("contents") or ():
        yield message
        content = message.get("content")
        yield from (block for block in (content if isinstance(content, list) else ()) if isinstance(block, Mapping))


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> int:
    """Items that are no longer there though nobody may touch them, and sealed ones that nobody sent."""
    was, now = list(_said(before)), list(_said(after))
    there = {canonical(item) for item in now}
    gone = sum(_must_stay(item) and canonical(item) not in there for item in was)
    given = {canonical(item) for item in was if item.get("type") in SECRET}
    return gone + sum(item.get("type") in SECRET and canonical(item) not in given for item in now)


def _must_stay(item: Mapping[str, Any]) -> bool:
    return item.get("type") in KEPT_ITEMS or item.get("role") in ("system", "developer")


async def judged(client: str, window: int, turns: int = TURNS, seed: int = 0) -> ClientTally:
    """What becomes of two sessions of a client side by side in one window, after one that was given up."""
    tally = ClientTally()

    def heard(event: events.Event) -> None:
        tally.folds += isinstance(event, events.Began)

    engine = Engine(SQLite(":memory:"), Budget(window=window), Settings(listeners=[heard]))
    judge = ClientJudge(engine, tally, f"{client}-{window}")
    for sent in session(client, ALONE, 1, seed):
        await judge.take(sent)
    sides = [session(client, word, turns, seed) for word in CODE_WORDS]
    for both in zip_longest(*sides):
        for sent in filter(None, both):
            await judge.take(sent)
    judge.settle()
    await engine.close()
    return tally
