"""An author that is a model: it is asked, and code vouches for what it wrote.

Whatever goes wrong, a turn goes on: what no model wrote of is told by code.
"""

import asyncio
import re
from collections import Counter as Tally
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from dataclasses import replace as with_
from typing import TYPE_CHECKING, NamedTuple

from clew import catalog
from clew.catalog.usage import cost
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
from clew.steps.worklog.blocks import chosen
from clew.steps.worklog.fold import ChapterStretch
from clew.steps.worklog.writing import summary
from clew.tokens import Counter, counter_for
from clew.tokens.meter import Meter

if TYPE_CHECKING:
    from clew.steps.chapters.exact import KeysOfTexts
    from clew.steps.chapters.vouch import LeftOut, Vouched

SIZE = 4_000  # tokens of a chapter, at most
SECONDS = 120.0  # for one answer
ANSWER = 3  # times the size that an answer may take: three lengths, and thoughts
LEAST_ANSWER = 2  # the same, where its window is nearly full
LEAST_SHARE = 1 / 2  # of the size that a chapter is to have, where its window leaves less for it
SHARES_TOLD = 1, 1 / 2, 1 / 4, 0  # of what is told anew, where its window leaves less for that
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

    async def write(
        self, asked: Sequence[ChapterStretch], known: ReaderKnows = NOTHING_KNOWN, focus: str = ""
    ) -> Written:
        """Chapters of all of these, from one question; from several where they are longer than the model's window."""
        work = _Work(self, asked, known, focus)
        await work.ask()
        return work.written()


class ReadPart(NamedTuple):
    """What a reply tells of one part."""

    chapter: Chapter  # without texts, if it is none
    left_out: "tuple[LeftOut, ...]"
    wrong: str


class _Work:
    """What is asked, once if it can be."""

    def __init__(self, author: ByModel, asked: Sequence[ChapterStretch], known: ReaderKnows, focus: str) -> None:
        # A prompt of somebody's own says nothing of a record that is there already.
        self.parts = [one for one in asked if not (one.blocks and author.prompt)]
        self.author, self.known, self.focus = author, known, focus
        self.counter: Counter = counter_for(author.model.name)
        self.language = language_of("\n".join(n.item.text for n in self._nodes() if voice_of(n.item) == "user"))
        self.chapters: list[Chapter] = []
        self.unused: list[Chapter] = []
        self.left_out: list[LeftOut] = []
        self.faults: list[str] = []
        self.calls = self.tokens = self.spent = 0
        self.cost: float | None = 0.0
        self._keys: KeysOfTexts | None = None

    def _nodes(self) -> Iterator[Node]:
        return (node for one in self.parts for node in one.nodes)

    async def ask(self) -> None:
        """Go on from a request that was just sent, if that shows most of it; else have all of it read."""
        if not await self._followed() and not await self._read_at_once():
            await self._read_in_chunks([one for one in self.parts if not one.blocks])

    async def _followed(self) -> bool:
        """Whether the request can be gone on with: the model has it in its cache, and in it most that is to be read."""
        author, after = self.author, self.known.after
        if after is None or not author.follows or after.frame.model != author.model.name:
            return False
        meter, there = Meter(counter_for(author.model.name)), {n.id for n in after.nodes}
        new = [one for one in self.parts if not one.blocks]
        lacking = [n for one in new for n in one.nodes if n.id not in there]
        if 2 * meter.nodes(lacking).tokens > sum(one.tokens for one in new):
            return False
        sent = self.known.sent or meter.frame(after.frame).plus(meter.nodes(after.nodes)).tokens
        sent += meter.nodes(lacking).tokens
        for longer in (self._longer(after), []):  # without it the record is told anew as it stands in view
            left = int(SLACK * self._window()) - sent - self.counter.text("\n\n".join(longer))
            if parts := _sized(self.parts, left):
                text = questions.following(parts, lacking, longer) + self.question(parts, follows=True)
                left = min(left, ANSWER * sum(one.size for one in parts))
                await self._asked(Prompt(text, left, after=after), parts, text, sent)
                return True
        return False

    def _longer(self, after: View) -> list[str]:
        """What is to be told anew and has fewer words in view."""
        made = {n.id: n.item.text for n in after.nodes if n.item.kind == "summary"}
        told = {line.strip() for text in made.values() for line in text.splitlines()}
        pairs = [pair for one in self.parts for pair in zip(one.blocks, one.shown, strict=False)]
        texts = [text for text, node in pairs if node.id in made]
        return [text for text in texts if any(line.strip() not in told for line in text.splitlines()[1:])]

    async def _read_at_once(self) -> bool:
        """Whether all fits into one question; of a record that is told anew less, if need be."""
        for some in self._ever_less():
            text, asked = questions.reading(some), self.question(some)
            read = self.counter.text(text)
            left = int(SLACK * self._window()) - self.counter.text(asked) - read
            if parts := _sized(some, left):
                asked, size = self.question(parts), sum(one.size for one in parts)
                await self._asked(Prompt(text, min(left, ANSWER * size), asked), parts, asked, read)
                return True
        return False

    def _ever_less(self) -> Iterator[list[ChapterStretch]]:
        """The parts; then without what code adds to a model's words, then by those of its lines that tell most."""
        yield self.parts
        for share in SHARES_TOLD:
            yield [_with_share_of_lines(one, share) for one in self.parts if share or not one.blocks]

    async def _read_in_chunks(self, parts: Sequence[ChapterStretch]) -> None:
        """As many questions as it takes."""
        tokens, size = (max(1, sum(some)) for some in zip(*((one.tokens, one.size) for one in parts), strict=True))
        left = SLACK * self._window() - self.counter.text(self.question(parts[:1]))
        room = int(left / (1 + ANSWER * size / tokens))  # its answer has to fit beside each of them
        if room < LEAST_ROOM_TO_ASK:
            self.faults.append("window too small")
            return
        chunks = [chunk for one in parts for chunk in questions.chunks(one.nodes, room, self.counter.text)]
        for n, chunk in enumerate(chunks, 1):
            if self.author.progress:
                self.author.progress(n, len(chunks))
            part = ChapterStretch(chunk.nodes, chunk.tokens, max(1, size * chunk.tokens // max(tokens, chunk.tokens)))
            asked = self.question([part])
            await self._asked(Prompt(chunk.text, ANSWER * part.size, asked), [part], asked, chunk.tokens)

    def _window(self) -> int:
        return min(self.author.model.window, self.known.window or self.author.model.window)

    def question(self, parts: Sequence[ChapterStretch], follows: bool = False) -> str:
        """What is asked, before any items; where it follows a request, the record is there to be read."""
        language = self.language or "the language that the person writes in"
        prompt = self.author.prompt or questions.instruction("chapter")
        titles = () if follows else (*self.known.titles, *(chapter.texts[-1] for chapter in self.chapters))
        size = sum(one.size for one in parts)
        asked = questions.filled(prompt, language, size, titles, self.author.instructions, self.focus)
        more = "" if self.author.prompt else questions.several(parts, language)
        return f"{asked}\n\n{more}" if more else asked

    async def _asked(self, prompt: Prompt, parts: Sequence[ChapterStretch], asked: str, read: int) -> None:
        allowance = self.author.allowance
        tokens = read + self.counter.text(asked)
        if fault := allowance.refusal(self.calls, self.tokens, tokens):
            if fault not in self.faults:  # once is enough for all that follow
                self.faults.append(fault)
            return
        allowance.begin(tokens)
        self.calls, self.tokens = self.calls + 1, self.tokens + tokens
        known = len(self.chapters)
        faults = await self._answered(prompt, parts, asked)
        self.faults += faults
        if len(self.chapters) > known:
            allowance.succeed()
        else:
            allowance.fail(AUTH if "auth" in faults else 1)
            if "busy" in faults:
                allowance.pause()

    async def _answered(self, prompt: Prompt, parts: Sequence[ChapterStretch], asked: str) -> list[str]:
        """Ask, and take what is a chapter of the answer; what went wrong, if anything."""
        try:
            async with asyncio.timeout(self.author.seconds):
                reply = await self.author.model(prompt)
        except TimeoutError:
            return ["timeout"]
        except ModelError as error:
            return [error.fault]
        except Exception as error:  # a model is anybody's code, and a chapter is never worth a turn
            return [type(error).__name__]
        spent, price = self._pay(reply)
        try:  # in a thread: it may be long
            found = await asyncio.to_thread(self._read_all, reply, parts, asked, prompt.after is not None)
        except Exception as error:  # whatever a model writes, a chapter is never worth a turn
            return [type(error).__name__]
        for n, (chapter, left_out, _) in enumerate(found):
            share = spent // len(found) + (spent % len(found) if n == 0 else 0)
            paid = with_(chapter, spent=share, cost=None if price is None else price / len(found))
            if chapter.texts:
                self.chapters.append(paid)
            elif spent:
                self.unused.append(paid)
            self.left_out += left_out
        return [wrong for _, _, wrong in found if wrong]

    def _read_all(self, reply: Reply, parts: Sequence[ChapterStretch], asked: str, follows: bool) -> list[ReadPart]:
        """What a reply tells of each part; one text about several stands where most of it is from."""
        replies = answers.parted(reply) if len(parts) > 1 else [reply]
        if len(replies) > len(parts):  # it quotes such an answer: whose words are whose is not known
            replies = [reply]
        if len(replies) == 1:
            parts = [max(parts, key=lambda one: (not one.blocks, one.tokens))]
        shown = [*self._nodes(), *(self.known.after.nodes if follows and self.known.after else ())]
        return [self._read(one, part, asked, shown) for part, one in zip(parts, replies, strict=False)]

    def _read(self, reply: Reply, part: ChapterStretch, asked: str, shown: Sequence[Node]) -> ReadPart:
        """The chapter that a reply is, the lines of it that do not stand, and what is wrong, if it is none."""
        ids, nodes = tuple(n.id for n in part.nodes), part.nodes
        unused = Chapter(ids, (), self.author.name, (), asked, reply.text)
        source = part.tokens if part.blocks else sum(self.counter.item(n.item) for n in nodes)
        if wrong := answers.flaw(reply, source, part.size, self.question([part]), self.language, self.counter.text):
            return ReadPart(unused, (), wrong)
        # Not sooner: to compile what it looks for takes a tenth of a second, and most processes ask no model.
        from clew.steps.chapters.exact import KeysOfTexts
        from clew.steps.chapters.vouch import Vouching

        self._keys = self._keys or KeysOfTexts()

        own = {*ids}
        around = [n for n in shown if n.id not in own]
        beside = "\n".join((frame_text(self.known.frame), *self.known.titles))
        vouching = Vouching(nodes, beside, around, self._keys)
        found = [vouching.vouch(text) for text in answers.lengths(reply).without(self.known.in_view).texts]
        full = found[0]
        left_out = tuple(full.left_out)
        if is_invented(full):
            return ReadPart(unused, left_out, "invented")
        if is_vague(full.text, nodes, part.blocks):
            return ReadPart(unused, left_out, "vague")
        kept = [one for one in found if one.text.strip()]
        if not kept:
            return ReadPart(unused, left_out, "nothing to believe")
        texts, findings = tuple(one.text for one in kept), tuple("\n".join(one.findings) for one in kept)
        return ReadPart(with_(unused, texts=texts, findings=findings), left_out, "")

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


def _sized(parts: Sequence[ChapterStretch], left: int) -> list[ChapterStretch]:
    """The parts, each as long as an answer in so many tokens may tell it; none, if that is less than half."""
    share = left / (LEAST_ANSWER * max(1, sum(one.size for one in parts)))
    return [one._replace(size=int(min(1.0, share) * one.size)) for one in parts] if share >= LEAST_SHARE else []


def _with_share_of_lines(part: ChapterStretch, share: float) -> ChapterStretch:
    """A part whose blocks are told by such a share of their lines, none of which code added."""
    bare = part.bare or part.blocks
    return part._replace(blocks=tuple(chosen(text, share) for text in bare) if share < 1 else bare)


def is_invented(vouched: "Vouched") -> bool:
    """Whether so much stands nowhere that nothing of it is believed."""
    return vouched.unfound >= SOME_UNFOUND and vouched.unfound > UNFOUND_SHARE * vouched.tokens


def is_vague(text: str, nodes: Sequence[Node], record: Sequence[str] = ()) -> bool:
    """Whether a text has far fewer names and figures than there are to tell in as many words.

    Of a record that it tells anew these are those of the lines that code would choose. Where the assistant speaks of
    what it finds these are those that were spoken of, for who tells of a table need not copy it; else what code would
    tell.
    """
    if record:
        whole = "\n".join(record)
        known = _names(chosen(whole, min(1.0, len(text) / max(1, len(whole)))))
        return _count(known) >= MANY_TOKENS and _count(_names(text)) < VAGUE * _count(known)
    told, known = _names(text), _names(summary(nodes, len(text)))
    voices = Tally(voice_of(n.item) for n in nodes if n.item.text)
    if voices["said"] >= SPEAKS * voices["result"]:
        spoken = _names("\n".join(n.item.text for n in nodes if voice_of(n.item) in ("user", "said")))
        most = min(_count(spoken), max(_count(known), MANY_TOKENS))
        return most >= MANY_TOKENS and _count(told) < VAGUE * most
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
