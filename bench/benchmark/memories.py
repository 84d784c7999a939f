"""Questions about long chats, with the turns that hold the evidence: LongMemEval, and LoCoMo where somebody has it."""

import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.public import Source

# A public repository that holds 120 of the 500 questions of LongMemEval-S (MIT licence), drawn by kind.
SOURCE = Source(
    "longmemeval",
    "https://github.com/AlekseiSDev/adaptive_hybrid_compaction",
    "acfb30c85d4fbf7cb9b8155d9df97fff0fb2eb42",
    "benchmarks/longmemeval/tasks",
)

_WORD = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True)
class Spoken:
    """One message of a chat."""

    session: str
    role: str
    text: str
    evidence: bool = False  # of the question

    @property
    def message(self) -> dict[str, str]:
        return {"role": self.role, "content": self.text}


@dataclass(frozen=True)
class Question:
    """A question about a chat."""

    text: str
    answer: str
    sessions: frozenset[str]  # that hold the evidence
    chat: tuple[Spoken, ...]
    kind: str = ""  # as its authors sort them

    @property
    def marked(self) -> bool:
        """Whether it is known which messages hold the evidence."""
        return any(turn.evidence for turn in self.chat)

    @property
    def literal(self) -> bool:
        """Whether the answer stands in the evidence, word for word."""
        return holds(" ".join(turn.text for turn in self.chat if turn.evidence), self.answer)


def words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def holds(text: str, answer: str) -> bool:
    """Whether a text has the words of an answer, in a row."""
    return bool(wanted := " ".join(words(answer))) and f" {wanted} " in f" {' '.join(words(text))} "


class BM25:
    """Plain BM25 over messages: what a search without any of our ideas finds."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._counts = [Counter(words(text)) for text in texts]
        self._sizes = [count.total() for count in self._counts]
        self._mean = sum(self._sizes) / max(1, len(texts))
        self._having = Counter(word for count in self._counts for word in count)

    def ranked(self, question: str) -> list[int]:
        """Which texts have words of a question, best first."""
        scores = [(-self._score(n, question), n) for n in range(len(self._counts))]
        return [n for score, n in sorted(scores) if score < 0]

    def _score(self, n: int, question: str) -> float:
        count, long = self._counts[n], 1.2 * (0.25 + 0.75 * self._sizes[n] / self._mean)
        return sum(self._rare(w) * count[w] * 2.2 / (count[w] + long) for w in words(question) if w in count)

    def _rare(self, word: str) -> float:
        having = self._having[word]
        return math.log(1 + (len(self._counts) - having + 0.5) / (having + 0.5))


# --- where they are ---------------------------------------------------------------------------------------------------


def questions(folder: Path) -> Iterator[Question]:
    """All questions of a folder that can be answered: the authors' file, a file a question, or a line a question."""
    for item in _items(folder):
        id = str(item.get("question_id") or item.get("id"))
        if not id.endswith("_abs"):  # nothing in the chat answers those
            yield _question(item)


def _items(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted([*folder.glob("longmemeval_s*.json"), *folder.glob("lme_*.json"), *folder.glob("*.jsonl.gz")]):
        if path.name.startswith("lme_smoke"):  # made up by that repository
            continue
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                yield from map(json.loads, lines)
        else:
            found = json.loads(path.read_text(encoding="utf-8"))
            yield from found if isinstance(found, list) else [found]


def _question(item: dict[str, Any]) -> Question:
    if "sessions" in item:
        sessions = [(s["id"], s["turns"]) for s in item["sessions"]]
    else:
        sessions = list(zip(item["haystack_session_ids"], item["haystack_sessions"], strict=True))
    chat = tuple(
        Spoken(id, turn["role"], turn["content"], bool(turn.get("evidence") or turn.get("has_answer")))
        for id, turns in sessions
        for turn in turns
    )
    holding = frozenset(item.get("evidence") or item["answer_session_ids"])
    kind = str(item.get("type") or item.get("question_type") or "")
    return Question(item["question"], str(item["answer"]), holding, chat, kind)


def locomo(path: Path) -> Iterator[list[Question]]:
    """The questions of each dialogue of LoCoMo that have evidence."""
    for sample in json.loads(path.read_text(encoding="utf-8")):
        said = sample["conversation"]
        names = sorted((n for n in said if re.fullmatch(r"session_\d+", n)), key=lambda n: int(n.rpartition("_")[2]))
        turns = [(name, turn) for name in names for turn in said[name]]
        found = []
        for asked in sample["qa"]:
            proof = {id.strip() for told in asked.get("evidence") or () for id in told.split(";")}
            chat = tuple(_spoken(name, turn, said["speaker_a"], turn["dia_id"] in proof) for name, turn in turns)
            if proof and any(turn.evidence for turn in chat):
                holding = frozenset(turn.session for turn in chat if turn.evidence)
                found.append(Question(asked["question"], str(asked.get("answer", "")), holding, chat))
        yield found


def _spoken(session: str, turn: dict[str, Any], first: str, evidence: bool) -> Spoken:
    role = "user" if turn["speaker"] == first else "assistant"
    return Spoken(session, role, f"{turn['speaker']}: {turn['text']}", evidence)
