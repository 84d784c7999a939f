"""What folding earlier, later, deeper or not at all costs: real sessions, call by call, at cached prices.

python bench/cost.py --data DIR                       what clew does by default, beside no clew and the client alone
python bench/cost.py --data DIR --grid .7,.8,.9 .2,.5  every `high` with every `low`
python bench/cost.py --clients --windows 32000,80000   clients at work, in their own shapes
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from dataclasses import replace as replaced
from functools import lru_cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from benchmark.caches import Automatic, Cache, Marked, total
from benchmark.corpus import Corpus
from benchmark.dollars import Session, replay
from benchmark.driven import NAMES, driven
from benchmark.growing import Fixed, Keeper, Summarizing, Whole
from benchmark.judging import MODEL
from clew import catalog
from clew.catalog.cost import cost
from clew.catalog.usage import Spent
from clew.core.bridge import run
from clew.core.limits import Budget
from clew.core.view import View
from clew.engine.engine import Engine, Request
from clew.engine.settings import Settings
from clew.errors import OverBudget
from clew.store import SQLite
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.tokens.target import Target

WINDOWS = 64_000, 200_000, 1_000_000
LISTS = "claude-sonnet-4-5", "gpt-5", "gemini-2.5-pro", "deepseek-chat"  # of prices, as the catalog has them
MARKED = ("claude-sonnet-4-5",)  # whose caches keep what ends at a mark
SESSIONS = 30
CLIENT = "You are Claude Code."  # which compacts by itself, if clew does not before
OVER = 1.3  # times a window: what is joined has so much, to be folded and to go on
Row = dict[str, Any]


def threshold_of(window: int) -> int:
    """Where a client compacts by itself: Claude Code keeps 33,000 tokens free; others a fifth of a small window."""
    return window - min(33_000, window // 5)


@lru_cache(maxsize=1)
def material(folder: Path, window: int) -> Sequence[Session]:
    """The longest sessions of a corpus, some of them joined, so that half of them overflow a window."""
    found = [Session(name, messages, {}) for name, messages, _ in Corpus(folder).longest(SESSIONS)]
    meter = Meter(counter_for(MODEL))
    sizes = {session.name: meter.nodes(session.whole.nodes).tokens for session in found}
    over = [session for session in found if sizes[session.name] > window]
    alone = [session for session in found if sizes[session.name] <= window]
    while len(over) < len(alone):
        parts, size = list[Session](), 0
        while alone and size <= OVER * window:
            parts.append(alone.pop(0))
            size += sizes[parts[-1].name]
        if size <= window:
            alone = [*parts, *alone][: len(over)]
            break
        over.append(Session(" + ".join(p.name for p in parts), [m for p in parts for m in p.messages], {}))
    return [*over, *alone]


# --- who keeps it small -----------------------------------------------------------------------------------------------


@dataclass
class Client:
    """A client with its own compaction, over whoever fits its requests: it compacts by the usage that it is shown."""

    target: Target
    below: Keeper
    at: int  # tokens
    own: Summarizing
    compactions: int = 0
    _shown: int = 0  # tokens of the last request as it was sent
    _known: int = 0  # nodes that it had

    def fit(self, view: View, size: int) -> tuple[View, Spent]:
        meter = self.target.meter
        came = meter.nodes(view.nodes[self._known :]).tokens
        helped = Spent(0)
        if self._shown + came > self.at:
            view, helped = self.own.fit(view, size)
            self.compactions += 1
            size = meter.frame(view.frame).plus(meter.nodes(view.nodes)).tokens
        fitted, more = self.below.fit(view, size)
        if fitted is not view:
            size = meter.frame(fitted.frame).plus(meter.nodes(fitted.nodes)).tokens
        self._shown, self._known = size, len(fitted.nodes)
        return fitted, total([helped, more])


@dataclass
class Drafted:
    """clew, with chapters by the agent's own model: before each fold it is asked once, at the end of what it read."""

    clew: Fixed
    answer: int = 4_000  # tokens, at most
    share: float = 0.15  # of what is folded

    def fit(self, view: View, size: int) -> tuple[View, Spent]:
        fitted, _ = self.clew.fit(view, size)
        if fitted is view:
            return view, Spent(0)
        after = self.clew.target.size(fitted).tokens
        return fitted, Spent(size, min(self.answer, int(self.share * (size - after))), cache_read=size)


def keeper(way: str, target: Target, session: Session) -> Keeper:
    """Who keeps a session small: `all`, `client`, or clew from `high` down to `low`, perhaps with drafts."""
    at = threshold_of(target.window)
    own = Summarizing(target, session.whole.nodes, at=0.0)
    if way == "all":
        return Whole()
    if way == "client":
        return Client(target, Whole(), at, own)
    high, low, *drafts = way.split()
    clew = Fixed(target.under(replaced(target.budget, high=float(high), low=float(low))))
    return Client(target, Drafted(clew) if drafts else clew, at, own)


def lived(session: Session, window: int, meter: Meter, heard: Callable[[View, int], None]) -> int:
    """A session through an engine as it is by default, for a client that says who it is; how often that compacts."""
    store = SQLite(":memory:")
    engine = Engine(store, Budget(window), Settings(counter=meter.counter))
    said: list[Any] = [{"role": "system", "content": CLIENT}, *session.messages]
    compactions, shown, known, at = 0, 0, 1, threshold_of(window)

    async def live() -> None:
        nonlocal compactions, shown, known
        for n in session.turns:
            came = meter.nodes(session.whole.nodes[session.starts[known - 1] : session.starts[n]]).tokens
            compactions += shown + came > at
            body = {"model": LISTS[0], "messages": said[: n + 1]}
            view = await engine.prepare(Request(body, session=session.name))
            output = meter.nodes(session.whole.nodes[session.starts[n] : session.starts[n + 1]]).tokens
            heard(view, output)
            shown, known = meter.frame(view.frame).plus(meter.nodes(view.nodes)).tokens, n + 1
            await engine.observe(view, {"prompt_tokens": shown, "completion_tokens": output})
        await store.close()

    run(live())
    return compactions


# --- what it costs ----------------------------------------------------------------------------------------------------


def priced(job: tuple[Path, int, int, str]) -> Row:
    """One session kept small in one way: dollars by each list."""
    folder, window, number, way = job
    session = material(folder, window)[number]
    meter = meter_of()
    target = Target.of(Budget(window), meter)
    caches: tuple[Cache, ...] = Marked(meter), Automatic(meter)
    calls: list[list[Spent]] = [[], []]
    views = list[int]()

    def heard(view: View, output: int) -> None:
        for cache, some in zip(caches, calls, strict=True):
            some.append(cache.sent(view, output))
        views.append(calls[0][-1].input)

    if way == "clew":
        client, helpers = lived(session, window, meter, heard), list[Spent]()
    else:
        one = keeper(way, target, session)
        helpers, client = replay(session, one, meter, heard).helpers, getattr(one, "compactions", 0)
    dollars = {}
    for name in LISTS:
        prices = catalog.lookup(name).prices
        assert prices is not None, "the catalog knows these"
        some = [*calls[name not in MARKED], *helpers]
        dollars[name] = sum(cost(prices, spent) for spent in some)
    return {
        "window": window,
        "session": number,
        "way": way,
        "dollars": dollars,
        "calls": len(views),
        "folds": sum(later < before for before, later in pairwise(views)),
        "client": client,
        "over": sum(size > window for size in views),
        "view": sum(views) // len(views),
    }


@lru_cache(maxsize=1)
def meter_of() -> Meter:
    """One for all: what was counted once is known."""
    return Meter(counter_for(MODEL))


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--data", type=Path, help="a folder with score.py and dev/*.jsonl.gz")
    asked.add_argument("--windows", default=",".join(map(str, WINDOWS)))
    asked.add_argument("--clients", action="store_true", help="sessions in the shapes of clients instead")
    asked.add_argument("--grid", nargs=2, metavar=("HIGH", "LOW"), help="each a list, separated by commas")
    asked.add_argument("--drafts", action="store_true", help="chapters by the agent's own model as well")
    asked.add_argument("--sessions", type=int, default=SESSIONS)
    asked.add_argument("--processes", type=int, default=2)
    asked.add_argument("--json", type=Path)
    given = asked.parse_args()
    windows = [int(w) for w in given.windows.split(",")]
    if given.clients:
        print("\n".join(clients(windows)))
        return 0
    if given.data is None:
        asked.error("--data or --clients: whose sessions?")
    ways = ["all", "client", "clew"]
    for high, low in product(*(part.split(",") for part in given.grid)) if given.grid else ():
        ways += [f"{high} {low}"] + ([f"{high} {low} drafts"] if given.drafts else [])
    rows = list[Row]()
    with ProcessPoolExecutor(given.processes) as pool:
        for window in windows:
            many = min(given.sessions, len(material(given.data, window)))
            jobs = [(given.data, window, n, way) for n in range(many) for way in ways]
            for done, row in enumerate(pool.map(priced, jobs, chunksize=len(ways))):
                rows.append(row)
                if given.json:
                    given.json.write_text(json.dumps(rows))
                print(f"{window}: {done + 1} of {len(jobs)}", end="\r", file=sys.stderr)
            print(file=sys.stderr)
            print("\n".join(told([row for row in rows if row["window"] == window], ways)), flush=True)
    return 0


def told(rows: Sequence[Row], ways: Sequence[str]) -> Iterator[str]:
    """A table: dollars over all sessions, by way and list."""
    over = {row["session"] for row in rows if row["way"] == "all" and row["over"]}
    many = len({row["session"] for row in rows})
    yield f"window {rows[0]['window']:,}: {many} sessions, {len(over)} overflow"
    yield f"{'':22}" + "".join(f"{name[:17]:>18}" for name in LISTS) + "  folds client  view"
    for part, is_over in (("fit", False), ("overflow", True)):
        for way in ways:
            some = [row for row in rows if row["way"] == way and (row["session"] in over) is is_over]
            if some:
                sums = "".join(f"{sum(row['dollars'][name] for row in some):18.2f}" for name in LISTS)
                folds, client = (sum(row[key] for row in some) for key in ("folds", "client"))
                view = sum(row["view"] * row["calls"] for row in some) // sum(row["calls"] for row in some)
                yield f"{part:9}{way:13}{sums}{folds:7}{client:7}{view:8,}"


def clients(windows: Sequence[int]) -> Iterator[str]:
    """A table: each client in each window, with clew and without."""
    heads = f"{'client':16}{'calls':>6}{'folds':>7}{'filled':>8}{'own':>5}{'$':>8}{'alone: own':>12}{'$':>8}"
    yield f"{'window':>9} {heads}"
    for window, name in product(windows, NAMES):
        prices = catalog.lookup(LISTS[0] if name.startswith("claude") else LISTS[1]).prices
        assert prices is not None, "the catalog knows these"
        try:
            alone, ours = (driven(name, window, prices, with_clew) for with_clew in (False, True))
        except OverBudget:
            yield f"{window:9,} {name:16} its frame does not fit"
            continue
        cells = f"{ours.calls:6}{ours.folds:7}{ours.filled:8.2f}{ours.compactions:5}{ours.dollars:8.2f}"
        yield f"{window:9,} {name:16}{cells}{alone.compactions:12}{alone.dollars:8.2f}"


if __name__ == "__main__":
    sys.exit(main())
