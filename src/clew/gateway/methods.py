"""Who decides when to compact, conversation by conversation."""

import time
from collections.abc import Mapping

from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.gateway.http import Refused
from clew.sessions.methods import METHOD_SECONDS, keep_method, kept_methods
from clew.store.records import Method

METHOD_HEADER = "x-clew-method"


class ConversationMethods:
    """Who decides when to compact, conversation by conversation: as it was last said, here or by another process."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[Scope, tuple[float, Mapping[str, Method]]] = {}

    async def of(self, scope: Scope, name: str | None, asked: str | None) -> Method:
        """The method of a conversation; what is asked for now holds from now on, where it has a name."""
        if asked is not None and asked not in ("auto", "llm"):
            raise Refused(400, f"{METHOD_HEADER}: expected auto or llm, got {asked[:40]}")
        known = await self._of_scope(scope)
        if asked is None:
            return known.get(name or "", self._engine.settings.method)
        wanted: Method = "llm" if asked == "llm" else "auto"
        if name and known.get(name) != wanted:
            await keep_method(self._engine, scope, name, wanted)
            self._known.pop(scope, None)
        return wanted

    async def _of_scope(self, scope: Scope) -> Mapping[str, Method]:
        now = time.monotonic()
        read, known = self._known.get(scope, (-METHOD_SECONDS, {}))
        if now - read >= METHOD_SECONDS:
            known = await kept_methods(self._engine, scope)
            self._known[scope] = now, known
        return known
