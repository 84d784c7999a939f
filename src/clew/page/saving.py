"""What conversations came to beside sending everything: counted when somebody looks, and remembered."""

from collections.abc import Sequence

from clew.core.caches import Recent
from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.sessions.totals import Totals, totals
from clew.store.records import Session

REMEMBERED = 20_000  # conversations

Stand = tuple[Scope, str, tuple[int, int, int, float]]  # a branch, and how far it had come


class Savings:
    """The totals of conversations, as they stood when they were counted."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: Recent[Stand, Totals] = Recent(REMEMBERED)

    def known(self, scope: Scope, sessions: Sequence[Session]) -> Totals | None:
        """What a conversation came to; None: it has changed, or was never counted."""
        return self._known.get(_stand(scope, sessions))

    async def of(self, scope: Scope, sessions: Sequence[Session]) -> Totals:
        """The same, counted if need be."""
        key = _stand(scope, sessions)
        if (found := self._known.get(key)) is None:
            found = await totals(self._engine, scope, sessions)
            self._known[key] = found
        return found


def _stand(scope: Scope, sessions: Sequence[Session]) -> Stand:
    sums = len(sessions), sum(s.calls for s in sessions), sum(s.items for s in sessions), sum(s.cost for s in sessions)
    return scope, sessions[0].branch, sums
