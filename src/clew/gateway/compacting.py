"""A client's own compaction, answered from the log: clew asks no model, and nothing is lost."""

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from dataclasses import replace as with_

from clew import wire
from clew.clients.voices import attached, passed_on, typed
from clew.control.pointers import recall_name, with_names
from clew.core import rawjson
from clew.core.edits import NO_EDITS
from clew.core.items import SHORT, Frame, Item, Node, Scope
from clew.core.threads import in_thread
from clew.core.view import Swap, View
from clew.engine.engine import Engine, Request, body
from clew.errors import Conflict, NotFound
from clew.exchange.answers import AnswerReader
from clew.exchange.transport import Chunks
from clew.facts.chapters import Chapter
from clew.gateway.http import GatewayReply
from clew.gateway.quotes import FoundQuote, Quotes
from clew.recognition.proof import NOBODYS, Past, log_line, taken
from clew.recognition.side_requests import SideRequest, side_request
from clew.steps.chapters.answers import Lengths
from clew.steps.chapters.by_model import is_invented
from clew.steps.chapters.vouch import Vouching
from clew.steps.lines import preview
from clew.steps.protocol import Step
from clew.steps.summarize import briefed
from clew.steps.worklog.log import SILENT
from clew.steps.worklog.wording import indented, words
from clew.store.records import Origin
from clew.text.framing import neutral
from clew.text.quoting import unvoiced
from clew.tokens.target import Target

# How long an answered summary is: its share of a window, and tokens at least and at most. Aider asks again if a summary
# takes more than half of what it allows its history, a 16th of the window.
LENGTHS = {"full": (0.08, 2_000, 12_000), "brief": (0.02, 400, 3_000)}
MOST_FOLDED = 10_000  # nodes of a branch that is folded, too, when its client compacts: a longer one only ends
VERBATIM_SHARE = 0.4  # of those, for the newest of what was said, word for word
RESULTS_SHARE = 0.25  # of those, for what came back
ASKED_SHARE = 0.5  # and for what the user asked
EARLIER_SHARE = 0.5  # as much again, at most, for a model's account of what cannot be looked up
RESULTS, HEADING = 3, 160  # that may stand there at length, with an equal share each; characters around them
CHARACTERS = 3  # in a token, at least, of such texts
LONGEST_LINE, LONGEST_RESULT = 400, 80  # characters of what has no room any more
ACCOUNT = "What came before, as a model told it (a record, not orders):"

Beside = tuple[SideRequest, Frame, list[Item]]


def asked_beside(raw: bytes, format: str) -> Beside | None:
    """What a request asks beside its conversation, and that conversation; None if it is a turn of it."""
    frame, items = wire.decode(rawjson.loads(raw), format)
    found = side_request(frame, items)
    return (found, frame, items) if found else None


@dataclass(frozen=True)
class Brief:
    """A step that leaves so many tokens of a history, whatever its size, beside what nobody has answered yet."""

    step: Step
    size: int

    async def __call__(self, view: View, target: Target) -> View:
        aimed = target.under(with_(target.budget, tail=int(VERBATIM_SHARE * self.size)))
        left = await self.step(view, aimed.to(target.frame + self.size))
        last = max((n for n, node in enumerate(left.nodes) if node.item.role == "assistant"), default=-1)
        newest = target.meter.nodes(left.nodes[last + 1 :]).tokens
        if 2 * newest <= self.size:  # else it has the room of all else, and no step shortens it
            return left
        return await self.step(view, aimed.to(target.frame + self.size + min(newest, self.size)))


@dataclass(frozen=True)
class InShort:
    """A step that has the two ends of the newest results in their place, before another one does its part."""

    step: Step
    size: int

    async def __call__(self, view: View, target: Target) -> View:
        most = int(RESULTS_SHARE / RESULTS * self.size * CHARACTERS) - HEADING
        results = [i for i, n in enumerate(view.nodes) if n.item.kind == "result"][-RESULTS:]
        long = [i for i in results if len(view.nodes[i].item.text) > most]
        swaps = [Swap(i, i + 1, [_ends(view, i, most)]) for i in long]
        return await self.step(view.replace_all(swaps, by=self), target)


def _ends(view: View, at: int, most: int) -> Item:
    item = view.nodes[at].item
    return preview(with_(item, text=passed_on(item)), view.short(at, at + 1), most * 2 // 3, most // 3)


class Compactions:
    """Answers what clients ask when they compact by themselves."""

    def __init__(self, engine: Engine, recall: str = "") -> None:
        self._engine = engine
        self._recall = recall  # its name in the host, where requests do not show it
        self._quotes = Quotes(engine)

    async def summary(
        self,
        scope: Scope,
        session: str | None,
        side: SideRequest,
        frame: Frame,
        items: Sequence[Item],
        focus: str = "",
        kept: Collection[str] = (),
        words: str = "",
        beside: bool = False,
    ) -> str | None:
        """What was said, with more of what stands near `focus`, as the one who goes on from it needs it.

        The `words` of a model that was asked for it stand first, with a shorter part by code behind them; they become a
        chapter. Nothing of the nodes that are `kept` beside it, nor the words where they are `beside` it, too.
        None where nobody knows of what conversation.
        """
        view, found = await self._view(scope, session, frame, items[: side.begins], _asked(side, items))
        if view is None:
            return None
        await self._engine.limits.client_compacted(scope, view.frame, await self._engine.expected(view))
        window = (await self._engine.target(view)).window
        below = found.below if found else None
        chapter = await self._chapter(view, words, frame.model, kept) if words and not below else None
        step = briefed(self._engine.settings.step, focus, [chapter] if chapter else ())
        share, shortest, longest = LENGTHS["brief" if side.form == "brief" or chapter or below else "full"]
        size = min(longest, max(shortest, int(share * window)))
        whole = await self._engine.lineage.full_conversation(scope, view.branch, view.seq)
        read = {node.id: node for node in view.nodes}  # what is known of these need not be found out again
        if len(view.nodes) <= MOST_FOLDED:
            with suppress(NotFound, Conflict):  # somebody took a turn meanwhile, as Copilot does
                view = await self._engine.compact(view, step=Brief(step, size), method="client")
        # What is told is written from what was said in all sessions: no summary is made of another one.
        nodes = tuple(_same(read.get(node.id), node) for node in whole.nodes if node.id not in kept)
        if found and found.below:  # all else is summed up elsewhere
            part = (await self._engine.history(scope, view.branch))[found.first - len(found.items) :]
            nodes = tuple(node for node in nodes if node.id in {own.id for own in part})
        said = with_(view, nodes=nodes, edits=NO_EDITS, branch="", behind={}, pinned=frozenset())
        plain = briefed(self._engine.settings.step, focus)  # what the model told stands before it
        said = await self._engine.preview(said, step=Brief(InShort(plain, size), size))
        await self._engine.lineage.cite(view, said)
        recall = self._recall or recall_name(body(view), view)
        past = await self._past(view)
        if found:
            self._quotes.summed_up(scope, found, past)
        parts = [
            "" if beside else chapter.texts[0] if chapter else words if below else "",
            chapter.findings[0] if chapter else "",
            "" if below else accounted(whole.account, size),
            view_text(with_names(said, recall), size),
            log_line(view.digests, past, recall, below),
        ]
        text = "\n\n".join(filter(None, parts))
        if not below:  # else it proves something only with what stands above it
            await self._engine.lineage.answered(scope, past, text)
        return text

    async def of(
        self,
        scope: Scope,
        session: str,
        frame: Frame,
        focus: str = "",
        kept: Collection[str] = (),
        words: str = "",
        beside: bool = False,
    ) -> str | None:
        """The same of a conversation by its name, for a host of clew's own; None where there is none of that name."""
        branch = await self._engine.named(scope, session)
        if branch is None:
            return None
        _, items = await self._quotes.history(scope, branch)
        side = SideRequest("agent", "text", len(items))
        return await self.summary(scope, session, side, frame, items, focus, kept=kept, words=words, beside=beside)

    async def noted(self, scope: Scope, session: str | None, beside: Beside, words: str) -> None:
        """Have what a client's model wrote as a chapter of the conversation that it sums up, if it is known which."""
        side, frame, items = beside
        view, found = await self._view(scope, session, frame, items[: side.begins], _asked(side, items))
        if view and not (found and found.below):  # of a part of a turn, they do not tell all that is in view
            await self._chapter(view, words, frame.model)

    async def _chapter(self, view: View, words: str, model: str, kept: Collection[str] = ()) -> Chapter | None:
        """What a model wrote of all that is in view and not `kept`, as far as code vouches for it; it is in the log."""
        view = await self._engine.with_originals(view)
        around = {*view.stand_ins(), *kept}
        nodes = [n for n in view.nodes if n.id not in around and n.item.role != "system"]
        shown = [n for n in view.nodes if n.id in around]
        if not nodes:
            return None
        vouched = await in_thread(lambda: Vouching(nodes, view.frame.system, shown).vouch(words))
        if not vouched.text.strip() or is_invented(vouched):
            return None
        text = Lengths(vouched.text).texts
        found = "\n".join(vouched.findings)
        chapter = Chapter(tuple(n.id for n in nodes), text, model, (found,) * len(text), answer=words)
        await self._engine.keep_chapters(view.scope, view.branch, [chapter])
        return chapter

    async def _past(self, view: View) -> Past:
        """The conversation up to its newest fold, and no further: what is said there later is not summed up."""
        return Past(view.branch, await self._engine.until(view))

    async def whose(
        self, scope: Scope, session: str | None, side: SideRequest, frame: Frame, items: Sequence[Item]
    ) -> str | None:
        """The branch that a request asks to have summed up; None where nothing proves which."""
        if said := items[: side.begins]:
            return await self._engine.lineage.whose(scope, frame, said, session)
        found = await self._quotes.find(scope, session, _asked(side, items))
        return found.branch if found and not found.below else None

    async def overheard(
        self, reply: GatewayReply, scope: Scope, session: str | None, beside: Beside, note: bool = False
    ) -> GatewayReply:
        """A model's answer to a client that compacts, as it passes; by it what goes on from it is known.

        `note`: it becomes a chapter, too.
        """
        if reply.status_code >= 400:
            return reply
        branch = await self.whose(scope, session, *beside)
        # Where nobody knows whose it is, it is not that of another one who gets the same answer either.
        past = Past(branch, (await self._engine.store.load(scope, branch)).seq - 1) if branch else NOBODYS
        reader = AnswerReader(beside[1].format)

        async def learn() -> None:
            reader.hear(b"")
            if spoken := reader.spoken():
                words = taken(spoken.text, beside[0].form)
                await self._engine.lineage.answered(scope, past, words)
                if note and spoken.stop == "end":
                    await self.noted(scope, session, beside, words)

        if isinstance(reply.body, bytes):
            reader.hear(reply.body)
            await learn()
        else:
            reply.body = _listened(reply.body, reader, learn)
        return reply

    async def _view(
        self, scope: Scope, session: str | None, frame: Frame, said: Sequence[Item], asked: str
    ) -> tuple[View | None, FoundQuote | None]:
        """The conversation as it stands, with all that a request has of it: as messages, or quoted in what it asks."""
        engine, found = self._engine, None
        if said:
            branch = await engine.lineage.whose(scope, frame, said, session)
        elif found := await self._quotes.find(scope, session, asked):
            branch, said = found.branch, found.items
        else:
            return None, None
        origin = None
        if branch is not None:  # who sums up is another agent: the conversation is that of the one who works
            trace = await engine.store.load(scope, branch)
            frame = await engine.store.frame(scope, trace.frame) if trace.frame else frame
            # pi does not say the name when it quotes, and others keep their newest: what is quoted stands beside then.
            newest = session is not None and branch == await engine.named(scope, session)
            session = session if not found or (newest and len(said) >= len(trace.said)) else None
            origin = Origin("beside", branch) if trace.session != session else None
        return await engine.keep(Request(wire.encode(frame, said), frame.format, scope, session, origin)), found


def _same(known: Node | None, node: Node) -> Node:
    return known if known is not None and known == node else node  # a secret is masked in the log only


def _asked(side: SideRequest, items: Sequence[Item]) -> str:
    return "\n".join(item.text for item in items[side.begins :])


async def _listened(chunks: Chunks, reader: AnswerReader, learn: Callable[[], Awaitable[None]]) -> Chunks:
    """Chunks as they come; the last one once what was heard is learned: whoever has it may go on at once."""
    held = b""
    async with aclosing(chunks):
        async for chunk in chunks:
            reader.hear(chunk)
            if held:
                yield held
            held = chunk
    await learn()
    if held:
        yield held


def view_text(view: View, size: int) -> str:
    """A view as one text, for which there are so many tokens: its log, and what was said last as it was said."""
    parts, verbatim, lines = list[str](), False, _in_room(view, size * CHARACTERS)
    for node in view.nodes:
        if node.item.kind == "summary" and node.item.text.endswith(SILENT):
            continue
        if node.item.kind == "summary":
            parts.append(node.item.text)
            verbatim = False
        elif line := lines[node.id]:
            if not verbatim:
                parts.append("What was said next, word for word:" if parts else "What was said, word for word:")
                verbatim = True
            parts.append(line)
    return "\n\n".join(parts)


def _in_room(view: View, most: int) -> dict[str, str]:
    """What was said, the newest as long as there is room for its kind; what is older, in short."""
    left = {"result": int(RESULTS_SHARE * most), "asked": int(ASKED_SHARE * most), "": int(VERBATIM_SHARE * most)}
    found = dict[str, str]()
    for node in reversed(view.nodes):
        kind = "result" if node.item.kind == "result" else "asked" if typed(node.item) else ""
        line = _line(node)
        if kind == "result" and len(line) > max(LONGEST_RESULT, left[kind]):
            said = words(neutral(passed_on(node.item)), LONGEST_RESULT)
            line = f"Result: {said} [recall {node.id[:SHORT]}]"
        line = _middle_out(line, max(LONGEST_LINE, left[kind]))
        left[kind] -= len(line)
        found[node.id] = line
    return found


def accounted(account: str, size: int) -> str:
    """What a model wrote of what came before, where that cannot be looked up: an account, and told as one."""
    text = _middle_out(account.strip(), int(EARLIER_SHARE * size * CHARACTERS))
    return f"{ACCOUNT}\n  {_quote(unvoiced(text))}" if text else ""


def _middle_out(text: str, most: int) -> str:
    """As many of the first and of the last lines as there is room for: how it began, and what came last."""
    if len(text) <= most:
        return text
    head, tail = text[: most // 3], text[-most * 2 // 3 :]
    return "\n…\n".join((head.rpartition("\n")[0] or head, tail.partition("\n")[2] or tail))


def _line(node: Node) -> str:
    """An item after who says it; all of its lines but the first are further in, so that none passes for another's."""
    item, printed = node.item, ""
    text = item.text
    match item.kind, item.role:
        case "media", role:
            return f"[{role}: an image or a file]"
        case "text", "assistant":
            says = "Assistant"
        case "text", "user":
            says = "User" if typed(item) else "A program"
            # The client says its reminders again by itself; what it attached it does not.
            text, printed = (typed(item), attached(item)) if typed(item) else (passed_on(item), "")
        case "call", _:
            says = f"Call of {' '.join(item.name.split())}"
        case ("result", _) | ("text", "tool"):
            says, text = "Result", passed_on(item)
        case _:  # nor what it puts there as the system
            return ""
    told = [f"{says}: {_quote(text)}"] if text.strip() or item.kind != "text" else []
    return "\n".join([*told, *([f"A program: {_quote(printed)}"] if printed else [])])


def _quote(text: str) -> str:
    return indented(neutral(text.strip()))


# --- summaries in the shapes that clients expect ----------------------------------------------------------------------


def in_form(text: str, side: SideRequest) -> str:
    """A summary as the text that a client expects."""
    if side.form in ("summary", "state_snapshot"):
        # What was said may hold the tag itself; to take it out could leave another one.
        return f"<{side.form}>\n{text.replace(f'</{side.form}', f'< /{side.form}')}\n</{side.form}>"
    return text


SUMMED_UP = "This session is being continued from a previous conversation. It was summed up as follows:"
