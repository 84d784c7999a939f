"""What a text says that its conversation does not say again and again: in every language, that tells most."""

import re
from collections import Counter
from collections.abc import Iterable
from math import log

from clew.core.caches import remembers
from clew.steps.worklog.wording import gist, on_one_line, sentences, some_of, words
from clew.text.words import CHUNK

SENTENCES = 1 << 14  # whose form is kept as it was read
OFTEN = 4  # times that a sentence is said in the same form until it is a set phrase
FIRST = 1.5  # what the first sentence is worth beside the same one later: it says what is wanted
EVEN = 40  # characters that every sentence has more: a short one is not dear by its length alone
_MARKS = ".,;:!?()\"'“”‘’…"
_WORD = re.compile(r"[(\"'“‘]*[^\W\d_]+(?:['’-][^\W\d_]+)*[.,;:!?)\"'”’…]*$")  # no name, number, path or code


class Rarity:
    """How rare the words of a sentence are among the texts of a conversation, for its length."""

    def __init__(self, texts: Iterable[str]) -> None:
        found = [_words(text) for text in texts]
        self._texts, self._having = len(found), Counter(word for some in found for word in some)

    def of(self, sentence: str) -> float:
        """What it tells, by what its words would tell alone."""
        rare = sum(log((1 + self._texts) / max(1, self._having[word])) for word in _words(sentence))
        return rare / (EVEN + len(sentence))

    def best(self, text: str) -> float:
        """What its best sentence tells."""
        return max(map(self.of, sentences(text)), default=0.0)

    def told(self, text: str, most: int) -> str:
        """The sentences that tell most, in so many characters and in their order."""
        parts = [on_one_line(part) for part in sentences(text)]
        worths = [self.of(part) * (1 if i else FIRST) for i, part in enumerate(parts)]
        kept, left = set[int](), most - 4
        for i in sorted(range(len(parts)), key=lambda i: -worths[i]):
            if len(parts[i]) < left:
                kept.add(i)
                left -= len(parts[i]) + 3
            elif not kept:
                return words(parts[i], most)
        return some_of(parts, kept) if kept else gist(text, most)


def _words(text: str) -> set[str]:
    return set(CHUNK.findall(text.lower()))


class Phrases:
    """The set phrases of a conversation: sentences that were said in the same form again and again, about other names.

    The more often somebody says a thing, the less it tells; that holds in every language.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._count = Counter(form for text in texts for form in {_form(s) for s in sentences(text)})

    def news(self, text: str) -> str:
        """A text without its set phrases; all of it if there is nothing else."""
        kept = [s for s in sentences(text) if not self._is_set(s)]
        return text if not kept or len(kept) == len(sentences(text)) else " ".join(kept)

    def only_set(self, text: str) -> bool:
        """Whether it says nothing else."""
        return bool(text) and all(self._is_set(s) for s in sentences(text))

    def _is_set(self, sentence: str) -> bool:
        form = _form(sentence)
        return " " in form and self._count[form] >= OFTEN


@remembers(SENTENCES)
def _form(sentence: str) -> str:
    """The plain words of a sentence: names, numbers, paths and quoted code are what it is about."""
    return " ".join(w.strip(_MARKS).lower() for w in sentence.split() if _WORD.match(w))
