"""The wordings of gateways, wrappers and local servers, and then those nobody has shown us yet."""

from clew.wire.overflow.wordings import Wording, row

SERVERS: tuple[Wording, ...] = (
    row(
        "llamacpp",
        r"request \(<asked> tokens\) exceeds the available context size \(<limit> tokens\)",
        "request (5012 tokens) exceeds the available context size (4096 tokens), try increasing it",
    ),
    row(
        "llamacpp",
        r"exceeds? the available context size|exceed_context_size_error",
        '{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it",'
        '"type":"exceed_context_size_error","n_prompt_tokens":5012,"n_ctx":4096}}',
    ),
    row(
        "llamacpp",
        r"requested tokens \(<asked>\) exceed context window of <limit>",
        "ValueError: Requested tokens (5012) exceed context window of 4096",
    ),
    row(
        "lmstudio",
        r"keep the first <asked> tokens when (?:the )?context (?:the )?overflows.*?context length of only <limit>",
        "Trying to keep the first 6269 tokens when context the overflows. However, the model is loaded with context "
        "length of only 4096 tokens, which is not enough.",
    ),
    row(
        "lmstudio",
        r"tokens to keep from the initial prompt is greater than the context length"
        r"(?:.*?n_keep:? ?<asked>\D{1,12}n_ctx:? ?<limit>)?",
        "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 9000 >= "
        "n_ctx: 8192). Try to load the model with a larger context length, or provide a shorter input",
    ),
    row(
        "lmstudio",
        r"reached context length of <limit> tokens",
        "Reached context length of 4096 tokens with model (arch: qwen3vlmoe) that does not currently support "
        "mid-generation context overflow. Try reloading with a larger context length or shortening the prompt/chat.",
    ),
    row("mlx", r"context size has been exceeded", "Context size has been exceeded."),
    row(
        "ollama",
        r"input length exceeds (?:the |maximum |the maximum )?context length(?: of <limit>)?",
        "the input length exceeds the context length",
    ),
    row(
        "ollama",
        r"prompt too long; exceeded (?:max )?context length",
        "prompt too long; exceeded max context length by 1234 tokens",
    ),
    row(
        "tgi",
        r"`?inputs`? tokens \+ `?max_new_tokens`? must be <= <limit>"
        r"(?:\. given: <asked> `?inputs`? tokens and <more>)?",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 8740 `inputs` tokens and "
        "500 `max_new_tokens`",
    ),
    row(
        "tgi",
        r"`?inputs`? must have less than <limit> tokens(?:\. given: <asked>)?",
        "Input validation error: `inputs` must have less than 4096 tokens. Given: 4545",
    ),
    row(
        "sglang",
        r"exceeds the model's maximum context length of <limit> tokens(?:. you requested a total of <asked>)?",
        "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of "
        "140000 tokens: 130000 tokens from the input messages and 10000 tokens for the completion.",
    ),
    row(
        "sglang",
        r"input length \(?<asked>(?: tokens)?\)? exceeds (?:the )?(?:model's )?maximum "
        r"(?:allowed |context |input )*length"
        r"(?: of)? \(?<limit>",
        "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
    ),
    row(
        "transformers",
        r"longer than the specified maximum sequence length for this model \(<asked> > <limit>\)",
        "Token indices sequence length is longer than the specified maximum sequence length for this model "
        "(16769 > 16384).",
    ),
    row(
        "copilot",
        r"prompt token count of <asked> exceeds the limit of <limit>",
        '{"error":{"message":"prompt token count of 150000 exceeds the limit of 128000",'
        '"code":"model_max_prompt_tokens_exceeded"}}',
    ),
    row(
        "databricks",
        r"prompt token count \(?<asked>\)? cannot exceed <limit>",
        "Bad request: rpc error: code = InvalidArgument desc = prompt token count (9210) cannot exceed 8192. Please "
        "reduce the length of input messages.",
    ),
    row("snowflake", r"max tokens of <limit> exceeded", "max tokens of 200000 exceeded"),
    row(
        "watsonx",
        r"number of input tokens <asked> cannot exceed the total tokens limit <limit>",
        "Invalid input argument for Model 'meta-llama/llama-2-70b-chat': the number of input tokens 4098 cannot exceed "
        "the total tokens limit 4096 for this model",
    ),
    row(
        "siliconflow",
        r"length of prompt_tokens \(<asked>\) must be less than max_seq_len \(<limit>\)",
        "length of prompt_tokens (32769) must be less than max_seq_len (32768).",
    ),
    # A wrapper's own name for it comes last of these: what it wraps says more.
    row(
        "openai",
        r"context_length_exceeded|model_max_prompt_tokens_exceeded|token_quantity_exceeded|context_too_long",
        '{"error":{"message":"The request could not be served.","code":"context_length_exceeded"}}',
    ),
    row("anthropic", r"model_context_window_exceeded", "stop_reason: model_context_window_exceeded"),
    row(
        "litellm",
        r"context_?(?:window|length)_?exceeded(?:error|exception)?|context_?(?:window_?)?overflow_?(?:error|exception)",
        "litellm.ContextWindowExceededError: BadRequestError: the conversation was refused",
    ),
)

_WHO = (
    r"(?:prompt|inputs?|total|token count|messages?|conversation|request(?:ed)?|history|context|chat|transcript|"
    r"sequence|text)\b(?![\"'])"  # and not a key such as "message"
)
_OVER = (
    r"(?:exceed\w*|too (?:long|large|big|many|small)|over(?:flow|run|s)\w*|(?:greater|longer|larger|bigger|more) than|"
    r"above|beyond|surpass\w*|(?:not|n't) fit|not enough|ran out|full\b|reached|cannot hold|only supports?|up to|over)"
)
_MEASURE = (
    r"(?:(?:context|model's)[ _-]?(?:length|window|size|limit|capacity)|(?:model|max\w*) context(?! protocol)|"
    r"tokens of context|(?:maximum|max|supported) sequence length|max_?(?:model|seq(?:uence)?)_?len\w*|n_ctx|num_ctx)"
)
# Of the context by name: an overflow, unless throttling, a quota or the length of the answer is spoken of.
FIRM: tuple[Wording, ...] = (
    row(
        "unknown",
        r"prompt has <asked> tokens?, but the configured context size is <limit>",
        "Prompt has 32769 tokens, but the configured context size is 32768 tokens",
    ),
    row(
        "unknown",
        rf"{_MEASURE}.{{0,100}}{_OVER}|{_OVER}.{{0,100}}{_MEASURE}",
        "Total of 150,000 tokens is larger than the context window (128k) of the model",
    ),
    row(
        "unknown",
        rf"\d{{3}}.{{0,40}}(?:but|>).{{0,40}}{_MEASURE}.{{0,20}}\d{{3}}"
        rf"|{_MEASURE}.{{0,30}}\d{{3}}.{{0,30}}(?:but|got|<).{{0,40}}\d{{3}}"
        rf"|(?:only|at most).{{0,30}}<n>.{{0,10}}{_MEASURE}",
        "Requested 12000 tokens but model context is 8192",
    ),
)

# Of something too long: an overflow, unless that is a file, a field, a name or a list of tools.
LOOSE: tuple[Wording, ...] = (
    row("unknown", r"too long for (?:this|the|our) (?:context|model)", "The conversation is too long for this model."),
    row(
        "unknown",
        rf"{_WHO}[^.\n]{{0,60}}\btokens?\b[^.\n]{{0,60}}{_OVER}[^.\n]{{0,60}}(?:max\w*|limit|allow\w*|support\w*|model|<n>)",
        "The request has 9,000 input tokens, more than the 8,192 this model supports",
    ),
    row(
        "unknown",
        rf"{_WHO}[^.\n]{{0,40}}{_OVER}[^.\n]{{0,60}}(?:\btokens?\b|model|max_\w+)",
        "Prompt too long: 5152 tokens exceeds max_seq_len 2048 (leave room for output tokens)",
    ),
    row(
        "unknown",
        r"(?:prompt|input|request|conversation|history|chat) (?:is )?too (?:long|large)(?! for)"
        r"|reduce (?:the (?:length|size) of )?(?:the|your) (?:prompt|input|messages|conversation)"
        r"|maximum (?:input|prompt) length is <limit>",
        "400 Bad Request: prompt is too long",
    ),
    row(
        "unknown",
        r"(?:prompt|input|request) (?:contains|has|is) <asked> (?:input )?tokens?"
        r".{0,40}(?:max\w*|limit|allow\w*)\D{0,20}<limit>",
        "Your prompt contains 9000 tokens, max allowed 8192",
    ),
    row("unknown", r"too many (?:input |prompt )?tokens", "too many tokens in the request: 140000, maximum 128000"),
    row(
        "unknown",
        r"token limit (?:was |is |has been )?exceeded|exceed\w* (?:the |your )?(?:model's )?(?:max\w* )?(?:\w+ )?token"
        r"(?: count)? limit",
        "Input token limit exceeded for model foo",
    ),
    row(
        "unknown",
        r"(?:上下文|输入|提示词|对话|prompt|tokens?).{0,16}(?:超出|超过|过长|超限|太长)",
        "输入 token 超出限制",
    ),
    row(
        "http",
        r"(?:request|payload|content|body)(?: entity| body| payload| content)?(?: is)? ?too[ _]large"
        r"|\b413\b.{0,20}(?:status code|no body)"
        r"|(?:request|payload|body).{0,40}(?:exceed|larger|greater).{0,40}\b(?:bytes|[mk]i?b)\b",
        "413 Request Entity Too Large",
        "bytes",
    ),
)
