"""What real sessions cost, call by call at cache prices: full history, the policy of each peer, clew."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import replace as with_
from pathlib import Path
from typing import Any

from benchmark.bills import bill_picture
from benchmark.dollars import FIXED, SONNET, Bill, Session, Setting, judge_shown, of_corpus, replay, shipped
from benchmark.growing import NOTHING, Clearing, Dropping, Fixed, Keeper, Summarizing
from benchmark.judging import MODEL, Judge, Tally
from benchmark.methods import FORMAT, view_of
from benchmark.peers import PEERS, Child, Failed, NoAnswer, Peer
from clew import catalog
from clew.catalog.cost import cost
from clew.catalog.usage import Spent
from clew.core.limits import Budget
from clew.core.view import View
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.tokens.target import Target
from clew.wire import named
from proofs import Figures, Settings

SESSIONS = 30
WINDOW = 64_000  # where sessions of some 100,000 tokens have to be compacted, and more than once
WRITTEN = 2_000  # tokens of a summary that a peer has written, which its model reads from the cache
FULL, VENDOR, CLEARING = "full history", "summary at 75 %", "clear results"
Row = dict[str, Any]


class Following:
    """A peer asked before every call, as its framework asks it."""

    def __init__(self, peer: Peer, child: Child, target: Target) -> None:
        self._peer, self._child, self._target = peer, child, target
        self._lead: list[Any] = []
        self._whole: list[Any] = []
        self._changed = False  # whether it ever made something smaller
        self._fewer = 0  # messages than it was given, the last time
        self._had = 0  # nodes of what was sent last
        self.refused = 0  # calls that a provider would not take
        child.begin(target.budget.window)

    def fit(self, view: View, size: int, idle: float) -> tuple[View, Spent]:
        self._lead = self._lead or list(view.frame.lead)
        self._whole += named(FORMAT).write(node.item for node in view.nodes[self._had :])
        given = [*self._lead, *self._whole]
        sent = self._child.fit(given)
        found, taken = view, NOTHING
        if sent != given or self._changed:
            self._changed, made = True, view_of(sent)
            found = with_(view, frame=made.frame, nodes=made.nodes)
            taken = Spent(size, WRITTEN, cache_read=size) if self._asked(len(sent), len(given)) else NOTHING
        if self._peer.goes_on:
            self._whole = [message for message in sent if message not in self._lead]
        self._had = len(found.nodes)
        self.refused += self._target.size(found).tokens > self._target.budget.window
        return found, taken

    def _asked(self, sent: int, given: int) -> bool:
        """Whether it had a summary written now: fewer messages than it was given, and not just those of last time."""
        fewer = given - sent if self._peer.model else 0
        new, self._fewer = fewer > (0 if self._peer.goes_on else self._fewer), fewer
        return new


def measure(settings: Settings) -> Figures:
    """Every method over the same sessions."""
    folder = _corpus(settings.data)
    sessions = of_corpus(folder, SESSIONS)[0] if folder else shipped()[0]
    count = min(len(sessions), 2 if settings.quick else SESSIONS)
    methods = [FULL, FIXED, VENDOR, CLEARING, *(peer.name for peer in PEERS if peer.version())]
    jobs = [(folder, n, method) for n in range(count) for method in methods]
    rows: list[Row] = []
    with ProcessPoolExecutor(settings.processes) as pool:
        for done, row in enumerate(pool.map(_replayed, jobs)):
            settings.heard(f"{row['method']}", done, len(jobs))
            rows.append(row)
    return {
        "window": WINDOW,
        "prices": SONNET,
        "real": folder is not None,
        "sessions": count,
        "rows": list(_added(rows)),
    }


def _corpus(data: Path | None) -> Path | None:
    """A folder with sessions and their scorer, if there is one."""
    places = () if data is None else (data, data / "corpus")
    return next((place for place in places if (place / "score.py").exists()), None)


def _replayed(job: tuple[Path | None, int, str]) -> Row:
    """A session with one method."""
    folder, at, method = job
    sessions, judge = _sessions(folder)
    session, meter = sessions[at], Meter(counter_for(MODEL))
    target = Target.of(Budget(WINDOW), meter)
    plain: dict[str, Keeper] = {
        FULL: Dropping(target),
        FIXED: Fixed(target),
        VENDOR: Summarizing(target, session.whole.nodes),
        CLEARING: Clearing(target),
    }
    if method in plain:
        return _billed(session, method, plain[method], meter, judge)
    peer = next(peer for peer in PEERS if peer.name == method)
    with closing(Child(peer)) as child:
        try:
            return _billed(session, method, Following(peer, child, target), meter, judge)
        except (NoAnswer, Failed) as fault:
            return {"session": session.name, "method": method, "fault": str(fault)[:80]}


_READ: dict[Path | None, tuple[list[Session], Judge]] = {}


def _sessions(folder: Path | None) -> tuple[list[Session], Judge]:
    """Read once by each process."""
    if folder not in _READ:
        _READ[folder] = of_corpus(folder, SESSIONS) if folder else shipped()
    return _READ[folder]


def _billed(session: Session, method: str, keeper: Keeper, meter: Meter, judge: Judge) -> Row:
    found = replay(session, keeper, meter)
    prices = catalog.lookup(SONNET).prices
    assert prices is not None, "the catalog knows these"
    tally = Tally(method, judge, len)
    judge_shown(tally, session, found, recalls=method == FIXED)
    row = tally.row(0)
    return {
        "session": session.name,
        "method": method,
        "dollars": sum(cost(prices, spent) for spent in (*found.calls, *found.helpers)),
        "helpers": sum(cost(prices, spent) for spent in found.helpers),
        "calls": len(found.calls),
        "compactions": found.compactions,
        "refused": getattr(keeper, "refused", 0),
        "needs": tally.asked,
        "far": tally.far,
        "kept": row.kept * tally.asked,
        "bound": row.bound * tally.far,
        "one_call": row.one_call * tally.asked,
    }


def _added(rows: Sequence[Row]) -> Iterator[Row]:
    """A row for each method, with what it cost above the cheapest of each session, and of those that keep as much."""
    fine = [row for row in rows if "fault" not in row]
    methods = dict.fromkeys(row["method"] for row in rows)
    own = {m: [row for row in fine if row["method"] == m] for m in methods}
    kept = {m: sum(r["kept"] for r in some) / max(1, sum(r["needs"] for r in some)) for m, some in own.items()}
    for method, some in own.items():
        fault = next((row["fault"] for row in rows if row["method"] == method and "fault" in row), "")
        if not some:
            yield {"method": method, "fault": fault}
            continue
        alike = {m for m in methods if kept[m] >= kept[method] - 0.01}
        cheapest = _cheapest(fine)
        equals = _cheapest([row for row in fine if row["method"] in alike])
        regrets = [row["dollars"] - cheapest[row["session"]] for row in some]
        fair = [row["dollars"] - equals[row["session"]] for row in some]
        sums = {k: sum(r[k] for r in some) for k in ("dollars", "helpers", "calls", "compactions", "refused")}
        shares = {k: sum(r[k] for r in some) / max(1, sum(r["needs"] for r in some)) for k in ("kept", "one_call")}
        bound = sum(r["bound"] for r in some) / max(1, sum(r["far"] for r in some))
        told = {"worst": max(regrets), "mean": sum(regrets) / len(regrets), "worst_alike": max(fair)}
        figures = {**sums, **told, **shares, "bound": bound}
        yield {"method": method, "sessions": len(some), **{k: round(v, 4) for k, v in figures.items()}, "fault": fault}


def _cheapest(rows: Sequence[Row]) -> Mapping[str, float]:
    return {s: min(r["dollars"] for r in rows if r["session"] == s) for s in {row["session"] for row in rows}}


def blocks(figures: Figures) -> Mapping[str, str]:
    """The table and the picture."""
    rows = sorted((r for r in figures["rows"] if "dollars" in r), key=lambda r: -float(r["kept"]))
    models = {peer.name for peer in PEERS if peer.model}
    lines = ["| method | $ | needs in view | or one call away | worst regret | mean | worst among its like | refused |"]
    lines += ["|---|--:|--:|--:|--:|--:|--:|--:|"]
    for row in rows:
        name = "**clew**" if row["method"] == FIXED else row["method"] + (" *" if row["method"] in models else "")
        dollars = (f"{row[key]:.2f}" for key in ("worst", "mean", "worst_alike"))
        shares = f"{row['kept']:.0%}", f"{row['one_call']:.0%}" if row["method"] == FIXED else ""
        refused = f"{row['refused'] / row['calls']:.0%}" if row["refused"] else ""
        cells = name, f"{row['dollars']:.2f}", *shares, *dollars, refused
        lines.append("| " + " | ".join(cells) + " |")
    faults = [f"{row['method']}: {row['fault']}" for row in figures["rows"] if row["fault"]]
    told = f"the {figures['sessions']} longest real coding sessions" if figures["real"] else "the shipped session"
    lines += [
        "",
        f"{figures['made']}, {told}, every call, window of {figures['window']:,} tokens, prices of {figures['prices']}"
        " with its cache. * asks a model: a stand-in copies, and its call is in the dollars. Regret: dollars above the"
        " cheapest method of that session; among its like: of those that keep as much. Refused: calls larger than the"
        " window, which no provider takes.",
        *([f"No figures: {'; '.join(faults)}."] if faults else []),
    ]
    setting = Setting(figures["window"])
    bills = [_bill(setting, row) for row in rows]
    return {"dollars": "\n".join(lines), "dollars.svg": bill_picture(bills)}


def _bill(setting: Setting, row: Row) -> Bill:
    name = "clew" if row["method"] == FIXED else row["method"]
    counts = row["compactions"], row["kept"], row["bound"], row["one_call"], row["calls"]
    return Bill(setting, name, 0, row["dollars"], row["helpers"], *counts, predicted=0)
