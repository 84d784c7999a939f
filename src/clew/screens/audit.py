"""What `clew audit` shows: each compaction, all of them, and one sentence."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from clew.audit import (
    FACT_KINDS,
    LOOKUP_KINDS,
    AuditReport,
    AuditTotals,
    CompactionAudit,
    FactKind,
    KindCount,
    LookupKind,
)
from clew.screens.lines import count, line, table, words

FIRST_KINDS = FACT_KINDS[:5]  # in a row; the others only in all
HEADINGS = {"commands": "cmds", "numbers": "nums", "decisions": "decs"}
NAME_LENGTH = 8
WIDE = 104  # columns from which there is room for the model
SKIPPED_SHOWN = 5
UNPRICED = "price unknown"


def audit(console: Console, report: AuditReport, most: int) -> None:
    """The newest compactions, the sums, and what they come to."""
    if not report.compactions:
        line(console, nothing(report))
        return
    shown = report.compactions[-most:] if most else report.compactions
    _each(console, shown)
    if len(shown) < len(report.compactions):
        line(console, f"the newest {len(shown):,} of {len(report.compactions):,}; --limit 0 shows all", "dim")
    console.print()
    _in_all(console, report.totals)
    console.print()
    for note in notes(report):
        console.print(Text(note, "dim"))
    console.print(Text(sentence(report.totals), "bold"))


def _each(console: Console, found: Sequence[CompactionAudit]) -> None:
    wide = console.width >= WIDE
    kinds = [HEADINGS.get(kind, kind) for kind in FIRST_KINDS]
    shown = table("compaction", "tokens", *kinds, "again", "cost")
    shown.columns[0].overflow = "ellipsis"
    agent, names = None, short_names(found)
    for one in sorted(found, key=lambda one: one.agent):
        if one.agent != agent:
            agent = one.agent
            shown.add_row(Text(words(agent, 40) or "messages", "bold"))
        name = f"  {names[one.session]}.{one.number}  {day(one.at)}"
        model = f"  {words(one.model, 30)}" if wide else ""
        facts = [_kept(one.kinds.get(kind)) for kind in FIRST_KINDS]
        again = sum(one.again.values())
        shown.add_row(
            Text(f"{name}{model}"),
            f"{thousands(one.tokens_before)}→{thousands(one.tokens_after)}",
            *facts,
            f"{again:,}" if again else "",
            price(one.cost, one.again_tokens),
        )
    console.print(shown)


def _kept(found: KindCount | None) -> str:
    if found is None:
        return "?"
    return f"{found.kept:,}/{found.before:,}" if found.before else ""


def _in_all(console: Console, totals: AuditTotals) -> None:
    shown = table("in all", "before", "kept", "share", "lost, then used again")
    for kind in FACT_KINDS:
        found = totals.kinds[kind]
        if found.before:
            needed = f"{found.needed:,}" if kind in ("paths", "commands") else ""
            shown.add_row(named(kind), f"{found.before:,}", f"{found.kept:,}", share(found), needed)
    console.print(shown)
    if told := looked_up(totals):
        line(console, f"looked up again: {told}")


# --- in words, for the page too -------------------------------------------------------------------------------------


def sentence(totals: AuditTotals) -> str:
    """What it comes to, for somebody who reads nothing else."""
    kinds = [(named(kind), totals.kinds[kind]) for kind in FACT_KINDS if totals.kinds[kind].before]
    parts = " and ".join(f"{found.kept:,} of {found.before:,} {name}" for name, found in kinds[:2])
    made = count(totals.compactions - totals.unreadable, "compaction")
    first = f"{parts} survived {made}" if parts else "Nothing was compacted that can be counted"
    files, every = totals.again["files"], sum(totals.again.values())
    if not every:
        return f"{first}; nothing was looked up again."
    again = f"files were read again {files:,} times" if files > 1 else "a file was read again" if files else ""
    other = f"{count(every - files, 'other look-up')} made again" if every > files else ""
    cost = price(totals.cost, totals.again_tokens, totals.unpriced_tokens)
    paid = f" ({cost})" if UNPRICED in cost else f", about {cost}" if cost else ""
    return f"{first}; {' and '.join(filter(None, (again, other)))}{paid}."


def looked_up(totals: AuditTotals) -> str:
    """What was looked up again, and what it cost; nothing if nothing was."""
    ones: Mapping[LookupKind, tuple[str, ...]] = {"files": ("file read",), "searches": ("search", "searches")}
    made = [count(totals.again[k], *ones.get(k, (k.removesuffix("s"),))) for k in LOOKUP_KINDS if totals.again[k]]
    cost = price(totals.cost, totals.again_tokens, totals.unpriced_tokens)
    told = "; ".join([", ".join(made), count(totals.again_tokens, "token")])
    return f"{told}{f', {cost}' if cost else ''}" if made else ""


def nothing(report: AuditReport) -> str:
    """That there is no compaction, and where there is none."""
    return f"{count(report.sessions, 'session')} in {', '.join(report.looked)}, and no compaction in any of them."


def notes(report: AuditReport) -> list[str]:
    """What does not show in the figures."""
    found = []
    if unreadable := report.totals.unreadable:
        found.append(
            f"{count(unreadable, 'compaction')} cannot be judged (?): the summary is encrypted, or what it replaced is "
            "in no file"
        )
    if report.repeated:
        found.append(f"{count(report.repeated, 'compaction')} in copies of sessions, counted once")
    return found


def skipped(report: AuditReport) -> list[str]:
    """The files that could not be read, and why."""
    told = [f"skipped {words(one.file)}: {words(one.fault)}" for one in report.faults]
    left = len(told) - SKIPPED_SHOWN
    return told if left <= 0 else [*told[:SKIPPED_SHOWN], f"and {count(left, 'more file')}; --json lists them"]


def named(kind: FactKind) -> str:
    return "file paths" if kind == "paths" else kind


def share(found: KindCount) -> str:
    return f"{found.kept / found.before:.1%}" if found.before else ""


def price(cost: float | None, tokens: int, unpriced: int = 0) -> str:
    """Dollars for tokens; that nobody knows them."""
    if not tokens:
        return ""
    if cost is None or unpriced == tokens:
        return UNPRICED
    known = f"${cost:,.2f}" if cost >= 0.1 else f"${cost:.3f}" if cost >= 0.01 else f"${cost:.4f}"
    return f"{known} and more ({unpriced:,} tokens: {UNPRICED})" if unpriced else known


def thousands(tokens: int | None) -> str:
    """So many tokens in few signs; `?` where nobody knows."""
    if tokens is None or tokens < 1000:
        return "?" if tokens is None else f"{tokens}"
    return f"{tokens / 1000:,.0f}k" if tokens >= 10_000 else f"{tokens / 1000:,.1f}k"


def day(at: str) -> str:
    """The day of a time as a file has it; nothing where that is none."""
    return at[:10] if len(at) > 9 and at[:10].replace("-", "").isdecimal() and at[:10].isascii() else ""


def short_names(found: Sequence[CompactionAudit]) -> dict[str, str]:
    """A few signs for each session: the first, or where others begin so, the last."""
    names = {one.session for one in found}
    starts = Counter(name.removeprefix("ses_")[:NAME_LENGTH] for name in names)
    return {
        name: words(start if starts[start := name.removeprefix("ses_")[:NAME_LENGTH]] == 1 else name[-NAME_LENGTH:])
        for name in names
    }
