"""LiteLLM: a callback with which every request fits its window, in its SDK and in its proxy.

It acts in `async_pre_call_deployment_hook`: the last to see a request, once for each try, whatever its format. The
proxy's own `async_pre_call_hook` comes before a deployment is chosen, and does not know the model.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

from clew.errors import MissingExtra

try:
    from litellm.integrations.custom_logger import CustomLogger
except ImportError:
    raise MissingExtra("clew.adapters.litellm needs LiteLLM", "litellm") from None

from litellm import acompletion
from litellm.types.utils import CallTypes

from clew import wire
from clew.adapters.host import CHAPTER, READ, Adapter, Host, Hosted, Where, asked_here
from clew.adapters.weaving import plain
from clew.config.wiring import configured
from clew.control import ContextController
from clew.core import rawjson
from clew.core.caches import Recent
from clew.core.items import Scope
from clew.exchange.own_model import LOGIN_KEYS
from clew.exchange.thread import Thread, best
from clew.llm import replies
from clew.llm.requests import chat
from clew.steps.chapters.by_model import ByModel
from clew.steps.chapters.model import Prompt, Reply
from clew.wire.rules.binding import binds

__all__ = ["ClewLogger", "handler"]

CALL_FORMATS = {
    CallTypes.acompletion: "openai_chat",
    CallTypes.anthropic_messages: "anthropic",
    CallTypes.aresponses: "openai_responses",
}
# Who is asked, and with which key; each of these, and what begins so.
WHOM = (
    "api_",
    "aws_",
    "azure_",
    "vertex_",
    "base_url",
    "organization",
    "custom_llm_provider",
    "extra_headers",
    "timeout",
)
LOGGED_IN = ("github_copilot/", "chatgpt/")  # providers that LiteLLM is logged in at with somebody's subscription
MARK = "clew"  # in the metadata of what clew asks
LITELLM_ELSEWHERE = ("previous_response_id", "conversation")  # the provider has the history, and it cannot be seen
UNDER_WAY = 512  # calls whose answers are awaited; of those before them no usage is taken


class _LoggedCall(NamedTuple):
    format: str
    thread: Thread


class ClewLogger(Adapter, CustomLogger):
    """For `litellm.callbacks`, or `litellm_settings.callbacks` of the proxy: what is sent fits, and nothing is lost."""

    def __init__(self, engine: Where = None, *, scope: Scope = "default") -> None:
        super().__init__()
        # Nobody is told anything here, and no tool is offered.
        self.host = Host(engine, scope=scope, method="auto", offer=False, tell=False)
        self._calls: Recent[str, _LoggedCall] = Recent(UNDER_WAY)

    @cached_property
    def _controller(self) -> ContextController:
        return self.host.controller()

    async def close(self) -> None:
        """Let go of a store that was opened for a path; the next request would open it again."""
        self.__dict__.pop("_controller", None)
        await super().close()

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: CallTypes | None
    ) -> dict[str, Any] | None:
        """The request with what fits of its messages; None leaves it as it is."""
        format = CALL_FORMATS.get(call_type) if call_type else None
        known = self._calls.get(id := str(kwargs.get("litellm_call_id")))
        # LiteLLM asks itself in another format where a provider does not speak the caller's: that was fitted already.
        if format is None or (known and known.format != format) or any(map(kwargs.get, LITELLM_ELSEWHERE)):
            return None
        if any(MARK in told for told in _metadata(kwargs)):  # clew itself asks
            return None
        said = kwargs.get(wire.named(format).LIST)
        if not isinstance(said, list) or not said:
            return None
        fitted = await best(self._fit(id, format, kwargs, said), None)
        return None if fitted is None else {**kwargs, wire.named(format).LIST: fitted}

    async def _fit(self, id: str, format: str, kwargs: Mapping[str, Any], said: Sequence[Any]) -> list[Any] | None:
        scope, own = self._scope_of(kwargs), self._author(kwargs)
        thread = Thread(self._controller, _session(kwargs), scope=scope, own=own)
        self._calls[id] = _LoggedCall(format, thread)
        return await _fitted(thread, format, kwargs, said)

    async def async_log_success_event(
        self, kwargs: Mapping[str, Any], response_obj: Any, start_time: Any, end_time: Any
    ) -> None:
        """Take note of what the provider counted, at the end of a stream too."""
        call = self._calls.pop(str(kwargs.get("litellm_call_id")), None)
        usage = _get(response_obj, "usage")
        # Where a provider reports none, LiteLLM writes noughts.
        if call and usage and (_get(usage, "prompt_tokens") or _get(usage, "input_tokens")):
            await best(call.thread.heard(usage), None)

    async def async_post_call_failure_deployment_hook(
        self,
        request_data: Mapping[str, Any],
        exception: Exception,
        call_type: CallTypes | None,
        fallback_depth: int | None = None,
    ) -> None:
        """What was too long for its provider is made shorter for the next try, or for the next request."""
        call = self._calls.get(id := str(request_data.get("litellm_call_id")))
        if call and CALL_FORMATS.get(call_type or CallTypes.acompletion) == call.format:
            del self._calls[id]
            await best(call.thread.refused(exception), False)

    def _author(self, kwargs: Mapping[str, Any]) -> ByModel | None:
        """The model of a call; not in the proxy, whose users never agreed to that, nor with a login."""
        model, key = str(kwargs.get("model") or ""), str(kwargs.get("api_key") or "")
        is_proxy = kwargs.get("proxy_server_request") or any("user_api_key" in told for told in _metadata(kwargs))
        if not model or is_proxy or model.startswith(LOGGED_IN) or key.startswith(LOGIN_KEYS):
            return None
        whom = {name: value for name, value in kwargs.items() if name.startswith(WHOM)}
        return self.host.author(Hosted(model, asked_here(partial(_asked, model, whom))))

    def _scope_of(self, kwargs: Mapping[str, Any]) -> Scope:
        """The proxy says whose key it was; nobody sees what was said under another one."""
        key = next((told["user_api_key_hash"] for told in _metadata(kwargs) if told.get("user_api_key_hash")), None)
        return f"{self.host.scope}-{key}" if key else self.host.scope


async def _asked(model: str, whom: Mapping[str, Any], prompt: Prompt) -> Reply:
    """What a model says to a question of clew's, which LiteLLM counts, and tells its other callbacks of."""
    question = chat(prompt, model, "max_tokens")
    answer: Any = await acompletion(**question, **whom, metadata={MARK: CHAPTER})
    return replies.read(answer.model_dump(), replies.chat)


async def _fitted(thread: Thread, format: str, kwargs: Mapping[str, Any], said: Sequence[Any]) -> list[Any] | None:
    """What to send instead of these messages; None where nothing is to be changed."""
    list_key = wire.named(format).LIST
    # Who uses the SDK appends its own objects to his list.
    messages = plain(one.model_dump(exclude_none=True) if hasattr(one, "model_dump") else one for one in said)
    given = {key: kwargs[key] for key in READ if kwargs.get(key) is not None}
    sent = await thread.fit(rawjson.dumps({**given, list_key: messages}), format)
    if sent.is_unchanged:
        return None
    fitted: list[Any] = sent.body[list_key]
    if format == "openai_chat" and binds("anthropic", str(kwargs.get("model"))):
        # Claude's thinking is bound to what stood before it, which is no longer what it was.
        return [{key: value for key, value in one.items() if key != "thinking_blocks"} for one in fitted]
    return fitted


def _session(kwargs: Mapping[str, Any]) -> str | None:
    """The caller's name for the conversation; without one it is known by its past."""
    named = [kwargs.get("litellm_session_id"), *(told.get("session_id") for told in _metadata(kwargs))]
    return next((str(name) for name in named if name), None)


def _metadata(kwargs: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What is told about a call; the proxy's own word first, where the other is the caller's."""
    told = (kwargs.get(key) for key in ("litellm_metadata", "metadata"))
    return [one for one in told if isinstance(one, Mapping)]


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, Mapping) else getattr(value, key, None)


handler = ClewLogger(configured)  # for the proxy's config.yaml: with what `clew config` says
