"""An author that is a model: it is asked, and code vouches for what it wrote.

Whatever goes wrong, a turn goes on: what no model wrote of is told by code.
"""

import asyncio
import re
from collections import Counter as Tally
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from clew import catalog
from clew.catalog.cost import cost
from clew.core.items import Frame, Node
from clew.core.view import View
from clew.errors import ModelError
from clew.facts.chapters import Chapter, Written
from clew.facts.finding import find
from clew.facts.sheets import voice_of
from clew.steps.chapters import answers, questions
from clew.steps.chapters.allowance import Allowance
from clew.steps.chapters.author import NOTHING_KNOWN, ReaderKnows
from clew.steps.chapters.language import language_of
from clew.steps.chapters.model import Model, Prompt, Reply
from clew.steps.worklog.fold import ChapterStretch
from clew.steps.worklog.writing import summary
from clew.tokens import Counter, counter_for
from clew.tokens.meter import Meter

if TYPE_CHECKING:
    from clew.steps.chapters.vouch import LeftOut, Vouched

SIZE = 4_000  # tokens of a chapter, at most
SECONDS = 120.0  # for one answer
ANSWER = 3  # times the size that an answer may take: three lengths, and thoughts
LEAST_ANSWER = 2  # the same, where the model has in its cache what it is to read, and its window is nearly full
SLACK = 0.9  # of the window: our count may not be the model's own
LEAST_ROOM_TO_ASK = 500  # tokens of room without which there is no use in asking
AUTH = 2  # strikes for a key that is not taken: it will not be the next time
MANY_TOKENS = 8  # exact tokens: with fewer nobody can be judged by them
SOME_UNFOUND = 4  # of them, for which a short text is not refused: they are named below it
UNFOUND_SHARE = 1 / 8  # of them that may stand nowhere: who invents more is not believed in what nobody can check
SOME_OF_A_KIND, SOME_FIGURES = 3, 8  # names that differ in their numbers alone, and figures of one form
VAGUE = 1 / 3  # of the exact tokens that there are to tell in as many words
SPEAKS = 1 / 2  # times as often as it has results: such an assistant says what it finds

_NUMBER, _LETTER = re.compile(r"\d+"), re.compile(r"[^\W\d_]")


@dataclass(slots=True)
class ByModel:
    """A model that writes chapters."""

    model: Model
    size: int = SIZE  # tokens that a chapter may take
    instructions: str = ""  # the user's own, for every chapter
    prompt: str = ""  # instead of the one that ships
    seconds: float = SECONDS  # for one answer
    allowance: Allowance = field(default_factory=Allowance)
    follows: bool = True  # it may be asked in the words of the request that was just sent, with one more message
    gives_way: bool = False  # to whatever else its server is asked: it has one answer at a time
    progress: Callable[[int, int], None] | None = None  # hears which part of how many is about to be read

    def __repr__(self) -> str:
        return f"ByModel({self.model.name!r})"

    @property
    def name(self) -> str:
        return self.model.name

    def refusal(self) -> str:
        """Why the model may not be asked now."""
        return self.allowance.refusal(0, 0, 0)

    async def write(self, asked: ChapterStretch, known: ReaderKnows = NOTHING_KNOWN, focus: str = "") -> Written:
        """Chapters of a stretch: one, or several if it is longer than the model's window."""
        work = _Work(self, asked, known, focus)
        window = min(self.model.window, known.window or self.model.window)
        left = SLACK * window - work.counter.text(work.question(asked.size))
        room = int(left / (1 + ANSWER * asked.size / max(1, asked.tokens)))  # its answer has to fit beside each part
        if asked.told and asked.tokens < room:
            await work.ask(questions.Chunk(asked.nodes, "\n\n".join(asked.told), asked.tokens))
        elif known.after is not None and self._may_follow(known.after, asked, window):
            await work.ask_after(known.after, self.left(known.after, asked, window))
        elif room < LEAST_ROOM_TO_ASK or asked.told:
            work.faults.append("window too small")
        else:
            chunks = list(questions.chunks(asked.nodes, room, work.counter.text))
            for n, chunk in enumerate(chunks, 1):
                if self.progress:
                    self.progress(n, len(chunks))
                await work.ask(chunk)
        return work.written()

    def _may_follow(self, after: View, asked: ChapterStretch, window: int) -> bool:
        """Whether the request can be gone on with: the model has it in its cache, and in it most that is to be read."""
        if not self.follows or after.frame.model != self.model.name:
            return False
        lacking = Meter(counter_for(self.model.name)).nodes(_lacking(asked.nodes, after)).tokens
        return 2 * lacking <= asked.tokens and self.left(after, asked, window) >= LEAST_ANSWER * asked.size

    def left(self, after: View, asked: ChapterStretch, window: int) -> int:
        """Tokens that an answer may take which follows a request."""
        meter = Meter(counter_for(self.model.name))
        whole = meter.frame(after.frame).plus(meter.nodes([*after.nodes, *_lacking(asked.nodes, after)])).tokens
        return min(ANSWER * asked.size, int(SLACK * window) - whole)


class _Work:
    """The questions about one stretch."""

    def __init__(self, author: ByModel, asked: ChapterStretch, known: ReaderKnows, focus: str) -> None:
        self.author, self.asked, self.known, self.focus = author, asked, known, focus
        self.counter: Counter = counter_for(author.model.name)
        self.language = language_of("\n".join(n.item.text for n in asked.nodes if voice_of(n.item) == "user"))
        self.chapters: list[Chapter] = []
        self.unused: list[Chapter] = []
        self.left_out: list[LeftOut] = []
        self.faults: list[str] = []
        self.calls = self.tokens = self.spent = 0
        self.cost: float | None = 0.0

    def question(self, size: int) -> str:
        """What is asked, before any items."""
        language = self.language or "the language that the person writes in"
        prompt = self.author.prompt or questions.instruction("chapter")
        titles = (*self.known.titles, *(chapter.texts[-1] for chapter in self.chapters))
        parts = questions.filled(prompt, language, size, titles, self.author.instructions, self.focus)
        return f"{parts}\n\n{questions.instruction('earlier')}" if self.asked.told else parts

    async def ask(self, chunk: questions.Chunk) -> None:
        """Have a chunk read."""
        size = max(1, self.asked.size * chunk.tokens // max(1, self.asked.tokens, chunk.tokens))
        system = self.question(size)
        await self._asked(Prompt(chunk.text, ANSWER * size, system), chunk.nodes, size, system, chunk.tokens)

    async def ask_after(self, after: View, left: int) -> None:
        """Have read what was just sent, in an answer of so many tokens at most."""
        lacking = _lacking(self.asked.nodes, after)
        there = [n for n in self.asked.nodes if n not in lacking]
        text = questions.following(there, lacking) + self.question(self.asked.size)
        prompt = Prompt(text, left, after=after)
        sent = sum(self.counter.item(n.item) for n in after.nodes)
        await self._asked(prompt, self.asked.nodes, self.asked.size, text, sent)

    async def _asked(self, prompt: Prompt, nodes: Sequence[Node], size: int, asked: str, read: int) -> None:
        allowance = self.author.allowance
        tokens = read + self.counter.text(asked)
        if fault := allowance.refusal(self.calls, self.tokens, tokens):
            if fault not in self.faults:  # once is enough for all that follow
                self.faults.append(fault)
            return
        allowance.begin(tokens)
        self.calls, self.tokens = self.calls + 1, self.tokens + tokens
        if fault := await self._answered(prompt, nodes, size, asked):
            self.faults.append(fault)
            allowance.fail(AUTH if fault == "auth" else 1)
            if fault == "busy":
                allowance.pause()
        else:
            allowance.succeed()

    async def _answered(self, prompt: Prompt, nodes: Sequence[Node], size: int, asked: str) -> str:
        """Ask, and take the answer if it is a chapter; what went wrong, if anything."""
        try:
            async with asyncio.timeout(self.author.seconds):
                reply = await self.author.model(prompt)
        except TimeoutError:
            return "timeout"
        except ModelError as error:
            return error.fault
        except Exception as error:  # a model is anybody's code, and a chapter is never worth a turn
            return type(error).__name__
        spent, price = self._pay(reply)
        try:  # in a thread: it may be long
            read = partial(self._read, reply, nodes, size, asked, prompt.after is not None)
            wrong, chapter, left_out = await asyncio.to_thread(read)
        except Exception as error:  # whatever a model writes, a chapter is never worth a turn
            return type(error).__name__
        self.left_out += left_out
        if chapter is not None:
            self.chapters.append(_paid(chapter, spent, price))
        elif spent:
            ids = tuple(n.id for n in nodes)
            self.unused.append(Chapter(ids, (), self.author.name, (), asked, reply.text, spent, price))
        return wrong

    def _read(
        self, reply: Reply, nodes: Sequence[Node], size: int, asked: str, follows: bool
    ) -> tuple[str, Chapter | None, "tuple[LeftOut, ...]"]:
        """What is wrong with a reply, or the chapter that it is."""
        source = self.asked.tokens if self.asked.told else sum(self.counter.item(n.item) for n in nodes)
        if wrong := answers.flaw(reply, source, size, asked, self.language, self.counter.text):
            return wrong, None, ()
        # Not sooner: to compile what it looks for takes a tenth of a second, and most processes ask no model.
        from clew.steps.chapters.vouch import Vouching

        own = {n.id for n in nodes}
        around = [n for n in self.known.after.nodes if n.id not in own] if follows and self.known.after else []
        vouching = Vouching(nodes, "\n".join((frame_text(self.known.frame), *self.known.titles)), around)
        found = [vouching.vouch(text) for text in answers.lengths(reply).without(self.known.told).texts]
        full = found[0]
        left_out = tuple(full.left_out)
        if is_invented(full):
            return "invented", None, left_out
        if not self.asked.told and is_vague(full.text, nodes):
            return "vague", None, left_out
        kept = [one for one in found if one.text.strip()]
        if not kept:
            return "nothing to believe", None, left_out
        texts, findings = tuple(one.text for one in kept), tuple("\n".join(one.findings) for one in kept)
        ids = tuple(n.id for n in nodes)
        return "", Chapter(ids, texts, self.author.name, findings, asked, reply.text), left_out

    def _pay(self, reply: Reply) -> tuple[int, float | None]:
        spent, prices = reply.spent.input + reply.spent.output, catalog.lookup(self.author.model.name).prices
        price = cost(prices, reply.spent) if prices else None
        self.spent += spent
        self.cost = None if price is None or self.cost is None else self.cost + price
        return spent, price

    def written(self) -> Written:
        """What came of it."""
        told = tuple(self.chapters), tuple(self.unused), self.author.name, self.spent, self.cost
        return Written(*told, tuple(self.left_out), tuple(self.faults))


def _paid(chapter: Chapter, spent: int, price: float | None) -> Chapter:
    return Chapter(
        chapter.ids, chapter.texts, chapter.author, chapter.findings, chapter.asked, chapter.answer, spent, price
    )


def _lacking(nodes: Sequence[Node], after: View) -> list[Node]:
    """What a request does not show as it was said."""
    shown = {n.id for n in after.nodes}
    return [n for n in nodes if n.id not in shown]


def is_invented(vouched: "Vouched") -> bool:
    """Whether so much stands nowhere that nothing of it is believed."""
    return vouched.unfound >= SOME_UNFOUND and vouched.unfound > UNFOUND_SHARE * vouched.tokens


def is_vague(text: str, nodes: Sequence[Node]) -> bool:
    """Whether a text has far fewer names and figures than there are to tell in as many words.

    Where the assistant speaks of what it finds these are those that were spoken of, for who tells of a table need not
    copy it; else what code would tell.
    """
    told, known = _names(text), _names(summary(nodes, len(text)))
    voices = Tally(voice_of(n.item) for n in nodes if n.item.text)
    if voices["said"] >= SPEAKS * voices["result"]:
        spoken = _names("\n".join(n.item.text for n in nodes if voice_of(n.item) in ("user", "said")))
        most = min(_count(spoken), max(_count(known), MANY_TOKENS))
        return most >= MANY_TOKENS and _count(told & spoken) < VAGUE * most
    return _count(known) >= MANY_TOKENS and _count(told) < VAGUE * _count(known)


def _names(text: str) -> AbstractSet[str]:
    return {fact.text for fact in find(text)}


def _count(names: AbstractSet[str]) -> int:
    """How many names and figures; of those that differ in their numbers alone, a few count."""
    kinds = Tally(_NUMBER.sub("#", name) for name in names)
    return sum(min(SOME_OF_A_KIND if _LETTER.search(kind) else SOME_FIGURES, n) for kind, n in kinds.items())


def frame_text(frame: Frame | None) -> str:
    """What a system prompt says: its date, its folder and its names are no inventions."""
    return "" if frame is None else frame.system
