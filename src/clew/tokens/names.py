"""From a model's name, however a provider decorates it, to its vocabulary."""

import re
from functools import lru_cache

from clew.tokens.bundled import Bundled
from clew.tokens.claude import CLAUDE_3, CLAUDE_5, Claude
from clew.tokens.vocabulary import Vocabulary

# The first that is found names the vocabulary. True: the family is known to use it, and the vocabulary's ids were
# compared with the family's own tokenizer. False: the nearest we have.
_FAMILIES: tuple[tuple[str, str, bool], ...] = (
    (r"distill-?llama|deepseek-r1:70b", "llama3", False),
    (r"distill-?qwen|deepseek-r1:(1\.5|7|8|14|32)b|deepseek-r1-0528-qwen", "qwen3", False),
    # OpenAI
    (r"gpt-oss", "o200k_base", True),
    (r"gpt-?4(o|[.-][15](?!\d))|gpt-?5(?!\d)|o[134](?=$|[-:@])", "o200k_base", True),
    (r"gpt-?(4(?![.\d])|3\.?5)|text-embedding-(3|ada-002)", "cl100k_base", True),
    # Google: the table of its own SDK for Gemini
    (r"gemini-(2\.[05]|3-[a-z0-9-]{0,60}preview)", "gemma3", True),
    (r"gemini-1\.5", "gemma2", False),
    (r"gemini-3\.(1|5-flash)(?!\d)", "gemma4", True),
    (r"gemini-3(?![.\d])", "gemma3", False),
    (r"gemini", "gemma4", False),
    (r"gemma-?3", "gemma3", True),
    (r"gemma-?2", "gemma2", True),
    (r"gemma-?4", "gemma4", True),
    (r"(code|shield|pali|med|function)?gemma", "gemma2", False),
    # Meta
    (r"llama-?v?3", "llama3", True),
    (r"llama-?v?2", "llama2", False),
    (r"code-?llama", "codellama", False),
    (r"llama-?v?4", "o200k_base", False),
    (r"llama", "llama3", False),
    # DeepSeek
    (r"deepseek-(v2|coder|llm|math|vl|moe|ocr)", "deepseek_v3", False),
    (r"deepseek[-.]?(v[34]|r1|chat|reasoner)", "deepseek_v3", True),
    (r"deepseek", "deepseek_v3", False),
    # Mistral: SentencePiece first, tekken since Nemo
    (r"mixtral-?8x7b|mistral-7b(-instruct)?-v0\.?[12]|mistral-tiny", "mistral_v1", False),
    (r"mixtral(-?8x22b|:8x22b)|mistral-7b|mistral:7b|mistral-large-24\d\d|mistral-small-2409", "mistral_v2", True),
    (r"codestral-(2405|22b)|codestral:22b", "mistral_v2", True),
    (r"mixtral|mistral-small-2402", "mistral_v1", False),
    (
        r"mistral-?nemo|pixtral-12b|ministral|mistral-?small-?(3|25|latest|$|:)|mistral-large-?(3|2512)",
        "mistral_v3",
        True,
    ),
    (r"devstral|magistral|voxtral", "mistral_v3", True),
    (r"mistral|codestral|pixtral", "mistral_v3", False),
    # Qwen: 3.5 and later have a larger vocabulary
    (r"qwen-?(1\.5|2(\.5)?|3)(?![.\d])|qwq|qvq", "qwen3", True),
    (r"qwen", "qwen3", False),
    # Bundled, and never compared with the original
    (r"glm|chatglm|codegeex", "glm4", False),
    (r"kimi-?k3", "kimi_k3", False),
    (r"kimi|moonshot", "kimi_k2", False),
    (r"phi-?4-mini", "o200k_base", False),
    (r"phi-?4", "phi4", False),
    (r"olmo", "olmo2", False),
)
_KNOWN = tuple((re.compile(rf"(?<![a-z0-9])(?:chat)?(?:{pattern})"), name, exact) for pattern, name, exact in _FAMILIES)
_VERSION = re.compile(r"(?<!\d)(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")


@lru_cache(maxsize=1024)
def vocabulary_for(model: str) -> Vocabulary:
    """The vocabulary a model counts with; o200k_base, not exact, for one that is not known."""
    whole = model.strip().lower()
    # The last part of a path or an ARN says most: what stands before it is the provider, or another model's maker.
    for name in (whole.rstrip("/").rpartition("/")[2], whole):
        if "claude" in name:
            return _claude(name.partition("claude")[2])
        for pattern, vocabulary, exact in _KNOWN:
            if pattern.search(name):
                return Bundled(vocabulary, exact)
    return Bundled("o200k_base", False)


def _claude(rest: str) -> Vocabulary:
    """Opus 4.7 brought a new tokenizer, which every Claude 5 has; a name without a number is taken as new."""
    base = Bundled("o200k_base", False)
    found = _VERSION.search(rest)
    version = (int(found[1]), int(found[2] or 0)) if found else (5, 0)
    if version < (4, 7):
        return Claude("claude-3", base, CLAUDE_3)
    return Claude("claude-5", base, CLAUDE_5)
