"""Laws of what is put beside a question, over sessions in the shapes of all clients, two at a time in one store.

Only what was said in the same conversation, in its own words and with its id; nothing of the client's or of clew's; a
bounded share of the room; nothing that stands in view already; and the same for the same request, whoever asks again.
"""

import inspect
import re
import tarfile
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from random import Random

import pytest

import clew
from clew import Budget, Engine, SQLite
from clew.core.view import View
from clew.steps.expand import ALL, MOST_TOKENS, ROOM_SHARE
from clew.tokens.target import Target
from clew.wire import check
from made_clients import CLIENTS, Client
from made_clients.judging import request_of
from made_clients.shape import UsedTool, Worked
from made_clients.wording import Pen

NOTE, CLOSED = "[data: from earlier", "[end of data]"
THINGS = "gate ticket locker invoice beacon ledger pillar vessel kettle harbour orchard quarry".split()
TRAITS = "colour weight owner deadline address price".split()
PAGES = textwrap.wrap(inspect.getsource(tarfile), 5_000, break_long_words=False, replace_whitespace=False)
SOURCE = re.compile(r"^(?:user|assistant|result of (?:shell .*?|a tool)) \(recall ([0-9a-f]+)\): (.*)$")
WINDOWS = {"claude-2.1.197": 60_000, "claude-2.1.325": 100_000}  # of which answers may take half
WINDOW = 40_000
TURNS, QUESTIONS = 14, 6


@dataclass
class Told:
    """A conversation: its client, and every word that a person, the assistant or a tool said in it."""

    client: Client
    word: str
    random: Random
    said: list[str] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)  # a question and what is told about it

    def turns(self) -> Iterator[None]:
        """All of it, with a stop before each request; the last ones ask for what was told."""
        for n in range(TURNS):
            by = self.random.choice(("user", "assistant", "tool", ""))
            # Amid other words: of a text that is told in short it is not told.
            prose = self.client.pen.prose
            fact = flat(f"{prose(200)} {self._fact(n)} {prose(200)}") + "\n\n" if by else ""
            self._ask(f"{fact if by == 'user' else ''}Part {n}: go on with it.")
            yield
            page = self.random.choice(PAGES)
            printed = f"{page[:2_000]}\n{fact if by == 'tool' else ''}{page[2_000:]}"
            self.said.append(printed)
            call = UsedTool(self.client.pen.id(), "shell", {"command": f"cat {self.word}{n}"}, printed)
            self.client.work(Worked("On.", f"Step {n}.", (call,)))
            yield
            self._answer(f"{fact if by == 'assistant' else ''}Part {n} is done.")
        for question, _ in self.random.choices(self.facts, k=QUESTIONS) if self.facts else ():
            self._ask(question)
            yield
            self._answer("I see.")

    def _fact(self, n: int) -> str:
        """The same is asked in both conversations, and what is told differs."""
        thing, trait = THINGS[n % len(THINGS)], self.random.choice(TRAITS)
        told = f"The {trait} of the {thing} is {self.word}{self.random.randrange(1_000)}."
        self.facts.append((f"What was the {trait} of the {thing}?", told))
        return told

    def _ask(self, text: str) -> None:
        self.said.append(text)
        self.client.ask(text)

    def _answer(self, text: str) -> None:
        self.said.append(text)
        self.client.answer(text)


def conversation(client: str, word: str, seed: int) -> Told:
    pen = Pen(client, word, seed)
    return Told(CLIENTS[client](pen, word), word, Random(f"{word} {seed}"))


def flat(text: str) -> str:
    return " ".join(text.split())


def is_from(words: str, text: str) -> bool:
    """Whether all of these stand in a text, in their order; what is in view may be left out between them."""
    rest = iter(text.split())
    return all(word in rest for word in words.split())


def notes(view: View) -> list[str]:
    return [n.item.text for n in view.nodes if n.item.kind == "summary" and n.item.text.startswith(NOTE)]


async def check_note(engine: Engine, told: Told, view: View, note: str) -> int:
    """Hold what was put beside a question against the laws; how many passages it has."""
    first, *lines, last = note.splitlines()
    assert (first.startswith(NOTE), last) == (True, CLOSED)
    rest = flat("\n".join(n.item.text for n in view.nodes if n.item.text != note))
    for line in lines:
        match = SOURCE.match(line)
        assert match, f"whose words are these: {line[:200]}"
        [original] = await engine.recall("default", match[1], view.branch)
        words = match[2].removesuffix(" …")
        assert is_from(words, original.item.text), f"not in its original: {words[:200]}"
        assert any(is_from(words, text) for text in told.said), f"nobody said it here: {words[:200]}"
        for _, fact in told.facts:
            assert not (fact in words and fact in rest), f"it is in view: {fact}"
    return len(lines)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("client", CLIENTS)
async def test_what_is_put_beside_a_question_obeys_its_laws(client: str, seed: int, tmp_path: Path) -> None:
    budget = Budget(window=WINDOWS.get(client, WINDOW))
    store = SQLite(tmp_path / "log.db")
    engine, both = Engine(store, budget), [conversation(client, word, seed) for word in ("amber", "cobalt")]
    passages, known = 0, dict[str, set[str]]()
    for _ in zip_longest(*(one.turns() for one in both)):
        for told in both:
            request = request_of(told.client.sent("main", told.client.body()), "default")
            view = await engine.prepare(request)
            assert check(clew.body(view)) == []
            room = Target.of(budget).around(view.frame).room
            sizes = [Target.of(budget).meter.nodes([n]).tokens for n in view.nodes if n.item.text.startswith(NOTE)]
            assert sum(sizes) <= ALL * room
            assert all(size <= min(MOST_TOKENS, ROOM_SHARE * room) for size in sizes)
            seen = known.setdefault(told.word, set())
            for note in notes(view):
                if note not in seen:
                    passages += await check_note(engine, told, view, note)
            seen.update(notes(view))
            if notes(view):
                assert clew.body(await engine.prepare(request)) == clew.body(view), "asked again"
                assert clew.body(await Engine(store, budget).prepare(request)) == clew.body(view), "after a restart"
    await store.close()
    assert passages >= 2 or client == "aider"  # whose history says nothing of tools, and is short
