"""Which of a model's notes are believed: those that have sources, invent nothing and give the user no words."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace as with_
from functools import cached_property
from typing import Literal, NamedTuple

from clew.clients.voices import typed
from clew.core.items import Node
from clew.facts.claims import Claim
from clew.facts.finding import find
from clew.facts.sheets import sheet, voice_of
from clew.steps.lines import clip
from clew.steps.notes.placing import UNSPACED, terms
from clew.steps.notes.replies import TITLE, Note
from clew.text.framing import neutral, seen, shown
from clew.text.quoting import FOR_THE_USER, speaks_for_user
from clew.text.words import COMMON

Doubt = Literal["invented", "unfounded", "not the user's words"]

CLAIM_CHARACTERS = 300  # characters of a claim
STEM = 5  # letters by which a word is the same word
FEW_LETTERS = 3  # in a longer word, an s at the end may be a plural
FOUNDED = 1 / 3  # of a note's words must stand in what it cites
SOURCE_NODES = 3  # nodes that are the source of a line which names none
QUOTED_CHARACTERS = 12  # characters of a quotation that can be found in one place
SAME = 0.85  # of its words: what another line says, too
TOOL_SAYS = 'a tool says: "{}"'  # how a note is kept that is nothing to act on
MODEL_SAYS = 'a model says of the user: "{}"'  # and one that has words which the user did not say

# Words that hold a sentence together, and nothing more.
SMALL_WORDS = COMMON | frozenset(
    "about after again all also any because been before both did does each had here how more most one only over per "
    "since some still such than their them there they too two up via were where which while who why".split()
)

_WORD = re.compile(r"[^\W\d_]{2,}")
_DENIES = re.compile(
    r"\b(?:not?|never|none|cannot|without|nicht|kein\w*|nie|ohne|pas|jamais|sans|nunca|sin|не|нет|без)\b|n['’]t\b"
    r"|[不没無]|ない|않|못"
)
_JOINED = ("kebab", "pair")  # read-only, client/server: perhaps names, perhaps words
_LISTED = re.compile(r"[a-z]+(?:/[a-z]+)+|\d{1,6}[-–]\d{1,6}")  # number/date/status, lines 366-367: each may be told
_ESCAPED = re.compile(r"\\[nrt]")
_FOR_THE_USER = re.compile(f"(?i){FOR_THE_USER}")
# Who allowed something is told by the user's own words and by nobody else. What a program takes, or a file permits, is
# another thing. Each part has an example in the tests.
_GRANT = re.compile(
    r"(?i)\b(?:user|human|owner)\s(?:(?!to\s)\w+\s){0,2}"
    r"(?:approv|authori[sz]|permitt?|grant|consent|green-?li|allow|agree|accept|confirm)"
    r"|\b(?:they|he|she)\s(?:(?!to\s)\w+\s){0,2}(?:approv|authori[sz]|green-?li|agree|confirm)"
    r"|\b(?:is|are|was|were|been|got)\s(?:\w+\s)?(?:approved|authori[sz]ed|green-?lit)\b"
    r"|\b(?:gave|given|has|have|had|got|with)\s(?:(?!no\s)[\w'’]+\s){0,3}"
    r"(?:approval|consent|go-ahead|permission(?!\s(?:bits?|mode|\d)))\b"
    r"|\b(?:approved|authori[sz]ed|permitted|allowed) by the (?:user|human|owner)"
    r"|genehmigt|freigegeben|zugestimmt|approuv|aprob|aprov[ao]|approvat|одобр|批准|同意|承認|승인"
)
_ALLOWS = re.compile(
    r"(?i)erlaubt|gestattet|autoris|autoriz|permiso?\b|permiti|accepté|разреш|соглас|允许|許可|허용|허락"
)


class DroppedNote(NamedTuple):
    """A note that is not believed."""

    why: Doubt
    line: str


class Checked(NamedTuple):
    """The claims that hold, and the notes that are not believed."""

    claims: tuple[Claim, ...]
    dropped: tuple[DroppedNote, ...]

    @property
    def doubts(self) -> Mapping[Doubt, int]:
        """How many were not, by reason."""
        return Counter(why for why, _ in self.dropped)


class Sources:
    """The nodes that a model was shown, as evidence."""

    def __init__(self, nodes: Sequence[Node], labels: Mapping[str, str], end: str = "") -> None:
        self.nodes = [n for n in nodes if n.item.kind != "summary"]
        self._blocks = [n for n in nodes if n.item.kind == "summary"]  # they tell of tools, too: nobody's words
        self.end = end or (nodes[-1].id if nodes else "")  # where what is said of all of it belongs
        self.order = {node.id: n for n, node in enumerate(self.nodes)}
        self._labelled = {label: id for id, label in labels.items()}

    def check(self, notes: Iterable[Note]) -> Checked:
        """Which notes hold."""
        dropped: list[DroppedNote] = []
        claims: list[Claim | None] = []  # None where one was not believed
        for note in notes:
            found = self._judged(note)
            if isinstance(found, Claim):
                claims.append(found)
            else:
                dropped.append(DroppedNote(found, _short(neutral(note.text))))
                claims += [] if note.goes_on else [None]
        return Checked(tuple(_once(claims)), tuple(dropped))

    def _judged(self, note: Note) -> Claim | Doubt:
        """A note as a claim, with the sources that it names or that code finds; or why it is not believed.

        Rules, and how tasks stand, are what the user and the results say, not what a model says of them.
        """
        if self._invents(note.text):
            return "invented"
        said, cited = words(note.text), self._cited(note)
        sources = cited if self._founded(said, cited) else self._nearest(said)
        if not self._founded(said, sources) and not find(shown(note.text)):  # a name that stands there is enough
            return "unfounded"
        users = _FOR_THE_USER.search(note.text)
        if _GRANT.search(note.text) or (users and (_ALLOWS.search(note.text) or not self._is_theirs(note.text))):
            return "not the user's words"
        text = _short(neutral(note.text))
        if self._is_a_tools(note.text):
            text = TOOL_SAYS.format(text.replace('"', "'"))
        elif speaks_for_user(note.text) and not self._is_the_users(note.text):
            text = MODEL_SAYS.format(text.replace('"', "'"))
        # Without a source of its own it is read in the order in which it was written: where its heading belongs.
        place = "" if cited else self._labelled.get(note.of, self.end)
        ids = [n.id for n in cited or sources if n.id != place]
        return Claim(text, (*ids, *filter(None, [place])), self._heading(note.under), note.goes_on)

    def _founded(self, said: set[str], sources: Sequence[Node]) -> bool:
        """Whether enough of these words stand in the sources."""
        return len(said & {w for n in sources for w in self._bags[n.id]}) >= max(1, FOUNDED * len(said))

    def _heading(self, text: str) -> str:
        """A model's own heading, unless it may be what a tool wants to be read."""
        own = all(_stands(f.text, self._own) for f in find(shown(text)))
        users = not speaks_for_user(text) or (self._is_the_users(text) and not _GRANT.search(text))
        return clip(neutral(text), TITLE) if own and users and not self._is_a_tools(text) else ""

    def _is_a_tools(self, text: str) -> bool:
        """Whether most of its words, its names apart, only a tool said."""
        theirs, tools = self._voices
        said = words(text) - {w for fact in find(shown(text)) for w in words(fact.text)}
        return 2 * len((said & tools) - theirs - OUTCOMES) > len(said)

    def _nearest(self, said: set[str]) -> list[Node]:
        """The nodes that have most of these words, in their order."""
        shared = {n.id: len(said & self._bags[n.id]) for n in self.nodes}
        best = max(shared.values(), default=0)
        near = [n for n in self.nodes if best and shared[n.id] > best / 2]
        return sorted(sorted(near, key=lambda n: -shared[n.id])[:SOURCE_NODES], key=lambda n: self.order[n.id])

    def _cited(self, note: Note) -> list[Node]:
        ids = {self._labelled[label] for label in note.labels if label in self._labelled}
        for quote in note.quotes:
            said = _plain(quote)
            if len(said) >= QUOTED_CHARACTERS:
                ids.update(id for id, text in self._texts.items() if said in text)
        return [self.nodes[i] for i in sorted(self.order[id] for id in ids)]

    # --- whose words ------------------------------------------------------------------------------------------------

    def _is_theirs(self, text: str) -> bool:
        """Whether the user or the assistant can have said it: it has no word and no name that only a tool said."""
        theirs, tools = self._voices
        if (words(text) & tools) - theirs - OUTCOMES:
            return False
        return all(_stands(f.text, self._own) or f.kind in _JOINED for f in find(shown(text)))

    def _is_the_users(self, text: str) -> bool:
        """Whether the user said it: they said all of its words and names that anybody said."""
        theirs = {n.id: typed(n.item) for n in self.nodes if voice_of(n.item) == "user"}
        bags = [bag for id, bag in self._bags.items() if id not in theirs]
        others = set[str]().union(*bags, *(words(n.item.text) for n in self._blocks))
        said = "\n".join(theirs.values())
        unsaid = (words(text) & others) - SPEAKING_WORDS - words(said)
        return not unsaid and all(_stands(f.text, said) for f in find(shown(text)))

    def _invents(self, text: str) -> bool:
        """Whether it has a name, a path or a number that nobody said."""
        theirs, tools = self._voices
        for fact in find(shown(text)):
            joined = fact.kind in _JOINED and words(fact.text) <= theirs | tools
            parts = re.split(r"[-–/]", fact.text) if _LISTED.fullmatch(fact.text) else [fact.text]
            if not joined and not all(_stands(part, self._whole) for part in parts):
                return True
        return False

    # --- all that was said ------------------------------------------------------------------------------------------

    @cached_property
    def _whole(self) -> str:
        return "\n".join(_said(n) for n in (*self.nodes, *self._blocks))

    @cached_property
    def _bags(self) -> dict[str, set[str]]:
        return {n.id: words(_said(n)) for n in self.nodes}

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {n.id: _plain(_said(n)) for n in self.nodes}

    @cached_property
    def _own(self) -> str:
        """What user and assistant said; of a call what it does, not the texts that it passes on."""
        others = (n for n in self.nodes if voice_of(n.item) != "result")
        return "\n".join(self._does(n) if n.item.kind == "call" else n.item.text for n in others)

    @cached_property
    def _voices(self) -> tuple[set[str], set[str]]:
        """The words of user and assistant, and those of tools: theirs still when a call repeats them."""
        theirs, tools = set[str](), {w for n in self._blocks for w in words(n.item.text)}
        for node in self.nodes:
            match voice_of(node.item):
                case "result":
                    tools |= words(node.item.text)
                case "call":
                    theirs |= words(self._does(node)) - tools
                case _:
                    theirs |= words(node.item.text)
        return theirs, tools

    def _does(self, call: Node) -> str:
        return sheet(call.item).heading


def words(text: str) -> set[str]:
    """The words of a text as they look, by their first letters; where there are no spaces, by pairs of signs."""
    found = set[str]()
    for word in _WORD.findall(seen(shown(text)).lower()):
        if word[0] >= UNSPACED:
            found.update(word[i : i + 2] for i in range(len(word) - 1))
        elif word not in SMALL_WORDS:
            found.add((word.removesuffix("s") if len(word) > FEW_LETTERS else word)[:STEM])
    return found


# Words that say who speaks, and nothing of what is said.
SPEAKING_WORDS = words(
    "user human owner said says ask asked want wanted wish wishes request requested demand demanded tell told instruct "
    "prefer preferred decided order ordered need needed please"
)
# Words that say how something went, and nothing about what to do.
OUTCOMES = words(
    "pass passed passing fail failed failing failure error exception success warning exit exited found missing "
    "complete returned output result timeout timed refused denied crash traceback invalid unknown green broken"
)


def _said(node: Node) -> str:
    item = node.item
    # What is a line break in an argument must not be a letter of the word after it.
    return f"{item.name} {_ESCAPED.sub(' ', item.text)}" if item.kind == "call" else item.text


def _short(text: str) -> str:
    """At most so much of it, and no half of a name."""
    line = clip(text, CLAIM_CHARACTERS)
    return line if not line.endswith("…") else line[: line.rfind(" ")] + " …"


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def _stands(name: str, text: str) -> bool:
    """Whether a name stands in a text as a whole."""
    return name in text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _once(claims: Sequence[Claim | None]) -> Iterator[Claim]:
    """The claims without those that another says, too, in more words; of the same words the last.

    What belongs to an entry that is left out stands by itself.
    """
    said = [terms(c.text) if c else set[str]() for c in claims]
    denied = [bool(c and _DENIES.search(c.text.lower())) for c in claims]
    headless = False
    for at, claim in enumerate(claims):
        own = said[at]
        others = (
            o
            for i, o in enumerate(said)
            if i != at and (len(o), i) > (len(own), at) and denied[i] == denied[at]  # a correction is news
        )
        if claim is None or any(len(own & o) >= SAME * len(own) for o in others):
            headless = headless or claim is None or not claim.goes_on
        elif headless and claim.goes_on:
            headless = False
            yield with_(claim, goes_on=False)
        else:
            headless = False
            yield claim
