"""Recall before asking: what was said about the user's newest message, and is out of view, is put beside that message.

It stands before the message, so that what the user wants stays the last word and no cached prefix breaks, and stays
there until a fold takes it away. Only what the user typed asks; what a tool said never does.
"""

import re
from collections import Counter as Tally
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise, zip_longest
from typing import NamedTuple

from clew.clients.voices import typed, undecorated
from clew.core.cuts import continues
from clew.core.items import ASKING, BESIDE, SHORT, Item
from clew.core.pointers import pointer
from clew.core.view import Swap, View
from clew.steps.worklog.wording import around, on_one_line, sentences, words
from clew.text.excerpts import framed
from clew.text.passages import QUESTION_MARKS, asks
from clew.text.search import Index, wording
from clew.text.words import CHUNK, COMMON, QUESTION
from clew.tokens.target import Target

MOST_TOKENS = 2_000  # tokens put beside one message
ROOM_SHARE = 1 / 25  # of the room, for one; by `compress` more, since it happens once
ALL = 1 / 12  # of the room, for all of them until the next fold
WORD = 4  # letters of a word that asks for something
FAINT = 0.3  # of the best score: passages below it are not worth their room
RARE = 0.1  # of the passages: a word in more of them says nothing of what is meant
PASSAGE_CHARACTERS = 500  # characters of a passage
# Words that say nothing of what is meant, whatever they stand with: those that join others, and those of courtesy.
FILLING = frozenset(
    "about after although always another because been before being between both cannot didn doesn done each either "
    "even ever every having hers himself however itself many might most much must neither never none nothing once only "
    "other ours over rather same shall since still such than their theirs they though through under until upon "
    "together very were where whether which while whom whose without yours "
    "also again anything bye continue cool could does done everything excellent first from going good great have here "
    "item items just keep last like long looks make more move need next nice often okay perfect please proceed ready "
    "right "
    "should some something sounds start step stop sure tell thank thanks that them then there these thing things "
    "those want welcome what when whenever will with would yeah".split()
)
_EMPTY = COMMON | FILLING
# What was decided is said once, in few words; tools print the same words by the hundred. So both have their turn, each
# measured by its own best, and no text fills the room alone.
VOICES = ("user", "assistant")
OF_ONE = 2  # passages of one text
LABEL = "from earlier in this conversation, perhaps of use for the message after it"
TERMS = 200  # words of a message that are looked for
# Words of a message that a passage has in common with it, or one name: "ready for the next item" asks nothing. Of a
# question one is enough: who asks in other words than were used has seldom more, and what is put there is little.
TWO = 2
FAMILY = 5  # letters by which words of one family are known, in many languages: renew, renewed; order, orders
STEM = re.compile(r"([a-z]{4})(?:s|es|er|ed|ing)")  # a shorter family ends before that: hashed, hashing
FEW_PASSAGES = 3  # passages that a word may always be in
_PLACE = re.compile(r"^(?:[\w./~-]+[:-])?\d+[:→-]\s*")


class Question(NamedTuple):
    """What the user just asked, and the place of it."""

    at: int
    id: str
    text: str


@dataclass(frozen=True)
class Expand:
    """Who put it there."""

    most: int = MOST_TOKENS


EXPAND = Expand()


def question(view: View) -> Question | None:
    """What the user typed since anybody answered, if nothing was recalled for it yet.

    Clients say things of their own before and after it, in the same message or in others; they ask nothing.
    """
    start = stop = len(view.nodes)
    while start and (said := view.nodes[start - 1].item).role in ("user", "system") and said.kind != "summary":
        start -= 1
    asked = [i for i in range(start, stop) if typed(view.nodes[i].item)]
    known = [i for i in asked if _was_asked(view, view.nodes[i].id)]
    asked = [i for i in asked if i > max(known, default=-1)]
    text = "\n".join(typed(view.nodes[i].item) for i in asked)
    if not asked or not _asking(text):
        return None
    # Before the first words of the newest message: all that was sent already stays as it was.
    first = max(i for i in range(start, asked[-1] + 1) if not continues(view.nodes, i))
    at = next(i for i in asked if i >= first)
    id = view.nodes[at].id
    return None if at not in view.cuts() or id in view.pinned else Question(at, id, text)


def _was_asked(view: View, id: str) -> bool:
    """Whether something was recalled for it: what was stands, or stood, beside it."""
    return any(edit.evidence.get(ASKING) == id for edit in view.edits.moved.get(id, ()))


def _asking(text: str) -> set[str]:
    """The words that may say what is meant."""
    found = (word.lower() for word in CHUNK.findall(undecorated(text)))
    return {word for word in found if len(word) >= WORD and word not in _EMPTY}


def room(view: View, target: Target, share: float = ROOM_SHARE) -> int:
    """Tokens that may be put beside the newest message: it never causes a compaction."""
    taken = target.meter.nodes(n for n in view.nodes if _is_recalled(view, n.id)).tokens
    have = target.size(view).tokens
    # What is above the threshold and not compacted is so since that would not pay: it waits until it would not fit.
    free = (target.threshold if have <= target.threshold else target.limit.tokens) - have
    return min(MOST_TOKENS, int(share * target.room), int(ALL * target.room) - taken, free)


def _is_recalled(view: View, id: str) -> bool:
    edit = view.edits.made.get(id)
    return edit is not None and edit.by.startswith(Expand.__name__)


def recalled(view: View, target: Target, asked: Question, index: Index, most: int) -> View:
    """The view with the passages of an index that a question is about beside it, in so many tokens."""
    told, quotes, item = list[str](), set[str](), None
    for found in _in_turn(list(_passages(view, asked, index))):
        tried = Item("summary", "user", framed("\n".join([*told, found.text]), LABEL))
        if target.meter.item(tried).tokens > most:
            continue
        told.append(found.text)
        quotes |= found.quotes
        item = tried
    if item is None:
        return view
    evidence = {ASKING: asked.id, BESIDE: sorted(quotes)}
    swap = Swap(asked.at, asked.at + 1, [item, view.nodes[asked.at]], evidence)
    return view.replace_all([swap], by=EXPAND)


class QuotedPassage(NamedTuple):
    """A passage worth its room, in whole sentences."""

    is_voice: bool  # of a person, or of the assistant
    text: str
    quotes: set[str]  # ids of those whose words it has: whoever said it, and the call that is named as its source


def _in_turn(found: Sequence[QuotedPassage]) -> Iterator[QuotedPassage]:
    """The best first, then in turn one of a voice and one of a tool."""
    first = found[0].is_voice if found else True
    kinds = ([p for p in found if p.is_voice is kind] for kind in (first, not first))
    return (passage for both in zip_longest(*kinds) for passage in both if passage)


def _passages(view: View, asked: Question, index: Index) -> Iterator[QuotedPassage]:
    """Passages worth their room, the best first; none of them is in view."""
    bodies = [" ".join(line.text for line in passage.lines).lower() for passage in index.passages]
    often = max(FEW_PASSAGES, RARE * len(bodies))
    asking = sorted({family(word) for word in _asking(asked.text)})[:TERMS]
    rare = {t for t in asking if 0 < sum(t in body for body in bodies) <= often}
    names = {t for t in rare if not t.isalpha()}
    least = min(1 if asks(asked.text) else TWO, len(asking))
    seen = on_one_line("\n".join(wording(n.item) for n in view.nodes)) if rare else ""
    ranked, told = index.ranked(_widened(asked.text, index)) if rare else [], set[str]()
    about = {i: i for i, _ in ranked}  # for an answer, the question that it is about
    about |= {said: i for i, _ in ranked if (said := index.answer_to(i, dict(ranked))) is not None}
    best, many = dict[bool, float](), Tally[int]()
    for i, score in ranked:
        passage = index.passages[i]
        source = index.texts[passage.text]
        is_voice = source.title in VOICES
        if score < FAINT * best.setdefault(is_voice, score) or many[passage.text] >= OF_ONE:
            continue
        lines = around(source.body, [line.text for line in passage.lines]).splitlines()
        new = [text for line in lines if _bare(line) not in told and (text := _unseen(line, seen))]
        # An answer that has none of the words says nothing without its question.
        leaning = about[i] != i and not any(t in bodies[i] for t in rare)
        before = " ".join(line.text for line in index.passages[about[i]].lines) if leaning else ""
        if leaning and not _is_worth(before, asked.text, leaned_on=True):
            continue
        if source.title == "user" and not any(_tells(s, asked.text) for line in new for s in sentences(line)):
            continue
        told.update(map(_bare, lines))
        body = f"{on_one_line(' '.join(new)).lower()} {bodies[about[i]] if about[i] != i else ''}"
        if not new or not any(t in body for t in rare):
            continue
        if sum(t in body for t in asking) < least and not any(t in body for t in names):
            continue
        many[passage.text] += 1
        text = f"{source.title} ({pointer(source.id[:SHORT])}): {words(' '.join(new), PASSAGE_CHARACTERS)}"
        quotes = {source.id, source.call}
        if leaning:
            text = f"user: {words(before, PASSAGE_CHARACTERS)}\n{text}"
            quotes.add(index.texts[index.passages[about[i]].text].id)
        yield QuotedPassage(is_voice, text, quotes - {""})


def _tells(sentence: str, now: str) -> bool:
    """Whether a person's sentence is more than a question that sounds like this one: that was answered elsewhere."""
    return not sentence.endswith(tuple(QUESTION_MARKS)) or _is_worth(sentence, now)


def _is_worth(question: str, now: str, leaned_on: bool = False) -> bool:
    """Whether an earlier question says anything to who asks now: of the things that it names, others than now.

    Where its answer says nothing without it, that it is of the same things is enough.
    """
    then, wanted = ({c.lower() for c in CHUNK.findall(text) if not c.isalpha()} for text in (question, now))
    return (not wanted or bool(then & wanted)) and (leaned_on or bool(then - wanted))


def sought(text: str) -> str:
    """A question, and how its words begin: what may be about it has another word of a family, or two words as one."""
    found = [word.lower() for word in CHUNK.findall(undecorated(text)[:QUESTION])]
    joined = (a + b for a, b in pairwise(found) if a.isalpha() and b.isalpha() and len(a + b) > FAMILY)  # back up
    families = (family(word) for word in found if len(word) > FAMILY and word not in _EMPTY)
    return " ".join([text, *islice(dict.fromkeys((*families, *joined)), TERMS)])


def _widened(text: str, index: Index) -> str:
    """The same, with the words of an index that are of these families."""
    wanted = sought(text)
    families = {family(word) for word in _asking(text) if len(word) >= FAMILY}
    return " ".join([wanted, *(word for word in index.beginning(families) if family(word) in families)])


def family(word: str) -> str:
    """How all words of a word's family begin, as far as letters tell."""
    if not (word.isascii() and word.isalpha()):
        return word
    short = STEM.fullmatch(word)
    return short[1] if short else word[:FAMILY]


def _unseen(line: str, seen: str) -> str:
    """What of a line is not in view: a stand-in may quote one sentence of many."""
    if on_one_line(line) in seen:
        return ""
    return " ".join(sentence for sentence in sentences(line) if on_one_line(sentence) not in seen)


def _bare(line: str) -> str:
    """A line without the place at which a search found it."""
    return _PLACE.sub("", line.strip())
