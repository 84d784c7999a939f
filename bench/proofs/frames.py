"""Clients' frames in narrow windows: how much of a window is used before a compaction, and how often there is one."""

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise, product
from pathlib import Path
from statistics import median

from benchmark.corpus import Corpus
from benchmark.driven import NAMES, driven, frame_of
from clew import catalog
from clew.core.limits import Budget
from clew.engine.settings import Settings
from clew.errors import OverBudget
from clew.lab.act import Lived, with_clew
from clew.lab.session import LabSession
from clew.sessions.transcripts import Transcript
from clew.sessions.transcripts.shape import Script
from proofs import Figures
from proofs import Settings as ProofSettings
from proofs.cost import LISTS, Row, corpus_of, meter_of
from proofs.tables import table

WINDOWS = 32_000, 64_000, 80_000, 128_000
SESSIONS = 1  # in the frame of each client: the longest


def measure(settings: ProofSettings) -> Figures:
    """Every client in every window."""
    jobs = list(product([corpus_of(settings.data)], WINDOWS[:1] if settings.quick else WINDOWS, NAMES))
    with ProcessPoolExecutor(settings.processes) as pool:
        rows = list[Row]()
        for done, row in enumerate(pool.map(in_frame, jobs)):
            settings.heard(f"{row['window']:,}", done, len(jobs))
            rows.append(row)
    return {"rows": rows}


def in_frame(job: tuple[Path, int, str]) -> Row:
    """Real sessions in the frame of a client, and one that reads a file in every call, in its client's own shape."""
    folder, window, name = job
    prices = catalog.lookup(LISTS[0]).prices
    assert prices is not None, "the catalog knows these"
    system, meter = frame_of(name), meter_of()
    rows = list[Row]()
    for messages in [list(messages) for _, messages, _ in Corpus(folder).longest(SESSIONS)]:
        transcript = Transcript("openai_chat", Script(messages).stretches, model=LISTS[1], system=system)
        lived = Lived(lambda view, output: None, meter)
        try:
            with_clew(LabSession(transcript), lived, Budget(window), Settings(author=None, expand=False), None)
        except OverBudget:
            return {"client": name, "window": window}
        filled = [before / window for before, after in pairwise(lived.sizes) if after < before]
        rows.append({"calls": len(lived.sizes), "folds": len(filled), "filled": filled})
    try:
        read = driven(name, window, prices, with_clew=True)
    except OverBudget:
        return {"client": name, "window": window}
    filled = [share for row in rows for share in row["filled"]]
    return {
        "client": name,
        "window": window,
        "frame": meter.counter.text(system),
        "ceiling": read.ceiling,
        "filled": median(filled) if filled else None,
        "folds": sum(row["folds"] for row in rows) / sum(row["calls"] for row in rows),
        "read_filled": read.filled,
        "read_folds": read.folds / read.calls,
        "compactions": read.compactions,
    }


def blocks(figures: Figures) -> Mapping[str, str]:
    """The table of the document."""
    head = (
        "client",
        "window",
        "it compacts above",
        "used",
        "compactions",
        "used, reading",
        "compactions, reading",
        "its own",
    )
    cells: list[list[str]] = []
    for row in figures["rows"]:
        begin = [row["client"], f"{row['window']:,}"]
        if "filled" not in row:
            cells.append([*begin, "its frame does not fit", *[""] * 5])
            continue
        at = f"{row['ceiling'] / row['window']:.0%}" if row["ceiling"] and row["ceiling"] < row["window"] else ""
        used = ["" if row[key] is None else f"{row[key]:.0%}" for key in ("filled", "read_filled")]
        folds = [f"{row[key]:.1%}" for key in ("folds", "read_folds")]
        cells.append([*begin, at, used[0], folds[0], used[1], folds[1], f"{row['compactions']}"])
    return {"frames": table(head, cells)}
