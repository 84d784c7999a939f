"""Which of a model's notes are believed: those that name sources, invent nothing and give the user no words."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Literal, NamedTuple

from clew.claims import DIRECTIVE, Claim
from clew.drafting.reading import Note
from clew.facts.finding import find
from clew.facts.sheets import key_of, voice_of
from clew.framing import neutral
from clew.items import Node
from clew.past import Past
from clew.steps.lines import clip
from clew.steps.outcome import failed

Doubt = Literal["uncited", "invented", "unfounded", "unproven", "not the user's words"]

LONG = 300  # characters of a claim
STEM = 5  # letters by which a word is the same word
FOUNDED = 1 / 3  # of a note's words must stand in what it cites
FEW = 12  # characters of a quotation that can be found in one place

# Words of tools that say how something went, and nothing about what to do.
OUTCOMES = frozenset(
    "passe passi fail faile failu error succe warni exit exite found missi compl retur outpu resul".split()
)

_WORD = re.compile(r"[^\W\d_]{4,}")


class Checked(NamedTuple):
    """The claims that hold, and how many notes were not believed, by reason."""

    claims: tuple[Claim, ...]
    doubts: Mapping[Doubt, int]


class Sources:
    """The nodes that a model was shown, as evidence."""

    def __init__(self, nodes: Sequence[Node], labels: Mapping[str, str], past: Past) -> None:
        self.nodes = nodes
        self.order = {node.id: n for n, node in enumerate(nodes)}
        self._labelled = {label: id for id, label in labels.items()}
        self._past = past

    def check(self, notes: Iterable[Note], earlier: Sequence[Claim] = ()) -> Checked:
        """Which notes hold."""
        claims: list[Claim] = []
        doubts: Counter[Doubt] = Counter()
        for note in notes:
            found = self._judged(note, earlier)
            if isinstance(found, Claim):
                claims.append(found)
            else:
                doubts[found] += 1
        return Checked(tuple(claims), doubts)

    def _judged(self, note: Note, earlier: Sequence[Claim]) -> Claim | Doubt:
        cited = self._cited(note)
        if not cited or (note.stale and note.about >= len(earlier)):
            return "uncited"
        ids = tuple(node.id for node in cited)
        if note.stale:
            return Claim(earlier[note.about].section, "", ids, about=note.about, stale=True)
        if note.section == "constraints":
            return self._demand(note, cited)
        if any(key_of(f.kind, f.text) not in self.facts and f.text not in self.whole for f in find(note.text)):
            return "invented"
        words = stems(note.text)
        if words and len(words & stems(" ".join(_said(n) for n in cited))) < FOUNDED * len(words):
            return "unfounded"
        if note.state == "done" and not _proven(cited):
            return "unproven"
        text = clip(neutral(note.text), LONG)
        if note.section in DIRECTIVE and not self._is_theirs(note.text, cited):
            # A tool may have put it there: it may be known, but it is nothing to act on.
            return Claim("findings", text, ids)
        return Claim(note.section, text, ids, note.state, note.about)

    def _cited(self, note: Note) -> list[Node]:
        ids = {self._labelled[label] for label in note.labels if label in self._labelled}
        for quote in note.quotes:
            words = _plain(quote)
            if len(words) >= FEW:
                ids.update(id for id, text in self._texts.items() if words in text)
        return [self.nodes[i] for i in sorted(self.order[id] for id in ids)]

    def _demand(self, note: Note, cited: Sequence[Node]) -> Claim | Doubt:
        """A constraint is what the user typed, and nothing else."""
        words = _plain(note.text.strip("\"'“”‘’ "))
        typed = [n for n in cited if voice_of(n.item) == "user" and words in _plain(n.item.text)]
        if len(words) < FEW or not typed:
            return "not the user's words"
        return Claim("constraints", clip(neutral(note.text.strip("\"'“”‘’ ")), LONG), tuple(n.id for n in typed))

    def _is_theirs(self, text: str, cited: Sequence[Node]) -> bool:
        """Whether the user or the assistant said it: it cites one of them, and has no word that only a tool said."""
        if all(voice_of(n.item) == "result" for n in cited):
            return False
        theirs, tools = self._voices
        if (stems(text) & tools) - theirs - OUTCOMES:
            return False
        named = {key_of(f.kind, f.text) for f in find(text)}
        return named <= self._named

    @cached_property
    def facts(self) -> set[str]:
        """The names, paths and numbers that anybody said."""
        return {key for n in self.nodes for key in self._past.sheet(n.id, n.item).facts}

    @cached_property
    def whole(self) -> str:
        """All of it."""
        return "\n".join(_said(n) for n in self.nodes)

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {n.id: _plain(_said(n)) for n in self.nodes}

    @cached_property
    def _voices(self) -> tuple[set[str], set[str]]:
        """The words of user and assistant, and those of tools."""
        theirs, tools = set[str](), set[str]()
        for node in self.nodes:
            (tools if voice_of(node.item) == "result" else theirs).update(stems(_said(node)))
        return theirs, tools

    @cached_property
    def _named(self) -> set[str]:
        """The names that user and assistant said; any that nobody else did."""
        said = (n for n in self.nodes if voice_of(n.item) != "result")
        return {key for n in said for key in self._past.sheet(n.id, n.item).facts}


def stems(text: str) -> set[str]:
    """The words of a text, by their first letters."""
    return {word[:STEM].lower() for word in _WORD.findall(text)}


def _said(node: Node) -> str:
    return f"{node.item.name} {node.item.text}" if node.item.kind == "call" else node.item.text


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _proven(cited: Sequence[Node]) -> bool:
    """Whether the newest of these that can prove anything is a result that went well, or the user's word."""
    proofs = [n for n in cited if voice_of(n.item) in ("result", "user")]
    return bool(proofs) and not (proofs[-1].item.kind == "result" and failed(proofs[-1].item))
