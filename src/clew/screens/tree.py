"""What `clew sessions` shows: conversations, each with its chain, and under it what came of it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from shutil import get_terminal_size

from rich.cells import cell_len, set_cell_size

from clew.core.items import SHORT
from clew.screens.lines import called, count, dollars, moment, words
from clew.sessions.chains import Chain, TreeRow, is_named_by_person, rows
from clew.store.records import Session

ID_BEGINNING = 13  # characters of a session's id: of those that begin with the time, the milliseconds
DEEPEST = 6  # levels that are indented
OTHER_COLUMNS = 56  # columns of the screen that are not the name's
HEADINGS = ("when", "calls", "items", "sent", "cost")
BOLD, DIM, PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"

Parts = list[tuple[str, str]]  # of a name: a text, and how it stands on a terminal


def tree(roots: Collection[Chain], titles: Mapping[str, str], whole: bool, more: int) -> Iterator[str]:
    """Conversations and their sessions, a line each; `titles` has the first words of those that nobody named.

    Without rich, which takes a third of the time of a command that is typed often.
    """
    lines: list[tuple[Parts, Sequence[str], str]] = [([("session", "")], HEADINGS, DIM)]
    for row in (row for root in roots for row in rows(root, whole)):
        if row.left_out:
            lines.append(([(f"{_indent(row)}  … {row.left_out:,} more", "")], [""] * len(HEADINGS), DIM))
        elif row.session is not None:
            lines.append(
                (
                    [(_session(row.session, _indent(row)), "")],
                    _numbers([row.session]),
                    DIM if row.session.undone else "",
                )
            )
        else:
            lines.append((_conversation(row, titles), _numbers(row.chain.sessions), ""))
    longest = max(sum(cell_len(text) for text, _ in name) for name, _, _ in lines)
    width = min(longest, max(16, get_terminal_size().columns - OTHER_COLUMNS))
    widths = [max(map(len, column)) for column in zip(*(cells for _, cells, _ in lines), strict=True)]
    for name, cells, style in lines:
        columns = [_cut(name, width), *(cell.rjust(most) for cell, most in zip(cells, widths, strict=True))]
        yield _styled("  ".join(columns), style)
    if more:
        yield _styled(f"and {count(more, 'conversation')} more: --limit shows them", DIM)


def _styled(text: str, style: str) -> str:
    return f"{style}{text}{PLAIN}" if style else text


def _cut(name: Parts, width: int) -> str:
    """A name in so many columns."""
    cut = ""
    for text, style in name:
        if cell_len(text) > width:
            text = f"{set_cell_size(text, width - 1)}…" if width else ""
        cut += _styled(text, style)
        width -= cell_len(text)
    return cut + " " * width


def _indent(row: TreeRow) -> str:
    return "  " * 2 * min(row.depth, DEEPEST)


def _conversation(row: TreeRow, titles: Mapping[str, str]) -> Parts:
    first = row.chain.first
    again = first.name is not None and first.name == row.above  # a rewind: only its id tells it apart
    title = titles.get(first.branch)
    name = first.branch[:SHORT] if again else called(first)
    # An agent's session is named by an id, of which a beginning is enough: its first words say more.
    name = name if not title or is_named_by_person(first) else name[:ID_BEGINNING]
    tags = "".join(f" #{words(tag, 30)}" for tag in first.tags)
    return [
        (_indent(row), ""),
        (f"{first.cause} " if first.cause != "start" else "", DIM),
        (name, BOLD),
        (f" {words(title, 60)}" if title else "", ""),
        (f"{tags}{' archived' if first.archived else ''}", DIM),
    ]


def _session(session: Session, indent: str) -> str:
    undone = ", undone" if session.undone else ""
    method = f" ({words(session.method, 12)})" if session.method not in ("", "auto") else ""
    return f"{indent}{session.number:>4} {session.cause}{method}{undone}"


def _numbers(sessions: Sequence[Session]) -> list[str]:
    calls, items, sent = (sum(getattr(s, name) for s in sessions) for name in ("calls", "items", "sent"))
    paid = dollars(sum(s.cost for s in sessions))
    return [moment(sessions[0].at), f"{calls:,}", f"{items:,}", f"{sent:,}", paid]
