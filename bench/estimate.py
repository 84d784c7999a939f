"""About how many tokens a text has, by counts of byte classes: quicker than any tokenizer, for planted sessions.

The weights are fitted to o200k_base by fit_estimate.py.
"""

from clew.tokens import Plain

# One letter per class of byte. Of a character outside ASCII only the first byte counts.
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

# Counted in the string of classes: how much there is of each, and where one follows another (words, case, digits).
# Patterns past ASCII are counted in the bytes themselves: scripts that share a first byte (Thai, general punctuation).
_WEIGHTS = {
    b"a": 0.0576,
    b" a": 0.6486,
    b"Na": 0.6518,
    b".a": 0.4227,
    b"0a": 0.5387,
    b"aA": 0.3598,
    b"Aa": 0.4343,
    b"A": 0.1447,
    b"AA": 0.2008,
    b" A": 0.4976,
    b"0": 0.3427,
    b" 0": 1.7192,
    b".0": 0.9370,
    b"a0": 0.9395,
    b"A0": 2.6510,
    b"0A": 1.3342,
    b" ": 0.0870,
    b"N": 0.9979,
    b"t": 0.5257,
    b".": 0.2128,
    b" .": 0.7764,
    b"a.": 0.7389,
    b"_": 0.8364,
    b"=": 0.0400,
    b"/": 1.5242,
    b'"': 0.4453,
    b'".': 1.2011,
    b"l": 2.1628,
    b"x": 3.1604,
    b"g": 0.4182,
    b"c": 0.2802,
    b" c": 0.0710,
    b"h": 0.4713,
    b"r": 0.3705,
    b"e": 0.2788,
    b" e": 0.3414,
    b"s": 0.1150,
    b"k": 0.8366,
    b"z": 0.8436,
    b"n": 0.6715,
    b"f": 2.9901,
    b"m": 1.8664,
    b"\xe0\xb8": 0.3133,
    b"\xe0\xb9": 0.0000,
    b"\xe2\x80": 0.8186,
}


PATTERNS = tuple(_WEIGHTS)


def features(text: str) -> list[int]:
    """How often each pattern occurs, in the order of the weights."""
    data = text.encode("utf-8", "surrogatepass")
    classes = data.translate(_CLASSES, _CONTINUED)
    return [(data if pattern[0] > 0x7F else classes).count(pattern) for pattern in PATTERNS]


def estimate(text: str) -> int:
    """About how many tokens the text is for a recent model; never more than its bytes."""
    if not text:
        return 0
    weighed = sum(weight * n for weight, n in zip(_WEIGHTS.values(), features(text), strict=True))
    return max(1, min(round(weighed), len(text.encode("utf-8", "surrogatepass"))))


ESTIMATE = Plain("estimate", estimate)
