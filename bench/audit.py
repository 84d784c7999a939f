"""What real compactions lost, by kind, beside what others measured; and how fast that is counted.

python bench/audit.py --data DIR [--speed] [--json bench/results/audit.json]

DIR holds session files of agents, or conversations with `real_compactions`. The published figures are those of
https://github.com/vshulcz/deja-vu/issues/543: 43 compactions in 58 transcripts of one person. Its way of counting, as
far as it is told there, is followed in the column "their way": every path and number in everything that was said or
shown, as it is written; every command that ran; a sentence by a few of its longer words, wherever they stand.
"""

import argparse
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as with_
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from clew.audit import FACT_KINDS, AuditReport, FactKind, read_files, session_files
from clew.audit.compactions import SessionAudit
from clew.audit.kinds import MEASURED, command_of, facts_in, given_to
from clew.audit.sentences import Retelling
from clew.audit.survival import Part
from clew.core.items import Item
from clew.errors import BadRequest
from clew.facts import find
from clew.sessions.transcripts import Transcript, read_all, write
from clew.sessions.transcripts.source import data_of

PUBLISHED: dict[FactKind, str] = {"paths": "9.8%", "commands": "0.2%", "numbers": "1.9%", "decisions": "77%"}
PUBLISHED_COUNTS: dict[FactKind, int] = {"paths": 10_335, "commands": 14_439, "numbers": 834, "decisions": 132}
LONGER_WORD, A_FEW = 6, 3
FORMATS = ("claude-code", "codex", "pi", "opencode")
MINUTE = 60


def main(args: Sequence[str] | None = None) -> None:
    """Print the tables."""
    given = options(args)
    console = Console(highlight=False)
    files, _ = session_files([given.data])
    report = AuditReport.of([str(given.data)], read_files(files))
    sessions = [s for file in files if b"compact" in (data := data_of(file.path)) for s in _sessions(data)]
    compacted = [s for s in sessions if s.compactions]
    chance, theirs = (Counter(_by_chance(compacted, way)) for way in (False, True))
    counted = Counter(_their_way(compacted))
    console.print(by_kind(report, counted, chance))
    print(f"their way, of decisions by chance: {_share(theirs, 'decisions')}")
    totals = report.totals
    again = ", ".join(f"{n:,} {kind}" for kind, n in totals.again.items())
    print(f"{totals.compactions} compactions in {totals.sessions} sessions; looked up again: {again};")
    print(f"{totals.again_tokens:,} tokens, ${totals.cost:.2f}")
    if given.json:
        kept = {"made": f"{datetime.now(UTC):%Y-%m-%d}", "compactions": totals.compactions, "sessions": totals.sessions}
        ways = {"their_way": counted, "by_chance": chance, "their_way_by_chance": theirs}
        kinds = {kind: _figures(kind, report, ways) for kind in FACT_KINDS}
        given.json.write_text(json.dumps({**kept, "kinds": kinds}, indent=1) + "\n")
    if given.speed:
        console.print(speed(compacted))


def options(args: Sequence[str] | None) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = os.environ.get("CLEW_CORPUS")
    parser.add_argument("--data", type=Path, default=default, required=default is None, help="session files")
    parser.add_argument("--speed", action="store_true", help="also how fast files of each agent are counted")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures, for docs/audit.md")
    return parser.parse_args(args)


def _figures(kind: FactKind, report: AuditReport, ways: Mapping[str, Counter[tuple[FactKind, bool]]]) -> dict[str, Any]:
    """What was kept of a kind, and of how many: our way, and by other ways of counting."""
    ours = report.totals.kinds[kind]
    others = {way: {"kept": c[kind, True], "of": c[kind, True] + c[kind, False]} for way, c in ways.items()}
    published = {"share": PUBLISHED.get(kind), "of": PUBLISHED_COUNTS.get(kind)}
    return {"clew_audit": {"kept": ours.kept, "of": ours.before}, **others, "published": published}


def _sessions(data: bytes) -> list[Transcript]:
    try:
        return read_all(data)
    except BadRequest:
        return []


def by_kind(
    report: AuditReport, theirs: Counter[tuple[FactKind, bool]], chance: Counter[tuple[FactKind, bool]]
) -> Table:
    """What survived, by kind: our way, with what another session's summary would hold; their way; as published."""
    table = Table("kind", "before", "kept", "share", "by chance", "their way", "of", "published", "of", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for kind in FACT_KINDS:
        found = report.totals.kinds[kind]
        table.add_row(
            kind,
            f"{found.before:,}",
            f"{found.kept:,}",
            f"{found.kept / found.before:.1%}" if found.before else "",
            _share(chance, kind),
            _share(theirs, kind),
            f"{theirs[kind, True] + theirs[kind, False]:,}" if _share(theirs, kind) else "",
            PUBLISHED.get(kind, ""),
            f"{PUBLISHED_COUNTS[kind]:,}" if kind in PUBLISHED_COUNTS else "",
        )
    return table


def _share(counts: Counter[tuple[FactKind, bool]], kind: FactKind) -> str:
    every = counts[kind, True] + counts[kind, False]
    return f"{counts[kind, True] / every:.1%}" if every else ""


class Compacted(NamedTuple):
    """What was said before a compaction, and its summary."""

    session: int
    items: Sequence[Item]
    summary: str

    @property
    def part(self) -> Part:
        return Part(fact for item in self.items for fact in facts_in(item))


def _compacted(sessions: Sequence[Transcript]) -> Iterator[Compacted]:
    for n, session in enumerate(sessions):
        items, start = SessionAudit(session).items, 0
        for place, why in session.compactions:
            if why.summary is not None:
                yield Compacted(n, [item for message in items[start:place] for item in message], why.summary)
            start = place


def _their_way(sessions: Sequence[Transcript]) -> Iterator[tuple[FactKind, bool]]:
    for one in _compacted(sessions):
        items, summary = [item for item in one.items if item.kind != "reasoning"], one.summary
        texts = "\n".join(item.text for item in items)
        paths = {fact.text for fact in find(texts) if fact.kind in ("path", "file")}
        yield from (("paths", path in summary) for path in paths)
        lines = {line for item in items if item.kind == "call" and (line := command_of(given_to(item)))}
        yield from (("commands", line in summary) for line in lines)
        units = {m[0] for m in MEASURED.finditer(texts) if (m[4] or "").lower() in ("ms", "mb", "%")}
        yield from (("numbers", number in summary) for number in units)
        for said in one.part.facts["decisions"]:
            yield "decisions", _has_a_few_words(said, summary)


def _has_a_few_words(said: str, summary: str) -> bool:
    longer = {word for word in said.lower().split() if len(word) >= LONGER_WORD}
    return sum(word in summary.lower() for word in longer) >= min(A_FEW, len(longer))


def _by_chance(sessions: Sequence[Transcript], their_way: bool) -> Iterator[tuple[FactKind, bool]]:
    """Whether sentences count as told in summaries of other sessions, where nobody told them."""
    every = list(_compacted(sessions))
    summaries = [(other.session, other.summary, Retelling(other.summary)) for other in every]
    kinds: tuple[FactKind, ...] = ("decisions", "rules")
    for one in every:
        facts = one.part.facts
        others = [(summary, read) for session, summary, read in summaries if session != one.session]
        for kind in kinds:
            for said in facts[kind]:
                for summary, read in others:
                    yield kind, _has_a_few_words(said, summary) if their_way else read.tells(said)


def speed(sessions: Sequence[Transcript]) -> Table:
    """Megabytes a minute and core, by agent: sessions that were all compacted, the slowest there are."""
    table = Table("files of", "MB", "CPU s", "MB/min and core", box=None)
    for format in FORMATS:
        with TemporaryDirectory() as folder:
            for n, session in enumerate(sessions):
                data = write(with_(session, name=f"{n}"), format)
                Path(folder, f"{n}.jsonl").write_bytes(data)
            files, _ = session_files([Path(folder)])
            size = sum(file.bytes for file in files) / 1e6
            began = process_time()
            AuditReport.of([], read_files(files))
            spent = process_time() - began
        table.add_row(format, f"{size:.1f}", f"{spent:.1f}", f"{MINUTE * size / spent:,.0f}")
    return table


if __name__ == "__main__":
    main()
