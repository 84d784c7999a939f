"""Facts planted in sessions of many kinds, whose generators a new seed composes: what a smaller view keeps of them."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from typing import Any

from benchmark.generators import KINDS, Composed, Planting, compose
from benchmark.judging import MODEL, RECALLED, Curve, Messages, Method, Need, Recall, Row, Words, read, too_large
from benchmark.methods import CLEW, PLAIN, clew_in_tokens, in_tokens
from benchmark.peers import Peer
from benchmark.plot import picture
from clew.tokens import counter_for
from proofs import Figures, Settings
from proofs.beside import Left, everybody, left, together
from proofs.tables import cell, many, missing, named, share, table

LENGTHS = 30_000, 100_000  # tokens of a session
SEEDS = 6  # sessions of each kind and length, each with a generator of its own
SHARES = 0.05, 0.1, 0.2  # of it that a view may have
MIDDLE = 0.1  # the share that the tables of kinds speak of
DRAWN = 7  # methods in the picture, beside clew

View = tuple[Left, Recall | None]


@dataclass
class Count:
    """What became of the facts of some sessions under one method."""

    facts: int = 0
    in_view: int = 0
    one_call: int = 0
    changed: int = 0  # facts that were corrected
    stale: int = 0  # of them: the old value is in view, the new one is not
    unusable: int = 0  # results that never came, or were larger than asked for: nothing kept
    histories: int = 0
    cpu: float = 0.0  # seconds for all of them

    def add(self, other: Mapping[str, Any]) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + other[name])


@dataclass(frozen=True)
class Run:
    """Methods that run together, over the sessions of one seed, at all sizes."""

    methods: tuple[str | Peer, ...]
    seed: int
    kinds: tuple[str, ...]
    lengths: tuple[int, ...]

    def cuts(self) -> list[tuple[float, Composed]]:
        """Every session at every size."""
        sessions = [written(kind, self.seed, tokens) for tokens in self.lengths for kind in self.kinds]
        return [(part, session) for part in SHARES for session in sessions]


def measure(settings: Settings) -> Figures:
    """Every method on every session, at every size."""
    kinds, lengths = (KINDS[:2], (8_000,)) if settings.quick else (KINDS, LENGTHS)
    seeds = [settings.seed + n for n in range(1 if settings.quick else settings.some(SEEDS))]
    groups: list[tuple[str | Peer, ...]] = [(CLEW,), tuple(PLAIN), *([] if settings.quick else together())]
    rows: list[dict[str, Any]] = []
    with get_context("spawn").Pool(settings.processes) as pool:
        runs = [Run(methods, seed, kinds, lengths) for methods in groups for seed in seeds]
        for done, found in enumerate(pool.imap(one_run, runs, chunksize=1), 1):
            settings.heard("planted facts", done, len(runs))
            rows += found
    return {"lengths": list(lengths), "seeds": len(seeds), "peers": everybody(), "rows": added(rows)}


def added(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each method, kind and share, over all seeds."""
    sums: dict[tuple[str, str, float], Count] = defaultdict(Count)
    why: dict[tuple[str, str, float], str] = defaultdict(str)
    for row in found:
        key = row["method"], row["kind"], row["share"]
        sums[key].add(row)
        why[key] = why[key] or row["why"]
    return [
        {"method": method, "kind": kind, "share": part, **vars(count), "why": why[method, kind, part]}
        for (method, kind, part), count in sums.items()
    ]


def one_run(run: Run) -> list[dict[str, Any]]:
    """What methods leave, by kind and share."""
    rows: list[dict[str, Any]] = []
    cuts = run.cuts()
    for name, views in texts(run.methods, [(session.messages, int(session.tokens * part)) for part, session in cuts]):
        for (part, session), (made, recall) in zip(cuts, views, strict=True):
            found = judged(session, made.text, recall, int(session.tokens * part))
            found.histories, found.cpu = 1, round(made.cpu, 4)
            rows.append({"method": name, "share": part, "kind": session.kind, **vars(found), "why": made.why})
    return rows


def texts(methods: Sequence[str | Peer], cuts: Sequence[tuple[Messages, int]]) -> Iterator[tuple[str, list[View]]]:
    """The text that each method leaves at each cut, and its recall."""
    peers = [method for method in methods if isinstance(method, Peer)]
    for method in methods:
        if method == CLEW:
            yield method, [timed(clew_in_tokens, messages, size) for messages, size in cuts]
        elif isinstance(method, str):
            yield method, [timed(in_tokens(PLAIN[method], messages), messages, size) for messages, size in cuts]
    for peer, found in left(peers, cuts) if peers else ():
        yield peer.name, [(made, None) for made in found]


def timed(method: Method, messages: Messages, size: int) -> View:
    """What a method of this process leaves."""
    begin = time.process_time()
    found = method(messages, size)
    used = time.process_time() - begin
    text, recall = read(found, Words())
    return Left(text, "", used), recall


@cache
def written(kind: str, seed: int, tokens: int) -> Composed:
    return compose(kind, seed, tokens)


def judged(session: Composed, text: str | None, recall: Recall | None, size: int) -> Count:
    """What is left of the facts of a session in a view that should have this size."""
    judge = Words(counter_for(MODEL).text)
    found = Count(len(session.plantings), changed=sum(bool(p.stale) for p in session.plantings))
    if text is None or too_large(judge.measure(text), size):
        found.unusable = 1
        return found
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
    head = [
        "method",
        *sizes,
        f"with one call at {MIDDLE:.0%}",
        f"stale at {MIDDLE:.0%}",
        "ms of CPU",
        "no usable result",
    ]
    rows = [[name, *cells(figures, name)] for name in methods] + missing(figures, len(head))
    lengths = " and ".join(f"{tokens:,}" for tokens in figures["lengths"])
    told = (
        f"{len(KINDS)} kinds of session; of each kind and seed one of {lengths} tokens,"
        f" {many(figures['seeds'], 'seed')}."
        f" {ours.facts} facts, {ours.changed} corrected later."
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
            found.add(row)
    return found


def cells(figures: Figures, method: str) -> Iterator[str]:
    for part in SHARES:
        count = total(figures, method, part)
        yield share(count.in_view, count.facts)
    middle = total(figures, method, MIDDLE)
    yield share(middle.one_call, middle.facts) if method == CLEW else ""
    yield share(middle.stale, middle.changed)
    every = [total(figures, method, part) for part in SHARES]
    yield f"{1_000 * sum(count.cpu for count in every) / max(1, sum(count.histories for count in every)):,.0f}"
    why = next((row["why"] for row in figures["rows"] if row["method"] == method and row["why"]), "")
    yield str(sum(count.unusable for count in every)) + (f" ({cell(why)})" if why else "")


def kinds(figures: Figures) -> Iterator[list[str]]:
    others = {row["method"] for row in figures["rows"]} - {CLEW}
    for kind in dict.fromkeys(row["kind"] for row in figures["rows"]):
        ours = total(figures, CLEW, MIDDLE, kind)
        best = max(others, key=lambda name: (total(figures, name, MIDDLE, kind).in_view, name))
        most = total(figures, best, MIDDLE, kind)
        mine = [share(ours.in_view, ours.facts), share(ours.one_call, ours.facts), share(ours.stale, ours.changed)]
        yield [kind, *mine, f"{share(most.in_view, most.facts)} ({best})"]


def curve(figures: Figures, methods: list[str]) -> Curve:
    """What is in view by size, for a picture: clew, and the best of the others."""
    rows: list[Row] = []
    facts = 0
    others = sorted(
        (name for name in methods if name != CLEW),
        key=lambda name: -sum(total(figures, name, s).in_view for s in SHARES),
    )
    for name in (CLEW, *others[:DRAWN]):
        for part in SHARES:
            count = total(figures, name, part)
            facts = count.facts
            kept = count.in_view / max(1, count.facts)
            rows.append(Row(name, part, part, 0, kept, kept, count.one_call / max(1, count.facts), 0.0))
    return Curve(f"Planted facts: clew, and the best {DRAWN} of the others", facts, 0, tuple(rows))


def behind(figures: Figures) -> Iterator[str]:
    """Where another method has more in view or fewer stale values, and what clew has lost."""
    names = [name for name in dict.fromkeys(row["method"] for row in figures["rows"]) if name != CLEW]
    for part in SHARES:
        ours = total(figures, CLEW, part)
        better = [(name, n) for name in names if (n := total(figures, name, part).in_view) > ours.in_view]
        if better:
            told = named([f"{name} {share(n, ours.facts)}" for name, n in better])
            mine = f"a view of {part:.0%} of a session keeps {share(ours.in_view, ours.facts)} of them with clew"
            yield f"Facts planted in made-up sessions: {mine}, and more with {told}."
    lost = [(kind, mine, best) for kind, mine, _, _, best in kinds(figures) if float(best.split()[0]) > float(mine)]
    if lost:
        told = "; ".join(f"{kind} {best}, {mine} with clew" for kind, mine, best in lost)
        yield f"Planted facts by kind of session, the best share in views of {MIDDLE:.0%}: {told}."
    ours = total(figures, CLEW, MIDDLE)
    if gone := ours.facts - ours.one_call:
        where = f"neither in clew's view of {MIDDLE:.0%} nor found with one call"
        yield f"Planted facts: {gone} of {ours.facts} are {where}."
    fewer = [name for name in names if total(figures, name, MIDDLE).stale < ours.stale]
    if fewer:
        told = f"of {ours.changed} planted facts that were corrected later, clew shows {ours.stale} as they were before"
        yield f"Outdated values in views of {MIDDLE:.0%}: {told}, and not the new value; fewer with {named(fewer)}."
    spent = {name: sum(total(figures, name, part).cpu for part in SHARES) for name in (CLEW, *names)}
    if quicker := [name for name in names if spent[name] < spent[CLEW]]:
        each = 1_000 * spent[CLEW] / sum(total(figures, CLEW, part).histories for part in SHARES)
        yield f"Time: a planted session takes clew {each:,.0f} ms of CPU, more than {named(quicker)}."
