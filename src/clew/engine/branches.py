"""The branches in memory: those used of late, found by name, by view, or by what a body has in common with them."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from operator import itemgetter
from threading import Lock
from typing import NamedTuple

from clew.core.items import Scope
from clew.core.view import View
from clew.engine.branch import Branch
from clew.recognition.last_body import Body, Known
from clew.recognition.prefixes import Prefixes


class _Kept(NamedTuple):
    branch: Branch
    bytes: int
    names: frozenset[str]


class Branches:
    """Branches of about so many bytes together; the one not used for longest goes first, the last one stays."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._branches: OrderedDict[tuple[Scope, str], _Kept] = OrderedDict()
        self._named: dict[tuple[Scope, str], dict[str, Branch]] = {}  # by name; the one used last at the end
        self._unnamed: defaultdict[Scope, Prefixes[str]] = defaultdict(Prefixes)
        self._lock = Lock()  # hosts may be on several event loops, each in a thread of its own

    def get(self, scope: Scope, branch: str) -> Branch | None:
        """A branch, if it is here."""
        found = self._branches.get((scope, branch))
        return found.branch if found else None

    def newest(self, view: View) -> Branch | None:
        """The branch of a view, if it is here and that view is its newest."""
        branch = self.get(view.scope, view.branch)
        return branch if branch is not None and branch.view.seq == view.seq else None

    def named(self, scope: Scope, session: str) -> Branch | None:
        """The branch of a session that was used last."""
        return next((branch for branch in self._beside(scope, session) if branch.beside is None), None)

    def best(self, scope: Scope, session: str | None, body: Body) -> Branch | None:
        """The branch that a body most likely goes on, as far as its bytes tell: most in common, least beyond."""
        if session is not None:
            return _best(self._beside(scope, session), Known.likeness, body)
        return _best(self._unnamed_like(scope, Prefixes.by_bytes, body), Known.likeness, body)

    def closest(self, scope: Scope, session: str | None, body: Body) -> Branch | None:
        """The same where its bytes tell nothing: now it is parsed."""
        if session is not None:
            own = (branch for branch in self._beside(scope, session) if branch.beside is None)
            return next((branch for branch in own if branch.body.format == body.format), None)
        return _best(self._unnamed_like(scope, Prefixes.by_message, body), Known.close_likeness, body)

    def keep(self, scope: Scope, branch: Branch) -> None:
        """Have a branch here, as the one used last."""
        id = branch.trace.branch
        names = frozenset(name for name in (branch.trace.session, branch.beside) if name is not None)
        kept = _Kept(branch, branch.bytes, names)
        with self._lock:
            self._drop(scope, id)
            self._branches[scope, id] = kept
            self._bytes += kept.bytes
            for name in kept.names:
                self._named.setdefault((scope, name), {})[id] = branch
            if not kept.names:
                self._unnamed[scope].put(id, branch.body)
            while self._bytes > self._most and (len(self._branches) > 1 or not self._most):
                self._drop(*next(iter(self._branches)))

    def forget(self, scope: Scope, branch: Branch) -> None:
        """The log is ahead of what is here, or may be: read it the next time."""
        branch.stale = True
        with self._lock:
            self._drop(scope, branch.trace.branch)

    def _drop(self, scope: Scope, id: str) -> None:
        kept = self._branches.pop((scope, id), None)
        if kept is None:
            return
        self._bytes -= kept.bytes
        for name in kept.names:
            here = self._named[scope, name]
            del here[id]
            if not here:
                del self._named[scope, name]
        if not kept.names:
            self._unnamed[scope].drop(id)
            if not self._unnamed[scope]:
                del self._unnamed[scope]

    def _unnamed_like(self, scope: Scope, find: Callable[[Prefixes[str], Body], list[str]], body: Body) -> list[Branch]:
        with self._lock:
            keys = find(self._unnamed[scope], body) if scope in self._unnamed else []
        return [branch for key in keys if (branch := self.get(scope, key))]

    def _beside(self, scope: Scope, session: str) -> Iterator[Branch]:
        """Those of a session, and of agents of their own that speak under its name, the one used last first."""
        with self._lock:
            return reversed([*self._named.get((scope, session), {}).values()])


def _best(branches: Iterable[Branch], likeness: Callable[[Known, Body], int], body: Body) -> Branch | None:
    like = [(likeness(b.body, body), -len(b.body.messages), b) for b in branches]
    most, _, best = max(like, key=itemgetter(0, 1), default=(0, 0, None))
    return best if most else None
