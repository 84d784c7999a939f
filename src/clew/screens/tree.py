"""What `clew sessions` shows: conversations, each with its chain, and under it what came of it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from clew.core.items import SHORT
from clew.recognition.client_edits import is_made_up
from clew.screens.lines import called, count, dollars, line, moment, table, words
from clew.store.records import Session

ID_BEGINNING = 13  # characters of a session's id: of those that begin with the time, the milliseconds
DEEPEST = 6  # levels that are indented
LONG_CHAIN = 20  # sessions: of a longer one, only so many are listed among others
FIRST_SHOWN, LAST_SHOWN = 3, 10
OTHER_COLUMNS = 56  # columns of the screen that are not the name's


@dataclass(frozen=True, slots=True)
class Chain:
    """The sessions of one branch, from the first, and the branches that came of each."""

    sessions: tuple[Session, ...]
    children: Mapping[str, Sequence["Chain"]]  # of all chains, by session

    @property
    def first(self) -> Session:
        return self.sessions[0]

    def all(self) -> Iterator["Chain"]:
        """This chain and all that came of it."""
        stack = [self]
        while stack:
            chain = stack.pop()
            yield chain
            stack += [child for s in chain.sessions for child in self.children.get(s.id, ())]

    def newest(self) -> float:
        """When something began last in it."""
        return max(s.at for chain in self.all() for s in chain.sessions)


class TreeRow(NamedTuple):
    """A line of the tree: a conversation, one of its sessions, or how many are not listed."""

    depth: int
    chain: Chain
    session: Session | None = None
    left_out: int = 0
    above: str | None = None  # the name of the conversation that it came of


def conversations(sessions: Iterable[Session]) -> list[Chain]:
    """The chains that came of no other, the newest first."""
    branches: dict[str, list[Session]] = {}
    for session in sorted(sessions, key=lambda s: (s.at, s.seq, s.number)):
        branches.setdefault(session.branch, []).append(session)
    known = {s.id for chain in branches.values() for s in chain}
    children: dict[str, list[Chain]] = {}
    roots = []
    for found in branches.values():
        chain = Chain(tuple(sorted(found, key=lambda s: s.number)), children)
        if chain.first.parent in known:
            children.setdefault(chain.first.parent or "", []).append(chain)
        else:
            roots.append(chain)
    return sorted(roots, key=Chain.newest, reverse=True)


def rows(root: Chain, whole: bool) -> Iterator[TreeRow]:
    """The lines of a tree from the top; of long chains some are left out unless they are wanted whole."""
    stack = [TreeRow(0, root)]
    while stack:
        row = stack.pop()
        yield row
        if row.left_out:
            continue
        if row.session is None and len(row.chain.sessions) > 1:
            stack += reversed([*_listed(row, whole)])
        else:  # a session that is all of its chain has no line of its own
            session, above = row.session or row.chain.first, row.chain.first.name
            came = row.chain.children.get(session.id, ())
            stack += [TreeRow(row.depth + 1, child, above=above) for child in reversed(came)]


def _listed(row: TreeRow, whole: bool) -> Iterator[TreeRow]:
    depth, chain = row.depth, row.chain
    left_out = 0
    for n, session in enumerate(chain.sessions):
        near = n < FIRST_SHOWN or n >= len(chain.sessions) - LAST_SHOWN
        if whole or near or len(chain.sessions) <= LONG_CHAIN or session.id in chain.children:
            if left_out:
                yield TreeRow(depth, chain, left_out=left_out)
            left_out = 0
            yield TreeRow(depth, chain, session)
        else:
            left_out += 1


# --- on the screen ----------------------------------------------------------------------------------------------------


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


def is_named_by_person(session: Session) -> bool:
    """Whether its name says something; an id that an agent made up does not."""
    return session.name is not None and session.cause != "import" and not is_made_up(session.name)


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
