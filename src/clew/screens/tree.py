"""What `clew sessions` shows: conversations, each with its chain, and under it what came of it."""

from collections.abc import Collection, Mapping, Sequence

from rich.console import Console
from rich.text import Text

from clew.core.items import SHORT
from clew.screens.lines import called, count, dollars, line, moment, table, words
from clew.sessions.chains import Chain, TreeRow, is_named_by_person, rows
from clew.store.records import Session

ID_BEGINNING = 13  # characters of a session's id: of those that begin with the time, the milliseconds
DEEPEST = 6  # levels that are indented
OTHER_COLUMNS = 56  # columns of the screen that are not the name's


def tree(console: Console, roots: Collection[Chain], titles: Mapping[str, str], whole: bool, more: int) -> None:
    """Conversations and their sessions; `titles` has the first words of those that nobody named."""
    shown = table("session", "when", "calls", "items", "sent", "cost")
    shown.columns[0].max_width = max(16, console.width - OTHER_COLUMNS)
    shown.columns[0].overflow = "ellipsis"
    for root in roots:
        for row in rows(root, whole):
            if row.left_out:
                shown.add_row(Text(f"{_indent(row)}  … {row.left_out:,} more", "dim"))
            elif row.session is not None:
                shown.add_row(_session(row), *_numbers([row.session]), style="dim" if row.session.undone else "")
            else:
                shown.add_row(_conversation(row, titles), *_numbers(row.chain.sessions))
    console.print(shown)
    if more:
        line(console, f"and {count(more, 'conversation')} more: --limit shows them", "dim")


def _indent(row: TreeRow) -> str:
    return "  " * 2 * min(row.depth, DEEPEST)


def _conversation(row: TreeRow, titles: Mapping[str, str]) -> Text:
    first = row.chain.first
    text = Text(_indent(row))
    if first.cause != "start":
        text.append(f"{first.cause} ", "cyan")
    again = first.name is not None and first.name == row.above  # a rewind: only its id tells it apart
    title = titles.get(first.branch)
    name = first.branch[:SHORT] if again else called(first)
    # An agent's session is named by an id, of which a beginning is enough: its first words say more.
    text.append(name if not title or is_named_by_person(first) else name[:ID_BEGINNING], "bold")
    if title:
        text.append(f" {words(title, 60)}")
    for tag in first.tags:
        text.append(f" #{words(tag, 30)}", "magenta")
    if first.archived:
        text.append(" archived", "dim")
    return text


def _session(row: TreeRow) -> Text:
    session = row.session
    assert session is not None, "a row of a session"
    undone = ", undone" if session.undone else ""
    method = f" ({words(session.method, 12)})" if session.method not in ("", "auto") else ""
    return Text(f"{_indent(row)}{session.number:>4} {session.cause}{method}{undone}")


def _numbers(sessions: Sequence[Session]) -> list[str]:
    calls, items, sent = (sum(getattr(s, name) for s in sessions) for name in ("calls", "items", "sent"))
    paid = dollars(sum(s.cost for s in sessions))
    return [moment(sessions[0].at), f"{calls:,}", f"{items:,}", f"{sent:,}", paid]
