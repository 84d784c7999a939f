"""A provider of models that hears what a call took, and sends again, shorter, what was refused as too long."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

from agents import Model, ModelProvider, ModelResponse, TResponseInputItem
from agents.items import TResponseStreamEvent
from agents.retry import ModelRetryAdvice, ModelRetryAdviceRequest
from agents.usage import Usage

from clew.adapters.openai_agents.writing import spent_of
from clew.exchange.thread import Thread, best

AGAIN = 3  # times that a call is made shorter after a refusal
BEGINNINGS = ("response.created", "response.queued", "response.in_progress")  # events before anything is said


class FittedInput(NamedTuple):
    """What is about to be sent, whose it is, and what makes it anew."""

    thread: Thread
    again: Callable[[], Awaitable[list[TResponseInputItem]]]


InputNow = Callable[[], FittedInput | None]


class HearingProvider(ModelProvider):
    """Models of another provider, with an ear at each call."""

    def __init__(self, provider: ModelProvider, fitted: InputNow) -> None:
        self._provider, self._fitted = provider, fitted

    def get_model(self, model_name: str | None) -> Model:
        return HearingModel(self._provider.get_model(model_name), self._fitted)

    async def aclose(self) -> None:
        await self._provider.aclose()


class HearingModel(Model):
    """A model whose refusals and reports of usage are heard."""

    def __init__(self, model: Model, fitted: InputNow) -> None:
        self._model, self._fitted = model, fitted

    def __getattr__(self, name: str) -> Any:
        """What else the SDK may ask a model, for example whether it takes a key for its prompt cache."""
        return getattr(self._model, name)

    async def close(self) -> None:
        await self._model.close()

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._model._cleanup_on_run_end(owner)

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        return self._model.get_retry_advice(request)

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **given: Any
    ) -> ModelResponse:
        fitted = self._fitted()
        for left in range(AGAIN, -1, -1):
            try:
                response = await self._model.get_response(system_instructions, input, *args, **given)
            except Exception as error:
                if not left or (shorter := await _shorter(fitted, error)) is None:
                    raise
                input = shorter
            else:
                await _heard(fitted, response.usage)
                return response
        raise AssertionError("unreachable")

    async def stream_response(
        self, system_instructions: str | None, input: Any, *args: Any, **given: Any
    ) -> AsyncIterator[TResponseStreamEvent]:
        fitted = self._fitted()
        for left in range(AGAIN, -1, -1):
            begun: list[TResponseStreamEvent] | None = []  # what is held back while it may still be refused
            try:
                async for event in self._model.stream_response(system_instructions, input, *args, **given):
                    if begun is not None and event.type in BEGINNINGS:
                        begun.append(event)
                        continue
                    for held in begun or ():
                        yield held
                    begun = None
                    if event.type == "response.completed":
                        await _heard(fitted, event.response.usage)
                    yield event
            except Exception as error:
                if begun is None or not left or (shorter := await _shorter(fitted, error)) is None:
                    raise
                input = shorter
            else:
                return


async def _shorter(fitted: FittedInput | None, error: Exception) -> list[TResponseInputItem] | None:
    """What to send instead of what was refused; None where that is no use."""
    if fitted is None or not await best(fitted.thread.refused(error), False):
        return None
    return await best(fitted.again(), None)


async def _heard(fitted: FittedInput | None, usage: Usage | Any) -> None:
    if fitted is None or usage is None or not usage.input_tokens:
        return
    await best(fitted.thread.heard(spent_of(usage)), None)
