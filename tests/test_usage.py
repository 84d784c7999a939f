"""One form for what every provider reports."""

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from anthropic.types import Usage as AnthropicUsage
from openai.types import CompletionUsage

from clew.catalog.usage import Spent, spent
from clew.errors import BadRequest
from clew.gateway.http import GatewayReply
from clew.gateway.usage import scaled_reply

REPORTS: list[tuple[Any, Spent]] = [
    ({"prompt_tokens": 100, "completion_tokens": 7}, Spent(100, 7)),
    (
        {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 64}},
        Spent(100, 7, cache_read=64),
    ),
    ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_tokens_details": None}, Spent(9, 1)),
    ({"prompt_tokens": 9, "completion_tokens": 1, "prompt_cache_hit_tokens": 4}, Spent(9, 1, cache_read=4)),
    (
        {"input_tokens": 50, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 20}},
        Spent(50, 5, cache_read=20),
    ),
    ({"input_tokens": 50, "output_tokens": 5}, Spent(50, 5)),
    (
        {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 200},
        Spent(1203, 5, 1000, 200),
    ),
    ({"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": None}, Spent(3, 5)),
    (
        {"inputTokens": 3, "outputTokens": 5, "cacheReadInputTokens": 10, "cacheWriteInputTokens": 20},
        Spent(33, 5, 10, 20),
    ),
    ({"inputTokens": 33, "outputTokens": 5, "totalTokens": 38, "cacheReadInputTokens": 10}, Spent(33, 5, 10)),
    ({"inputTokens": 3, "outputTokens": 5, "totalTokens": 18, "cacheReadInputTokens": 10}, Spent(13, 5, 10)),
    (
        {"promptTokenCount": 70, "candidatesTokenCount": 4, "thoughtsTokenCount": 6, "cachedContentTokenCount": 30},
        Spent(70, 10, 30),
    ),
    ({"prompt_token_count": 70, "candidates_token_count": None}, Spent(70)),
    (CompletionUsage(prompt_tokens=8, completion_tokens=2, total_tokens=10), Spent(8, 2)),
    (AnthropicUsage(input_tokens=1, output_tokens=2, cache_read_input_tokens=3), Spent(4, 2, 3)),
]


@pytest.mark.parametrize(("report", "expected"), REPORTS, ids=str)
def test_a_report_is_read(report: Any, expected: Spent) -> None:
    assert spent(report) == expected


@pytest.mark.parametrize("report", [{}, {"tokens": 3}, None, 7])
def test_what_is_no_report_is_told(report: Any) -> None:
    with pytest.raises(BadRequest, match="usage: expected"):
        spent(report)


# What is reported, and what it is of a history three times as large.
SCALED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "openai_chat",
        {"usage": {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}},
        {"usage": {"prompt_tokens": 300, "completion_tokens": 7, "total_tokens": 307}},
    ),
    (
        "openai_responses",
        {"response": {"usage": {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}}},
        {"response": {"usage": {"input_tokens": 300, "output_tokens": 7, "total_tokens": 307}}},
    ),
    (
        "anthropic",  # which counts apart what came from its cache, and went into it
        {"usage": {"input_tokens": 10, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20}},
        {"usage": {"input_tokens": 210, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 20}},
    ),
    (
        "gemini",
        {"usageMetadata": {"promptTokenCount": 100, "totalTokenCount": 107}},
        {"usageMetadata": {"promptTokenCount": 300, "totalTokenCount": 307}},
    ),
    ("openai_chat", {"usage": {"prompt_tokens": None}}, {"usage": {"prompt_tokens": None}}),
]


async def reported(said: dict[str, Any], format: str, times: float, streamed: bool) -> dict[str, Any]:
    """What a client is told by a gateway."""
    data = json.dumps(said).encode()

    async def chunks() -> AsyncGenerator[bytes, None]:
        yield b"data: " + data[:9]
        yield data[9:] + b"\n\n"

    reply = scaled_reply(GatewayReply(200, [], chunks() if streamed else data), format, times)
    told = reply.body if isinstance(reply.body, bytes) else b"".join([chunk async for chunk in reply.body])
    found: dict[str, Any] = json.loads(told.removeprefix(b"data: "))
    return found


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("format", "said", "of_all"), SCALED)
async def test_a_client_is_told_what_all_of_its_history_would_have_come_to(
    format: str, said: dict[str, Any], of_all: dict[str, Any], streamed: bool
) -> None:
    assert await reported(said, format, 3.0, streamed) == of_all
    assert await reported(said, format, 1.0, streamed) == said
    assert await reported(said, format, 0.5, streamed) == said, "never less than was read"
