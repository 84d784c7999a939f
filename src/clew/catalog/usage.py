"""What a provider reports it read and wrote, in one form for all of them, and what that costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clew.catalog import Prices
from clew.errors import BadRequest

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens of one call. `input` is the whole prompt, what came from a cache or went into one included."""

    input: int
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def counts(self) -> dict[str, int]:
        """The same by name."""
        # Not `asdict`: that looks into each number for more to copy, and this is done in every turn.
        return {name: getattr(self, name) for name in self.__slots__}


_MOST = 10**12  # tokens: more is no report


def spent(usage: Any) -> Spent:
    """Read a usage report: a mapping or an SDK's object, of any provider we speak to."""
    if isinstance(usage, Spent):
        return usage
    given = _mapping(usage)
    if "promptTokenCount" in given or "prompt_token_count" in given:  # Gemini: the prompt includes what was cached
        output = _first(given, "candidatesTokenCount", "candidates_token_count")
        output += _first(given, "thoughtsTokenCount", "thoughts_token_count")
        cached = _first(given, "cachedContentTokenCount", "cached_content_token_count")
        return Spent(_first(given, "promptTokenCount", "prompt_token_count"), output, cached)
    if "prompt_tokens" in given:  # OpenAI chat: the same; DeepSeek names its hits apart
        details = _mapping(given.get("prompt_tokens_details") or {})
        cached = _first(details, "cached_tokens") or _first(given, "prompt_cache_hit_tokens")
        return Spent(_first(given, "prompt_tokens"), _first(given, "completion_tokens"), cached)
    if "inputTokens" in given:  # Bedrock: what a cache gave or took is not in the input
        read, write = _first(given, "cacheReadInputTokens"), _first(given, "cacheWriteInputTokens")
        input, output = _first(given, "inputTokens"), _first(given, "outputTokens")
        if input + output == _first(given, "totalTokens"):  # Strands writes what others report in this form
            return Spent(input, output, read, write)
        return Spent(input + read + write, output, read, write)
    if "input_tokens" in given:
        output = _first(given, "output_tokens")
        if "input_tokens_details" in given:  # OpenAI responses: the input includes what was cached
            details = _mapping(given["input_tokens_details"] or {})
            return Spent(_first(given, "input_tokens"), output, _first(details, "cached_tokens"))
        # Anthropic: what a cache gave or took is not in the input
        read, write = _first(given, "cache_read_input_tokens"), _first(given, "cache_creation_input_tokens")
        return Spent(_first(given, "input_tokens") + read + write, output, read, write)
    known = "prompt_tokens, input_tokens, inputTokens or promptTokenCount"
    raise BadRequest(f"usage: expected one of {known}, got {', '.join(map(str, given)) or 'nothing'}")


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    for way in ("model_dump", "to_dict", "dict"):
        if callable(dump := getattr(value, way, None)):
            found = dump()
            if isinstance(found, Mapping):
                return found
    raise BadRequest(f"usage: expected an object, got {type(value).__name__}")


def _first(given: Mapping[str, Any], *keys: str) -> int:
    for key in keys:
        value = given.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST:
            return int(value)
    return 0


def cost(prices: Prices, spent: Spent) -> float:
    """US dollars for the tokens of one call; the size of its prompt decides which prices apply."""
    for above, dearer in sorted(prices.tiers, key=lambda tier: tier[0]):
        if spent.input > above:
            prices = dearer
    read = prices.input if prices.cache_read is None else prices.cache_read
    written = prices.input if prices.cache_write is None else prices.cache_write
    plain = max(0, spent.input - spent.cache_read - spent.cache_write)
    total = plain * prices.input + spent.cache_read * read + spent.cache_write * written + spent.output * prices.output
    return total / _MILLION
