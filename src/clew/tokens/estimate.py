"""A last resort for platforms without a tokenizer: counts of byte classes, weighted.

The weights are fitted to o200k_base by bench/fit_estimate.py; tests/test_tokens.py states the error per kind of text.
"""

from clew.tokens.vocabulary import Plain

# One letter per class of byte. Of a character outside ASCII only the first byte counts, with a few scripts that share
# one told apart by their second.
_RANGES = (
    ("t", 0x00, 0x1F),
    (".", 0x20, 0x7F),
    ("0", 0x30, 0x39),
    ("A", 0x41, 0x5A),
    ("a", 0x61, 0x7A),
    ("l", 0xC2, 0xC3),  # Latin-1
    ("x", 0xC4, 0xCD),  # further Latin, combining marks
    ("g", 0xCE, 0xCF),  # Greek
    ("c", 0xD0, 0xD3),  # Cyrillic
    ("h", 0xD4, 0xD7),  # Armenian, Hebrew
    ("r", 0xD8, 0xDF),  # Arabic
    ("e", 0xE0, 0xE1),  # Indic, Thai and others of South Asia
    ("s", 0xE2, 0xE2),  # punctuation, symbols, box drawing
    ("k", 0xE3, 0xE3),  # kana
    ("z", 0xE4, 0xE9),  # Han
    ("n", 0xEA, 0xED),  # Hangul; lone surrogates
    ("f", 0xEE, 0xEF),  # private use, full width
    ("m", 0xF0, 0xFF),  # emoji
)
_SINGLE = {" ": 0x20, "N": 0x0A, "_": 0x5F, "=": 0x3D, "/": 0x2F, '"': 0x22}
_CONTINUED = bytes(range(0x80, 0xC0))


def _table() -> bytes:
    table = bytearray(256)
    for letter, first, last in _RANGES:
        table[first : last + 1] = letter.encode() * (last - first + 1)
    for letter, byte in _SINGLE.items():
        table[byte] = ord(letter)
    return bytes(table)


_CLASSES = _table()

# Counted in the string of classes: how much there is of each, and where one follows another (words, case, runs).
_WEIGHTS: dict[bytes, float] = {}


def features(text: str) -> list[int]:
    """How often each pattern occurs, in the order of the weights."""
    data = text.encode("utf-8", "surrogatepass")
    classes = data.translate(_CLASSES, _CONTINUED)
    # Devanagari is E0 A4-A5, Thai E0 B8-B9: tokens are fewer there than elsewhere in this range.
    return [classes.count(pattern) for pattern in PATTERNS]


PATTERNS = tuple(_WEIGHTS)


def estimate(text: str) -> int:
    """About how many tokens the text is for a recent model; never more than its bytes."""
    if not text:
        return 0
    weighed = sum(weight * n for weight, n in zip(_WEIGHTS.values(), features(text), strict=True))
    return max(1, min(round(weighed), len(text.encode("utf-8", "surrogatepass"))))


ESTIMATE = Plain("estimate", estimate)
