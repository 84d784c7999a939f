"""A loop of tools over LiteLLM that reads one file after another."""

import asyncio
from typing import Any

import litellm
from frameworks.litellm.talking import talk, whole
from frameworks.reading import WINDOW, Worked
from litellm.integrations.custom_logger import CustomLogger
from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

from clew import Engine
from clew.adapters.litellm import ClewLogger
from clew.testing import StrictProvider

__all__ = ["WINDOW", "work"]


class Counting(CustomLogger):
    """How many answers LiteLLM told its callbacks of."""

    calls = 0

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        self.calls += 1


async def worked(said: list[Any], provider: StrictProvider) -> None:
    whom = {"model": "openai/gpt-4o", "api_base": f"{provider.url}/v1", "api_key": "none"}
    await talk(said, whole, turns=1, lines=40, **whom)
    await GLOBAL_LOGGING_WORKER.stop()  # it belongs to this event loop


def work(provider: StrictProvider, engine: Engine) -> Worked:
    said: list[Any] = []
    counting = Counting()
    known = (litellm.callbacks, litellm.success_callback, litellm._async_success_callback)
    litellm.callbacks[:] = [ClewLogger(engine), counting]
    try:
        asyncio.run(worked(said, provider))
    finally:
        for callbacks in known:
            callbacks.clear()
    return Worked(said[-1].content, counting.calls)
