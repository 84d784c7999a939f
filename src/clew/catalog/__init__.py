"""What is known of models by name. For now: how much they can read."""

import re

# The first pattern that is found in the name wins; limits as the providers publish them.
_WINDOWS: tuple[tuple[str, int], ...] = (
    (r"gpt-(5|6)", 272_000),  # input limit; the rest of the window is for the answer
    (r"gpt-4\.1", 1_047_576),
    (r"gpt-4o|gpt-4-turbo|gpt-oss", 128_000),
    (r"gpt-4-32k", 32_768),
    (r"gpt-4", 8_192),
    (r"gpt-3\.5", 16_385),
    (r"(^|[/.])o[134](-|$)", 200_000),
    (r"claude", 200_000),
    (r"gemini", 1_048_576),
    (r"deepseek|llama-?3|kimi|glm|mistral|qwen", 128_000),
)
DEFAULT = 128_000


def window(model: str) -> int:
    """The context window of a model; `DEFAULT` for one that is not known."""
    name = model.lower()
    return next((size for pattern, size in _WINDOWS if re.search(pattern, name)), DEFAULT)
