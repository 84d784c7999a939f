"""LongMemEval-S, without a model: does a search find the evidence, does a small view hold the answer?

With --data DIR questions are read from DIR/longmemeval (the authors' longmemeval_s.json, or a line a question); else
120 of the 500 are fetched from a public repository. DIR/locomo/locomo10.json is measured beside, and only printed: its
licence (CC BY-NC) does not let everybody use it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from benchmark.judging import MODEL, RECALLED, shown
from benchmark.memories import BM25, SOURCE, Question, holds, locomo, questions
from benchmark.methods import CLEW
from benchmark.peers import Peer
from clew.compression import Compressed, compress
from proofs import Figures, Missing, Settings, place
from proofs.beside import cut, everybody, left, together
from proofs.tables import cell, missing, named, share, table

SIZE = 20_000  # tokens of a view
AT = 1, 5, 10
HITS = [f"clew {what} {depth}" for what in ("session", "turn") for depth in AT]
# Session hits at 1, 5 and 10 of searches without a model, as their READMEs tell them.
PUBLISHED = {
    "deja-vu, 470 questions": (0.853, 0.955, 0.964),
    "MemPalace, 500 questions, vectors": (None, 0.966, None),
}
SEARCHES = {"bm25": "plain BM25", "clew": "clew's search"}


def measure(settings: Settings) -> Figures:
    """Every question, by both searches, and those with a literal answer by every method."""
    found = list(questions(place(SOURCE, settings)))
    asked = found[:: max(1, len(found) // (2 if settings.quick else settings.some(len(found))))]
    if not asked:
        raise Missing("no questions are there")
    hits, views, missed, why = Counter[str](), Counter[str](), Counter[str](), dict[str, str]()
    literal = [question for question in asked if question.literal]
    peers = [] if settings.quick else together()
    whole = len(asked) + len(peers)
    with get_context("spawn").Pool(settings.processes) as pool:
        for done, (kind, hit, kept) in enumerate(pool.imap_unordered(one_question, asked)):
            settings.heard("searches", done, whole)
            hits.update(hit)
            missed.update(f"{name}, {kind}" for name in HITS if name not in hit)
            views.update(kept)
        for done, (held, failed) in enumerate(pool.imap(partial(some_peers, asked=literal), peers), len(asked)):
            settings.heard("peers", done, whole)
            views.update(held)
            why |= failed
    if settings.data and (path := settings.data / "locomo" / "locomo10.json").is_file():
        print(f"LoCoMo, on this machine only: {local(path, settings)}")
    return {
        "questions": len(asked),
        "marked": sum(question.marked for question in asked),
        "literal": len(literal),
        "size": SIZE,
        "hits": dict(sorted(hits.items())),
        "kinds": dict(sorted(Counter(question.kind for question in asked).items())),
        "missed": dict(sorted(missed.items())),
        "views": dict(sorted(views.items())),
        "why": dict(sorted(why.items())),
        "peers": everybody(),
    }


def one_question(question: Question) -> tuple[str, Counter[str], Counter[str]]:
    """The kind, hits of both searches at each depth, who has the answer in view: clew, and the newest of the chat."""
    mine = compress(sent(question), model=MODEL, target_tokens=SIZE)
    hits = Counter(searched("clew", question, ranked(mine, question)))
    hits.update(searched("bm25", question, BM25([turn.text for turn in question.chat]).ranked(question.text)))
    views = {
        CLEW: shown(mine.messages),
        f"{CLEW}, one recall": mine.answer(question.text, RECALLED)[:RECALLED],
        "newest": cut(shown(sent(question)), SIZE),
    }
    held = Counter(name for name, text in views.items() if question.literal and holds(text, question.answer))
    return question.kind, hits, held


def some_peers(peers: Sequence[Peer], asked: Sequence[Question]) -> tuple[dict[str, int], dict[str, str]]:
    """How many answers peers have in their views, how often they gave no view, and why."""
    found, why = Counter[str](), dict[str, str]()
    for peer, views in left(peers, [(sent(question), SIZE) for question in asked]):
        found[peer.name] = sum(holds(view.text or "", q.answer) for q, view in zip(asked, views, strict=True))
        if faults := [view.why for view in views if view.text is None]:
            found[f"{peer.name}, no result"], why[peer.name] = len(faults), faults[0]
    return dict(found), why


def sent(question: Question) -> list[dict[str, str]]:
    """The chat, and the question as its newest message."""
    return [*(turn.message for turn in question.chat), {"role": "user", "content": question.text}]


def ranked(mine: Compressed, question: Question) -> list[int]:
    """The messages that clew's search finds, best first."""
    where: dict[str, int] = {}
    for n, turn in enumerate(question.chat):
        where.setdefault(turn.text, n)
    return [where[text] for _, text in mine.search(question.text, 50) if text in where]


def searched(name: str, question: Question, found: Sequence[int]) -> Iterator[str]:
    """Where a search hit: `clew session 5` if the evidence's session is among its first five."""
    sessions = list(dict.fromkeys(question.chat[n].session for n in found))
    for depth in AT:
        if question.sessions & set(sessions[:depth]):
            yield f"{name} session {depth}"
        if any(question.chat[n].evidence for n in found[:depth]):
            yield f"{name} turn {depth}"


def local(path: Path, settings: Settings) -> str:
    """Hits in LoCoMo."""
    hits, asked = Counter[str](), 0
    for found in list(locomo(path))[: 1 if settings.quick else settings.some(10)]:
        chat = found[0].chat
        plain, mine = BM25([t.text for t in chat]), compress([t.message for t in chat], model=MODEL, window=10**6)
        asked += len(found)
        for question in found:
            hits.update(searched("clew", question, ranked(mine, question)))
            hits.update(searched("bm25", question, plain.ranked(question.text)))
    return ", ".join(f"{name} {share(many, asked)}" for name, many in sorted(hits.items())) + f" of {asked}"


# --- what the documents say -------------------------------------------------------------------------------------------


def blocks(figures: Figures) -> dict[str, str]:
    """A table of searches and one of views."""
    hits, views = figures["hits"], figures["views"]
    kinds = {"session": figures["questions"], "turn": figures["marked"]}
    head = ["search", *(f"{kind} hit@{depth}" for kind in kinds for depth in AT)]
    rows = [
        [told, *(share(hits.get(f"{name} {kind} {depth}", 0), many) for kind, many in kinds.items() for depth in AT)]
        for name, told in SEARCHES.items()
    ]
    of_kinds = [
        [kind, str(many), *(str(figures["missed"].get(f"{name}, {kind}", 0)) for name in HITS)]
        for kind, many in figures["kinds"].items()
    ]
    missed = table(["kind of question", "asked", *head[1:]], of_kinds)
    mine = [CLEW, f"{CLEW}, one recall", "newest"]
    names = [*mine, *sorted(name for name in views if name not in mine and ", no result" not in name)]
    failed = {name: str(views.get(f"{name}, no result", 0)) for name in names}
    failed |= {name: f"{failed[name]} ({cell(told)})" for name, told in figures["why"].items()}
    held = [[name, share(views.get(name, 0), figures["literal"]), failed[name]] for name in names]
    held += missing(figures, 3)
    told = f"{figures['literal']} questions, views of {figures['size']:,} tokens."
    return {
        "longmemeval": f"{figures['questions']} questions.\n\n{table(head, rows)}\n\nMissed by clew:\n\n{missed}",
        "longmemeval.views": f"{told}\n\n{table(['method', 'holds the answer', 'no result'], held)}",
    }


def published(figures: Figures) -> Iterator[list[str]]:
    """What others say of their searches, at each depth, and ours."""
    for n, depth in enumerate(AT):
        theirs = "; ".join(f"{told[n]:.3f} ({name})" for name, told in PUBLISHED.items() if told[n] is not None)
        found = f"{ours(figures, depth):.3f} ({figures['questions']} questions)"
        yield ["[LongMemEval-S](#longmemeval)", f"session hit@{depth}", theirs, found]


def behind(figures: Figures) -> Iterator[str]:
    """Where plain BM25 finds more, and who holds more answers."""
    hits, views = figures["hits"], figures["views"]
    for kind, many in {"session": figures["questions"], "turn": figures["marked"]}.items():
        lost = [d for d in AT if hits.get(f"bm25 {kind} {d}", 0) > hits.get(f"clew {kind} {d}", 0)]
        told = [
            f"among the first {d}: {share(hits[f'bm25 {kind} {d}'], many)},"
            f" {share(hits.get(f'clew {kind} {d}', 0), many)} with clew"
            for d in lost
        ]
        if told:
            what = "day" if kind == "session" else "message"
            yield f"LongMemEval: plain BM25 finds the right {what} more often than clew's search ({'; '.join(told)})."
    for name, theirs in PUBLISHED.items():
        more = {d: n for d, n in zip(AT, theirs, strict=True) if n and n > ours(figures, d)}
        if more:
            found = ", ".join(f"{n:.3f} at {d}, {ours(figures, d):.3f} with clew" for d, n in more.items())
            yield f"LongMemEval, right day, as published and of other samples: {name}: {found}."
    held, whole = views.get(CLEW, 0), figures["literal"]
    better = [
        f"{name} {share(n, whole)}"
        for name, n in views.items()
        if n > held and not name.startswith(CLEW) and ", no" not in name
    ]
    if better:
        yield f"LongMemEval: clew's view holds {share(held, whole)} of the answers; more are in {named(better)}."
    recalled = views.get(f"{CLEW}, one recall", 0)
    if recalled > held:
        brought = f"one recall with the question brings {share(recalled, whole)} of the answers"
        yield f"LongMemEval: {brought}; clew's view alone holds {share(held, whole)}."


def ours(figures: Figures, depth: int) -> float:
    """Our session hits at a depth."""
    return float(figures["hits"].get(f"clew session {depth}", 0) / figures["questions"])
