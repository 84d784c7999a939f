"""Languages that put no spaces between words, as a full-text index takes them: any two signs in a row are a word.

An index would take a whole sentence for one word, and some cut it at vowel marks. So a pair of signs is spelled as one
word of their numbers, all of the same length.
"""

import re
from itertools import pairwise

from clew.store.packing import indexable
from clew.text.words import SIGNS


def indexed(text: str) -> str:
    """A text as an index takes it: each run of signs is its pairs, and its last sign. So every sign begins a word."""
    plain = indexable(text)
    return plain if plain.isascii() else SIGNS.sub(_pairs_and_last, plain)


def asked(word: str) -> str:
    """A word that is looked for, in the same spelling; a sign alone is the beginning of pairs."""
    return word if word.isascii() else SIGNS.sub(_pairs, word)


def first_pair(text: str) -> str | None:
    """A word that an index must have of a text with signs; older versions indexed signs as they stood."""
    run = SIGNS.search(text)
    return asked(run[0][:2]).strip() if run else None


def _pairs(run: re.Match[str]) -> str:
    numbers = [f"{ord(sign):05x}" for sign in run[0]]
    pairs = [f"_{one}{next}" for one, next in pairwise(numbers)]
    return f" {' '.join(pairs or ['_' + numbers[0]])} "


def _pairs_and_last(run: re.Match[str]) -> str:
    return f"{_pairs(run)}_{ord(run[0][-1]):05x} "
