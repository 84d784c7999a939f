"""The branches in memory: those used of late, found by name, by view, or by what a body has in common with them."""

from collections import OrderedDict
from collections.abc import Iterator
from operator import itemgetter
from threading import Lock

from clew.core.items import Scope
from clew.core.view import View
from clew.engine.branch import Branch
from clew.recognition.last_body import Body, Known


class Branches:
    """At most so many branches, the one not used for longest goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._branches: OrderedDict[tuple[Scope, str], Branch] = OrderedDict()
        self._lock = Lock()  # hosts may be on several event loops, each in a thread of its own

    def get(self, scope: Scope, branch: str) -> Branch | None:
        """A branch, if it is here."""
        return self._branches.get((scope, branch))

    def newest(self, view: View) -> Branch | None:
        """The branch of a view, if it is here and that view is its newest."""
        branch = self.get(view.scope, view.branch)
        return branch if branch is not None and branch.view.seq == view.seq else None

    def named(self, scope: Scope, session: str | None) -> Branch | None:
        """The branch of a session that was used last."""
        return next(self._own(scope, session), None)

    def best(self, scope: Scope, session: str | None, body: Body) -> Branch | None:
        """The branch that a body most likely goes on: most in common, least beyond."""
        if session is not None:
            own = [b for b in self._beside(scope, session) if b.body.likeness(body) or _is_like(b, body)]
            return max(own, key=lambda b: b.body.likeness(body), default=None)
        for likeness in (Known.likeness, Known.close_likeness):
            like = [(likeness(b.body, body), -len(b.body.messages), b) for b in self._own(scope, None)]
            best = max(like, key=itemgetter(0, 1), default=(0, 0, None))
            if best[0]:
                return best[2]
        return None

    def keep(self, scope: Scope, branch: Branch) -> None:
        """Have a branch here, as the one used last."""
        with self._lock:
            self._branches[scope, branch.trace.branch] = branch
            self._branches.move_to_end((scope, branch.trace.branch))
            while len(self._branches) > self._most:
                self._branches.popitem(last=False)

    def forget(self, scope: Scope, branch: Branch) -> None:
        """The log is ahead of what is here, or may be: read it the next time."""
        branch.stale = True
        with self._lock:
            self._branches.pop((scope, branch.trace.branch), None)

    def _beside(self, scope: Scope, session: str) -> Iterator[Branch]:
        """Those of a session, and of agents of their own that speak under its name, the one used last first."""
        return (branch for branch in self._used(scope) if session in (branch.trace.session, branch.beside))

    def _own(self, scope: Scope, session: str | None) -> Iterator[Branch]:
        """Those of a session, or of none, the one used last first."""
        return (branch for branch in self._used(scope) if branch.trace.session == session and branch.beside is None)

    def _used(self, scope: Scope) -> Iterator[Branch]:
        with self._lock:
            branches = [*reversed(self._branches.items())]
        return (branch for (of, _), branch in branches if of == scope)


def _is_like(branch: Branch, body: Body) -> bool:
    """Whether a body that shares no bytes may be of this branch all the same."""
    return branch.beside is None and branch.body.format == body.format
