"""Finding: which lines of what was said a question is about.

Texts are cut into passages of a few lines and ranked with BM25. Any word may hit, rare ones weigh more; of equals the
newer leads.
"""

import json
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log
from typing import NamedTuple

from clew.clients.voices import VoicePart, parts_not_by_client, parts_of, typed
from clew.core.bounds import TEXT_SEARCHED, unread
from clew.core.items import SHORT, Item, Node
from clew.core.own_tools import is_own_tool
from clew.text.passages import PASSAGE, NumberedLine, Passage, asks, passages
from clew.text.words import CHUNK, JOINT, NAME_PATTERN, is_lone_sign, is_name, leaves, parts, terms

TITLE_CHARACTERS = 120  # characters of a call that its result is known by
PASSAGES_SHARE = 0.5  # of an answer that is passages; the rest names what stands near them
NAMED_PASSAGES = 300  # passages whose names are looked at
FAINT_SHARE = 0.15  # of the best score: what is below is noise
ALSO = "also named near these: "

# Weights, tuned on real conversations: how soon a repeated word adds little, how much a long passage loses; what a path
# in the title, a word in it, a hit in the passage beside it or in the same text, being new is worth.
SATURATION, PASSAGE_LENGTH_LOSS = 1.2, 0.3
TITLE_PATH_WEIGHT, TITLE_WORD_WEIGHT, BESIDE_WEIGHT, SAME_TEXT_WEIGHT, NEW_WEIGHT = 2, 0.2, 0.1, 0.6, 0.1
TURN_WORDS = 400  # words after which a part of a long text ends
TEXT_LENGTH_LOSS = 0.75  # how much a long text loses: as always with BM25


class SearchText(NamedTuple):
    """Something said: by whom or what, and its words."""

    id: str
    title: str
    body: str
    call: str = ""  # the id of the one that its title quotes


class Found(NamedTuple):
    """A text that a question is about, and the lines that say so."""

    id: str
    title: str
    score: float
    lines: tuple[NumberedLine, ...]


def texts(nodes: Iterable[Node], own: bool = True) -> list[SearchText]:
    """What was said, ready to be searched; a result has the call it answers as its title.

    Without what clients and clew say of their `own`, if nobody asks for that.
    """
    found, calls, asked = [], dict[str, tuple[str, str]](), set[str]()
    for node in nodes:
        item, body = node.item, wording(node.item)
        kept = None if own or item.kind == "call" else parts_not_by_client(item)
        if kept is not None:
            body = _at_their_lines(item.text, kept)
        title: str = "a program" if is_made(item) else item.role
        answers, call = calls.get(item.call_id, ("a tool", "")) if item.kind == "result" else ("", "")
        if item.call_id and (item.call_id in asked or (item.kind == "call" and is_own_tool(item.name))):
            asked.add(item.call_id)  # who looks for something would find his own question, and copies
            continue
        if item.kind == "call":
            title = f"call of {' '.join(item.name.split())}"
            words = " ".join(body[: TITLE_CHARACTERS * 4].split())
            calls[item.call_id] = f"{item.name} {words[:TITLE_CHARACTERS]}", node.id
        elif answers:
            title = f"result of {answers}"
        said, printed = _apart(item, parts_of(item) if kept is None else kept) if title == "user" else (body, "")
        if said and not said.isspace():
            left = unread(len(said), TEXT_SEARCHED)
            found.append(SearchText(node.id, f"{title} ({left})" if left else title, said[:TEXT_SEARCHED], call))
        if printed and not printed.isspace():
            found.append(SearchText(node.id, "a program", printed[:TEXT_SEARCHED]))
    return found


def _apart(item: Item, parts: Sequence[VoicePart]) -> tuple[str, str]:
    """What a person said of an item, and what a program did."""
    by = [part.speaker == "person" for part in parts]
    said, printed = ([p for p, theirs in zip(parts, by, strict=True) if theirs is person] for person in (True, False))
    return _at_their_lines(item.text, said), _at_their_lines(item.text, printed)


def _at_their_lines(text: str, parts: Sequence[VoicePart]) -> str:
    """Parts of a text, each at its lines: by them it is recalled."""
    found, at = list[str](), 0
    for part in parts:
        found += ["\n" * text.count("\n", at, part.start), text[part.start : part.stop]]
        at = part.stop
    return "".join(found)


def is_made(item: Item) -> bool:
    """Whether no person said it, though it stands under the user's role."""
    return item.role == "user" and not typed(item)


def wording(item: Item) -> str:
    """An item as one reads it: a call's arguments line by line, not as JSON in one."""
    if item.kind != "call":
        return item.text
    try:
        return "\n".join(leaves(json.loads(item.text)))
    except (ValueError, RecursionError):
        return item.text


class Index:
    """Texts cut into passages, oldest first; made once, asked often.

    `answers` has which text answers which; the one that is asked `now` comes last.
    """

    def __init__(self, texts: Sequence[SearchText], answers: Mapping[str, str] | None = None, now: str = "") -> None:
        self.texts = texts
        place = {text.id: n for n, text in enumerate(texts)}
        known = (answers or {}).items()
        self._answers = {place[asked]: place[said] for asked, said in known if asked in place and said in place}
        self._now = place.get(now)
        self.passages: list[Passage] = []
        self._spans: list[range] = []  # the passages of each text
        self._chunks: dict[str, list[int]] = {}  # the passages that hold a chunk, once for each time
        for n, text in enumerate(texts):
            first = len(self.passages)
            for lines in passages(text.body):
                self._add(n, lines)
            self._spans.append(range(first, len(self.passages)))
        self._holding = _by_part(self._chunks)
        self._part: list[int] = []  # of each passage: a text, or a part of a long one that is as long as a turn
        self._of: list[int] = []  # the text of each part
        self._sizes: list[int] = []  # its words
        for passage in self.passages:
            if not self._of or self._of[-1] != passage.text or self._sizes[-1] >= TURN_WORDS:
                self._of.append(passage.text)
                self._sizes.append(0)
            self._sizes[-1] += passage.words
            self._part.append(len(self._of) - 1)
        self._titles: dict[str, list[int]] = defaultdict(list)
        for n, text in enumerate(texts):
            for term in terms(text.title):
                self._titles[term].append(n)

    def _add(self, text: int, lines: tuple[NumberedLine, ...]) -> None:
        words = [chunk for line in lines for chunk in CHUNK.findall(line.text)]
        for chunk in words:
            self._chunks.setdefault(chunk, []).append(len(self.passages))
        self.passages.append(Passage(text, lines, len(words)))

    def ranked(self, question: str) -> list[tuple[int, float]]:
        """(passage, score) of all that holds a word of the question, best first; what was said twice counts once."""
        scores = self._scores(terms(question))
        unique: dict[tuple[str, ...], None] = {}
        out = []
        for i in sorted(scores, key=lambda i: (-scores[i], -i)):
            said = tuple(line.text.strip() for line in self.passages[i].lines)
            if said not in unique:
                unique[said] = None
                out.append((i, scores[i]))
        if self._now is not None:
            out.sort(key=lambda found: self.passages[found[0]].text == self._now)
        return self._answered(out, scores) if self._answers else out

    def _answered(self, ranked: Iterable[tuple[int, float]], scores: Mapping[int, float]) -> list[tuple[int, float]]:
        """The same, before each question the passage that answers it best: who asks again has the question already."""
        out: dict[int, float] = {}
        for i, score in ranked:
            if i not in out and (answer := self.answer_to(i, scores)) is not None:
                out.setdefault(answer, score)
            out.setdefault(i, score)
        return list(out.items())

    def answer_to(self, passage: int, scores: Mapping[int, float]) -> int | None:
        """The passage of an answer that has most of what was looked for, if the passage is of a question."""
        said = self._answers.get(self.passages[passage].text)
        if said is None or not any(asks(line.text) for line in self.passages[passage].lines):
            return None
        return max(self._spans[said], key=lambda i: scores.get(i, 0), default=None)

    def beginning(self, starts: Iterable[str]) -> list[str]:
        """The words that begin like one of these."""
        starts = tuple(starts)
        return [word for word in self._holding if word.isalpha() and word.startswith(starts)]

    def find(self, question: str, limit: int = 20, passages: int = 3) -> list[Found]:
        """The texts that a question is about, best first, each with its best passages."""
        chosen: dict[int, list[int]] = {}
        for i, _ in self.ranked(question):
            chosen.setdefault(self.passages[i].text, []).append(i)
        scores = {n: score for n, score in self._turns(terms(question)).items() if n in chosen}
        for asked, said in self._answers.items():
            if asked in scores and self.answer_to(chosen[asked][0], {}) is not None:
                scores[said] = max(scores.get(said, 0), scores[asked])  # and of equals the newer leads
        order = sorted(scores, key=lambda n: (n == self._now, -scores[n], -n))
        return [
            Found(self.texts[n].id, self.texts[n].title, round(scores[n], 3), self._lines(chosen[n][:passages]))
            for n in order[:limit]
            if scores[n] >= FAINT_SHARE * scores[order[0]]
        ]

    def answer(self, question: str, size: int = 8_000) -> str:
        """What a question is about, in at most so many characters: the best passages, then the names around them."""
        ranked = self.ranked(question)
        taken = self._passages_within(ranked, int(size * PASSAGES_SHARE))
        told = "\n".join(taken)
        near = self._names_within(question, ranked, told, size - len(told) - len(ALSO) - 1)
        return f"{told}\n{ALSO}{near}" if near else told

    def _lines(self, passages: Iterable[int]) -> tuple[NumberedLine, ...]:
        return tuple(line for i in sorted(passages) for line in self.passages[i].lines)

    def _chunks_with(self, term: str) -> Sequence[str]:
        if is_lone_sign(term):
            return [chunk for chunk in self._chunks if term in chunk]
        return self._holding.get(term, ())

    def _scores(self, wanted: Mapping[str, float]) -> dict[int, float]:
        scores: dict[int, float] = defaultdict(float)
        mean = sum(p.words for p in self.passages) / max(1, len(self.passages))
        for term, worth in wanted.items():
            held = Tally(i for chunk in self._chunks_with(term) for i in self._chunks[chunk])
            weight = _rarity(len(held), len(self.passages)) * worth
            for i, times in held.items():
                long = 1 - PASSAGE_LENGTH_LOSS + PASSAGE_LENGTH_LOSS * self.passages[i].words / mean
                scores[i] += weight * times * (SATURATION + 1) / (times + SATURATION * long)
        # Of its turn, its title among it.
        best = {n: SAME_TEXT_WEIGHT * score for n, score in self._turns(wanted).items()}
        return self._spread(scores, best)

    def _entitled(self, wanted: Mapping[str, float]) -> Iterator[tuple[int, float]]:
        """What it is worth to a text that words stand in its title."""
        for term, worth in wanted.items():
            entitled = self._titles.get(term, ())
            share = TITLE_PATH_WEIGHT if worth >= 1 and JOINT.search(term) else TITLE_WORD_WEIGHT
            yield from ((n, worth * share * _rarity(len(entitled), len(self.texts))) for n in entitled)

    def _turns(self, wanted: Mapping[str, float]) -> dict[int, float]:
        """BM25 of whole texts, each word in another place of them; of a long text, that of its best part."""
        scores: dict[int, float] = defaultdict(float)
        mean = sum(self._sizes) / max(1, len(self._sizes))
        for term, worth in wanted.items():
            held = Tally(self._part[i] for chunk in self._chunks_with(term) for i in self._chunks[chunk])
            weight = _rarity(len(held), len(self._sizes)) * worth
            for part, times in held.items():
                long = 1 - TEXT_LENGTH_LOSS + TEXT_LENGTH_LOSS * self._sizes[part] / mean
                scores[part] += weight * times * (SATURATION + 1) / (times + SATURATION * long)
        best: dict[int, float] = defaultdict(float)
        for part, score in scores.items():
            best[self._of[part]] = max(best[self._of[part]], score)
        for n, more in self._entitled(wanted):
            best[n] += more
        return best

    def _spread(self, scores: Mapping[int, float], best: Mapping[int, float]) -> dict[int, float]:
        """The scores with what their text, their neighbours and their age add."""
        out: dict[int, float] = defaultdict(float, scores)
        for n, score in best.items():
            for i in self._spans[n]:
                out[i] += score
        for i, score in scores.items():
            span = self._spans[self.passages[i].text]
            for beside in (i - 1, i + 1):
                if beside in span:
                    out[beside] += BESIDE_WEIGHT * score
        return {i: score * (1 + NEW_WEIGHT * i / len(self.passages)) for i, score in out.items()}

    def _passages_within(self, ranked: Iterable[tuple[int, float]], size: int) -> list[str]:
        """Passages as lines, each under the text it is from, while they fit."""
        under: dict[int, list[str]] = {}
        for i, _ in ranked:
            passage = self.passages[i]
            n = passage.text
            lines = [f"{line.number}: {line.text}" for line in passage.lines]
            head = [] if n in under else [f"{self.texts[n].id[:SHORT]} {self.texts[n].title[:TITLE_CHARACTERS]}"]
            cost = sum(len(line) + 1 for line in (*head, *lines))
            if cost > size:
                if size < PASSAGE:
                    break
                continue
            size -= cost
            under.setdefault(n, head).extend(lines)
        return [line for lines in under.values() for line in lines]

    def _names_within(self, question: str, ranked: Sequence[tuple[int, float]], told: str, size: int) -> str:
        """Names that stand in the best passages and are not told yet, the likeliest first."""
        scores: dict[str, float] = defaultdict(float)
        near = ranked[:NAMED_PASSAGES] or [(i, 0.0) for i in range(len(self.passages))[-NAMED_PASSAGES:]]
        for rank, (i, score) in enumerate(near):
            for name in {m for line in self.passages[i].lines for m in NAME_PATTERN.findall(line.text)}:
                if is_name(name):
                    scores[name] += score / (rank + 10)
        asked = terms(question)
        weights = {t: _rarity(len(self._chunks_with(t)), len(self._chunks)) for t in asked}
        out = []
        for name in sorted(scores, key=lambda n: (-scores[n] - sum(weights.get(t, 0) for t in parts(n)) / 10, n)):
            if len(name) < size and name not in told and name.lower() not in asked:
                out.append(name)
                size -= len(name) + 1
        return " ".join(out)


def _by_part(chunks: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for chunk in chunks:
        for part in parts(chunk):
            found[part].append(chunk)
    return found


def _rarity(having: int, all: int) -> float:
    return log(1 + (all - having + 0.5) / (having + 0.5))
