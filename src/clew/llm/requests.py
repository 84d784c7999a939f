"""What a model is sent: a question by itself, or one more message after a request that was sent before.

After a request, nothing of it may change, or the provider's cache does not know it again: the question is appended, the
answer comes whole instead of streamed, and it has a limit of its own.
"""

from collections.abc import Mapping
from typing import Any

from clew import catalog
from clew.core.view import View
from clew.errors import ModelError
from clew.steps.chapters.model import Prompt
from clew.wire import encode
from clew.wire.formats import anthropic, openai_chat, openai_responses
from clew.wire.formats import gemini as gemini_format

RequestBody = dict[str, Any]
RequestLike = Mapping[str, Any]


def chat(prompt: Prompt, model: str, limit: str = "max_completion_tokens") -> RequestBody:
    """The body for OpenAI's Chat Completions; `limit` is what the server calls the length of an answer."""
    if prompt.after is None:
        body: RequestBody = {"messages": _system(prompt)}
    else:
        body = live(prompt.after, openai_chat.NAME, model)
        limit = next((key for key in ("max_completion_tokens", "max_tokens") if key in body), limit)
    body["messages"].append({"role": "user", "content": question(prompt)})
    return {**body, "model": model, limit: prompt.max_tokens}


def responses(prompt: Prompt, model: str) -> RequestBody:
    """The body for OpenAI's Responses."""
    if prompt.after is None:
        body: RequestBody = {"input": _system(prompt), "store": False}
    else:
        body = live(prompt.after, openai_responses.NAME, model)
        if body.get("conversation"):
            raise ModelError(
                "the provider keeps this conversation, and the question would become part of it", "refused"
            )
        body.pop("background", None)
    if isinstance(body["input"], str):
        body["input"] = [{"role": "user", "content": body["input"]}]
    body["input"].append({"role": "user", "content": question(prompt)})
    return {**body, "model": model, "max_output_tokens": max(prompt.max_tokens, 16)}  # it takes no less


def messages(prompt: Prompt, model: str) -> RequestBody:
    """The body for Anthropic's Messages."""
    limit = prompt.max_tokens
    if prompt.after is None:
        body: RequestBody = {"messages": []}
        if prompt.system:
            body["system"] = prompt.system
    else:
        body = live(prompt.after, anthropic.NAME, model)
        # A change of `thinking` would lose the cache, and thinking alone may use up the limit.
        limit += int((body.get("thinking") or {}).get("budget_tokens") or 0)
        if limit > (catalog.lookup(model).max_output or limit):
            raise ModelError(f"{model} has no room for a summary beside its thinking", "refused")
        if not _is_marked(body):
            _mark(body["messages"])
    body["messages"].append({"role": "user", "content": question(prompt)})
    return {**body, "model": model, "max_tokens": limit}


def gemini(prompt: Prompt, model: str) -> RequestBody:
    """The body for Gemini's generateContent, with the model that its path names."""
    if prompt.after is None:
        body: RequestBody = {"contents": []}
        if prompt.system:
            body["systemInstruction"] = {"parts": [{"text": prompt.system}]}
    else:
        body = live(prompt.after, gemini_format.NAME, model)
    key = "generation_config" if "generation_config" in body else "generationConfig"
    config = body.get(key) or {}
    thinking = config.get("thinkingConfig") or config.get("thinking_config") or {}
    budget = thinking.get("thinkingBudget", thinking.get("thinking_budget")) or 0
    most = "max_output_tokens" if "max_output_tokens" in config else "maxOutputTokens"
    body[key] = {**config, most: prompt.max_tokens + max(0, budget)}
    body["contents"].append({"role": "user", "parts": [{"text": question(prompt)}]})
    return {**body, "model": model}


def asking(prompt: Prompt, format: str, model: str, like: RequestLike) -> RequestBody:
    """The body in a format; where it follows nothing, with the limit of its answer named as in a request `like` it."""
    match format:
        case openai_chat.NAME:
            limit = "max_tokens" if "max_tokens" in like else "max_completion_tokens"
            return chat(prompt, model, limit)
        case openai_responses.NAME:
            return responses(prompt, model)
        case anthropic.NAME:
            return messages(prompt, model)
        case gemini_format.NAME:
            return gemini(prompt, model)
    raise ModelError(f"nobody is asked in the format {format}", "refused")


def live(view: View, format: str, model: str) -> RequestBody:
    """The request that sends a view, its answer not streamed; refused in a format that the API does not speak."""
    if view.frame.format != format:
        raise ModelError(
            f"{model} uses the format {format}, but the previous request is in {view.frame.format}", "refused"
        )
    body = encode(view.frame, (node.item for node in view.nodes))
    return {key: value for key, value in body.items() if key not in ("stream", "stream_options")}


def question(prompt: Prompt) -> str:
    """The text of the new message; after a request, instructions go with it, for the system prompt stays as it is."""
    return f"{prompt.system}\n\n{prompt.text}" if prompt.after and prompt.system else prompt.text


def _system(prompt: Prompt) -> list[RequestBody]:
    return [{"role": "system", "content": prompt.system}] if prompt.system else []


def _is_marked(value: Any) -> bool:
    """Whether there is a cache mark on the request or on anything in it."""
    if isinstance(value, dict):
        return "cache_control" in value or any(map(_is_marked, value.values()))
    return isinstance(value, list) and any(map(_is_marked, value))


def _mark(messages: list[RequestBody]) -> None:
    """Mark the end of what was sent before.

    The cache is written and looked up at marks alone. Those of the live request stay where they are, so what it wrote
    is found. Without any, nothing was written and there is nothing to find; but the same request may be asked about
    again, for a retry or the next part, and the mark is what that will find. On the question it would find nothing.
    """
    if not messages:
        return
    content = messages[-1].get("content")
    if isinstance(content, str):
        content = messages[-1]["content"] = [{"type": "text", "text": content}]
    if content and content[-1].get("type") not in ("thinking", "redacted_thinking") and content[-1].get("text") != "":
        content[-1]["cache_control"] = {"type": "ephemeral"}
