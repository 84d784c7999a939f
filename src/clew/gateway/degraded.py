"""While the store cannot be read or written, requests are still made to fit, from memory."""

import time
from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from clew.control import ContextController, SentBody
from clew.core.own_tools import RECALL
from clew.engine.engine import Engine
from clew.errors import Conflict, StoreError
from clew.exchange.thread import Thread, warn
from clew.store.sqlite import SQLite
from clew.store.waiting import patience

WAITING = 2.0  # seconds for a store that somebody has locked: a person is waiting for the answer
RESTING = 5.0  # seconds after a fault in which nobody waits for the store: it is tried, and that is all
FORGIVEN = 30.0  # seconds after a fault: whoever sends nothing to a gateway that is not ready would never hear it is
MANY_FITTED = 1_000  # requests after which the log in memory begins anew


class SpareEngine:
    """An engine over a log in memory, for as long as the store of another one fails; nothing of it is kept.

    Clients send all of their history each time: what was said meanwhile is in the log after the first request that the
    store takes again.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._spare: Engine | None = None
        self._fitted = 0
        self._failed: float | None = None  # when the store last did, if it did since it last worked

    @property
    def is_resting(self) -> bool:
        """Whether the store has failed just now, and nobody is to wait for it."""
        return self._failed is not None and time.monotonic() - self._failed < RESTING

    @property
    def is_needed(self) -> bool:
        """Whether the store has failed of late."""
        return self._failed is not None and time.monotonic() - self._failed < FORGIVEN

    def failed(self) -> None:
        """Note that the store fails."""
        self._failed = time.monotonic()

    def works(self) -> None:
        """Note that it does not, or no longer."""
        self._failed = self._spare = None

    def controller(self, other: ContextController) -> ContextController:
        """One that fits requests from memory, and offers to look into it where that other one does."""
        self._fitted += 1
        if self._spare is None or self._fitted % MANY_FITTED == 0:
            self._spare = Engine(SQLite(":memory:"), self._engine.budget, self._engine.settings)
            self._spare.limits.know(self._engine.limits)
        made = ContextController(self._spare, offer=other.is_ours(RECALL), steer=False, tell=False)
        made.method = "auto"
        return made


class SparedThread(Thread):
    """A conversation that is fitted from memory where the store fails."""

    spare: SpareEngine | None = None
    is_spared = False  # the store failed

    async def fit(self, body: Mapping[str, Any] | bytes, format: str | None = None) -> SentBody:
        if self.spare is None:
            return await super().fit(body, format)
        resting = self.spare.is_resting
        try:
            with patience(0) if resting else nullcontext():
                sent = await super().fit(body, format)
            self.spare.works()
            return sent
        except StoreError as error:
            if not resting:
                warn("the store fails; requests are fitted from memory", error)
            if not error.damage and not isinstance(error, Conflict):  # those may be of this conversation alone
                self.spare.failed()
        self.controller, self.origin, self.is_spared = self.spare.controller(self.controller), None, True
        return await super().fit(body, format)
