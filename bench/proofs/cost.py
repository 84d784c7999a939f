"""When clew compacts, and how deep: real sessions through an engine, call by call, in three windows, by four lists."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

from benchmark.corpus import Corpus
from benchmark.judging import MODEL
from clew import catalog
from clew.catalog.cost import cost
from clew.catalog.usage import Spent
from clew.core.limits import Budget
from clew.core.view import View
from clew.engine.settings import Settings
from clew.lab.caches import Automatic, Marked, PriceCache
from clew.lab.replaying import Lived, clients_own, everything, with_clew
from clew.lab.session import LabSession
from clew.sessions.transcripts import Transcript
from clew.sessions.transcripts.shape import Script
from clew.steps.chapters.by_model import ANSWER, ByModel
from clew.steps.chapters.model import Prompt, Reply
from clew.steps.worklog.writing import summary
from clew.testing import ScriptedModel, asked_of
from clew.tokens import counter_for
from clew.tokens.meter import Meter
from clew.tokens.target import Target
from proofs import Figures, Missing
from proofs import Settings as ProofSettings
from proofs.tables import table

WINDOWS = 64_000, 200_000, 1_000_000
LISTS = "claude-sonnet-4-5", "gpt-5", "gemini-2.5-pro", "deepseek-chat"  # of prices, as the catalog has them
MARKED = ("claude-sonnet-4-5",)  # whose caches keep what ends at a mark
SESSIONS = {64_000: 30, 200_000: 30, 1_000_000: 6}  # half of them larger than the window
ASKED = 4_000  # tokens that a model writes when it is asked once
OVER = 1.3  # times a window: what is joined has so much, to be compacted and to go on
FULL, CLIENT, CLEW, ASKING = "no clew", "the client's own", "clew", "clew, chapters by its model"
WAYS = FULL, CLIENT, CLEW, ASKING
HALVES = ("fit", False, FULL), ("overflow", True, CLIENT)  # of the sessions, and what clew is held against in each
Row = dict[str, Any]


def measure(settings: ProofSettings) -> Figures:
    """Every way over the same sessions."""
    folder = corpus_of(settings.data)
    windows = WINDOWS[:1] if settings.quick else WINDOWS
    many = {window: 2 if settings.quick else settings.some(SESSIONS[window]) for window in windows}
    jobs = [(folder, w, n, many[w], way) for w in windows for n in range(many[w]) for way in WAYS]
    with ProcessPoolExecutor(settings.processes) as pool:
        rows = list[Row]()
        for done, row in enumerate(pool.map(priced, jobs, chunksize=len(WAYS))):
            settings.heard(f"{row['window']:,}", done, len(jobs))
            rows.append(row)
    return {"prices": LISTS, "rows": rows}


def corpus_of(data: Path | None) -> Path:
    """The folder with sessions and their scorer."""
    for place in () if data is None else (data, data / "corpus"):
        if (place / "score.py").exists():
            return place
    raise Missing("give --data DIR, a folder with score.py and dev/*.jsonl.gz, or one with such a folder in it")


# --- sessions ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def material(folder: Path, window: int, many: int) -> Sequence[LabSession]:
    """So many sessions of a corpus, half of them larger than a window: where there are too few, some are joined.

    A session may be part of several that are joined, each time beside others: of a large window there are not enough.
    """
    found = [list(messages) for _, messages, _ in Corpus(folder).longest(10**6)]
    meter = meter_of()
    sizes = [made(messages).size(meter) for messages in found]
    over = [messages for messages, size in zip(found, sizes, strict=True) if size > window][: many // 2]
    for first in range(many // 2 - len(over)):
        parts, size, n = list[Any](), 0, first
        while size <= OVER * window:
            at = n % len(found)
            if sizes[at] <= window:
                parts, size = parts + found[at], size + sizes[at]
            n += 7  # others beside it than in the one before
        over.append(parts)
    fit = [messages for messages, size in zip(found, sizes, strict=True) if size <= window]
    return [made(messages) for messages in (*over, *fit[: many - len(over)])]


def made(messages: Sequence[Any]) -> LabSession:
    """A session of Claude Code's."""
    stretches = Script(messages).stretches
    return LabSession(Transcript("openai_chat", stretches, agent="claude-code", model=LISTS[0]))


@lru_cache(maxsize=1)
def meter_of() -> Meter:
    """One for all: what was counted once is known."""
    return Meter(counter_for(MODEL))


def threshold_of(window: int) -> int:
    """Where a client compacts by itself: Claude Code keeps 33,000 tokens free; others a fifth of a small window."""
    return window - min(33_000, window // 5)


# --- ways -------------------------------------------------------------------------------------------------------------


def priced(job: tuple[Path, int, int, int, str]) -> Row:
    """One session in one way: dollars by each list."""
    folder, window, number, many, way = job
    session, meter = material(folder, window, many)[number], meter_of()
    caches: tuple[PriceCache, ...] = Marked(meter), Automatic(meter)
    calls: list[list[Spent]] = [[], []]
    told, texts = set[str](), set[str]()

    def heard(view: View, output: int) -> None:
        new = [node for node in view.nodes if node.id not in told]
        told.update(node.id for node in new)
        texts.update(node.item.text for node in new)
        for cache, some in zip(caches, calls, strict=True):
            some.append(cache.sent(view, output))

    lived = sent(way, session, window, Lived(heard, meter))
    dollars = {}
    for name in LISTS:
        prices = catalog.lookup(name).prices
        assert prices is not None, "the catalog knows these"
        dollars[name] = sum(cost(prices, spent) for spent in (*calls[name not in MARKED], *lived.helpers))
    return {
        "window": window,
        "session": number,
        "way": way,
        "dollars": {name: round(amount, 4) for name, amount in dollars.items()},
        "once": round(_once(lived, window), 4),
        "calls": len(lived.sizes),
        "folds": len(lived.folds),
        "client": lived.client,
        "questions": len(lived.helpers),
        "over": sum(size > window for size in lived.sizes),
        "view": sum(lived.sizes) // max(1, len(lived.sizes)),
        "unread": meter.nodes(
            node for node in session.nodes(0, session.turns[-1]) if node.item.text not in texts
        ).tokens,
    }


def sent(way: str, session: LabSession, window: int, lived: Lived) -> Lived:
    """A session in a way."""
    at, limit = threshold_of(window), Target.of(Budget(window), lived.meter).limit.tokens
    if way == FULL:
        return everything(session, lived)
    if way == CLIENT:
        return clients_own(session, lived, at, limit)
    author = ByModel(Copying(lived).model(window)) if way == ASKING else None
    settings = Settings(counter=lived.meter.counter, author=author, expand=False)
    return with_clew(session, lived, Budget(window), settings, at)


class Copying:
    """The session's own model, which reads what it has in its cache and writes as much as it is asked for.

    No model is asked: the words are code's, the tokens those of a question and its answer.
    """

    def __init__(self, lived: Lived) -> None:
        self._lived = lived

    def model(self, window: int) -> ScriptedModel:
        return ScriptedModel(self._answered, name=LISTS[0], window=window)

    def _answered(self, prompt: Prompt) -> Reply:
        meter = self._lived.meter
        parts = asked_of(prompt)
        size, written = prompt.max_tokens // ANSWER // len(parts), list[str]()
        for nodes, text in parts:
            full = summary(nodes, 4 * size) if nodes else text[: 4 * size]
            lines = full.splitlines() or ["Nothing was said."]
            short = "\n".join(lines[: 1 + len(lines) // 4])
            written.append(f"<line>{lines[-1]}</line>\n<short>\n{short}\n</short>\n<full>\n{full}\n</full>")
        text, after = "\n".join(written), prompt.after
        cached = meter.frame(after.frame).tokens + meter.nodes(after.nodes).tokens if after else 0
        asked = meter.counter.text(prompt.system + prompt.text)
        spent = Spent(cached + asked, meter.counter.text(text), cache_read=cached)
        self._lived.helpers.append(spent)
        return Reply(text, spent)


def _once(lived: Lived, window: int) -> float:
    """Dollars that one rewrite and one question may cost by the first list: all that a session may be dearer."""
    prices = catalog.lookup(LISTS[0]).prices
    assert prices is not None, "the catalog knows these"
    written, asked = window // 2 if lived.folds else 0, ASKED if lived.helpers else 0
    return cost(prices, Spent(written, asked, 0, written))


# --- the page ---------------------------------------------------------------------------------------------------------


def blocks(figures: Figures) -> Mapping[str, str]:
    """The table of the document."""
    return {"cost": "\n".join(_dollars(figures))}


def _dollars(figures: Figures) -> Iterator[str]:
    head = ["window", "sessions", "way", *figures["prices"], "compactions", "client's", "tokens a call", "never sent"]
    cells = list[list[str]]()
    for window in dict.fromkeys(row["window"] for row in figures["rows"]):
        for told, is_over, _ in HALVES:
            for way in WAYS:
                some = [r for r in _part(figures, window, is_over) if r["way"] == way]
                if not some:
                    continue
                sums = [sum(row["dollars"][name] for row in some) for name in figures["prices"]]
                folds, client = (sum(row[key] for row in some) for key in ("folds", "client"))
                view = sum(row["view"] * row["calls"] for row in some) // max(1, sum(row["calls"] for row in some))
                many = f"{len(some)} {told}"
                unread = f"{sum(row['unread'] for row in some):,}" if all("unread" in row for row in some) else ""
                cells.append(
                    [
                        f"{window:,}",
                        many,
                        way,
                        *(f"{s:.2f}" for s in sums),
                        f"{folds}",
                        f"{client}",
                        f"{view:,}",
                        unread,
                    ]
                )
    found = ((_dearer(figures, beside, is_over), told, beside) for told, is_over, beside in HALVES)
    told = ", ".join(f"{beside} in {sum(some)} of {len(some)} that {told}" for some, told, beside in found if some)
    yield f"{figures['made']}: dollars of all sessions. By more than a rewrite and a question clew is above {told}."
    yield ""
    yield table(head, cells)


def _part(figures: Figures, window: int, is_over: bool) -> list[Row]:
    rows = [row for row in figures["rows"] if row["window"] == window]
    over = {row["session"] for row in rows if row["way"] == FULL and row["over"]}
    return [row for row in rows if (row["session"] in over) is is_over]


def _dearer(figures: Figures, beside: str, is_over: bool) -> list[bool]:
    """Of each session that fits, or that does not: whether clew costs more than that way, and more than is allowed."""
    found = list[bool]()
    for window in dict.fromkeys(row["window"] for row in figures["rows"]):
        some = {(row["session"], row["way"]): row for row in _part(figures, window, is_over)}
        for number in dict.fromkeys(session for session, _ in some):
            other = some[number, beside]["dollars"][LISTS[0]]
            ways = (some[number, way] for way in (CLEW, ASKING))
            found.append(any(row["dollars"][LISTS[0]] > other + row["once"] for row in ways))
    return found
