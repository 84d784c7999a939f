"""How many tokens things are: exact where a vocabulary is known, openly approximate elsewhere."""

from clew.tokens.counter import Counter, counter_for
from clew.tokens.estimate import ESTIMATE, estimate
from clew.tokens.names import vocabulary_for
from clew.tokens.vocabulary import Plain, Vocabulary

__all__ = ["ESTIMATE", "Counter", "Plain", "Vocabulary", "counter_for", "estimate", "vocabulary_for"]
