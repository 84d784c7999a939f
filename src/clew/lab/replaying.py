"""A session call by call, as each way to keep it small would have sent it."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as with_

from clew.catalog.usage import Spent
from clew.core.bridge import run
from clew.core.cuts import groups
from clew.core.items import Item, Node
from clew.core.limits import Budget
from clew.core.view import View
from clew.engine.engine import Engine, Request
from clew.engine.settings import Settings
from clew.lab.caches import Beginnings
from clew.lab.session import LabSession
from clew.sessions.transcripts import TranscriptCompaction
from clew.steps.worklog.writing import summary
from clew.store import SQLite
from clew.tokens.meter import Meter

TAIL = 20_000  # tokens that stay behind the summary of a client, or a third of a small window
SUMMARY = 3_000  # tokens that its model writes
CHARACTERS = 4  # of such a token
NOTHING = Spent(0)


@dataclass(slots=True)
class Lived:
    """What was sent, and when something left the view."""

    heard: Callable[[View, int], None]  # hears what is sent, and the tokens of its answer
    meter: Meter
    sizes: list[int] = field(default_factory=list)  # tokens of each prompt
    helpers: list[Spent] = field(default_factory=list)  # calls beside those of the session
    folds: list[tuple[int, View]] = field(default_factory=list)  # messages that were said before, and what was left
    client: int = 0  # times that the client would have compacted by itself
    places: Mapping[str, int] = field(default_factory=dict)  # of nodes in all that was said
    _shown: frozenset[str] = frozenset()
    _begins: Beginnings = field(init=False)

    def __post_init__(self) -> None:
        self._begins = Beginnings(self.meter)

    def send(self, session: LabSession, number: int, view: View, helped: Spent = NOTHING) -> int:
        """The next call; how many tokens it sends."""
        shown = frozenset(node.id for node in view.nodes)
        if not self._shown <= shown:
            self.folds.append((session.turns[number], view))
        self._shown = shown
        self.helpers += [helped] if helped.input else []
        self.sizes.append(self._begins.of(view).until[-1])
        self.heard(view, session.answer(number, self.meter))
        return self.sizes[-1]


# --- without clew -----------------------------------------------------------------------------------------------------


def everything(session: LabSession, lived: Lived) -> Lived:
    """All of it, whether it fits or not."""
    return _kept(session, lived, ())


def as_it_was(session: LabSession, lived: Lived) -> Lived:
    """With the compactions that its client made; where a summary is sealed, code's own stands for it."""
    return _kept(session, lived, session.transcript.compactions)


def _kept(session: LabSession, lived: Lived, cuts: Iterable[tuple[int, TranscriptCompaction]]) -> Lived:
    left, head, start, size, begun = list(cuts), tuple[Node, ...](), 0, 0, 0
    for number, turn in enumerate(session.turns):
        helped = NOTHING
        while left and left[0][0] <= turn:
            place, why = left.pop(0)
            said = session.full_view.nodes[: session.starts[place]]
            item = Item("summary", "user", why.summary or summary(said, SUMMARY * CHARACTERS))
            also = tuple(node for m in why.also for node in session.nodes(m, m + 1))
            head, start = (*session.full_view.digests.chain([item]), *also), max(0, place - why.kept)
            unread = lived.meter.nodes(session.nodes(begun, place)).tokens
            helped, begun = Spent(size + unread, lived.meter.item(item).tokens, cache_read=size), place
        view, begun = with_(session.full_view, nodes=(*head, *session.nodes(start, turn))), turn
        size = lived.send(session, number, view, helped)
    return _placed(session, lived)


def clients_own(session: LabSession, lived: Lived, at: int, limit: int) -> Lived:
    """With a compaction by its client above so many tokens of a request, by the usage that it was shown."""
    view, own, shown, known, begun = with_(session.full_view, nodes=()), SummaryBefore(session.full_view), 0, 0, 0
    for number, turn in enumerate(session.turns):
        view, begun = with_(view, nodes=view.nodes + session.nodes(begun, turn)), turn
        helped = NOTHING
        unread = lived.meter.nodes(view.nodes[known:]).tokens
        if shown + unread > at:
            fits = min(unread, max(0, limit - shown))
            view, helped = own(view, shown, min(TAIL, limit // 3), lived.meter, fits)
            lived.client += 1
        shown, known = lived.send(session, number, view, helped), len(view.nodes)
    return _placed(session, lived)


@dataclass(frozen=True)
class SummaryBefore:
    """A model reads all of it and writes a summary of all but the newest.

    No model is asked here: the text is clew's own summary of the originals, which does not drift. Where products'
    summaries are known it keeps as much as they do, so this is rather more than a product has.
    """

    before: View

    def __call__(self, view: View, shown: int, tail: int, meter: Meter, unread: int = 0) -> tuple[View, Spent]:
        """The view with a summary before so many tokens of it, and what the model took.

        What came since the last call, which no cache has, is read for the summary, too.
        """
        start = len(view.nodes)
        for begin, stop in reversed(groups(view.nodes)):
            tail -= meter.nodes(view.nodes[begin:stop]).tokens
            if tail < 0:
                break
            start = begin
        item = Item("summary", "user", summary(self._before(view.nodes[start:]), SUMMARY * CHARACTERS))
        taken = Spent(shown + unread, meter.item(item).tokens, cache_read=shown)
        return with_(view, nodes=(*view.digests.chain([item]), *view.nodes[start:])), taken

    def _before(self, tail: tuple[Node, ...]) -> tuple[Node, ...]:
        """All that was said before the part that stays, or until now."""
        said, first = self.before.nodes, tail[0].id if tail else ""
        return said[: next((at for at, node in enumerate(said) if node.id == first), len(said))]


def _placed(session: LabSession, lived: Lived) -> Lived:
    lived.places = {node.id: at for at, node in enumerate(session.full_view.nodes)}
    return lived


# --- with clew --------------------------------------------------------------------------------------------------------


def with_clew(session: LabSession, lived: Lived, budget: Budget, settings: Settings, at: int | None) -> Lived:
    """Through an engine; its client would compact by itself above `at` tokens, if clew did not."""
    return run(_through(session, lived, Engine(SQLite(":memory:"), budget, settings), at))


async def _through(session: LabSession, lived: Lived, engine: Engine, at: int | None) -> Lived:
    shown, begun, view = 0, 0, session.full_view
    for number, turn in enumerate(session.turns):
        lived.client += at is not None and shown + lived.meter.nodes(session.nodes(begun, turn)).tokens > at
        view = await engine.prepare(Request(session.prompt(turn), session.transcript.format, session="lab"))
        shown, begun = lived.send(session, number, view), turn
        output = session.answer(number, lived.meter)
        await engine.observe(view, {"prompt_tokens": shown, "completion_tokens": output})
        if reading := [task for task in asyncio.all_tasks() if task.get_name().startswith("clew chapter")]:
            await asyncio.wait(reading)  # a model has read what it is asked for before tools and people are done
    if session.turns:
        said = await engine.history(view.scope, view.branch)
        lived.places = {node.id: place for place, node in enumerate(said)}
    await engine.close(store=True)
    return lived


# --- what left the view -----------------------------------------------------------------------------------------------


def compactions(session: LabSession, lived: Lived) -> Iterator[tuple[int, TranscriptCompaction]]:
    """What left the view each time, as session files tell of compactions."""
    for turn, view in lived.folds:
        shown = {lived.places[node.id] for node in view.nodes if node.id in lived.places}
        starts = session.starts
        stays = [m for m in range(turn) if all(at in shown for at in range(starts[m], starts[m + 1]))]
        kept = 0
        while stays and stays[-1] == turn - 1 - kept:
            stays.pop()
            kept += 1
        told = "\n".join(node.item.text for node in view.nodes if node.id not in lived.places)
        yield turn, TranscriptCompaction(told, "auto", kept=kept, also=tuple(stays))
