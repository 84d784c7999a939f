"""How providers say that a request does not fit: one row a wording, each with an example as it was seen.

In a pattern `<limit>` and `<asked>` stand for a number that is read, `<more>` for one to add to what was asked,
`<answer>` for the room the answer was to have, `<n>` for any other. The first row that is found wins.
"""

import re
from typing import Literal, NamedTuple

What = Literal["tokens", "bytes", "images", "messages"]
_NUMBER = r"\d[\d,_]*(?:\.\d+)?(?:[km]\b)?"


class Wording(NamedTuple):
    """A provider, what it says, an example of it, and what there was too much of."""

    provider: str
    pattern: re.Pattern[str]
    example: str
    what: What = "tokens"


def row(provider: str, pattern: str, example: str, what: What = "tokens") -> Wording:
    """A wording with the numbers in its pattern spelled out."""
    for name in ("limit", "asked", "more", "answer"):
        pattern = pattern.replace(f"<{name}>", f"(?P<{name}>{_NUMBER})")
    return Wording(provider, re.compile(pattern.replace("<n>", _NUMBER), re.IGNORECASE), example, what)


# What else these say does not matter: nobody uses such words for another refusal.
PLAIN_WORDINGS: tuple[Wording, ...] = (
    # vLLM, newest first; with the answer alone above the limit no shorter history helps, see `overflow`.
    row(
        "vllm",
        r"is too large: <answer>\.? this model's maximum context length is <limit> tokens and your request has <asked>",
        "'max_tokens' or 'max_completion_tokens' is too large: 8000. This model's maximum context length is 40960 "
        "tokens and your request has 36000 input tokens (8000 > 40960 - 36000).",
    ),
    row(
        "vllm",
        r"maximum context length is <limit> tokens.{0,20}requested <n> output tokens.*?total of (?:at least )?<asked>",
        "This model's maximum context length is 262144 tokens. However, you requested 0 output tokens and your prompt "
        "contains at least 262145 input tokens, for a total of at least 262145 tokens. Please reduce the length.",
    ),
    row(
        "vllm",
        r"maximum context length is <limit> tokens.{0,40}request has <asked> input tokens",
        "This model's maximum context length is 16384 tokens. However, your request has 18225 input tokens. "
        "Please reduce the length of the input messages.",
    ),
    row(
        "vllm",
        r"prompt \((?:total )?(?:length )?<asked>(?: tokens)?\) is (?:longer than the maximum model length of|"
        r"too long and exceeds (?:the )?limit of) <limit>",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that "
        "`max_model_len` is no smaller than the number of text tokens.",
    ),
    row(
        "vllm",
        r"prompt length \(?<asked>\)? exceeds the max_?model_?len (?:of )?\(?<limit>",
        "The engine prompt length 2107 exceeds the max_model_len 2048. Please reduce prompt.",
    ),
    row(
        "openrouter",
        r"endpoint's maximum context length is <limit> tokens.*?requested (?:about )?<asked> tokens",
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 150000 tokens "
        "(140000 of text input, 10000 in the output). Please reduce the length of either one.",
    ),
    row(
        "openai",
        r"maximum context length is <limit> tokens.{0,20}"
        r"(?:your \w+ resulted in|you requested) (?:about )?<asked> tokens",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 140123 tokens "
        "(139000 in the messages, 1123 in the functions). Please reduce the length of the messages or functions.",
    ),
    row(
        "openai",
        r"maximum context length is <limit>",
        "This model's maximum context length is 8192 tokens. Please reduce the length of the prompt.",
    ),
    row(
        "openai",
        r"input tokens exceed the configured limit(?: of <limit> tokens)?(?:. your \w+ resulted in <asked>)?",
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 305127 tokens. "
        "Please reduce the length of the messages.",
    ),
    row(
        "openai",
        r"exceeds (?:the|this model's|the model's) context window",
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    row(
        "openai",
        r"'(?:messages|input)': array too long\. expected an array with maximum length <limit>, but got an array with "
        r"length <asked>",
        "Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length "
        "2049 instead.",
        "messages",
    ),
    row(
        "openai",
        r"string too long\. expected a string with maximum length (?=\d{6})<limit>, "
        r"but got a string with length <asked>",
        "Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760, but got a "
        "string with length 15408200 instead.",
        "bytes",
    ),
    row(
        "anthropic",
        r"prompt is too long: <asked>(?: tokens)? > <limit>",
        "prompt is too long: 213462 tokens > 200000 maximum",
    ),
    row(
        "anthropic",
        r"input length and `?max_tokens`? exceed context limit(?:: <asked> \+ <more> > <limit>)?",
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or "
        "`max_tokens` and try again",
    ),
    row(
        "anthropic",
        r"request_too_large|request exceeds the maximum (?:size|allowed number of bytes)",
        '{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}',
        "bytes",
    ),
    row(
        "anthropic",
        r"too many media: <n> document pages \+ <asked> images > <limit>",
        "messages: Too many media: 0 document pages + 101 images > 100",
        "images",
    ),
    row(
        "anthropic",
        r"too many images[^:]{0,30}: <asked>(?: \+ <more>)? > <limit>",
        "messages: too many images and documents: 101 + 2 > 100",
        "images",
    ),
    row(
        "openai",
        r"too many images in (?:the )?request.{0,20}max(?:imum)? is <limit>",
        "Too many images in request. Max is 50.",
        "images",
    ),
    row(
        "bedrock",
        r"too many input tokens(?:\. max input tokens: <limit>, request input token count: <asked>)?",
        "ValidationException: 400 Bad Request: Too many input tokens. Max input tokens: 128000, request input token "
        "count: 140000",
    ),
    row(
        "bedrock",
        r"prompt tokens \(<asked>\) exceed model maximum \(<limit>\)",
        "validation_error: prompt tokens (210000) exceed model maximum (200000)",
    ),
    row(
        "bedrock",
        r"input is too long for (?:the )?requested model|following errors: \W*input is too long",
        "An error occurred (ValidationException) when calling the Converse operation: The model returned the following "
        "errors: Input is too long for requested model.",
    ),
    row(
        "bedrock",
        r"number of input tokens exceeds maximum length",
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
    ),
    row(
        "bedrock",
        r"too many total text bytes: <asked> > <limit>",
        "too many total text bytes: 12000000 > 9000000",
        "bytes",
    ),
    row(
        "gemini",
        r"input token count(?: \(<asked>\))? exceeds the maximum number of tokens allowed(?: \(?<limit>)?",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    ),
    row(
        "gemini",
        r"input token count is <asked> but (?:the )?model only supports up to <limit>",
        "Unable to submit request because the input token count is 40000 but model only supports up to 32768. Reduce "
        "the input token count and try again.",
    ),
    row(
        "gemini",
        r"(?:request )?payload size exceeds the limit(?:: <limit> bytes)?",
        "Request payload size exceeds the limit: 20971520 bytes.",
        "bytes",
    ),
    row(
        "mistral",
        r"prompt contains <asked> tokens.{0,40}too large for model with <limit> maximum context length",
        "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    ),
    row(
        "cohere",
        r"number of tokens in the prompt cannot exceed <limit>(?: - received <asked>)?",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter "
        "prompt, or enabling prompt truncating.",
    ),
    row(
        "cohere",
        r"too many tokens: size limit exceeded by <n> tokens",
        "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs.",
    ),
    row(
        "cerebras",
        r"current length is <asked> while limit is <limit>",
        "Please reduce the length of the messages or completion. Current length is 140000 while limit is 131072",
    ),
    row(
        "groq",
        r"reduce the length of the messages or completion",
        "Please reduce the length of the messages or completion.",
    ),
    row(
        "together",
        r"input \(<asked> tokens\) is longer than the model's context length \(<limit> tokens\)",
        "The input (400013 tokens) is longer than the model's context length (262144 tokens).",
    ),
    row(
        "fireworks",
        r"prompt is too long: <asked>, model maximum context length: <limit>",
        "The prompt is too long: 140000, model maximum context length: 131071",
    ),
    row(
        "dashscope",
        r"range of input length should be \[\d+, ?<limit>\]",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
    ),
    row(
        "volcengine",
        r"exceed max message tokens(?:: <limit>)?",
        "InvalidParameter: Total tokens of image and text exceed max message tokens. Request id: 0217",
    ),
    row(
        "moonshot",
        r"exceeded model token limit(?:: <limit>)?(?: \(requested: <asked>\))?",
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 287431)",
    ),
    row("moonshot", r"model max length exceeded, max length:? ?<limit>", "model max length exceeded, max length:8192"),
    row(
        "zhipu",
        r"\b1261\b.{0,30}prompt|prompt exceeds max length(?!.{0,30}char)|prompt ?超长",
        "{'error': {'code': '1261', 'message': 'Prompt exceeds max length'}}",
    ),
    row("minimax", r"context window exceeds limit", "invalid params, context window exceeds limit (2013)"),
    row(
        "minimax",
        r"\b1039\b.{0,30}token limit",
        "{'base_resp': {'status_code': 1039, 'status_msg': 'token limit'}}",
    ),
    row(
        "xai",
        r"maximum prompt length is <limit>(?:,? but the request contains <asked> tokens)?",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    ),
)
