"""Requests of the official SDKs to a strict provider."""

from collections.abc import AsyncGenerator
from typing import Any

import anthropic
import openai

from clew.testing import StrictProvider

Body = dict[str, Any]

FORMATS = ("openai_chat", "openai_responses", "anthropic")
MODEL = "model-of-these-tests"  # the SDKs warn of real ones that are old
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def openai_of(provider: StrictProvider) -> openai.AsyncOpenAI:
    quick = openai.DefaultAsyncHttpxClient(verify=False)  # reading certificates is what takes time, and none is used
    return openai.AsyncOpenAI(api_key="none", base_url=f"{provider.url}/v1", max_retries=0, http_client=quick)


def anthropic_of(provider: StrictProvider) -> anthropic.AsyncAnthropic:
    quick = anthropic.DefaultAsyncHttpxClient(verify=False)
    return anthropic.AsyncAnthropic(api_key="none", base_url=provider.url, max_retries=0, http_client=quick)


def request(format: str, *said: Body, **more: Any) -> Body:
    """A request with tools, of these messages or a plain one."""
    messages = list(said) or [{"role": "user", "content": "Why does it fail?"}]
    tool = {"name": "read", "description": "Read a file."}
    if format == "anthropic":
        tools: list[Body] = [{**tool, "input_schema": SCHEMA}]
        return {"model": MODEL, "max_tokens": 500, "tools": tools, "messages": messages, **more}
    if format == "openai_chat":
        tools = [{"type": "function", "function": {**tool, "parameters": SCHEMA}}]
        return {"model": MODEL, "tools": tools, "messages": messages, **more}
    return {"model": MODEL, "tools": [{"type": "function", **tool, "parameters": SCHEMA}], "input": messages, **more}


async def ask(provider: StrictProvider, format: str, streamed: bool, body: Body | None = None) -> Any:
    """The SDK's own object for an answer; a stream is put together by the SDK."""
    body = body or request(format)
    if format == "anthropic":
        async with anthropic_of(provider) as messages:
            if not streamed:
                return await messages.messages.create(**body)
            async with messages.messages.stream(**body) as stream:
                return await stream.get_final_message()
    async with openai_of(provider) as client:
        create: Any = client.chat.completions.create if format == "openai_chat" else client.responses.create
        if not streamed:
            return await create(**body)
        if format == "openai_responses":
            return [event async for event in await create(**body, stream=True)][-1].response
        async with client.chat.completions.stream(**body, stream_options={"include_usage": True}) as chat:
            try:
                return await chat.get_final_completion()
            except (openai.LengthFinishReasonError, openai.ContentFilterFinishReasonError) as error:
                return error.completion  # what the SDK would parse is not whole


async def events(provider: StrictProvider, format: str, body: Body | None = None) -> AsyncGenerator[Any, None]:
    """A stream as it comes."""
    body = {**(body or request(format)), "stream": True}
    if format == "anthropic":
        async with anthropic_of(provider) as messages:
            speak: Any = messages.messages.create
            async with await speak(**body) as stream:
                async for event in stream:
                    yield event
        return
    async with openai_of(provider) as client:
        create: Any = client.chat.completions.create if format == "openai_chat" else client.responses.create
        async with await create(**body) as stream:
            async for event in stream:
                yield event
