"""Facts planted in sessions of many kinds, whose generators a new seed composes: what a smaller view keeps of them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

from benchmark.generators import KINDS, Composed, Planting, compose
from benchmark.judging import MODEL, RECALLED, Curve, Method, Need, Recall, Row, Words, read, too_large
from benchmark.methods import CLEW, PLAIN, clew_in_tokens, in_tokens
from benchmark.peers import installed
from benchmark.plot import picture
from clew.tokens import counter_for
from proofs import Figures, Settings
from proofs.tables import share, table

SESSIONS = 40_000, 120_000  # tokens of a session
SHARES = 0.05, 0.1, 0.2  # of it that a view may have
MIDDLE = 0.1  # the share that the tables of kinds speak of


@dataclass(frozen=True)
class Asked:
    """A session to write."""

    kind: str
    seed: int
    tokens: int


@dataclass
class Count:
    """What became of the facts of some sessions under one method."""

    facts: int = 0
    in_view: int = 0
    one_call: int = 0
    changed: int = 0  # facts that were corrected
    stale: int = 0  # of them: the old value is in view, the new one is not
    over: int = 0  # results larger than asked for, which count as nothing
    failed: int = 0  # results that never came
    tokens: int = 0


def measure(settings: Settings) -> Figures:
    """Every method on every session, at every size."""
    kinds, lengths = (KINDS[:2], (8_000,)) if settings.quick else (KINDS, SESSIONS)
    todo = [Asked(kind, settings.seed, tokens) for tokens in lengths for kind in kinds]
    counts: dict[tuple[str, float, str], Count] = defaultdict(Count)
    with get_context("spawn").Pool(settings.processes) as pool:
        for done, found in enumerate(pool.imap(partial(one_session, quick=settings.quick), todo)):
            settings.heard(f"{todo[done].kind}, {todo[done].tokens:,} tokens", done, len(todo))
            for method, part, count in found:
                total = counts[method, part, todo[done].kind]
                for name, number in vars(count).items():
                    setattr(total, name, getattr(total, name) + number)
    rows = [{"method": m, "share": s, "kind": k, **vars(count)} for (m, s, k), count in counts.items()]
    return {"lengths": list(lengths), "peers": installed()[1], "rows": rows}


def one_session(asked: Asked, quick: bool = False) -> list[tuple[str, float, Count]]:
    """How each method does on one session, at each size."""
    session = compose(asked.kind, asked.seed, asked.tokens)
    peers = {} if quick else installed()[0]
    others = {name: in_tokens(method, session.messages) for name, method in {**PLAIN, **peers}.items()}
    methods: Mapping[str, Method] = {CLEW: clew_in_tokens, **others}
    return [(name, part, judged(session, method, part)) for part in SHARES for name, method in methods.items()]


def judged(session: Composed, method: Method, part: float) -> Count:
    """What a method leaves of the facts of a session in a view of this share of it."""
    judge, size = Words(counter_for(MODEL).text), int(session.tokens * part)
    found = Count(len(session.plantings), changed=sum(bool(p.stale) for p in session.plantings))
    try:
        text, recall = read(method(session.messages, size), judge)
    except Exception:  # a peer that cannot take this session
        found.failed = 1
        return found
    if too_large(judge.measure(text), size):
        found.over = 1
        return found
    found.tokens = judge.measure(text)
    for planting in session.plantings:
        here, back, stale = judged_fact(planting, text, recall, judge)
        found.in_view += here
        found.one_call += here or back
        found.stale += stale
    return found


def judged_fact(planting: Planting, text: str, recall: Recall | None, judge: Words) -> tuple[bool, bool, bool]:
    """Whether the true value is in view, whether one recall brings it, and whether only an old one is in view."""
    here = judge.kept(text, Need(planting.value, ""))
    back = recall is not None and judge.kept(recall(planting.question)[:RECALLED], Need(planting.value, ""))
    return here, back, not here and any(judge.kept(text, Need(old, "")) for old in planting.stale)


# --- what the documents say -------------------------------------------------------------------------------------------


def blocks(figures: Figures) -> dict[str, str]:
    """A table of methods, one of kinds, and a picture."""
    methods = list(dict.fromkeys(row["method"] for row in figures["rows"]))
    ours = total(figures, CLEW, MIDDLE)
    sizes = [f"in view at {part:.0%}" for part in SHARES]
    head = ["method", *sizes, f"with one call at {MIDDLE:.0%}", f"stale at {MIDDLE:.0%}", "no usable result"]
    rows = [[name, *cells(figures, name)] for name in methods]
    lengths = " and ".join(f"{tokens:,}" for tokens in figures["lengths"])
    told = (
        f"{len(KINDS)} kinds of session, of {lengths} tokens each; {ours.facts} facts, {ours.changed} corrected later."
    )
    return {
        "planted": f"{told}\n\n{table(head, rows)}",
        "planted.kinds": table(
            ["kind", f"{CLEW}, in view", "with one call", "stale", "best other, in view"], kinds(figures)
        ),
        "planted.svg": picture([curve(figures, methods)]),
    }


def total(figures: Figures, method: str, part: float, kind: str = "") -> Count:
    """The sum over kinds, or one of them."""
    found = Count()
    for row in figures["rows"]:
        if (row["method"], row["share"]) == (method, part) and kind in ("", row["kind"]):
            for name in vars(found):
                setattr(found, name, getattr(found, name) + row[name])
    return found


def cells(figures: Figures, method: str) -> Iterator[str]:
    for part in SHARES:
        count = total(figures, method, part)
        yield share(count.in_view, count.facts)
    middle = total(figures, method, MIDDLE)
    yield share(middle.one_call, middle.facts) if method == CLEW else ""
    yield share(middle.stale, middle.changed)
    unusable = [total(figures, method, part) for part in SHARES]
    yield str(sum(count.over + count.failed for count in unusable))


def kinds(figures: Figures) -> Iterator[list[str]]:
    others = {row["method"] for row in figures["rows"]} - {CLEW}
    for kind in dict.fromkeys(row["kind"] for row in figures["rows"]):
        ours = total(figures, CLEW, MIDDLE, kind)
        best = max(others, key=lambda name: (total(figures, name, MIDDLE, kind).in_view, name))
        most = total(figures, best, MIDDLE, kind)
        mine = [share(ours.in_view, ours.facts), share(ours.one_call, ours.facts), share(ours.stale, ours.changed)]
        yield [kind, *mine, f"{share(most.in_view, most.facts)} ({best})"]


def curve(figures: Figures, methods: list[str]) -> Curve:
    """What is in view by size, for a picture."""
    rows: list[Row] = []
    facts = 0
    for name in methods:
        for part in SHARES:
            count: Any = total(figures, name, part)
            facts = count.facts
            kept = count.in_view / max(1, count.facts)
            rows.append(Row(name, part, part, count.tokens, kept, kept, count.one_call / max(1, count.facts), 0.0))
    return Curve("Facts planted in sessions of many kinds", facts, 0, tuple(rows))
