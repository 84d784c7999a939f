"""Sentences that decide or rule, and whether a text still says them.

A decision is a sentence about what we do, in which somebody chooses between ways. It counts if I, we or let's come with
a verb of choosing (decided, chose, settled on, agreed, go with, stick with); if it names a decision, or the best way to
do something; if an order or an intention puts one way in the place of another (use X instead of Y; I'll skip rather
than fail); if an intention to use, keep or leave something has a reason; or if it says let's. What a program does
instead of something is none, nor is a question. The words are English; sentences in other languages are not counted.

A rule is a sentence that the user typed, which clew's work log takes for a strict one, in any of its languages, and
which speaks to the assistant or says must, never and the like; a message too long to be typed is not looked at.

A summary tells a sentence in other words. To ask for it word for word would find none, to ask whether its words occur
anywhere finds most in any long text. So it counts as told if it is there word for word, or if one stretch of the text,
of twice its length and at least 40 words, holds six of ten of its telling words, by their first six letters, and all of
its numbers, names and files (`clew.audit.particulars`): the same words about another port are another rule. With less
than four such words a sentence cannot be recognised, and is not counted.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from clew.audit.particulars import in_one_writing, particulars
from clew.clients.voices import PASTE
from clew.steps.worklog.requests import WorkRequest
from clew.steps.worklog.rules import LEANING, rules_in
from clew.steps.worklog.wording import on_one_line, prose, sentences
from clew.text.words import COMMON

SENTENCE_MOST = 300  # characters: a longer one is no sentence, but a paste
TELLING_LEAST = 4  # words
TELLING_SHARE = 0.6
STRETCH_WORDS = 40
STEM = 6  # letters
SENTENCE_ENDS = ("\n", ". ", "! ", "? ")

_WE = r"\b(?:i|we|you|let['’]?s|let me)\b"
_WILL = r"\b(?:(?:i|we)(?:['’](?:ll|d)| will| would| should| need to| have to| must| want to)|let['’]?s|let me)\b"
_CHOSE = (
    r"(?:decided?|chose|choose|opt(?:ed)? (?:for|to)|settled? on|agreed?|(?:go|going|went) with"
    r"|stick(?:ing)? (?:with|to))"
)
_DO = (
    r"use|keep|make|put|write|add|store|return|call|run|leave|move|take|build|send|set|switch|show|skip|drop|avoid|fix"
    r"|update|change|replace|rename|remove|treat"
)
DECIDES = re.compile(
    rf"(?i){_WE}[^.;]{{0,60}}\b{_CHOSE}\b"
    r"|^\W*decision:|\bthe decision (?:is|was)\b|\bit was decided\b"
    r"|\b(?:best|better|right|cleanest|simplest|proper|safest) (?:approach|fix|way|option|solution) "
    r"(?:here )?(?:is|was|would be)\b"
    rf"|(?:^(?:\W*(?:so|and|then|ok|okay|please|also|now|yes|no|but)\b)*\W*(?:{_DO})\b|{_WILL})"
    r".*\b(?:instead of|rather than|in favou?r of)\b"
    rf"|^\W*instead of\b.*{_WILL}"
    rf"|\b(?:i|we)['’]ll (?:{_DO})\b.*\b(?:since|because|so that|to avoid|for now)\b"
    rf"|\blet['’]?s (?:not |only |just )?(?!run\b)(?:{_DO})\b"
)
COMMANDS = re.compile(r"(?i)\b(?:must|never|always|not allowed|forbidden|mandatory|make sure|from now on|under no)\b")
DRAWN = re.compile(r"\W*[\u2500-\u259f]")  # a line of a terminal's screen: it was pasted
WORD = re.compile(r"[^\W_]+")
PLAIN = COMMON | frozenset(
    "about after again also already always because been before both could decided decision does doing done each even "
    "every first from going good have here instead into just like make makes more most much must need needs never "
    "only other over rather really same should since some still such sure than that their them then there these they "
    "thing things this those though through under until used uses using very want well were when where which while "
    "will with without work would your chose chosen agreed opted settled stick".split()
)


def decisions(text: str) -> Iterator[str]:
    """The sentences of a text in which somebody chooses."""
    return (said for said in _countable(prose(text)) if DECIDES.search(said))


def rules(text: str) -> Iterator[str]:
    """The sentences of what the user typed that demand or forbid."""
    if len(text) > PASTE:
        return
    for said, strict in rules_in(WorkRequest(text)):
        if strict != LEANING and not DRAWN.match(said) and len(telling(said)) >= TELLING_LEAST:
            yield said


def _countable(text: str) -> Iterator[str]:
    for said in map(on_one_line, sentences(text)):
        said = said.strip(" -*>•\t")
        if len(said) <= SENTENCE_MOST and not said.endswith(("?", ":")) and len(telling(said)) >= TELLING_LEAST:
            yield said


def telling(text: str) -> set[str]:
    """The words of a sentence by which it is recognised, each by its first letters."""
    return {word[:STEM] for word in _words(text) if len(word) > 2 and word not in PLAIN}


def _words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


class Retelling:
    """A text in which sentences are looked for."""

    def __init__(self, text: str) -> None:
        self._text = in_one_writing(text)
        found = [*WORD.finditer(self._text)]
        self._spans = [word.span() for word in found]
        words = [word[0].lower() for word in found]
        self._padded = f" {' '.join(words)} "
        self._places: dict[str, list[int]] = defaultdict(list)
        for place, word in enumerate(words):
            self._places[word[:STEM]].append(place)

    def tells(self, said: str) -> bool:
        """Whether it says that, in these or other words."""
        said = in_one_writing(said)
        if f" {' '.join(_words(said))} " in self._padded:
            return True
        exact = particulars(said)
        return all(one.search(self._text) for one in exact) and any(
            all(one.search(stretch) for one in exact) for stretch in self._stretches(said)
        )

    def _stretches(self, said: str) -> Iterator[str]:
        """The stretches of the text that hold enough of a sentence's telling words."""
        stems = telling(said)
        reach = max(STRETCH_WORDS, 2 * len(_words(said)))
        places = sorted((place, stem) for stem in stems for place in self._places.get(stem, ()))
        inside: Counter[str] = Counter()
        first = 0
        for place, stem in places:
            inside[stem] += 1
            while places[first][0] <= place - reach:
                gone = places[first][1]
                inside[gone] -= 1
                if not inside[gone]:
                    del inside[gone]
                first += 1
            if len(inside) >= TELLING_SHARE * len(stems):
                yield self._sentences(places[first][0], place)

    def _sentences(self, first: int, last: int) -> str:
        """The whole sentences in which these words stand."""
        start, stop = self._spans[first][0], self._spans[last][1]
        before = max((self._text.rfind(end, 0, start) for end in SENTENCE_ENDS), default=-1)
        after = [at for end in SENTENCE_ENDS if (at := self._text.find(end, stop)) >= 0]
        return self._text[before + 1 : min(after, default=len(self._text))]
