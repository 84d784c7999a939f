"""Sessions of many kinds with facts in them. A seed composes the generator, too: which tools, how long results are,
how facts are worded, who tells them, where they stand, and which of them change later.

What they are composed of is in kinds/*.toml and languages/*.toml."""

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal

from benchmark.judging import MODEL
from benchmark.planting import AROUND, Message
from benchmark.sentences import fill
from clew.tokens import counter_for

HERE = Path(__file__).parent
KINDS = tuple(sorted(path.stem for path in (HERE / "kinds").glob("*.toml")))
SLOT = re.compile(r"\{(noun|verb|int|hex|time)\}")
END = 0.9  # nothing is planted after this part of a session

Voice = Literal["user", "assistant", "result"]
Spread = Literal["even", "early", "late", "bunched"]


@dataclass(frozen=True)
class Planting:
    """Something that was said, and perhaps corrected: only the last value is true."""

    about: str
    question: str
    values: tuple[str, ...]

    @property
    def value(self) -> str:
        return self.values[-1]

    @property
    def stale(self) -> tuple[str, ...]:
        return self.values[:-1]


@dataclass(frozen=True)
class Composed:
    """A session and what was planted in it."""

    kind: str
    messages: list[Message]
    plantings: tuple[Planting, ...]
    tokens: int


@dataclass(frozen=True)
class Style:
    """How one session goes: drawn once, by the seed."""

    tools: Sequence[dict[str, Any]]
    calls: tuple[int, int]  # in a turn
    lines: tuple[int, int]  # of a result
    sentences: tuple[int, int]  # of an answer
    spread: Spread
    voices: Sequence[Voice]  # who tells facts; some more often than others
    changing: float  # share of the facts that are corrected later


@dataclass
class _Due:
    """A value that is to be said once this part of the session is over."""

    part: float
    fact: int
    turn: int  # which of the values
    voice: Voice


def compose(kind: str, seed: int, tokens: int, facts: int = 24) -> Composed:
    """A session of about this many tokens; the same for the same arguments."""
    return _Writer(kind, Random(f"{kind} {seed} {tokens}"), tokens, facts).written()


def drawn(kind: dict[str, Any], random: Random) -> Style:
    """A style for a session of this kind."""
    tools = kind.get("tools", [])
    some = random.sample(tools, random.randint(min(2, len(tools)), len(tools)))
    voices: list[Voice] = ["user", "assistant", "result"] if some else ["user", "assistant"]
    least = random.randint(1, 3)
    shortest = random.choice((3, 10, 25))
    wordy = random.choice((1, 2)) if some else random.choice((6, 15))
    return Style(
        [{**tool, "name": random.choice(tool["names"])} for tool in some],
        (least, least + random.randint(0, 6)) if some else (0, 0),
        (shortest, shortest * random.choice((2, 4))),
        (wordy, wordy * 3),
        random.choice(("even", "early", "late", "bunched")),
        [*voices, *random.choices(voices, k=2)],
        random.uniform(0.2, 0.5),
    )


@cache
def _read(folder: str, name: str) -> dict[str, Any]:
    return tomllib.loads((HERE / folder / f"{name}.toml").read_text(encoding="utf-8"))


class _Writer:
    """Writes a session down and keeps count."""

    def __init__(self, name: str, random: Random, goal: int, facts: int) -> None:
        self.name, self.random, self.goal = name, random, goal
        self.kind = _read("kinds", name)
        self.language = _read("languages", self.kind["language"])
        self.style = drawn(self.kind, random)
        self.count: Callable[[str], int] = counter_for(MODEL).text
        self.messages: list[Message] = []
        self.tokens = self.made = 0
        self.facts = self._thought_up(facts)
        self.said: list[list[str]] = [[] for _ in self.facts]
        self.due = sorted(self._planned(), key=lambda due: due.part)

    def written(self) -> Composed:
        self._say("system", self.random.choice(self.kind["system"]))
        while self.tokens < self.goal:
            self._say("user", self._with_fact(self._filled("asks"), "user"))
            for _ in range(self.random.randint(*self.style.calls)):
                self._call()
            text = " ".join(self._filled("answers") for _ in range(self.random.randint(*self.style.sentences)))
            self._say("assistant", self._with_fact(text, "assistant"))
        self._say("user", self.random.choice(self.language["last"]))
        told = [(fact, said) for fact, said in zip(self.facts, self.said, strict=True) if said]
        plantings = tuple(Planting(about, question, tuple(said)) for (about, question, _), said in told)
        return Composed(self.name, self.messages, plantings, self.tokens)

    # --- what is planted ----------------------------------------------------------------------------------------------

    def _thought_up(self, many: int) -> list[tuple[str, str, str]]:
        """What facts are about, how one asks for them, and the shape of their values: no two about the same."""
        found: dict[str, tuple[str, str, str]] = {}
        possible = len(self.kind["facts"]) * len(self.kind["nouns"])
        while len(found) < min(many, possible):
            about, shape = self.random.choice(self.kind["facts"])
            about = self._slots(about)
            found.setdefault(about, (about, self.random.choice(self.language["ask"]).format(about=about), shape))
        return list(found.values())

    def _planned(self) -> list[_Due]:
        centres = [self.random.uniform(0, END) for _ in range(3)]
        found = []
        for fact in range(len(self.facts)):
            part = self._part(centres)
            found.append(_Due(part, fact, 0, self.random.choice(self.style.voices)))
            if self.random.random() < self.style.changing:
                later = self.random.uniform(part, END)
                found.append(_Due(later, fact, 1, self.random.choice(self.style.voices)))
        return found

    def _part(self, centres: Sequence[float]) -> float:
        match self.style.spread:
            case "early":
                return END * self.random.random() * self.random.random()
            case "late":
                return END * max(self.random.random(), self.random.random())
            case "bunched":
                return min(END, max(0.0, self.random.gauss(self.random.choice(centres), 0.02)))
        return END * self.random.random()

    def _with_fact(self, text: str, voice: Voice) -> str:
        """A text and, if one is due in this voice, a fact before or after it."""
        fact = self._fact(voice)
        if not fact:
            return text
        return f"{text} {fact}" if self.random.random() < 0.7 else f"{fact} {text}"

    def _fact(self, voice: Voice) -> str:
        part = self.tokens / self.goal
        for due in self.due:
            if due.part > part:
                return ""
            if due.voice == voice and due.turn == len(self.said[due.fact]):
                self.due.remove(due)
                about, _, shape = self.facts[due.fact]
                value = self._value(shape)
                self.said[due.fact].append(value)
                frames = self.language["changed" if due.turn else voice]
                text = str(self.random.choice(frames).format(about=about, value=value))
                plain = voice == "result" or text.startswith(value)  # else it begins like a sentence
                return text if plain else text[:1].upper() + text[1:]
        return ""

    def _value(self, shape: str) -> str:
        """A value of this shape that nobody has said yet; * is a plain word."""
        known = {value for said in self.said for value in said}
        while True:
            words = "".join(self.random.choice(self.language["words"]) if c == "*" else c for c in shape)
            if (value := fill(words, self.random)) not in known:
                return value

    # --- what is around it --------------------------------------------------------------------------------------------

    def _call(self) -> None:
        tool = self.random.choice(self.style.tools)
        arguments = json.dumps(
            {name: self._slots(text) for name, text in tool["arguments"].items()}, ensure_ascii=False
        )
        said = self._with_fact(self._filled("thoughts"), "assistant") if self.random.random() < 0.6 else ""
        many = self.random.randint(*self.style.lines) if len(tool["lines"]) > 1 else 1
        lines = [self._slots(self.random.choice(tool["lines"])) for _ in range(many)]
        if fact := self._fact("result"):
            lines.insert(self.random.randint(0, len(lines)), fact)
        self.made += 1
        id, result = f"call_{self.made}", "\n".join(lines)
        call = {"id": id, "type": "function", "function": {"name": tool["name"], "arguments": arguments}}
        self._add({"role": "assistant", "content": said, "tool_calls": [call]}, f"{said}{tool['name']}{arguments}")
        self._add({"role": "tool", "tool_call_id": id, "content": result}, result)

    def _filled(self, what: str) -> str:
        return self._slots(self.random.choice(self.kind[what])) if self.kind[what] else ""

    def _slots(self, text: str) -> str:
        """A template with something in each of its gaps, another thing each time."""
        return SLOT.sub(lambda slot: self._slot(slot[1]), text)

    def _slot(self, name: str) -> str:
        random = self.random
        match name:
            case "noun" | "verb":
                return str(random.choice(self.kind[f"{name}s"]))
            case "int":
                return str(random.randint(2, 999))
            case "hex":
                return f"{random.getrandbits(40):010x}"
        return f"{random.randint(0, 23):02}:{random.randint(0, 59):02}:{random.randint(0, 59):02}"

    def _say(self, role: str, text: str) -> None:
        self._add({"role": role, "content": text}, text)

    def _add(self, message: Message, text: str) -> None:
        self.messages.append(message)
        self.tokens += self.count(text) + AROUND
