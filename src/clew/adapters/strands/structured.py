"""`agent.structured_output()`: a request that no hook sees, and that is to fit all the same."""

import math
from collections.abc import Callable
from weakref import WeakKeyDictionary

from strands import Agent
from strands.hooks import AfterInvocationEvent, BeforeInvocationEvent, HookOrder
from strands.types.agent import LocalAgent
from strands.types.content import Messages

from clew.adapters.strands.messages import STRANDS_FORMAT, request
from clew.engine.engine import body
from clew.errors import SecretFound
from clew.exchange.thread import Thread, warn
from clew.wire.formats.plain import fresh


def is_structured(event: BeforeInvocationEvent) -> bool:
    """Whether `structured_output` was called: it alone tells nobody what it adds to the messages."""
    return event.messages is None


class Structured:
    """While `structured_output` runs, an agent holds what fits of its messages; then it has all of them again."""

    def __init__(self, thread_of: Callable[[LocalAgent], Thread | None]) -> None:
        self._thread_of = thread_of
        self._full_messages: WeakKeyDictionary[LocalAgent, Messages] = WeakKeyDictionary()

    def watch(self, agent: Agent) -> None:
        """Begin with an agent."""
        # After all others: should one of them refuse the call, nothing has been changed.
        agent.add_hook(self._shorten, BeforeInvocationEvent, order=math.inf)
        agent.add_hook(self._restore, AfterInvocationEvent, order=HookOrder.SDK_FIRST)

    async def _shorten(self, event: BeforeInvocationEvent) -> None:
        agent, thread = event.agent, self._thread_of(event.agent)
        whole = self._full_messages.get(agent, agent.messages)  # it may be asked twice at the same time
        if not is_structured(event) or thread is None or agent.model.stateful or not whole:
            return
        try:
            asked = request(agent.model, fresh(whole), agent.system_prompt, [])
            short = body((await thread.fit(asked, STRANDS_FORMAT)).view)["messages"]
        except SecretFound:  # somebody said that such a thing must not be sent
            raise
        except Exception as error:
            warn("clew failed; all messages are sent", error)
        else:
            self._full_messages[agent], agent.messages = whole, short

    def _restore(self, event: AfterInvocationEvent) -> None:
        if (whole := self._full_messages.pop(event.agent, None)) is not None:
            event.agent.messages = whole
