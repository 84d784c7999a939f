"""Conversations as trees: the sessions of each branch in a chain, and under it what came of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from clew.recognition.call_ids import is_made_up
from clew.store.records import Session

LONG_CHAIN = 20  # sessions: of a longer one, only so many are listed among others
FIRST_SHOWN, LAST_SHOWN = 3, 10


@dataclass(frozen=True, slots=True)
class Chain:
    """The sessions of one branch, from the first, and the branches that came of each."""

    sessions: tuple[Session, ...]
    children: Mapping[str, Sequence["Chain"]]  # of all chains, by session

    @property
    def first(self) -> Session:
        return self.sessions[0]

    def nested(self) -> Iterator["PlacedChain"]:
        """This chain and all that came of it, each with where it stands."""
        stack = [PlacedChain(self, 0, None)]
        while stack:
            yield (placed := stack.pop())
            chain, depth, _ = placed
            came = [child for s in chain.sessions for child in chain.children.get(s.id, ())]
            stack += [PlacedChain(child, depth + 1, chain) for child in reversed(came)]

    def all(self) -> Iterator["Chain"]:
        """This chain and all that came of it."""
        return (placed.chain for placed in self.nested())

    def family(self) -> "Family":
        """This chain and all that came of it, by what it is."""
        own, others = {self.first.branch}, list[Chain]()
        branches = [self]
        for chain, _, above in self.nested():
            first = chain.first
            if above and above.first.branch in own and first.cause == "fork" and first.name == self.first.name:
                own.add(first.branch)
                branches.append(chain)
            elif above:
                others.append(chain)
        branches[1:] = sorted(branches[1:], key=lambda chain: chain.sessions[-1].at)
        if len(branches) > 1 and self.sessions[-1].at > branches[-1].sessions[-1].at:
            branches.append(self)
        return Family(branches, others)

    def has(self, branch: str) -> bool:
        """Whether a branch is this one, or came of it."""
        return any(chain.first.branch == branch for chain in self.all())

    def newest(self) -> float:
        """When something began last in it."""
        return max(s.at for chain in self.all() for s in chain.sessions)


class Family(NamedTuple):
    """A conversation: its branches, and what else came of it.

    A host has one name for a conversation. Where its user went back, or its client trimmed what it sends, the history
    forks under that name: those are states of one conversation, of which the newest is the one that goes on.
    """

    branches: Sequence[Chain]  # the first one began it, the last one is the newest
    others: Sequence[Chain]  # forks that somebody named, sub-agents, and all that came of them

    @property
    def newest(self) -> Chain:
        return self.branches[-1]


class PlacedChain(NamedTuple):
    """A chain, how deep it stands, and what it came of."""

    chain: Chain
    depth: int
    above: Chain | None


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


def is_named_by_person(session: Session) -> bool:
    """Whether its name says something; an id that an agent made up does not."""
    return session.name is not None and session.cause != "import" and not is_made_up(session.name)
