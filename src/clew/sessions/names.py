"""What a name or an id means: the same in every command and on every face."""

from collections.abc import Callable, Collection
from typing import NamedTuple

from clew.core.items import SHORT
from clew.errors import Ambiguous, NotFound
from clew.store.records import Session

NAMES_OFFERED = 5  # names to choose from


class MeantSession(NamedTuple):
    """A conversation, by its newest session; or, if that was asked for, one of its sessions."""

    session: Session
    is_conversation: bool


def called(session: Session) -> str:
    """A conversation as people refer to it: its name, or its id if it has none."""
    return session.name or session.branch[:SHORT]


def expect_name(name: str) -> None:
    """Raise `NotFound` for an empty name, of which every other one is the rest: a shell variable that is not set."""
    if not name:
        raise NotFound("the name is empty: `clew sessions` lists the conversations that there are")


def meant(name: str, sessions: Collection[Session]) -> MeantSession:
    """What a name or an id, or the beginning of one, means. Raises `NotFound`, or `Ambiguous` where it fits several.

    The name or the id of a conversation is all of it, as it stands; `name.3` is its third session, and so is the id
    of that one. The first session of a conversation has the id of the whole: it is `name.1`.
    """
    expect_name(name)
    stem, _, number = name.rpartition(".")
    for fits in (str.__eq__, str.startswith):  # run.1 is the first session of run, whoever is called run.12
        if found := _named(name, sessions, fits):
            return found
        if number.isdecimal() and stem and (found := _named(stem, sessions, fits)):
            for session in sessions:
                if (session.branch, session.number) == (found.session.branch, int(number)):
                    return MeantSession(session, False)
            raise NotFound(f"{stem} has {found.session.number} sessions; there is no {number}")
    raise NotFound(f"no conversation or session matches {name!r}: `clew sessions` lists them; or try another scope")


def _newest(sessions: Collection[Session]) -> Session:
    """The last session of the newest branch of a conversation, whatever the clock said when they began."""
    branches = {session.id: session.branch for session in sessions}
    firsts: dict[str, Session] = {}
    for session in sessions:
        first = firsts.setdefault(session.branch, session)
        firsts[session.branch] = min(first, session, key=lambda s: (s.seq, s.number))
    older = {branches.get(first.parent or "") for first in firsts.values()}
    newest = max(firsts, key=lambda branch: (branch not in older, firsts[branch].at))
    return max((s for s in sessions if s.branch == newest), key=lambda s: (s.seq, s.number))


def _named(name: str, sessions: Collection[Session], fits: Callable[[str, str], bool]) -> MeantSession | None:
    """The conversation of a name or an id, or the session of an id."""
    named: dict[str, list[Session]] = {}
    ids: dict[str, list[Session]] = {}
    for session in sessions:
        if session.name is not None and fits(session.name, name):
            named.setdefault(session.name, []).append(session)
        elif fits(session.branch, name):
            ids.setdefault(session.branch, []).append(session)
        elif fits(session.id, name):
            ids[session.id] = [session]
    found = {id: MeantSession(_newest(those), id == those[0].branch) for id, those in ids.items()}
    found |= {own: MeantSession(_newest(those), True) for own, those in named.items()}
    if len(found) > 1:
        main = min(found, key=len)
        if all(own == main or own.startswith((f"{main}-fork-", f"{main}-subagent-")) for own in found):
            return found[main]  # an imported conversation; the others are called after it
        few = ", ".join(list(found)[:NAMES_OFFERED])
        raise Ambiguous(f"{name} matches {len(found)} sessions; give more of it: {few}")
    return next(iter(found.values()), None)
