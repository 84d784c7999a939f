"""What `clew show --diff` shows: what a compaction took out of view, and what it put there."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from clew.core.items import SHORT
from clew.facts.coverage import STATES
from clew.screens.lines import count, dollars, label, line, moment, numbered, print_line, read, table, words
from clew.sessions.composition import CompositionPart, Shown, parts
from clew.sessions.diffs import Diff, Price, StandIn
from clew.steps.worklog.blocks import CODE
from clew.store.records import Session

INDENT = 4  # of what a stand-in says
FACTS = 10  # of most worth that are out of view


def diff(console: Console, found: Diff, full: bool) -> None:
    """What it came to, what left, what stands there, what became of the facts."""
    session = found.session
    undone = ", undone since" if session.undone else ""
    _title(console, session, f"{session.cause} ({words(session.method, 20)}){undone} · {moment(session.at)}")
    _sums(console, found)
    paid = f", {dollars(found.cost)}" if found.cost else ""
    line(console, f"spent   {count(found.spent, 'token')} on making it{paid}")
    _changes(console, found, full)


def preview(console: Console, found: Diff, full: bool, model: str = "") -> None:
    """The same of a compaction that was not made; `model` is the one that would be asked."""
    _title(console, found.session, "if it were compacted now")
    _sums(console, found)
    if model and any(one.author == CODE for one in found.stand_ins):
        line(console, f"words   where they are code's, {words(model, 40)} would be asked first")
    _changes(console, found, full, whole=True)


def _changes(console: Console, found: Diff, full: bool, whole: bool = False) -> None:
    """What left, what stands there, with `whole` word for word, and what became of the facts."""
    if full:
        line(console, f"\n{count(len(found.left), 'item')} left", "bold")
        for shown in found.left:
            _left(console, shown)
    else:
        _kinds(console, parts(found.left))
    line(console, f"\n{count(len(found.stand_ins), 'stand-in')} in their place", "bold")
    for stand_in in found.stand_ins:
        _stand_in(console, stand_in)
        for node in stand_in.nodes if whole else ():
            read(console, node.item.text, INDENT)
    counts = ", ".join(f"{found.coverage.count(state):,} {state}" for state in STATES)
    line(console, f"\n{count(len(found.coverage.fates), 'fact')} behind stand-ins: {counts}", "bold")
    for fate in found.coverage.missing()[:FACTS]:
        line(console, f"  {fate.worth:4.0%}  recall {fate.id}  {words(fate.fact)}")


def _title(console: Console, session: Session, about: str) -> None:
    title = Text(numbered(session), "bold")
    title.append(f" · {about}", "dim")
    print_line(console, title)


def _sums(console: Console, found: Diff) -> None:
    less = 1 - found.after / found.before if found.before else 0
    line(console, f"{found.before:,} → {found.after:,} tokens of {found.limit:,} · {less:.0%} less", "bold")
    if found.price_before and found.price_after:
        was, now = found.price_before, found.price_after
        line(console, f"a call  {_price(was, now, 'fresh')}, {_price(was, now, 'cached')}")


def _price(was: Price, now: Price, which: str) -> str:
    return f"{dollars(getattr(was, which)) or '$0'} → {dollars(getattr(now, which)) or '$0'} {which}"


def _kinds(console: Console, left: Sequence[CompositionPart]) -> None:
    console.print()
    shown = table("left the view", "tokens", "items")
    shown.columns[0].header_style = shown.header_style = "bold"
    for part in left:
        shown.add_row(part.kind, f"{part.tokens:,}", f"{part.items:,}")
    console.print(shown)


def _left(console: Console, shown: Shown) -> None:
    item = shown.node.item
    told = words(f"{item.name} {item.text}")
    line(console, f"  {shown.node.id[:SHORT]}  {label(item):<9} {shown.tokens:>7,}   {told}")


def _stand_in(console: Console, made: StandIn) -> None:
    step = f"by {words(made.author, 20)}" if made.author else made.by.partition("(")[0]
    sizes = f"{made.before:,} → {made.after:,}"
    line(console, f"▸ {made.id}  {step:<10} {sizes:>16}   {words(made.nodes[0].item.text)}", "cyan")


def as_json(found: Diff) -> dict[str, Any]:
    """A diff for a program."""
    session = found.session
    prices = {
        key: {"before": getattr(found.price_before, key), "after": getattr(found.price_after, key)}
        for key in ("fresh", "cached")
        if found.price_before and found.price_after
    }
    return {
        "session": numbered(session),
        "id": session.id,
        "method": session.method,
        "at": session.at,
        "undone": session.undone,
        "tokens": {"before": found.before, "after": found.after, "limit": found.limit},
        "dollars": prices,
        "spent": {"tokens": found.spent, "dollars": found.cost},
        "left": [
            {"id": s.node.id, "kind": s.kind, "tokens": s.tokens, "words": words(s.node.item.text)} for s in found.left
        ],
        "stand_ins": [
            {
                "id": s.id,
                "by": s.by,
                "author": s.author,
                "before": s.before,
                "after": s.after,
                "items": len(s.originals),
            }
            | {"text": "\n".join(n.item.text for n in s.nodes)}
            for s in found.stand_ins
        ],
        "coverage": {state: found.coverage.count(state) for state in STATES},
        "missing": [fate._asdict() for fate in found.coverage.missing()],
    }
