"""What each tool answers, in words; who may ask for what is `Reach`'s to say."""

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence

from clew.clients.voices import typed
from clew.control.controller import pinned
from clew.core.items import SHORT, Node
from clew.core.pointers import pointer
from clew.errors import NotFound
from clew.mcp.reach import Reach
from clew.mcp.telling import bounded, data, room
from clew.screens.lines import called, count, dollars, moment, words
from clew.sessions.about import About
from clew.sessions.conversation import Conversation
from clew.sessions.timeline import AskedRequest, FoldedHistory
from clew.store.records import Session
from clew.text.excerpts import excerpt, full_text
from clew.text.framing import neutral
from clew.text.quoting import quoted
from clew.text.search import is_made

HITS = 40  # texts that a search looks at
LISTED_OTHERS = 10  # conversations that a status names beside the one it is about
FACTS_SHOWN = 200  # facts that may be listed, as far as they fit
REQUEST_CHARACTERS = 240  # characters of a request
TOOLS_NAMED = 5
LOST_CHARACTERS = 160  # characters of something that left

StillReading = Callable[[], str]  # what is still being read, in words


class Answers:
    """Answers the tools, over the conversations in reach."""

    def __init__(self, reach: Reach, reading: StillReading) -> None:
        self._reach = reach
        self._engine = reach.engine
        self._reading = reading

    async def search(self, text: str, conversation: str, size: int) -> str:
        """What was said about something, best first, with the ids by which it is recalled."""
        hits = await self._reach.search(text, conversation or None, limit=HITS)
        if not hits:
            where = f" in {words(conversation, 60)}" if conversation else " here"
            return bounded(neutral(f"Nothing was said about that{where}. {self._reading()}".strip()), size)
        names = {s.branch: called(s) for s in await self._reach.all()}
        lines: list[str] = []
        left, shown = room(size), 0
        for branch, found in hits:
            head = f"{found.id[:SHORT]} in {names.get(branch, branch[:SHORT])}, {words(found.title, 100)}"
            told = "\n".join([head, *(f"{number}: {line}" for number, line in found.lines)])
            left -= len(neutral(told)) + 1
            if left < 0 and lines:
                break
            lines.append(told)
            shown += 1
        fewer = f"{count(len(hits) - shown, 'more text')} found: ask with rarer words. " if shown < len(hits) else ""
        more = f"{fewer}recall with an id and lines such as 10-40 shows more. {self._reading()}"
        return data("\n".join(lines), "what was said earlier, best first", size, more.strip())

    async def recall(self, id: str, lines: str, pattern: str, size: int) -> str:
        """What an id stands for, or some lines of it."""
        full, nodes = await self._reach.originals(id)
        text = full_text(nodes)
        told = excerpt(text, full[:SHORT], lines, pattern, room(size))
        part = "" if told == text else "recall the same id with other lines, or with a pattern, for the rest."
        return data(told, f"{full[:SHORT]}, {_who(nodes)}", size, part)

    async def timeline(self, conversation: str, before: int | None, size: int) -> str:
        """What happened when: requests, what was done for them, compactions."""
        one = await self._reach.one(conversation)
        session = await one.session()
        told, first = await _timeline(one, before, room(size))
        if session.name and (at := (await self._reach.read_at()).get(session.name)):
            told = f"from a session file last written {moment(at)}; times of requests are not known\n{told}"
        more = f"timeline with before={first} shows what came earlier." if first else "This is how it began."
        return data(told, f"conversation {called(session)}, oldest first", size, more)

    async def lost(self, conversation: str, size: int) -> str:
        """What the last compaction took out of view, what is most likely needed first."""
        one = await self._reach.one(conversation)
        session = await one.session()
        try:
            diff = await one.diff()
        except NotFound:
            return bounded(neutral(f"{called(session)} was never compacted: nothing was lost."), size)
        gone = {node.id[:SHORT] for node in diff.removed}
        facts = [fate for fate in diff.coverage.missing() if fate.id in gone][:FACTS_SHOWN]
        asked = [(n.id[:SHORT], said) for n in diff.removed if (said := typed(n.item))]
        lines = [f"{diff.before:,} tokens became {diff.after:,}"]
        named = [(fate, quoted(words(fate.fact, LOST_CHARACTERS), "named")) for fate in facts]
        lines += [f"{fate.worth:4.0%}  {fact}  {pointer(fate.id)}" for fate, fact in named]
        if asked:
            lines.append("asked for before it, newest first:")
            lines += [f"{id}  {words(said, LOST_CHARACTERS)}" for id, said in reversed(asked)]
        about = f"what the last compaction of {called(session)} took out of view, most likely needed first"
        return data("\n".join(lines), about, size, "recall with an id shows what stood there.")

    async def pin(self, id: str, off: bool) -> str:
        """Keep something verbatim."""
        one = await self._reach.holding(id)
        where = "" if off else " It holds where requests go through clew; the prompts handoff and resume quote it too."
        return bounded(pinned(await one.pin([id], off)) + where)

    async def status(self, conversation: str, size: int) -> str:
        """How full the window is, tokens, cost, compactions; and which conversations there are."""
        one = await self._reach.one(conversation)
        lines = [await self.standing(one)]
        others = [s for s in await self._reach.listed() if s.branch != one.branch]
        if others:
            lines.append(f"{count(len(others), 'other conversation')} here, newest first:")
            lines += [await self._line(s) for s in others[:LISTED_OTHERS]]
        return data("\n".join(lines), "where conversations stand", size, self._reading())

    async def standing(self, one: Conversation) -> str:
        """Where a conversation stands, in a few lines."""
        session, own = await one.session(), await one.sessions()
        folds = sum(s.is_folded for s in own)
        about = await self._reach.about(session)
        head = f"conversation {called(session)} (id {session.branch[:SHORT]}){_about_words(about)}"
        try:
            view = await one.view()
        except NotFound:
            return f"{head}\nnothing was sent in it yet"
        filled, known = await self._engine.filled(view), await self._engine.window(view)
        window = f"{filled.window:,} tokens" + ("" if known else ", a guess")
        calls, sent = (sum(getattr(s, name) for s in own) for name in ("calls", "sent"))
        cost = dollars(sum(s.cost for s in own)) or "unknown"
        return "\n".join(
            [
                head,
                f"window: {filled.percent}% used, {filled.left:,} tokens left of {window}; model {session.model}",
                f"{count(calls, 'request')}, {sent:,} tokens sent in all, cost {cost}",
                f"{count(folds, 'compaction')}, {count(len(view.pinned), 'pinned item')}{await _authors(one)}",
            ]
        )

    async def _line(self, session: Session) -> str:
        return f"{called(session)} (id {session.branch[:SHORT]}){_about_words(await self._reach.about(session))}"


async def _timeline(one: Conversation, before: int | None, size: int) -> tuple[str, int]:
    """The newest of what happened, or of what came before an item, and the item that it begins with; 0: the first."""
    lines: list[str] = []
    async for happened in one.timeline(before):
        fresh = [*(_asked(happened) if isinstance(happened, AskedRequest) else [_folded(happened)])]
        size -= sum(len(line) + 1 for line in fresh)
        if size < 0 and lines:
            return "\n".join(reversed(lines)), happened.place + 1
        lines += fresh
    return "\n".join(reversed(lines)), 0


def _asked(found: AskedRequest) -> Iterator[str]:
    """The lines of a request, the last first: what was done for it, and what it said."""
    if found.work:
        named = ", ".join(f"{words(name, 40)} × {times}" for name, times in found.work.most_common(TOOLS_NAMED))
        yield f"    done: {count(found.work.total(), 'call')} ({named})"
    when = f"{moment(found.at)}  " if found.at else ""
    yield f"{found.place}. {when}{found.node.id[:SHORT]}  {words(found.text, REQUEST_CHARACTERS)}"


def _folded(found: FoldedHistory) -> str:
    """A compaction, with the tokens of the calls before and after it."""
    began = found.session
    how = f"{began.cause} ({words(began.method, 20)})" if began else "compaction"
    when = f" {moment(found.at)}" if found.at else ""
    undone = ", undone since" if began and began.undone else ""
    return f"--- {how}{when}{undone}: requests of {found.was:,} tokens before, {found.now:,} after"


async def _authors(one: Conversation) -> str:
    """Who wrote the chapters in view."""
    by = Tally(words(told.author, 40) for told in await one.chapters() if told.node)
    return f"; chapters written by {', '.join(f'{who} ({n})' for who, n in by.most_common())}" if by else ""


def _about_words(about: About) -> str:
    known = [words(part, 100) for part in (about.agent, about.folder, about.title) if part]
    return f": {', '.join(known)}" if known else ""


def _who(nodes: Sequence[Node]) -> str:
    if len(nodes) > 1:
        return count(len(nodes), "item")
    item = nodes[0].item
    return f"{'program' if is_made(item) else item.role} {item.kind}"
