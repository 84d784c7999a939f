"""What a model is sent: a question by itself, or one more message after a request that was sent before.

After a request, nothing of it may change, or the provider's cache does not know it again: the question is appended, the
answer comes whole instead of streamed, and it has a limit of its own.
"""

from collections.abc import Mapping
from typing import Any

from clew.core.view import View
from clew.errors import ModelError
from clew.steps.chapters.model import Prompt
from clew.wire import encode
from clew.wire.formats import anthropic, named, openai_chat, openai_responses
from clew.wire.formats.base import ModelQuestion

RequestBody = dict[str, Any]
RequestLike = Mapping[str, Any]


def chat(prompt: Prompt, model: str, limit: str = "max_completion_tokens") -> RequestBody:
    """The body for OpenAI's Chat Completions; `limit` is what the server calls the length of an answer."""
    return asking(prompt, openai_chat.NAME, model, {limit: prompt.max_tokens})


def responses(prompt: Prompt, model: str) -> RequestBody:
    """The body for OpenAI's Responses."""
    return asking(prompt, openai_responses.NAME, model)


def messages(prompt: Prompt, model: str) -> RequestBody:
    """The body for Anthropic's Messages."""
    return asking(prompt, anthropic.NAME, model)


def asking(prompt: Prompt, format: str, model: str, like: RequestLike | None = None) -> RequestBody:
    """The body in a format; where it follows nothing, with the limit of its answer named as in a request `like` it."""
    live = None if prompt.after is None else _live(prompt.after, format, model)
    # After a request, instructions go with the question, for the system prompt stays as it is.
    text = f"{prompt.system}\n\n{prompt.text}" if live is not None and prompt.system else prompt.text
    body = named(format).question(ModelQuestion(text, prompt.max_tokens, model, prompt.system, live, like or {}))
    return {**body, "model": model}


def _live(view: View, format: str, model: str) -> RequestBody:
    """The request that sends a view, its answer not streamed; refused in a format that the API does not speak."""
    if view.frame.format != format:
        raise ModelError(
            f"{model} uses the format {format}, but the previous request is in {view.frame.format}", "refused"
        )
    body = encode(view.frame, (node.item for node in view.nodes))
    return {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
