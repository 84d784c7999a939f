"""Conversations side by side that have all in common that they can, and whose every word is known by its owner."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.synchronize import Barrier
from random import Random
from typing import Literal

import clew
from clew import Budget, Engine, Request, open_store
from clew.core.view import View
from clew.errors import NotFound
from tagging import NAMED, NAMES, Body, Calls, Message, Results, Text, foreign, written

Ids = Literal["random", "counting", "placed", "equal"]
IDS: tuple[Ids, ...] = ("random", "counting", "placed", "equal")
LINE = "the service answers, and nothing else is worth a word here\n"
SHARED = "error password service"  # words of everybody
WORDLESS = ("…", "?!", "---", "1")


@dataclass
class Speaker:
    """One conversation: what is said in it next, in an order that others have as well."""

    name: str
    random: Random  # equal ones give conversations of one shape: they differ in their words alone
    ids: Ids = "counting"
    opening: str = "Check every server and report."
    greeting: str = ""  # of the assistant's, the same for everybody
    silent: bool = False  # the assistant calls, and says nothing
    lines: tuple[int, ...] = (1, 10, 40)  # of results
    common: int = 0  # calls with which everybody begins, and gets the same
    said: list[Message | Body] = field(default_factory=list)
    texts: int = 0
    calls: int = 0

    def tagged(self, text: str = "") -> str:
        self.texts += 1
        return f"{self.name}{self.texts}v0z {text}".strip()

    def go_on(self) -> None:
        """What comes before the next request."""
        if not self.said:
            self.said.append(Text("user", self.opening or self.tagged("Check every server.")))
            if self.greeting:
                self.said += [Text("assistant", self.greeting), Text("user", self.tagged("Go on."))]
        elif self.silent or self.calls < self.common or self.random.random() < 0.75:
            self.said += self.work()
        else:
            answer = self.random.choice([self.tagged("All is well."), *WORDLESS])
            self.said += [Text("assistant", answer), Text("user", self.random.choice(["go on", self.tagged("and?")]))]

    def work(self) -> list[Message]:
        """Calls and what they gave: often without words, often what others get as well."""
        if self.calls < self.common:
            id = self._id(0)
            return [Calls(((id, "the readme"),)), Results(((id, f"The readme says:\n{LINE * self.lines[1]}"),))]
        count = self.random.choice((1, 1, 1, 2))
        ids = [self._id(n) for n in range(count)]
        text = "" if self.silent else self.random.choice(("", "", "", self.tagged("I look.")))
        asked = [self.random.choice((self.tagged(), self.tagged(), "the same host")) for _ in ids]
        given = [self.random.choice((self._result(), self._result(), self._result(), "ok", "")) for _ in ids]
        value = self.random.choice((None, 0, 1))
        return [Calls(tuple(zip(ids, asked, strict=True)), text, value), Results(tuple(zip(ids, given, strict=True)))]

    def _result(self) -> str:
        tag = self.tagged()
        return f"error at {tag}: password is {tag}\n{LINE * self.random.choice(self.lines)}{tag} ends"

    def _id(self, place: int) -> str:
        self.calls += 1
        if self.ids == "random":
            return f"call_{Random(f'{self.name} {self.texts} {self.calls}').getrandbits(64):016x}"
        return f"call_{place}" if self.ids == "equal" else f"call_{self.calls}"

    def body(self, format: str) -> Body:
        return written(format, self.said, ids=self.ids != "placed")


async def behind(engine: Engine, view: View, scope: str = "default") -> str:
    """All that a view brings back: by its stand-ins, and by the ids that its text offers."""
    made = view.stand_ins()
    texts = [o.item.text for node in view.nodes if node.id in made for o in await engine.recall(scope, node.id)]
    for id in dict.fromkeys(NAMED.findall(json.dumps(clew.body(view)))):
        for branch in (None, view.branch):
            try:
                texts += [o.item.text for o in await engine.recall(scope, id, branch)]
            except NotFound:  # a stand-in may say what was in another one, long since folded
                continue
    return "\n".join(texts)


async def searched(engine: Engine, view: View, questions: Sequence[str], scope: str = "default") -> str:
    """What a search on its branch brings for these questions."""
    texts: list[str] = []
    for question in questions:
        texts += [line.text for one in await engine.find(scope, question, view.branch) for line in one.lines]
        texts += [node.item.text for node in await engine.search(scope, question, view.branch)]
    texts.append(await engine.answer(scope, SHARED, view.branch))
    return "\n".join(texts)


async def strangers(engine: Engine, view: View, name: str, of_others: str = "", scope: str = "default") -> list[str]:
    """Words that were never said in this conversation and that its model sees or can get, by where they are."""
    places = {
        "body": json.dumps(clew.body(view)),
        "recall": await behind(engine, view, scope),
    }
    if of_others:
        places["search"] = await searched(engine, view, [SHARED, of_others], scope)
    return [f"{where}: {tag}" for where, text in places.items() for tag in sorted(foreign(text, name))]


class Step:
    """How processes take their turns."""

    barrier: Barrier


def keep_step(barrier: Barrier) -> None:
    """In this process, begin no turn before the others do."""
    Step.barrier = barrier


def converse(place: str, name: str, format: str, ids: Ids, turns: int) -> list[str]:
    """A conversation in a process of its own, on a store that others use as well: what it got of theirs."""

    async def talk() -> list[str]:
        store = open_store(place)
        speaker, engine = Speaker(name, Random(1), ids, silent=True), Engine(store, Budget(window=3_000))
        found: list[str] = []
        for _ in range(turns):
            speaker.go_on()
            for first in NAMES[: Step.barrier.parties]:  # one after the other: at once, each would begin a branch
                Step.barrier.wait()
                if first == name:
                    view = await engine.prepare(Request(speaker.body(format), format))
                    found += await strangers(engine, view, name, SHARED)
        await store.close()
        return found

    return asyncio.run(talk())
