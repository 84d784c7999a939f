"""Whatever a user hands over as a model, as one that clew can ask."""

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from clew import llm as models
from clew.adapters.host import Hosted, asked_here
from clew.errors import BadRequest
from clew.llm import replies, requests
from clew.steps.chapters.model import Model, Prompt, Reply


def askable(llm: Any, name: str | None = None) -> Model:
    """A clew model, a model's name, a client of OpenAI, a framework's own model, or a function from text to text.

    `name` is the model that a client is asked for. Must be called where the client's event loop runs.
    """
    if isinstance(llm, str):
        return models.named(llm)
    if callable(llm) and hasattr(llm, "window") and hasattr(llm, "name"):
        model: Model = llm
        return model
    for way, reads in _WAYS.items():
        if callable(ask := _found(llm, way)):
            own = str(getattr(llm, "model", "") or getattr(llm, "__name__", type(llm).__name__))
            known = name if name and reads is _completion else own
            return Hosted(known, asked_here(partial(reads, ask, known)))
    raise BadRequest(f"llm: {type(llm).__name__} is not a model name, a client, or a function of a text")


def _found(llm: Any, way: str) -> Any:
    for part in way.split("."):
        llm = getattr(llm, part, None)
    return llm


async def _completion(ask: Callable[..., Any], name: str, prompt: Prompt) -> Reply:
    """Of a client that speaks OpenAI's Chat Completions."""
    answer = await _given(ask, **requests.chat(prompt, name))
    return replies.read(answer if isinstance(answer, dict) else answer.model_dump(), replies.chat)


async def _response(ask: Callable[..., Any], _: str, prompt: Prompt) -> Reply:
    """Of a framework's model that builds its requests itself; it prints and streams unless it is told not to."""
    quiet = {"verbose": False, "stream": False, "max_tokens": prompt.max_tokens}
    return Reply(str(await _given(ask, prompt=prompt.text, system_prompt=prompt.system, **quiet)))


async def _text(ask: Callable[..., Any], _: str, prompt: Prompt) -> Reply:
    answer = await _given(ask, f"{prompt.system}\n\n{prompt.text}".strip())
    return Reply(answer if isinstance(answer, str) else "")


_WAYS = {"chat.completions.create": _completion, "get_response": _response, "__call__": _text}


async def _given(ask: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function gives back, whether it blocks or is awaited."""
    answer = await asyncio.to_thread(ask, *args, **kwargs)
    return await answer if inspect.isawaitable(answer) else answer
