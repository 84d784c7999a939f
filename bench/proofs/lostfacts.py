"""lost-in-compaction: do the keywords of facts survive when the oldest 5, 25, 50 and 98 % are compacted?

Their contexts hold facts of questions that are kept from whoever works on clew, so contexts are built anew by their
recipe (their run R4: facts of three kinds of question, cut to the messages around the evidence, evenly between other
chats, 190,000 tokens at 4.3 characters) from those questions of LongMemEval-S that are there."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product
from multiprocessing import get_context
from random import Random

from benchmark.judging import MODEL, RECALLED, shown
from benchmark.memories import SOURCE, Question, Spoken, questions
from clew.compression import compress
from proofs import Figures, Missing, Settings, place
from proofs.beside import cut
from proofs.tables import share, table

LEVELS = {"C1": 0.05, "C2": 0.25, "C3": 0.50, "C4": 0.98}
SIZES = (
    400,
    4_096,
)  # tokens: about what their summaries have (385 to 2,001 characters), and what most compactors may write
LONG = 817_000  # characters
LEFT_OUT = {"temporal-reasoning", "multi-session"}
CONTEXTS = 4
# Of the facts in the compacted part, those whose keywords are all still somewhere in the context: paper, section 5.2.
PUBLISHED = {"C1": "50 %", "C2": "82 to 91 %", "C3": "83 to 93 %", "C4": "59 to 62 %"}
# Words that say nothing of an answer.
COMMON = frozenset(
    "a about after all also an and any are as at be before both but by can could did do does each for from had has have"
    " he her his how i if in into is it its just may me more most my no not of on only or our out she should so some"
    " than that the their them then these they this those to up very was we were what when where which who why will"
    " with would yet you your".split()
)


@dataclass(frozen=True)
class Fact:
    """A question, the words of its answer, and the messages that hold it."""

    question: str
    keywords: frozenset[str]
    turns: tuple[Spoken, ...]


@dataclass(frozen=True)
class Context:
    """A long chat, where in it each fact begins, and other chats to fill it up again."""

    turns: tuple[Spoken, ...]
    facts: tuple[tuple[int, Fact], ...]
    more: tuple[Spoken, ...]


def measure(settings: Settings) -> Figures:
    """Every level of compaction at both sizes."""
    asked = list(questions(place(SOURCE, settings)))
    facts = [fact_of(question) for question in asked if question.kind not in LEFT_OUT and question.marked]
    if not facts:
        raise Missing("no questions with marked evidence are there")
    count = 1 if settings.quick else settings.some(CONTEXTS)
    contexts = [context(facts, others(asked), Random(settings.seed + n)) for n in range(count)]
    jobs = list(product(contexts, LEVELS, SIZES))
    found = Counter[str]()
    with get_context("spawn").Pool(settings.processes) as pool:
        for done, counts in enumerate(pool.imap_unordered(compacted, jobs)):
            settings.heard("levels", done, len(jobs))
            found.update(counts)
    whole = sum(all_in(fact, text(context.turns)) for context in contexts for _, fact in context.facts)
    return {
        "contexts": count,
        "facts": len(facts),
        "before": [whole, count * len(facts)],
        "sizes": list(SIZES),
        "found": dict(sorted(found.items())),
    }


def fact_of(question: Question) -> Fact:
    """The evidence of a question, with a message before and after each."""
    near = [turn for turn in question.chat if turn.session in question.sessions]
    marked = [n for n, turn in enumerate(near) if turn.evidence]
    kept = [turn for n, turn in enumerate(near) if any(abs(n - at) <= 1 for at in marked)]
    return Fact(question.text, keywords(question.answer), tuple(kept))


def keywords(answer: str) -> frozenset[str]:
    """The words and numbers of an answer that say something."""
    words = re.findall(r"[\w']+", answer.lower())
    return frozenset(w for w in words if len(w) > 1 and w not in COMMON) or frozenset(words)


def others(asked: Sequence[Question]) -> list[tuple[Spoken, ...]]:
    """The chats that are evidence of no question."""
    holding = frozenset(chain.from_iterable(question.sessions for question in asked))
    chats: dict[str, list[Spoken]] = {}
    for question in asked:
        mine: dict[str, list[Spoken]] = {}
        for turn in question.chat:
            mine.setdefault(turn.session, []).append(turn)
        chats = mine | chats
    return [tuple(turns) for id, turns in sorted(chats.items()) if id not in holding]


def context(facts: Sequence[Fact], chats: Sequence[tuple[Spoken, ...]], random: Random) -> Context:
    """Chats, with the facts evenly between them."""
    mixed, padding = random.sample(facts, len(facts)), random.sample(chats, len(chats))
    room = LONG - sum(length(fact.turns) for fact in facts)
    turns: list[Spoken] = []
    places: list[tuple[int, Fact]] = []
    used = 0
    while padding and used < room:
        if len(places) < len(mixed) and used >= room * (len(places) + 1) / (len(mixed) + 1):
            fact = mixed[len(places)]
            places.append((len(turns), fact))
            turns += fact.turns
        else:
            chat = padding.pop()
            turns += chat
            used += length(chat)
    for fact in mixed[len(places) :]:
        places.append((len(turns), fact))
        turns += fact.turns
    return Context(tuple(turns), tuple(places), tuple(chain.from_iterable(padding)))


def compacted(job: tuple[Context, str, int]) -> Counter[str]:
    """Which facts of the compacted part are still there, by where one looks."""
    whole, level, size = job
    at = min(max(2, int(len(whole.turns) * LEVELS[level])), len(whole.turns) - 2)
    messages = [turn.message for turn in whole.turns[:at]]
    found = compress(messages, model=MODEL, target_tokens=size)
    stand_in = shown(found.messages)
    rest = text(whole.turns[at:])
    rest += text(whole.more)[: max(0, LONG - len(stand_in) - len(rest))]
    counts = Counter[str]()
    for begin, fact in whole.facts:
        if begin < at:
            recalled = found.answer(fact.question, RECALLED)[:RECALLED]
            counts[f"{level} {size} of"] += 1
            counts[f"{level} {size} context"] += all_in(fact, stand_in + rest)
            counts[f"{level} {size} stand-in"] += all_in(fact, stand_in)
            counts[f"{level} {size} tail"] += all_in(fact, cut(shown(messages), size))
            counts[f"{level} {size} recall"] += all_in(fact, stand_in + recalled)
    return counts


def all_in(fact: Fact, told: str) -> bool:
    """Whether a text has all keywords: as parts of words, too, as they count."""
    lower = told.lower()
    return all(word in lower for word in fact.keywords)


def text(turns: Sequence[Spoken]) -> str:
    return "\n".join(turn.text for turn in turns)


def length(turns: Sequence[Spoken]) -> int:
    return sum(len(turn.text) for turn in turns)


# --- what the documents say -------------------------------------------------------------------------------------------

COLUMNS = {
    "context": "anywhere in the context",
    "stand-in": "in clew's stand-in alone",
    "tail": "in a tail of that size",
    "recall": "stand-in and one recall",
}


def blocks(figures: Figures) -> dict[str, str]:
    """A row for each level and size."""
    rows = [
        [level, f"{size:,}", str(figures["found"].get(f"{level} {size} of", 0)), PUBLISHED[level]]
        + [kept(figures, level, size, column) for column in COLUMNS]
        for level, size in product(LEVELS, figures["sizes"])
    ]
    head = ["level", "tokens", "facts", "theirs, anywhere in the context", *COLUMNS.values()]
    told = f"{figures['contexts']} contexts with {figures['facts']} facts each; before any compaction"
    return {"lostfacts": f"{told} {share(*figures['before'])} have all their keywords.\n\n{table(head, rows)}"}


def published(figures: Figures) -> Iterator[list[str]]:
    """Theirs and ours at the strongest level."""
    for level in ("C2", "C4"):
        ours = kept(figures, level, figures["sizes"][0], "context")
        recall = kept(figures, level, figures["sizes"][0], "recall")
        what = f"keywords of facts after {LEVELS[level]:.0%} were compacted"
        theirs = f"{PUBLISHED[level]} (summary by Claude Haiku 4.5)"
        yield ["[lost-in-compaction](#lost-in-compaction)", what, theirs, f"{ours}; with one recall {recall}"]


def behind(figures: Figures) -> Iterator[str]:
    """Levels at which their summaries keep more."""
    for level, told in PUBLISHED.items():
        least = float(told.split()[0]) / 100
        size = figures["sizes"][0]
        if float(ours := kept(figures, level, size, "context")) < least:
            recall = kept(figures, level, size, "recall")
            yield (
                f"lost-in-compaction, {level}: a model's summary keeps the keywords of {told}, clew's of {size} tokens"
                f" of {ours} ({recall} with one recall)."
            )


def kept(figures: Figures, level: str, size: int, column: str) -> str:
    found = figures["found"]
    return share(found.get(f"{level} {size} {column}", 0), found.get(f"{level} {size} of", 0))
