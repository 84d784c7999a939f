"""What real sessions cost, call by call at cache prices: full history, the policy of each peer, clew."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace as with_
from itertools import chain
from pathlib import Path
from typing import Any

from benchmark.bills import Point, bill_picture
from benchmark.dollars import Replayed, Session, judge_shown, of_corpus, replay, shipped
from benchmark.following import follow
from benchmark.growing import Clearing, Dropping, Fixed, Keeper, Summarizing, Whole
from benchmark.judging import MODEL, Judge, Tally, far
from benchmark.peers import PEERS, Child, Failed, NoAnswer, present
from clew import catalog
from clew.catalog.usage import Spent, cost
from clew.core.limits import Budget
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.tokens.target import Target
from proofs import Figures, Settings
from proofs.beside import everybody
from proofs.tables import cell, missing, named, table

SESSIONS = 30
CALLS = 300  # of a session at most: some peers read the whole history before every call
WINDOW = 64_000  # where sessions of some 100,000 tokens have to be compacted, and more than once
START = 30_000  # tokens of history above which clew compacts, where a user sets that
CAP = 45.0  # seconds of CPU that a peer may use in a session
SONNET, GPT = "claude-sonnet-4-5", "gpt-5"  # whose prices the catalog has
CLEW, EARLY = "clew", f"clew, start {START:,}"
OURS, FULL = (CLEW, EARLY), "full history"
PLAIN: Mapping[str, Callable[[Target, Session], Keeper]] = {
    FULL: lambda target, session: Whole(),
    "drop the oldest": lambda target, session: Dropping(target),
    "summary at 75 %": lambda target, session: Summarizing(target, session.whole),
    "clear results": lambda target, session: Clearing(target),
    CLEW: lambda target, session: Fixed(target),
    EARLY: lambda target, session: Fixed(target.under(with_(target.budget, start=START))),
}
ALIKE = 0.01  # of the needs: who keeps less by no more than this keeps as much
Row = dict[str, Any]


def measure(settings: Settings) -> Figures:
    """Every method over the same sessions."""
    folder = _corpus(settings.data)
    many = (2 if settings.quick else settings.some(SESSIONS)) if folder else 1
    jobs = [(folder, many, method) for method in (*(peer.name for peer in present()), *PLAIN)]
    rows: list[Row] = []
    with ProcessPoolExecutor(settings.processes) as pool:
        for done, some in enumerate(pool.map(with_one, jobs)):
            settings.heard(jobs[done][-1], done, len(jobs))
            rows += some
    own = [row for row in rows if row["method"] == CLEW]
    return {
        "window": WINDOW,
        "most_calls": CALLS,
        "cap": CAP,
        "prices": [SONNET, GPT],
        "real": folder is not None,
        "sessions": len(own),
        "calls": sum(row["calls"] for row in own),
        "needs": sum(row["needs"] for row in own),
        "rows": list(added(rows)),
        "peers": everybody(),
    }


def _corpus(data: Path | None) -> Path | None:
    """A folder with sessions and their scorer, if there is one."""
    places = () if data is None else (data, data / "corpus")
    return next((place for place in places if (place / "score.py").exists()), None)


def with_one(job: tuple[Path | None, int, str]) -> list[Row]:
    """All sessions with one method, the longest first; a peer that fails in one is not asked again."""
    folder, many, method = job
    sessions, judge = of_corpus(folder, SESSIONS, CALLS) if folder else shipped()
    meter = Meter(counter_for(MODEL))
    target = Target.of(Budget(WINDOW), meter)
    some = [asked_late(sessions[n * len(sessions) // many], target) for n in range(many)]
    if make := PLAIN.get(method):
        return [_billed(session, method, replay(session, make(target, session), meter), judge) for session in some]
    peer = next(peer for peer in PEERS if peer.name == method)
    window = target.limit.tokens  # what clew leaves for the answer, they leave as well
    rows: list[Row] = []
    with Child(peer, CAP) as child:
        for session in some:
            try:
                rows.append(_billed(session, method, follow(session, child, window, meter), judge))
            except (NoAnswer, Failed) as fault:
                return [{"method": method, "fault": f"{str(fault)[:80]}, in session {len(rows) + 1} of {len(some)}"}]
    return rows


def asked_late(session: Session, target: Target) -> Session:
    """A session with what is needed where all of it does not fit any more, and was last said long before."""
    said, starts = session.whole.nodes, session.starts
    late = [n for n in session.probes if target.meter.nodes(said[: starts[n]]).tokens > target.window]
    return Session(session.name, session.messages, {n: list(filter(far, session.probes[n])) for n in late})


def _billed(session: Session, method: str, found: Replayed, judge: Judge) -> Row:
    tally = Tally(method, judge, len)
    judge_shown(tally, session, found, recalls=method in OURS)
    row = tally.row(0)
    # A person's message comes late, when the cache has forgotten: that call reads nothing from it.
    late = [bool(n) and session.messages[n - 1]["role"] == "user" for n in session.turns]
    pauses = [
        with_(c, cache_read=0, cache_write=c.input) if cold else c for c, cold in zip(found.calls, late, strict=True)
    ]
    return {
        "session": session.name,
        "method": method,
        "dollars": _cost(SONNET, found.calls, found.helpers),
        "pauses": _cost(SONNET, pauses, found.helpers),
        "other": _cost(GPT, found.calls, found.helpers),
        "helpers": _cost(SONNET, found.helpers),
        "calls": len(found.calls),
        "compactions": found.compactions,
        "refused": sum(call.input > WINDOW for call in found.calls),
        "needs": tally.asked,
        "kept": round(row.kept * tally.asked),
        "one_call": round(row.one_call * tally.asked),
    }


def _cost(model: str, *calls: Sequence[Spent]) -> float:
    prices = catalog.lookup(model).prices
    assert prices is not None, "the catalog knows these"
    return sum(cost(prices, spent) for spent in chain(*calls))


def added(rows: Sequence[Row]) -> Iterator[Row]:
    """A row for each method: its sums, and what it cost in each session above the cheapest that a provider takes."""
    fine = [row for row in rows if "fault" not in row]
    yield from (row for row in rows if "fault" in row)
    own = {m: [row for row in fine if row["method"] == m] for m in dict.fromkeys(row["method"] for row in fine)}
    kept = {m: sum(r["kept"] for r in some) / max(1, sum(r["needs"] for r in some)) for m, some in own.items()}
    cheapest = _cheapest(fine)
    for method, some in own.items():
        equals = _cheapest([row for row in fine if kept[row["method"]] >= kept[method] - ALIKE])
        regrets = [r["dollars"] - cheapest.get(r["session"], r["dollars"]) for r in some]
        alike = [r["dollars"] - equals.get(r["session"], r["dollars"]) for r in some]
        keys = "dollars", "pauses", "other", "helpers", "calls", "compactions", "refused", "needs", "kept", "one_call"
        sums = {key: round(sum(r[key] for r in some), 4) for key in keys}
        told = {"regrets": [round(r, 4) for r in regrets], "regrets_alike": [round(r, 4) for r in alike]}
        yield {"method": method, **sums, **told}


def _cheapest(rows: Sequence[Row]) -> Mapping[str, float]:
    """Dollars of the cheapest method in each session, of those whose every call fits into the window."""
    fits = [row for row in rows if not row["refused"]]
    return {s: min(r["dollars"] for r in fits if r["session"] == s) for s in {row["session"] for row in fits}}


def blocks(figures: Figures) -> Mapping[str, str]:
    """The table and the picture."""
    rows = sorted((r for r in figures["rows"] if "fault" not in r), key=_share, reverse=True)
    models = {peer["name"] for peer in figures["peers"] if peer["model"]}
    regrets = "worst regret", "of its like"
    head = "method", "$", "with pauses", f"at {GPT}", "in view", "with one call", *regrets, "too large"
    cells = [
        (
            f"**{row['method']}**" if row["method"] in OURS else row["method"] + " *" * (row["method"] in models),
            *(f"{row[key]:.2f}" for key in ("dollars", "pauses", "other")),
            f"{_share(row):.0%}",
            f"{row['one_call'] / max(1, row['needs']):.0%}" if row["method"] in OURS else "",
            *(f"{max(row[key]):.2f}" for key in ("regrets", "regrets_alike")),
            _too_large(row),
        )
        for row in rows
    ]
    told = (
        f"{figures['sessions']} of the {SESSIONS} longest coding sessions of a folder, the first {CALLS} calls of each"
    )
    material = told if figures["real"] else "the session that ships with clew"
    asked = f"{figures['calls']:,} calls, {figures['needs']:,} needed facts, window of {figures['window']:,} tokens."
    faults = [[r["method"], cell(r["fault"]), *[""] * (len(head) - 2)] for r in figures["rows"] if "fault" in r]
    told = table(head, [*cells, *faults, *missing(figures, len(head))])
    lines = f"{figures['made']}: {material}, {asked}", "", told, "", "\\* asks a model: a stand-in copies."
    points = [Point(row["method"], row["dollars"], _share(row)) for row in rows]
    return {"dollars": "\n".join(lines), "dollars.svg": bill_picture(points, OURS)}


def _share(row: Row) -> float:
    return float(row["kept"] / max(1, row["needs"]))


def _too_large(row: Row) -> str:
    share = row["refused"] / row["calls"]
    return f"{share:.0%}" if share >= 0.01 else "< 1%" if share else ""


def _told(row: Row) -> str:
    over = f", {_too_large(row)} of its calls too large" if row["refused"] else ""
    return f"{row['method']} (${row['dollars']:.2f}, {_share(row):.0%} in view{over})"


def behind(figures: Figures) -> Iterator[str]:
    """Who costs less than clew, who has more in view, and who has both."""
    rows = {row["method"]: row for row in figures["rows"] if "fault" not in row}
    ours, others = rows[CLEW], [row for method, row in rows.items() if method not in (*OURS, FULL)]
    cheaper = sorted((r for r in others if r["dollars"] < ours["dollars"]), key=lambda r: float(r["dollars"]))
    fuller = sorted((r for r in others if _share(r) > _share(ours)), key=_share, reverse=True)
    both = [row for row in cheaper if _share(row) >= _share(ours) - ALIKE]
    for some, told in (
        (both, "cheaper than clew with as many of the needed facts in view"),
        (cheaper, f"cheaper than clew (${ours['dollars']:.2f})"),
        (fuller, f"more of the needed facts in view than clew has ({_share(ours):.0%})"),
    ):
        if some:
            yield f"Dollars, {told}: {named(list(map(_told, some)))}."
    worst = max(ours["regrets_alike"])
    if worst > 0:
        yield f"Dollars: in one session a method that has as much in view costs ${worst:.2f} less than clew."
