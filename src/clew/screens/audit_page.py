"""The page of `clew audit`: one file that asks nobody for anything.

Everything in it is escaped. Unless content is asked for, it holds figures, days, and names of agents and models only if
they are known ones: nothing that a conversation, or whoever wrote a session file, could have put there.
"""

from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

from clew.audit import FACT_KINDS, AuditReport, AuditTotals, CompactionAudit, KindCount
from clew.catalog import lookup
from clew.screens.audit import FIRST_KINDS, day, looked_up, named, notes, price, sentence, share, thousands
from clew.screens.lines import count
from clew.sessions.transcripts import AGENTS

NO_CONTENT = "Nothing of what was said in the conversations is in this page."
WITH_CONTENT = "It lists what was lost, in the words of the conversations; secrets that clew recognises are masked."


def page(report: AuditReport, content: bool = False) -> str:
    """The report as a page to share; with content, also what was lost."""
    totals = report.totals
    return filled(
        "audit_page.html",
        sentence=escape(sentence(totals)),
        about=escape(_about(report, totals)),
        kinds="\n".join(_kind_row(named(kind), totals.kinds[kind], kind in FIRST_KINDS[:2]) for kind in FACT_KINDS),
        again=_again(totals),
        headings="".join(f'<th scope="col">{named(kind)}</th>' for kind in FIRST_KINDS),
        rows="\n".join(map(_row, report.compactions)),
        lost=_lost(report.compactions) if content else "",
        privacy=escape(WITH_CONTENT if content else NO_CONTENT),
    )


def filled(name: str, **parts: str) -> str:
    """A page with these parts, and the style that all pages of figures have."""
    style = _file("audit_page.css")
    known = f"sha256-{b64encode(sha256(style.encode()).digest()).decode()}"
    return Template(_file(name)).substitute(parts, style=style, style_hash=known)


def _file(name: str) -> str:
    return files("clew.screens").joinpath(name).read_text(encoding="utf-8")


def _about(report: AuditReport, totals: AuditTotals) -> str:
    days = sorted(filter(None, (day(one.at) for one in report.compactions)))
    when = f", {days[0]} to {days[-1]}" if days else ""
    made = f"{count(totals.compactions, 'compaction')} in {count(totals.sessions, 'session')}{when}."
    return " ".join([made, *(f"{note}." for note in notes(report))])


def _kind_row(name: str, found: KindCount, is_used: bool) -> str:
    if not found.before:
        return ""
    kept = 100 * found.kept / found.before
    bar = (
        '<svg aria-hidden="true" focusable="false"><rect class="all" width="100%" height="100%"/>'
        f'<rect class="kept" width="{kept:.1f}%" height="100%"/></svg>'
    )
    used = f"{found.needed:,}" if is_used else ""
    return (
        f'<tr><th scope="row">{name}</th><td>{found.before:,}</td><td>{found.kept:,}</td><td>{share(found)}</td>'
        f'<td class="bars">{bar}</td><td>{used}</td></tr>'
    )


def _again(totals: AuditTotals) -> str:
    told = looked_up(totals)
    return f"<p>{escape(f'Looked up again: {told}.')}</p>" if told else ""


def _row(one: CompactionAudit) -> str:
    facts = "".join(f"<td>{_kept(one.kinds.get(kind))}</td>" for kind in FIRST_KINDS)
    again = sum(one.again.values())
    return (
        f'<tr><td>{escape(day(one.at))}</td><td class="left">{_agent(one)}</td>{facts}<td>{again or ""}</td>'
        f"<td>{escape(price(one.cost, one.again_tokens))}</td><td>{thousands(one.tokens_before)}</td>"
        f'<td>{thousands(one.tokens_after)}</td><td class="left">{_model(one)}</td></tr>'
    )


def _kept(found: KindCount | None) -> str:
    return "?" if found is None else f"{found.kept:,} of {found.before:,}" if found.before else ""


def _agent(one: CompactionAudit) -> str:
    return escape(one.agent) if one.agent in AGENTS else "another"


def _model(one: CompactionAudit) -> str:
    """A model by the name of the catalog: what a file calls one may be anything."""
    known = lookup(one.model) if one.model else None
    return escape(known.name) if known and known.source == "catalog" else ""


def _lost(found: Sequence[CompactionAudit]) -> str:
    return "\n".join(["<h2>What was lost</h2>", *(_lost_in(n, one) for n, one in enumerate(found, 1))])


def _lost_in(number: int, one: CompactionAudit) -> str:
    lost = sum(map(len, one.lost.values()))
    title = f"{number}. {day(one.at)} {one.agent}: {count(lost, 'fact')} lost"
    return f"<details><summary>{escape(title)}</summary>{''.join(_lists(one))}</details>"


def _lists(one: CompactionAudit) -> Iterator[str]:
    for kind, texts in one.lost.items():
        if texts:
            yield _listed(f"{named(kind)}, {len(texts):,}", texts)
    if one.looked_up:
        yield _listed(f"looked up again, {len(one.looked_up):,}", [f"{kind}: {what}" for kind, what in one.looked_up])


def _listed(title: str, texts: Sequence[str]) -> str:
    rows = "".join(f"<li><code>{escape(text)}</code></li>" for text in texts)
    return f"<h3>{escape(title)}</h3><ul>{rows}</ul>"
