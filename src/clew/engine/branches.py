"""The branches in memory: those used of late, found by name, by view, or by what a body has in common with them."""

from collections import OrderedDict
from collections.abc import Iterator
from operator import itemgetter
from threading import Lock

from clew.core.items import Scope
from clew.core.view import View
from clew.recognition.branch import Live
from clew.recognition.last_body import Body, Known


class Memory:
    """At most so many branches, the one not used for longest goes first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lives: OrderedDict[tuple[Scope, str], Live] = OrderedDict()
        self._lock = Lock()  # hosts may be on several event loops, each in a thread of its own

    def get(self, scope: Scope, branch: str) -> Live | None:
        """A branch, if it is here."""
        return self._lives.get((scope, branch))

    def newest(self, view: View) -> Live | None:
        """The branch of a view, if it is here and that view is its newest."""
        live = self.get(view.scope, view.branch)
        return live if live is not None and live.view.seq == view.seq else None

    def named(self, scope: Scope, session: str | None) -> Live | None:
        """The branch of a session that was used last."""
        return next(self._own(scope, session), None)

    def best(self, scope: Scope, session: str | None, body: Body) -> Live | None:
        """The branch that a body most likely goes on: most in common, least beyond."""
        if session is not None:
            own = [live for live in self._beside(scope, session) if live.known.likeness(body) or _is_like(live, body)]
            return max(own, key=lambda live: live.known.likeness(body), default=None)
        for likeness in (Known.likeness, Known.close_likeness):
            like = [(likeness(live.known, body), -len(live.known.messages), live) for live in self._own(scope, None)]
            best = max(like, key=itemgetter(0, 1), default=(0, 0, None))
            if best[0]:
                return best[2]
        return None

    def keep(self, scope: Scope, live: Live) -> None:
        """Have a branch here, as the one used last."""
        with self._lock:
            self._lives[scope, live.trace.branch] = live
            self._lives.move_to_end((scope, live.trace.branch))
            while len(self._lives) > self._most:
                self._lives.popitem(last=False)

    def forget(self, scope: Scope, live: Live) -> None:
        """The log is ahead of what is here, or may be: read it the next time."""
        live.stale = True
        with self._lock:
            self._lives.pop((scope, live.trace.branch), None)

    def _beside(self, scope: Scope, session: str) -> Iterator[Live]:
        """Those of a session, and of agents of their own that speak under its name, the one used last first."""
        return (live for live in self._used(scope) if session in (live.trace.session, live.beside))

    def _own(self, scope: Scope, session: str | None) -> Iterator[Live]:
        """Those of a session, or of none, the one used last first."""
        return (live for live in self._used(scope) if live.trace.session == session and live.beside is None)

    def _used(self, scope: Scope) -> Iterator[Live]:
        with self._lock:
            lives = [*reversed(self._lives.items())]
        return (live for (of, _), live in lives if of == scope)


def _is_like(live: Live, body: Body) -> bool:
    """Whether a body that shares no bytes may be of this branch all the same."""
    return live.beside is None and live.known.format == body.format
