"""Refusals of requests that are too long, and refusals that only sound like it."""

import json
from typing import Any

import pytest

from clew.wire.overflow import FIRM, LOOSE, PLAIN, Overflow, Wording, overflow

TABLE = (*PLAIN, *FIRM, *LOOSE)

# Wordings that no row was written for, or not with these words: what, limit and what was asked for.
OTHERS: list[tuple[str, str, int | None, int | None]] = [
    (
        "This model's maximum context length is 4097 tokens, however you requested 4268 tokens (4012 in your prompt; "
        "256 for the completion). Please reduce your prompt; or completion length.",
        "tokens",
        4097,
        4268,
    ),
    ("prompt is too long: 228307 tokens > 200000 maximum [failed to stream chunk]", "tokens", 200000, 228307),
    ("prompt is too long: 300000 > 200000", "tokens", 200000, 300000),
    ("input length and max_tokens exceed context limit: 90402 + 116650 > 204648", "tokens", 204648, 207052),
    ("Your input exceeds this model's context window.", "tokens", None, None),
    ("The input token count exceeds the maximum number of tokens allowed (1048576).", "tokens", 1048576, None),
    ("The input token count exceeds the maximum number of tokens allowed 1048576", "tokens", 1048576, None),
    ("Range of input length should be [1, 983616]", "tokens", 983616, None),
    ("Input length (265330) exceeds model's maximum context length (262144).", "tokens", 262144, 265330),
    ("Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", "tokens", 131040, 131393),
    ("the input length exceeds the context length of 4096", "tokens", 4096, None),
    ("Number of tokens (757) exceeded maximum context length (512).", "tokens", 512, 757),
    ("Input tokens exceed the configured limit of this model.", "tokens", None, None),
    ("Codex ran out of room in the model's context window. Start a new thread.", "tokens", None, None),
    ("OutofContextError: context length exceeded", "tokens", None, None),
    ("n_ctx too small: the prompt has 9000 tokens and n_ctx is 8192", "tokens", 8192, 9000),
    ("Total message token length exceed model limit", "tokens", None, None),
    ("The number of tokens in your prompt (34,567) exceeds the model's limit (32,768)", "tokens", 32768, 34567),
    ("Sequence of 70000 tokens does not fit in a context window of 64k", "tokens", 64000, 70000),
    ("Conversation exceeds the maximum context of 200K tokens", "tokens", 200000, None),
    ("Messages have 210001 tokens, which exceeds the max limit of 200000 tokens", "tokens", 200000, 210001),
    ("Request too long: context window of 1M tokens exceeded", "tokens", 1_000_000, None),
    ("your prompt is larger than the context size", "tokens", None, None),
    ("context overflow: history does not fit in the model", "tokens", None, None),
    ("上下文超出模型限制。请清除部分对话历史后重试。", "tokens", None, None),
    ("input tokens (140000) + output tokens (8000) exceed the context window (131072)", "tokens", 131072, 140000),
    ("The prompt exceeds the model's context capacity of 8192 tokens", "tokens", 8192, None),
    ("Requested 12000 tokens but model context is 8192", "tokens", 8192, 12000),
    ("total tokens 9000 > context length 8192", "tokens", 8192, 9000),
    ("Error: Input too large. Max 32768 tokens.", "tokens", 32768, None),
    ("Token count 9,001 is over the model maximum of 8,192", "tokens", 8192, 9001),
    ("Your conversation is too long. Please start a new one.", "tokens", None, None),
    ("This model only supports 32k tokens of context, got 40000", "tokens", 32000, 40000),
    ("context length is only 4096 tokens but input has 5000", "tokens", 4096, 5000),
    ("The attached file makes the prompt exceed the context length of the model", "tokens", None, None),
    ("input_ids length 5000 exceeds max sequence length 4096", "tokens", 4096, 5000),
    ("Prompt length of 5000 is longer than the maximum sequence length (4096)", "tokens", 4096, 5000),
    ("ModelError: context window limit exceeded (used 210000 / 200000)", "tokens", 200000, 210000),
    ("413 status code (no body)", "bytes", None, None),
    ("Error code: 413 - Payload Too Large", "bytes", None, None),
    ("request body is larger than 33554432 bytes", "bytes", 33554432, None),
    ("too many images and documents: 101 + 0 > 100", "images", 100, 101),
]

LOOK_ALIKES = [
    "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 50000. The "
    "input or output tokens must be reduced in order to run successfully. Visit https://x/account/rate-limits",
    "Request too large for model `llama-3.1-8b-instant` in organization `org_x` service tier `on_demand` on tokens per "
    "minute (TPM): Limit 6000, Requested 7211, please reduce your message size and try again.",
    "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 28000, Requested 5000.",
    "ThrottlingException: Too many tokens, please wait before trying again.",
    "Too many tokens per day, please wait before trying again.",
    "Tokens per minute limit exceeded - too many tokens processed.",
    "request reached organization TPD rate limit, current: 1506556, limit: 1500000",
    "This request exceeds the limit of 30000 tokens per minute",
    "This request would exceed your organization's rate limit of 40,000 input tokens per minute.",
    "You exceeded your current quota, please check your plan and billing details.",
    "Quota exceeded for metric: generate_content_free_tier_input_token_count, limit: 250000, model: gemini-2.5-pro",
    "Extra usage is required for long context requests: rate_limit_error",
    "429 Too Many Requests",
    "Your credit balance is too low to access the API.",
    "Insufficient balance: this request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, "
    "but can only afford 2000.",
    "max_tokens is too large: 40000. This model supports at most 16384 completion tokens, whereas you provided 40000.",
    "max_tokens: 8193 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20241022",
    "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is "
    "lower than 4096.",
    "max_tokens (10000) cannot exceed 8192. Please reduce the length of max output tokens generated.",
    "too many tokens: max tokens must be less than or equal to 4096",
    "Range of max_tokens should be [1, 8192]",
    "Invalid value for max_output_tokens: must be between 1 and 65536 for this model",
    "`max_tokens` must be greater than `thinking.budget_tokens`.",
    "'max_tokens' or 'max_completion_tokens' is too large: 50000. This model's maximum context length is 40960 tokens "
    "and your request has 5000 input tokens (50000 > 40960 - 5000).",
    "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
    "At least one of the image dimensions exceed max allowed size: 8000 pixels",
    "The file is too large: 60 MB exceeds the maximum of 50 MB",
    "A maximum of 100 PDF pages may be provided.",
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129.",
    "Too many tools: the maximum number of tools for this model is 128",
    "Invalid 'user': string too long. Expected a string with maximum length 64, but got a string with length 90.",
    "Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a "
    "string with length 53 instead.",
    "input is too long for this field",
    "prompt exceeds max length (4000 characters)",
    "Overloaded",
    "Incorrect API key provided",
    "Request timed out.",
    "Connection error.",
    "The model `gpt-5-foo` does not exist or you do not have access to it.",
    'messages: roles must alternate between "user" and "assistant"',
    "The access token has expired: token lifetime exceeds the limit",
    "Invalid schema for function 'read': context must be of type object",
    "cache_control: a maximum of 4 blocks with cache_control may be provided. Found 5.",
    "400 status code (no body)",
    "Number of request tokens has exceeded your per-minute rate limit",
    "Requested 100000 tokens, limit 50000 tokens per request for your plan",
    "Thinking budget exceeds the model maximum of 24576 tokens",
    "The model `gpt-4` has a context length of 8192 tokens.",
    "Output exceeded the maximum token limit: response truncated",
    "Daily token limit exceeded",
    "Monthly token limit exceeded for this workspace",
    "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
    "Model context protocol server exceeded its timeout",
    "Max retries exceeded with url: /v1/chat/completions",
    "CUDA out of memory. Tried to allocate 2 GiB",
    "431 Request Header Fields Too Large",
    "Budget has been exceeded! Current cost: 12.5, Max budget: 10",
    "tool result exceeds maximum size of 100000 characters",
    "",
]


class Refusal(Exception):
    """An SDK's error, as far as we look at it."""

    def __init__(self, message: str, body: object = None, response: object = None) -> None:
        super().__init__(message)
        self.message, self.body, self.response = message, body, response


class Response:
    """An HTTP client's response; one that was streamed refuses to say what it is."""

    def __init__(self, text: str | None) -> None:
        self._text = text

    @property
    def text(self) -> str:
        if self._text is None:
            raise RuntimeError("the response was not read")
        return self._text


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row.provider}: {row.example[:40]}")
def test_every_row_finds_its_example(row: Wording) -> None:
    found = overflow(row.example)
    assert found is not None
    assert (found.provider, found.what) == (row.provider, row.what)
    assert not (found.limit and found.asked) or found.asked >= found.limit


@pytest.mark.parametrize(("text", "what", "limit", "asked"), OTHERS)
def test_other_words_for_it(text: str, what: str, limit: int | None, asked: int | None) -> None:
    found = overflow(text)
    assert found is not None
    assert (found.what, found.limit, found.asked) == (what, limit, asked)


@pytest.mark.parametrize("text", LOOK_ALIKES)
@pytest.mark.parametrize("wrap", [str, lambda text: {"error": {"message": text}}, lambda text: Refusal(text)])
def test_look_alikes_are_none(text: str, wrap: Any) -> None:
    assert overflow(wrap(text)) is None


def test_there_are_enough_rows() -> None:
    assert len(TABLE) + len(OTHERS) >= 45
    assert len(LOOK_ALIKES) >= 30


SAID = "prompt is too long: 213462 tokens > 200000 maximum"
BODY = {"type": "error", "error": {"type": "invalid_request_error", "message": SAID}}


@pytest.mark.parametrize(
    "error",
    [
        SAID,
        SAID.encode(),
        BODY,
        json.dumps(BODY),
        json.dumps(BODY).encode(),
        {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps(json.dumps(BODY))}}},
        Refusal("Error code: 400", body=BODY),
        Refusal("Error code: 400", body=json.dumps(BODY).encode()),
        Refusal("Error code: 400", response=Response(json.dumps(BODY))),
        {"errors": [{"detail": SAID}]},
        {"error": {"message": SAID.replace(">", "\\u003e")}},
    ],
)
def test_wherever_it_is_said(error: Any) -> None:
    assert overflow(error) == Overflow(200_000, 213_462, "anthropic")


def test_what_caused_an_error_is_read_too() -> None:
    outer = RuntimeError("the call failed")
    outer.__cause__ = ValueError(SAID)
    assert overflow(outer) == Overflow(200_000, 213_462, "anthropic")


def test_a_response_that_cannot_be_read_is_passed_over() -> None:
    assert overflow(Refusal("Connection error.", response=Response(None))) is None


def test_fields_beside_the_message_count() -> None:
    error = {"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 5012, "n_ctx": 4096}}
    assert overflow(error) == Overflow(4096, 5012, "llamacpp")


def test_what_the_request_said_is_no_refusal() -> None:
    assert overflow({"error": {"message": "invalid role"}, "messages": [{"role": "x", "content": SAID}]}) is None


def test_sdk_errors_by_their_real_types() -> None:
    httpx = pytest.importorskip("httpx2")  # what the SDK is built on
    openai = pytest.importorskip("openai")
    message = "Your input exceeds the context window of this model. Please adjust your input and try again."
    body = {"message": message, "code": "context_length_exceeded", "param": "input"}
    response = httpx.Response(400, json={"error": body}, request=httpx.Request("POST", "http://localhost"))
    assert overflow(openai.BadRequestError("Error code: 400", response=response, body=body)) == Overflow(
        None, None, "openai"
    )
