"""The strategy: the framework's own way to compact, with originals that stay, marked as excluded."""

from collections.abc import Sequence

from agent_framework import EXCLUDE_REASON_KEY, EXCLUDED_KEY, Message

from clew.adapters.agent_framework.messages import AGENT_FRAMEWORK_FORMAT, WireMessages, frame_of
from clew.adapters.host import Adapter, Host, Where
from clew.core.items import Scope
from clew.exchange.thread import best

REASON = "clew"  # why a message is excluded
STAND_IN_KEY = "_clew_stand_in"  # marks a message that stands for others


class ClewCompactionStrategy(Adapter):
    """For `compaction_strategy=` of an agent or a client, or for a `CompactionProvider`.

    A strategy sees messages only: say which `model` reads them, or give an engine with a budget.
    """

    def __init__(self, engine: Where = None, *, model: str = "", scope: Scope = "default") -> None:
        # Nobody is told anything here, and no tool can be offered: no text names one.
        self.host = Host(engine, scope=scope, method="auto", offer=False, tell=False)
        self._model = model

    async def __call__(self, messages: list[Message]) -> bool:
        """Mark what is out of view as excluded, and put in what stands for it; whether that is a change."""
        return await best(self._compacted(messages), False)

    async def _compacted(self, messages: list[Message]) -> bool:
        said = [message for message in messages if not message.additional_properties.get(STAND_IN_KEY)]
        ours = [message for message in said if not _is_others(message)]
        wire = WireMessages(ours)
        body = {**frame_of(self._model, {}, wire.system), "messages": wire.messages}
        sent = await self.host.thread().fit(body, AGENT_FRAMEWORK_FORMAT)
        view = wire.back(sent.body["messages"]) if sent.view.edits else ours
        before = [id(message) for message in messages if not message.additional_properties.get(EXCLUDED_KEY)]
        _mark(ours, view)
        messages[:] = _merged(said, view)
        return before != [id(message) for message in messages if not message.additional_properties.get(EXCLUDED_KEY)]


def _is_others(message: Message) -> bool:
    """Whether somebody else has excluded a message."""
    told = message.additional_properties
    return bool(told.get(EXCLUDED_KEY)) and told.get(EXCLUDE_REASON_KEY) != REASON


def _mark(ours: Sequence[Message], view: Sequence[Message]) -> None:
    """Exclude what is not in view, and mark what stands for it."""
    seen, known = {id(message) for message in view}, {id(message) for message in ours}
    for message in ours:
        told = message.additional_properties
        if id(message) not in seen:
            told[EXCLUDED_KEY], told[EXCLUDE_REASON_KEY] = True, REASON
        elif told.get(EXCLUDE_REASON_KEY) == REASON:
            told[EXCLUDED_KEY] = False
            del told[EXCLUDE_REASON_KEY]
    for message in view:
        if id(message) not in known:
            message.additional_properties[STAND_IN_KEY] = True


def _merged(said: Sequence[Message], view: Sequence[Message]) -> list[Message]:
    """All messages in their order, what stands for others before the next that is in view."""
    places = {id(message): i for i, message in enumerate(said)}
    out: list[Message] = []
    at = 0
    for message in view:
        if (place := places.get(id(message))) is not None:
            out += said[at:place]
            at = place + 1
        out.append(message)
    return out + list(said[at:])
