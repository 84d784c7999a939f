"""One call of a model by an agent of LangChain: what is sent of it, and what came of it."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.tools import BaseTool

from clew import catalog
from clew.adapters.host import CHAPTER, Host, Hosted
from clew.adapters.langchain.messages import (
    LANGCHAIN_FORMAT,
    HeldMessage,
    body_of,
    held,
    name_of,
    sendable,
    usage_of,
    without_thoughts,
)
from clew.catalog.usage import Spent, spent
from clew.core.threads import in_thread_of_its_own
from clew.exchange.thread import Thread, best
from clew.steps.chapters.model import Prompt, Reply
from clew.wire.rules.binding import binds

SHORTENINGS = 3  # times that a call is made shorter after a refusal
REFUSED = "prompt is too long"  # which LangChain knows of an error, whatever its provider's words


class FittedCall:
    """A request of an agent. Where clew fails, it goes out as it came, without clew's tools."""

    def __init__(self, request: ModelRequest[Any], tools: Sequence[BaseTool], host: Host) -> None:
        ours = {id(tool) for tool in tools}
        own = [tool for tool in request.tools if id(tool) not in ours]
        self.request = request if len(own) == len(request.tools) else request.override(tools=own)
        self._tools = tools
        self._host = host
        self._tries = 0

    @property
    def is_elsewhere(self) -> bool:
        """Whether the provider has the conversation, and is sent only what is new."""
        return bool(getattr(self.request.model, "use_previous_response_id", False))

    @cached_property
    def _held(self) -> list[HeldMessage]:
        return held(self.request.messages)

    async def fit(self, thread: Thread | None) -> ModelRequest[Any]:
        """The request with what fits of its messages, and with the tools on offer."""
        if thread is None or self.is_elsewhere:
            return self.request
        return await best(self._fit(thread), self.request)

    async def _fit(self, thread: Thread) -> ModelRequest[Any]:
        name, most = name_of(self.request.model), (self.request.model.profile or {}).get("max_input_tokens")
        if most and most != catalog.window(name):  # a profile is the user's to set: it may be more, too
            self._host.engine.limits.windows.tell(name, most)
        bound = self.request.response_format is not None or self.request.tool_choice not in (None, "auto", "none")
        thread.own = None if bound else self._host.author(hosted(self.request.model))
        sent = await thread.fit(body_of(self.request, self._held, self.request.tools), LANGCHAIN_FORMAT)
        names = {tool.get("function", {}).get("name") for tool in sent.body.get("tools") or ()}
        offered = [tool for tool in self._tools if tool.name in names] if sent.offers else []
        request = self.request.override(tools=[*self.request.tools, *offered]) if offered else self.request
        if not (sent.view.edits or sent.status):
            return request
        messages = sendable(sent.body, self._held)
        if binds("anthropic", name):
            messages = without_thoughts(messages)
        return request.override(messages=messages)

    async def refused(self, thread: Thread | None, error: Exception) -> bool:
        """Whether an error says that it was too long, and it is worth while to try again."""
        if thread is None or self._tries == SHORTENINGS:
            return False
        self._tries += 1
        return await best(_shortened(thread, error), False)

    async def heard(self, thread: Thread | None, response: ModelResponse[Any]) -> None:
        """Take note of what the provider counted, and of an answer after which nobody may be asked again."""
        if thread is None or thread.last is None:
            return
        said = [message for message in response.result if isinstance(message, AIMessage)]
        for message in said:
            await best(thread.heard(usage_of(message)), None)
        if not (said and response.result[-1] is said[-1] and said[-1].tool_calls):
            result: list[AnyMessage] = response.result  # type: ignore[assignment]
            await best(self._keep(thread, result), None)

    async def _keep(self, thread: Thread, result: list[AnyMessage]) -> None:
        whole = body_of(self.request, [*self._held, *held(result)], self.request.tools)
        await thread.keep(whole, LANGCHAIN_FORMAT)


async def _shortened(thread: Thread, error: Exception) -> bool:
    if await thread.refused(error):
        return True
    return isinstance(error, ContextOverflowError) and await thread.refused(REFUSED)


def hosted(model: BaseChatModel) -> Hosted:
    """A model of LangChain as one that writes summaries for clew."""
    return Hosted(name_of(model), partial(_asked, model), (model.profile or {}).get("max_input_tokens"))


async def _asked(model: BaseChatModel, prompt: Prompt) -> Reply:
    said = [*([SystemMessage(prompt.system)] if prompt.system else []), HumanMessage(prompt.text)]
    # Not `ainvoke`: its connections belong to the loop of the agent.
    answer = await in_thread_of_its_own(partial(model.invoke, said, {"run_name": CHAPTER, "tags": ["clew"]}))
    assert isinstance(answer, AIMessage)
    usage = usage_of(answer)
    calls = tuple(call["name"] for call in answer.tool_calls)
    return Reply(str(answer.text), spent(usage) if usage else Spent(0), calls)
