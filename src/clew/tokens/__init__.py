"""How many tokens things are: exact where a vocabulary is known, openly approximate elsewhere."""

from clew.tokens.counter import Counter, counter_for
from clew.tokens.names import vocabulary_for
from clew.tokens.vocabulary import Plain, Vocabulary

__all__ = ["Counter", "Plain", "Vocabulary", "counter_for", "vocabulary_for"]
