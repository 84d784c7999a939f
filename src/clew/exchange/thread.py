"""A conversation of a host that keeps its own list of messages: what every adapter does with it."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from clew.config.places import environment, here
from clew.control import ContextController, SentBody
from clew.core.bridge import cross
from clew.core.items import Frame, Item, Scope
from clew.core.limits import Budget
from clew.engine.engine import Engine, Request
from clew.engine.settings import Settings
from clew.errors import ClewError, SecretFound
from clew.steps.chapters.allowance import may_ask_own
from clew.steps.chapters.by_model import ByModel
from clew.store.places import open_store
from clew.store.records import Origin
from clew.wire.formats.tools import Outcome

UNAVAILABLE = Outcome("Error: recall is unavailable right now; continue without it", failed=True)
LONGEST_REASON = 300  # characters: an error may say what it found instead

_LOGGER = logging.getLogger("clew")

T = TypeVar("T")


def engine_at(where: Engine | str | Path | None = None, budget: Budget | None = None, **given: Any) -> Engine:
    """An engine as it is, or one over this store, or over the user's own; what is `given` is as for `Settings`.

    No settings are read: who wants those of files and variables gives `clew.configured()`.
    """
    if isinstance(where, Engine):
        return where
    return Engine(open_store(here().store() if where is None else where), budget, Settings(**given))


async def best(work: Awaitable[T], otherwise: T) -> T:
    """What comes of some work of clew's; where it fails that is told, and a host has something else to go on with."""
    try:
        return await work
    except SecretFound:  # somebody said that such a thing must not be sent
        raise
    except Exception as error:
        warn("clew failed; the original request is sent unchanged", error)
        return otherwise


async def answered(thread: "Thread | None", name: str, given: Mapping[str, Any]) -> Outcome:
    """What one of clew's tools gives back to the agent, even where clew itself fails."""
    try:
        if thread is not None:
            return await thread.answer(name, given)
    except Exception as error:
        warn(f"clew could not answer a call of {name}", error)
    return UNAVAILABLE


def warn(what: str, error: Exception) -> None:
    """Say what clew failed to do, and why."""
    why = (
        str(error)[:LONGEST_REASON] if isinstance(error, ClewError) else type(error).__name__
    )  # others may quote a key
    _LOGGER.warning("%s: %s", what, why)
    _LOGGER.debug("this is where", exc_info=error)


class Thread:
    """What to send of a host's conversation, what came of it, and what its agent may ask.

    May be used from any loop, or from none with `clew.run`: the work is done on clew's own, where its engine lives.
    """

    def __init__(
        self,
        controller: ContextController,
        session: str | None = None,
        *,
        scope: Scope = "default",
        origin: Origin | None = None,
        check: Callable[[Frame, Sequence[Item]], None] | None = None,
        served: str = "",
        own: ByModel | None = None,
    ) -> None:
        self.controller = controller
        self.session = session  # the host's name for it; without one it is known by its past
        self.scope = scope
        self.origin = origin
        self._check, self._served = check, served  # as `Request` has them
        self.own = own  # the model that it is with, where it may be asked to write chapters
        self.last: SentBody | None = None

    @property
    def own(self) -> ByModel | None:
        """The model of the conversation, as one that writes chapters; None: it is not asked."""
        return self._own

    @own.setter
    def own(self, own: ByModel | None) -> None:
        self._own = own if may_ask_own(environment()) else None

    async def fit(self, body: Mapping[str, Any] | bytes, format: str | None = None) -> SentBody:
        """What to send instead of a request of the host. Raises `OverBudget`."""
        known = self.scope, self.session, self.origin
        request = Request(body, format, *known, check=self._check, served=self._served, own=self.own)
        self.last = None  # should this fail, the host sends its own, and no report is of what was fitted before
        self.last = await cross(self.controller.prepare(request))
        return self.last

    async def keep(self, body: Mapping[str, Any], format: str | None = None) -> None:
        """Write down what was said, the last answer too, without sending anything."""
        await cross(self.controller.keep(Request(body, format, self.scope, self.session, self.origin)))

    async def heard(self, usage: Any) -> None:
        """What the provider reported for what was last sent."""
        if self.last is not None and usage is not None:
            await cross(self.controller.engine.observe(self.last.view, usage))

    def busy(self) -> None:
        """That the provider has too much to do: it is asked nothing beside for a while."""
        if self.own is not None:
            self.own.allowance.pause()

    async def unanswered(self) -> None:
        """That there was no answer to what was last sent."""
        if self.last is not None:
            await cross(self.controller.engine.unanswered(self.last.view))

    async def refused(self, error: BaseException | Mapping[str, Any] | str) -> bool:
        """Whether an error says that it was too long, and what `fit` gives next is shorter."""
        return self.last is not None and await cross(self._refused(self.last, error))

    async def _refused(self, sent: SentBody, error: BaseException | Mapping[str, Any] | str) -> bool:
        engine = self.controller.engine
        if await engine.refused(sent.view, error) is None:
            return False
        return await engine.compact(sent.view, method="reactive") is not sent.view

    async def answer(self, name: str, given: Mapping[str, Any]) -> Outcome:
        """What one of clew's tools gives back to the agent; what cannot be done is said, not raised."""
        if self.last is None:
            return Outcome("Error: this conversation is empty", failed=True)
        return await cross(self.controller.answer(self.last.view, name, given))

    def child(self, name: str) -> "Thread":
        """A conversation for a part of the work, whose lineage hangs under this one's."""
        if self.last is None:
            raise ClewError("child() needs a parent request: send one first")
        origin = Origin("subagent", self.last.view.branch)
        return Thread(self.controller, self.name_of_child(name), scope=self.scope, origin=origin)

    def name_of_child(self, name: str) -> str:
        """A new name for a conversation about a part of the work."""
        return f"{self.session or 'agent'}-{name}-{uuid4().hex[:8]}"
