"""Vocabularies that ship inside the splintr wheel.

splintr is imported on the first question and a vocabulary is read on the first count: both cost too much at import.
"""

import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from clew.tokens.vocabulary import well_formed

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
