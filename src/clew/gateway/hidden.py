"""What models asked clew aside, by conversation: no client knows of it."""

from clew.core.caches import Recent
from clew.core.items import Digests, Frame, Scope
from clew.exchange.asides import Asides
from clew.gateway.compacting import Beside, asked_beside
from clew.gateway.speakers import KnownConversation
from clew.recognition.agents import instructions

CONVERSATIONS = 4_096  # of which something is remembered beside the log


class HiddenAsides:
    """The asides of each conversation; without a name, of those with the same system prompt and history."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._known: Recent[tuple[Scope, str, str | None], Asides] = Recent(CONVERSATIONS)

    def of(self, whose: KnownConversation, frame: Frame) -> Asides:
        name = f"={whose.name}" if whose.name is not None else instructions(frame)
        key = whose.scope, name, whose.origin.parent if whose.origin else None
        if (found := self._known.get(key)) is None:
            found = self._known[key] = Asides(Digests(self._secret, whose.scope))
        return found

    def beside(self, whose: KnownConversation, raw: bytes, format: str) -> Beside | None:
        """What a request asks beside its conversation, and that with its asides; None if it is a turn of it."""
        if (found := asked_beside(raw, format)) is None:
            return None
        side, frame, items = found
        woven = self.of(whose, frame).woven(items[: side.begins], format).items
        return side._replace(begins=len(woven)), frame, [*woven, *items[side.begins :]]
