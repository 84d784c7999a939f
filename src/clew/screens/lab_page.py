"""The page of `clew lab`: one file, figures only."""

from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from clew.lab import LabReport
from clew.lab.act import AS_IT_WAS
from clew.lab.report import WayTotals, most_saved
from clew.screens.lab import COLUMNS, advice, notes, skipped
from clew.screens.lines import dollars
from clew.sessions.transcripts import AGENTS

SESSIONS = 20


def page(report: LabReport) -> str:
    """The report as a page to share."""
    way, totals = report.chosen(), report.totals()
    name = way.name if way else report.ways[0].name
    told, *commands = advice(report)
    most = max((one.worth for one in totals), default=0.0)
    lines = "\n".join(map(escape, commands))
    style = _file("lab_page.css")
    return Template(_file("lab_page.html")).substitute(
        style=style,
        style_hash=f"sha256-{b64encode(sha256(style.encode()).digest()).decode()}",
        sentence=escape(f"{told[0].upper()}{told[1:]}."),
        commands=f"<pre><code>{lines}</code></pre>" if commands else "",
        about=escape(
            " ".join(
                f"{note[0].upper()}{note[1:]}." for note in (*list(notes(report))[: -len(COLUMNS)], *skipped(report))
            )
        ),
        rows="\n".join(_way(one, most, one.name == name) for one in totals),
        sessions="\n".join(_session(record, name) for record in most_saved(report, name, SESSIONS)),
    )


def _file(name: str) -> str:
    return files("clew.screens").joinpath(name).read_text(encoding="utf-8")


def _way(sums: WayTotals, most: float, is_chosen: bool) -> str:
    wide = 100 * sums.worth / most if most else 0.0
    bar = (
        '<svg aria-hidden="true" focusable="false"><rect class="all" width="100%" height="100%"/>'
        f'<rect class="kept" width="{wide:.1f}%" height="100%"/></svg>'
    )
    name = f"<strong>{escape(sums.name)}</strong>" if is_chosen else escape(sums.name)
    counts = sums.compactions, sums.sent // max(1, sums.calls), sums.too_large, sums.again, sums.needed
    cells = "".join(f"<td>{number:,}</td>" for number in counts)
    money = f"<td>{dollars(sums.dollars)}</td><td>{dollars(sums.worth)}</td>"
    return f'<tr><th scope="row">{name}</th>{money}<td class="bars">{bar}</td>{cells}</tr>'


def _session(record: Any, name: str) -> str:
    was, now = record["ways"][AS_IT_WAS], record["ways"][name]
    agent = escape(record["agent"]) if record["agent"] in AGENTS else "another"
    return (
        f'<tr><td class="left">{agent}</td><td>{record["tokens"]:,}</td><td>{was["calls"]:,}</td>'
        f"<td>{dollars(was['dollars'])}</td><td>{dollars(now['dollars'])}</td>"
        f"<td>{was['compactions']:,}</td><td>{now['compactions']:,}</td></tr>"
    )
