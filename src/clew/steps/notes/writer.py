"""The writer: asks a model for notes about some nodes, and checks them.

Whatever goes wrong, what was known before still holds: the nodes that no model read are told by code alone.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from clew import catalog
from clew.catalog.cost import cost
from clew.core.items import Node
from clew.core.view import View
from clew.errors import ModelError
from clew.facts.claims import Claim, Draft
from clew.facts.sheets import voice_of
from clew.steps.notes import questions, replies
from clew.steps.notes.allowance import Allowance
from clew.steps.notes.check import Checked, DroppedNote, Sources
from clew.steps.notes.language import language_of
from clew.steps.notes.model import Model, Prompt, Reply
from clew.tokens import Counter, counter_for
from clew.tokens.meter import Meter

SIZE = 1_000  # tokens of notes
SECONDS = 120.0  # for one answer
WORDS = 0.7  # of a token
ANSWER = 2  # times the size that an answer may take: what is longer is cut, and what is cut is not used
SLACK = 0.9  # of the window: our count may not be the model's own
LEAST_ROOM_TO_ASK = 500  # tokens of room without which there is no use in asking
AUTH = 2  # strikes for a key that is not taken: it will not be the next time


@dataclass(slots=True)
class Writer:
    """A model that proposes what code then checks."""

    model: Model
    size: int = SIZE  # tokens that its notes shall take
    instructions: str = ""  # the user's own, for every summary
    prompt: str = ""  # instead of the one that ships
    seconds: float = SECONDS  # for one answer
    allowance: Allowance = field(default_factory=Allowance)
    progress: Callable[[int, int], None] | None = None  # hears which part of how many is about to be read

    def __repr__(self) -> str:
        return f"Writer({self.model.name!r})"

    async def draft(
        self,
        nodes: Sequence[Node],
        earlier: Sequence[Claim] = (),
        focus: str = "",
        after: View | None = None,
    ) -> Draft:
        """Notes about all these nodes; `earlier` ones are known. `after` is a request that shows all of the nodes."""
        work = _Work(self, nodes, tuple(earlier), focus)
        room = int(SLACK * self.model.window) - ANSWER * self.size - work.counter.text(work.question("summarize"))
        if after is not None and self._may_follow(after, nodes):
            await work.ask_after(after)
        elif room < LEAST_ROOM_TO_ASK:
            return work.draft("window too small")
        else:
            chunks = list(questions.chunks(nodes, work.labels, room, work.counter.text))
            for n, chunk in enumerate(chunks, 1):
                if self.progress:
                    self.progress(n, len(chunks))
                await work.ask(chunk)
        return work.draft()

    def _may_follow(self, after: View, nodes: Sequence[Node]) -> bool:
        """Whether the request can be gone on with: the model has it in its cache, and in it all that is to be read."""
        shown = {n.id for n in after.nodes}
        if after.frame.model != self.model.name or not all(n.id in shown for n in nodes):
            return False
        meter = Meter(counter_for(self.model.name))
        whole = meter.frame(after.frame).plus(meter.nodes(after.nodes)).tokens
        return whole + ANSWER * self.size <= SLACK * self.model.window


class _Work:
    """One compaction's calls to a model."""

    def __init__(self, writer: Writer, nodes: Sequence[Node], earlier: tuple[Claim, ...], focus: str) -> None:
        self.writer, self.nodes, self.focus = writer, nodes, focus
        self.labels = questions.labels(nodes)
        self.sources = Sources(nodes, self.labels)
        self.counter: Counter = counter_for(writer.model.name)
        self.language = language_of("\n".join(n.item.text for n in nodes if voice_of(n.item) == "user"))
        self.earlier, self.claims = earlier, list[Claim]()
        self.read: dict[str, None] = {}
        self.missed: set[str] = set()  # nodes of which some part was not read
        self.faults: list[str] = []
        self.calls = self.tokens = self.spent = 0
        self.dropped: list[DroppedNote] = []
        self.cost: float | None = 0.0

    def question(self, name: str) -> str:
        """What is asked, before any items."""
        own = self.writer.prompt if name == "summarize" else ""
        language = self.language or "the language that the user writes in"
        words = int(WORDS * self.writer.size)
        prompt = own or questions.instruction(name)
        return questions.filled(
            prompt, language, words, (*self.earlier, *self.claims), self.writer.instructions, self.focus
        )

    async def ask(self, chunk: questions.Chunk) -> None:
        """Have a chunk read."""
        self.sources.end = chunk.ids[-1]  # what is said of all of a chunk stands at its end
        prompt = Prompt(chunk.text, ANSWER * self.writer.size, self.question("summarize"))
        await self._asked(prompt, chunk.ids, chunk.tokens)

    async def ask_after(self, after: View) -> None:
        """Have read what was just sent; notes may cite all of it."""
        self.sources = Sources(after.nodes, {}, self.nodes[-1].id)
        prompt = Prompt(self.question("after"), ANSWER * self.writer.size, after=after)
        await self._asked(prompt, tuple(self.labels), sum(self.counter.item(n.item) for n in after.nodes))

    async def _asked(self, prompt: Prompt, ids: Sequence[str], source: int) -> None:
        allowance = self.writer.allowance
        size = source + self.counter.text(prompt.text if prompt.after else prompt.system)
        if fault := allowance.refusal(self.calls, self.tokens, size):
            if fault not in self.faults:  # once is enough for all that follow
                self.faults.append(fault)
            self.missed.update(ids)
            return
        allowance.begin(size)
        self.calls, self.tokens = self.calls + 1, self.tokens + size
        if fault := await self._answered(prompt, source):
            self.faults.append(fault)
            self.missed.update(ids)
            allowance.fail(AUTH if fault == "auth" else 1)
        else:
            allowance.succeed()
            self.read |= dict.fromkeys(ids)

    async def _answered(self, prompt: Prompt, source: int) -> str:
        """Ask, and take what is believed of the answer; what went wrong, if anything."""
        try:
            async with asyncio.timeout(self.writer.seconds):
                reply = await self.writer.model(prompt)
        except TimeoutError:
            return "timeout"
        except ModelError as error:
            return error.fault
        except Exception as error:  # a model is anybody's code, and a summary is never worth a turn
            return type(error).__name__
        self._pay(reply)
        try:  # in a thread: it may be long
            wrong, checked = await asyncio.to_thread(self._read, reply, source)
        except Exception as error:  # whatever a model writes, a summary is never worth a turn
            return type(error).__name__
        if wrong or checked is None:
            return wrong
        self.dropped += checked.dropped
        if not checked.claims and (checked.dropped or not replies.says_none(reply.text)):
            return "nothing to believe"
        self.claims += checked.claims
        return ""

    def _read(self, reply: Reply, source: int) -> tuple[str, Checked | None]:
        """What is wrong with a reply, or what of it is believed."""
        if wrong := replies.flaw(reply, source, self.counter.text, self.language):
            return wrong, None
        return "", self.sources.check(islice(replies.notes(reply.text, reply.cut), replies.MANY))

    def _pay(self, reply: Reply) -> None:
        self.spent += reply.spent.input + reply.spent.output
        prices = catalog.lookup(self.writer.model.name).prices
        self.cost = self.cost + cost(prices, reply.spent) if prices and self.cost is not None else None

    def draft(self, fault: str = "") -> Draft:
        """What came of it."""
        faults = (*self.faults, *filter(None, (fault,)))
        name = self.writer.model.name
        read = tuple(id for id in self.read if id not in self.missed)
        trust = len(self.claims) / max(1, len(self.claims) + len(self.dropped))
        return Draft(read, tuple(self.claims), name, self.spent, self.cost, tuple(self.dropped), trust, faults)
