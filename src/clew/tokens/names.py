"""From a model's name, however a provider decorates it, to its vocabulary."""

import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from clew.tokens.vocabulary import Vocabulary, well_formed

_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LATIN = bytes(range(0xC2, 0xCE))  # first bytes of accented letters
_GREEK_TO_HEBREW = bytes(range(0xCE, 0xD8))
_ARABIC_TO_THAI = bytes(range(0xD8, 0xE3))
_HANGUL = bytes(range(0xEA, 0xEE))


_CHUNK = 4096  # Gemma 2 and 3 take time quadratic in the length of mixed white space
_RUN = 65_536  # and linear in that of anything else
_LONGEST = 1 << 20  # characters that are counted at once, whatever they are
# Nobody else runs while splintr counts, and its threads keep ten times the memory of the longest text: a long one is
# counted in parts. What begins with a letter or a digit after a line's end begins a piece, and so does a space between
# two letters: a cut there changes no count, but in vocabularies that open each text with a space.
_PART = re.compile(rf"(?s).{{{_RUN},{_LONGEST}}}?(?:\n(?=[0-9A-Za-z])|(?<=[A-Za-z])(?= [A-Za-z]))|.{{1,{_LONGEST}}}")
# A space opens a piece, and no piece holds one further in: a cut before a space changes no count.
_PIECES = re.compile(rf"(?s).{{1,{_CHUNK}}}(?<=\S)(?=\s)|\S{{1,{_RUN}}}|.{{1,{_CHUNK}}}")
_SPACED = ("llama2", "codellama", "mistral_v1", "mistral_v2")
_TURNS = (
    "<start_of_turn>",
    "<end_of_turn>",
    "<start_of_image>",
    "<end_of_image>",
)  # control, though splintr omits them

# Added tokens that the original tokenizer matches even in plain text: not special, whatever they look like.
_WORDS = {
    "qwen3": r"</?(?:tool_call|tool_response|think)>|<\|(?:fim_(?:prefix|middle|suffix|pad)|repo_name|file_sep)\|>",
    "deepseek_v3": r"<｜(?:User|Assistant|fim▁(?:hole|begin|end)|tool▁(?:(?:calls?|outputs?)▁(?:begin|end)|sep))｜>",
}


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


class Bundled:
    """One vocabulary of splintr, where any spelling of a special token counts as text."""

    __slots__ = ("_count", "exact", "name")

    def __init__(self, name: str, exact: bool) -> None:
        self.name = name
        self.exact = exact
        self._count: Callable[[str], int] | None = None

    def __repr__(self) -> str:
        return f"Bundled({self.name!r}, exact={self.exact})"

    def count(self, text: str) -> int:
        """How many tokens the text is."""
        count = self._count
        if count is None:
            count = self._count = _counting(self.name)
        try:
            return count(text)
        except UnicodeEncodeError:
            return count(well_formed(text))


@cache
def _counting(name: str) -> Callable[[str], int]:
    from splintr import Tokenizer

    tokenizer = Tokenizer.from_pretrained(name)
    if name in ("gemma2", "gemma3"):
        return _gemma(tokenizer)
    ordinary = _ordinary(tokenizer, _WORDS.get(name), longest=sys.maxsize if name in _SPACED else 2 * _RUN)
    if name.startswith("qwen"):
        # Qwen's own tokenizer normalises first; splintr does not.
        return lambda text: ordinary(unicodedata.normalize("NFC", text))
    return ordinary


def _ordinary(tokenizer: Any, words: str | None, longest: int) -> Callable[[str], int]:
    """Count text by the packed encoding, which builds no list but would match special tokens."""
    flat, ordinary = tokenizer.encode_flat, tokenizer.encode_ordinary
    markers = tuple(_markers(tokenizer.special_tokens()))
    word = re.compile(words) if words else None

    def count(text: str) -> int:
        for marker in markers:
            if marker in text:
                parts = word.split(text) if word else [text]
                return len(parts) - 1 + sum(len(ordinary(piece)) for part in parts for piece in cut(part))
        return sum(len(flat(part)) for part in cut(text)) // 4

    def cut(text: str) -> list[str]:
        return [text] if len(text) <= longest else _PART.findall(text)

    return count


def _markers(specials: Any) -> list[str]:
    """The fewest strings of which one stands in every text that spells a special token."""
    openings = {"<|" if "<|" in s else "<｜" if "<｜" in s else s for s in specials}
    return sorted(openings | {"<|"})


def _gemma(tokenizer: Any) -> Callable[[str], int]:
    """Count for Gemma 2 and 3, whose HTML tags are tokens even in plain text while control tokens are not."""
    flat, ordinary = tokenizer.encode_flat, tokenizer.encode_ordinary
    controls = sorted({*tokenizer.special_tokens(), *_TURNS}, key=len, reverse=True)
    control = re.compile("(" + "|".join(map(re.escape, controls)) + ")")
    openings = ("<|", *(c for c in controls if "<|" not in c))

    def count(text: str) -> int:
        if not any(opening in text for opening in openings):
            return sum(len(flat(piece)) for piece in _pieces(text)) // 4
        total = 0
        for i, part in enumerate(control.split(text)):
            total += len(ordinary(part)) if i % 2 else sum(len(flat(piece)) for piece in _pieces(part)) // 4
        return total

    return count


def _pieces(text: str) -> Iterator[str]:
    if len(text) <= _CHUNK:
        yield text
        return
    for match in _PIECES.finditer(text):
        yield match[0]


@dataclass(frozen=True, slots=True)
class Ratios:
    """Tokens of Claude per token of o200k, and more per character of some classes."""

    token: float
    letter: float
    latin: float
    greek_to_hebrew: float
    arabic_to_thai: float
    hangul: float


CLAUDE_3 = Ratios(1.19, 0.0, 0.68, 0.20, 0.38, 0.62)  # Claude 3 to Opus 4.6
CLAUDE_5 = Ratios(1.24, 0.108, 0.87, 0.18, 0.36, 0.58)  # Opus 4.7 and later, Claude 5


class Claude:
    """A Claude tokenizer, approximated from another vocabulary's count."""

    __slots__ = ("_base", "_ratios", "exact", "name")

    def __init__(self, name: str, base: Vocabulary, ratios: Ratios) -> None:
        self.name = name
        self.exact = False
        self._base = base
        self._ratios = ratios

    def __repr__(self) -> str:
        return f"Claude({self.name!r})"

    def count(self, text: str) -> int:
        """About how many tokens the text is, rather too many than too few."""
        ratios = self._ratios
        try:
            data = text.encode()
        except UnicodeEncodeError:
            text = well_formed(text)
            data = text.encode()
        total = self._base.count(text) * ratios.token
        if ratios.letter:
            total += _count(data, _LETTERS) * ratios.letter
        if not text.isascii():
            total += _count(data, _LATIN) * ratios.latin
            total += _count(data, _GREEK_TO_HEBREW) * ratios.greek_to_hebrew
            total += _count(data, _ARABIC_TO_THAI) * ratios.arabic_to_thai
            total += _count(data, _HANGUL) * ratios.hangul
        return round(total)


def _count(data: bytes, of: bytes) -> int:
    return len(data) - len(data.translate(None, of))
