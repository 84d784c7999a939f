"""A coding session of a given length with forty facts in it, the same for the same seed."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from benchmark.judging import MODEL, Curve, Cut, Heard, Method, Need, Words, judge_all
from benchmark.noise import Noise
from benchmark.sentences import SENTENCES, Origin, Sentence, fill
from clew.tokens import counter_for

Message = dict[str, Any]

LAST = 0.88  # no fact is due after this part of the session, and the last ones may be a little late
LATER = 5_000  # tokens from a fact to its second use, at least
AROUND = 11  # tokens a provider wraps around a message, calls and results included


@dataclass(frozen=True)
class Fact:
    """One thing said once, or used once more in a call, and how somebody would ask for it."""

    origin: Origin
    value: str
    sentence: str
    question: str
    places: tuple[int, ...]  # the messages it stands in

    @property
    def anchors(self) -> frozenset[str]:
        """The words that give it its meaning."""
        return frozenset(
            w for w in self.sentence.replace(self.value, " ").lower().split() if w.isalpha() and len(w) > 3
        )


@dataclass(frozen=True)
class Planted:
    """A session and what is hidden in it."""

    messages: list[Message]
    facts: tuple[Fact, ...]
    tokens: int


def plant(seed: int, tokens: int, count: Callable[[str], int] | None = None) -> Planted:
    """A session of about this many tokens, its facts spread over all but the last tenth."""
    return _Session(seed, tokens, count or counter_for(MODEL).text).written()


def judge_planted(planted: Planted, sizes: Sequence[int], methods: Mapping[str, Method], heard: Heard) -> Curve:
    """How many of the facts each method keeps in views of these many tokens."""
    needs = [Need(f.value, f.question, f.anchors) for f in planted.facts]
    name = f"{len(needs)} planted facts, {planted.tokens / 1000:,.0f}k tokens"
    material = {float(size): [Cut(f"{size:,} tokens", planted.messages, size, planted.tokens, needs)] for size in sizes}
    return judge_all(name, material, methods, Words(counter_for(MODEL).text), heard)


class _Session:
    """Writes messages down and keeps count."""

    def __init__(self, seed: int, tokens: int, count: Callable[[str], int]) -> None:
        self.random = Random(seed)  # for variety, not for secrets
        self.noise = Noise(self.random)
        self.goal = tokens
        self.count = count
        self.messages: list[Message] = []
        self.tokens = 0
        self.made = 0
        self.facts: list[Fact] = []
        self.uses: list[tuple[int, int, str]] = []  # not before this many tokens, which fact, the command

    def written(self) -> Planted:
        self._say("system", "You are a careful engineer. Work in the repository with the tools you have.")
        waiting = _shuffled(self.random)
        whole = len(waiting)
        while self.tokens < self.goal:
            self._say("user", self.noise.ask() + self._fact("user", waiting, whole))
            for _ in range(self.random.randint(2, 8)):
                if self.tokens < self.goal:
                    self._work(waiting, whole)
            self._say("assistant", self.noise.closing())
        self._say("user", "Go on.")
        return Planted(self.messages, tuple(self.facts), self.tokens)

    def _work(self, waiting: list[tuple[Origin, Sentence]], whole: int) -> None:
        """One call and its result."""
        if self.uses and self.uses[0][0] < self.tokens:
            self._use()
            return
        said = self.noise.plan() + self._fact("decision", waiting, whole)
        name, arguments, lines = self._tool()
        found = self._fact("result", waiting, whole) or self._fact("error", waiting, whole)
        if found:
            lines.insert(self.random.randint(len(lines) // 4, len(lines)), found.strip())
        self._call(said, name, arguments, "\n".join(lines))

    def _tool(self) -> tuple[str, dict[str, str], list[str]]:
        match self.random.randrange(10):
            case 0 | 1 | 2:
                return "read_file", {"path": self.noise.path()}, self.noise.source()
            case 3 | 4:
                return "bash", {"cmd": f"make test ONLY={self.noise.path()}"}, self.noise.log()
            case 5:
                return "bash", {"cmd": f"find {self.noise.path().rpartition('/')[0]} -size +1k"}, self.noise.listing()
            case 6:
                return "grep", {"pattern": self.noise.plan().split()[-1]}, self.noise.hits()
            case _:
                return "edit_file", (edit := self.noise.edit()), [f"{edit['path']} changed, 1 place"]

    def _fact(self, origin: Origin, waiting: list[tuple[Origin, Sentence]], whole: int) -> str:
        """The next fact, if its time has come and this is how it is said."""
        due = LAST * self.goal * (whole - len(waiting)) / whole
        if not waiting or self.tokens < due or waiting[-1][0] != origin:
            return ""
        _, sentence = waiting.pop()
        value = fill(sentence.value, self.random)
        text = sentence.text.format(value)
        at = len(self.messages) + (origin in ("result", "error"))
        if sentence.use and self.tokens + 2 * LATER < LAST * self.goal:
            self.uses.append((self.tokens + LATER, len(self.facts), sentence.use.format(value)))
        self.facts.append(Fact(origin, value, text, sentence.question, (at,)))
        return f" {text}"

    def _use(self) -> None:
        """A fact once more, as an argument."""
        _, n, command = self.uses.pop(0)
        fact = self.facts[n]
        self.facts[n] = Fact(fact.origin, fact.value, fact.sentence, fact.question, (*fact.places, len(self.messages)))
        self._call(self.noise.plan(), "bash", {"cmd": command}, "ok")

    def _call(self, said: str, name: str, arguments: dict[str, str], result: str) -> None:
        self.made += 1
        id = f"call_{self.made}"
        written = json.dumps(arguments)
        made = [{"id": id, "type": "function", "function": {"name": name, "arguments": written}}]
        self._add({"role": "assistant", "content": said, "tool_calls": made}, f"{said}{name}{written}")
        self._add({"role": "tool", "tool_call_id": id, "content": result}, result)

    def _say(self, role: str, text: str) -> None:
        self._add({"role": role, "content": text}, text)

    def _add(self, message: Message, text: str) -> None:
        self.messages.append(message)
        self.tokens += self.count(text) + AROUND


def _shuffled(random: Random) -> list[tuple[Origin, Sentence]]:
    """All there is to say, in some order; the next one stands last."""
    found = [(origin, sentence) for origin, sentences in SENTENCES.items() for sentence in sentences]
    random.shuffle(found)
    return found
