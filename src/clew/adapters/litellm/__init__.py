"""LiteLLM: a callback with which every request fits its window, in its SDK and in its proxy.

It acts in `async_pre_call_deployment_hook`: the last to see a request, once for each try, whatever its format. The
proxy's own `async_pre_call_hook` comes before a deployment is chosen, and does not know the model.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from clew.errors import MissingExtra

try:
    from litellm.integrations.custom_logger import CustomLogger
except ImportError:
    raise MissingExtra("clew.adapters.litellm needs LiteLLM", "litellm") from None

from litellm.types.utils import CallTypes

from clew import wire
from clew.adapters.weaving import plain
from clew.agent.control import ContextController
from clew.config.wiring import configured
from clew.core import rawjson
from clew.core.caches import Recent
from clew.core.items import Scope
from clew.engine.engine import Engine
from clew.exchange.thread import Thread, best, engine_at
from clew.wire.rules.binding import binds

__all__ = ["ClewLogger", "handler"]

CALL_FORMATS = {
    CallTypes.acompletion: "openai_chat",
    CallTypes.anthropic_messages: "anthropic",
    CallTypes.aresponses: "openai_responses",
}
# What a model reads beside the messages, and what its answer may take; all else is for LiteLLM.
READ = (
    *("model", "system", "instructions", "tools", "thinking", "response_format", "text"),
    *("max_tokens", "max_completion_tokens", "max_output_tokens"),
)
LITELLM_ELSEWHERE = ("previous_response_id", "conversation")  # the provider has the history, and it cannot be seen
UNDER_WAY = 512  # calls whose answers are awaited; of those before them no usage is taken


class _LoggedCall(NamedTuple):
    format: str
    thread: Thread


class ClewLogger(CustomLogger):
    """For `litellm.callbacks`, or `litellm_settings.callbacks` of the proxy: what is sent fits, and nothing is lost."""

    def __init__(
        self, engine: Engine | str | Path | Callable[[], Engine] | None = None, *, scope: Scope = "default"
    ) -> None:
        super().__init__()
        self._given = engine
        self._scope = scope
        self._calls: Recent[str, _LoggedCall] = Recent(UNDER_WAY)

    @cached_property
    def engine(self) -> Engine:
        """Made when it is first needed: who only names this in a file of settings opens no store."""
        return engine_at(self._given() if callable(self._given) else self._given)

    @cached_property
    def _controller(self) -> ContextController:
        controller = ContextController(self.engine, offer=False, tell=False)
        controller.method = "auto"  # nobody is told anything here
        return controller

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: CallTypes | None
    ) -> dict[str, Any] | None:
        """The request with what fits of its messages; None leaves it as it is."""
        format = CALL_FORMATS.get(call_type) if call_type else None
        known = self._calls.get(id := str(kwargs.get("litellm_call_id")))
        # LiteLLM asks itself in another format where a provider does not speak the caller's: that was fitted already.
        if format is None or (known and known.format != format) or any(map(kwargs.get, LITELLM_ELSEWHERE)):
            return None
        said = kwargs.get(wire.named(format).LIST)
        if not isinstance(said, list) or not said:
            return None
        fitted = await best(self._fit(id, format, kwargs, said), None)
        return None if fitted is None else {**kwargs, wire.named(format).LIST: fitted}

    async def _fit(self, id: str, format: str, kwargs: Mapping[str, Any], said: Sequence[Any]) -> list[Any] | None:
        thread = Thread(self._controller, _session(kwargs), scope=self._scope_of(kwargs))
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

    def _scope_of(self, kwargs: Mapping[str, Any]) -> Scope:
        """The proxy says whose key it was; nobody sees what was said under another one."""
        key = next((told["user_api_key_hash"] for told in _metadata(kwargs) if told.get("user_api_key_hash")), None)
        return f"{self._scope}-{key}" if key else self._scope


async def _fitted(thread: Thread, format: str, kwargs: Mapping[str, Any], said: Sequence[Any]) -> list[Any] | None:
    """What to send instead of these messages; None where nothing is to be changed."""
    list_key = wire.named(format).LIST
    # Who uses the SDK appends its own objects to his list.
    messages = plain(one.model_dump(exclude_none=True) if hasattr(one, "model_dump") else one for one in said)
    given = {key: kwargs[key] for key in READ if kwargs.get(key) is not None}
    sent = await thread.fit(rawjson.dumps({**given, list_key: messages}), format)
    if sent.is_as_it_came:
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
