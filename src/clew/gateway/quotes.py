"""Conversations that a client quotes in one text, to have them summed up, and whether a branch is the quoted one."""

import logging
import re
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import NamedTuple, TypeVar

from clew.clients.voices import is_moving, is_passing
from clew.core import rawjson
from clew.core.caches import Recent
from clew.core.items import Digests, Item, Scope
from clew.core.threads import LARGE, LONG, in_thread_if
from clew.engine.engine import Engine
from clew.errors import BadRequest
from clew.recognition.continuation import SHARED_NAMES
from clew.recognition.proof import Past, logged
from clew.recognition.recognise import HANDOFF
from clew.recognition.side_requests import is_continued, summary_at
from clew.store.trace import Trace

_LOGGER = logging.getLogger("clew")

LEAST_QUOTED = 200  # characters that must be quoted: what is shorter is said in many conversations
CALLS_READ = 200_000_000  # characters in which it is looked for what calls were given: some 40 times the longest quotes
COUNTED_OF_RESULT = 200  # characters of one result that count: a file that many have read is one thing in common
RESULT_CUT = 2_000  # characters of a long result that opencode and pi quote; less may be how many results begin
AGREED = 8  # characters of an answer to a summary, such as "Ok."
_CUT = re.compile(r"\s{0,4}\[?(?:\.\.\.|…|[^\]\n]{0,60}truncated)")  # what stands where a result was cut
_WITHIN = ("<conversation>", "</conversation>")  # between which opencode and pi quote
_TURN_WITHIN = ("# Conversation\n", "\n\n# Instructions\n")  # and pi the first part of a turn
# Who speaks: `[User]: ` in opencode and pi, `# USER` on a line of its own in aider.
_LABEL = re.compile(r"^(?:\[([A-Za-z][A-Za-z ]{0,40})\]:? |# (USER|ASSISTANT)$\n)", re.MULTILINE)
_BLANK = re.compile(r"\s*")
_TURN = {"assistant": 0, "tool": 1, "user": 2}  # the order of what comes after a request
_ROLES = {"user": "user", "assistant": "assistant", "tool": "tool", "tool result": "tool"}


T = TypeVar("T")

PARAGRAPHS, LONG_ENOUGH = 6, 60  # of a quoted conversation, and characters: by which it is looked for
LONGEST_QUOTE = 1_200  # characters of one
LIKELY = 12  # branches that are compared with a quoted conversation
BEGUN_ALIKE = 256  # of which it is looked up how much of what is quoted they have
SUMMED_UP = 16  # conversations of which it is remembered how much was just summed up
_PARTS = re.compile(r"\n\s*\n|^# (?:USER|ASSISTANT)\n", re.MULTILINE)  # the latter between what aider quotes


def quoted(text: str) -> str:
    """The conversation in a request to sum it up."""
    begin, end = text.find(_WITHIN[0]), text.rfind(_WITHIN[1])
    if 0 <= begin < end:
        return text[begin + len(_WITHIN[0]) : end]
    return text.removeprefix(_TURN_WITHIN[0]).rpartition(_TURN_WITHIN[1])[0] if is_part(text) else text


def is_part(text: str) -> bool:
    """Whether what it quotes may begin within a conversation."""
    return text.startswith(_TURN_WITHIN[0]) and _TURN_WITHIN[1] in text


def leading_summary(text: str) -> tuple[str, int]:
    """The summary that what is quoted begins with, if it does, and where that ends."""
    begins, then = [*islice(_LABEL.finditer(text), 2), None, None][:2]
    if begins is None:
        return "", 0
    end = then.start() if then else len(text)
    first = text[begins.end() : end]
    return (first, end) if is_continued([Item("text", "user", first)]) else ("", 0)


def goes_on(text: str, place: int) -> bool:
    """Whether more is quoted from here on than an answer that aider makes up itself ("Ok.")."""
    then, more = [*islice(_LABEL.finditer(text, place), 2), None, None][:2]
    return more is not None or (then is not None and len(text) - then.end() > AGREED)


class Quoted(NamedTuple):
    """How much of a branch a text quotes."""

    last: int  # of its items, up to which it does; 0: not at all
    size: int  # characters
    end: int  # of what it quotes; what stands behind that is not in the log
    is_heard: bool = True  # whoever speaks there; else it may be the rest of a result that was cut


NOT_QUOTED = Quoted(0, 0, 0)


def is_quoted(text: str, items: Sequence[Item], since_summary: bool = False) -> Quoted:
    """Up to which of its items a text quotes a branch, each message in order and no other, and how much that is.

    A text may go on where the branch ends, with what nobody has sent yet. Of a call, each client writes what it was
    given in its own way: that must stand somewhere, one call after the other. A result that is not there may have been
    another one. `since_summary`: the one that a branch begins with is not quoted.
    """
    if _is_aiders(text) and any(item.kind in ("call", "result") for item in items):
        return NOT_QUOTED
    summary = summary_at(items)
    whole = quoted_from(text, items)
    return max(whole, quoted_from(text, items, summary + 1)) if since_summary and summary is not None else whole


def quoted_from(text: str, items: Sequence[Item], first: int = 0) -> Quoted:
    """The same of what stands on a branch from one of its items on."""
    place = 0
    size = last = 0
    heard = True
    spoken = iter([n for n in range(first, len(items)) if is_said(items[n]) and items[n].kind == "text"])
    given = iter([n for n in range(first, len(items)) if is_said(items[n]) and items[n].kind == "result"])
    while label := _LABEL.search(text, place):
        place, role = label.end(), _role(label)
        if role is None:
            heard = False
        if role is None or _ends(text, place):
            continue
        n = next(given if role == "tool" else spoken, None)
        if n is None:
            if not _is_news(text, label.start()):
                return NOT_QUOTED
            break
        place = _after_blanks(text, place)
        many = _quoted_of(text, place, items[n].text.strip(), role == "tool") if items[n].role == role else 0
        if not many:
            return NOT_QUOTED
        place += many
        size += min(many, COUNTED_OF_RESULT) if role == "tool" else many
        heard = role != "tool"
        last = max(last, n + 1)
    ended = label is None  # else the text goes on: that is news, if all of the branch is quoted
    left = min(next(spoken, len(items)), next(given, len(items)))  # the first that is not quoted
    whole = left == len(items)
    last = len(items) if whole else last
    if size < LEAST_QUOTED or left < last or not (ended or whole) or not _Calls(text).all_stand(items[first:last]):
        return NOT_QUOTED
    return Quoted(last, size, label.start() if label else len(text), heard)


class _Calls:
    """Finds in a text what calls were given: each from where the one before it was found, for they stand in order."""

    def __init__(self, text: str) -> None:
        self._text, self._place, self._left = text, 0, CALLS_READ
        self._plain = False  # whether its client writes words as they are, not as JSON does

    def all_stand(self, items: Iterable[Item]) -> bool:
        """Whether all of these do."""
        return all(self._is_quoted(item) for item in items if item.kind == "call")

    def _is_quoted(self, call: Item) -> bool:
        last = self._place
        try:
            words = _words_in(rawjson.loads(call.text))
        except BadRequest:
            words = iter([call.text])
        for word in words:
            if (at := self._find(word)) < 0:
                return False
            last = max(last, at)
        self._place = last
        return True

    def _find(self, word: str) -> int:
        forms = dict.fromkeys((rawjson.dumps(word).decode()[1:-1], word))
        for form in reversed(forms) if self._plain else forms:
            at = self._text.find(form, self._place)
            self._left -= (at if at >= 0 else len(self._text)) - self._place + len(form)
            if self._left < 0:
                _LOGGER.warning("a quoted conversation is too long to be compared with the log: its model sums it up")
                return -1
            if at >= 0:
                self._plain = form == word if len(forms) > 1 else self._plain
                return at
        return -1


def _words_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _words_in(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from _words_in(part)


def _is_news(text: str, place: int) -> bool:
    """Whether what stands from here on is one answer, its results, and what the user said next: more had been sent.

    What aider has itself agree to ("Ok.") was asked of nobody.
    """
    turns, labels = list[int](), [*_LABEL.finditer(text, place)]
    for label, after in zip_longest(labels, labels[1:]):
        turn = _TURN.get((label[1] or label[2]).lower().split()[0])
        said = text[label.end() : after.start() if after else len(text)].strip()
        if turn is not None and (turn or len(said) > AGREED):
            turns.append(turn)
    return turns == sorted(turns)


def news(text: str, place: int, is_heard: bool = True) -> Iterator[Item]:
    """What stands from here on, as it is written; calls and results are told as the assistant's.

    A user is heard until somebody else speaks: after that, a label may be text of a result, and stays a part of it.
    """
    labels = list[re.Match[str]]()
    for label in _LABEL.finditer(text, place):
        is_users = _role(label) == "user"
        labels += [] if is_users and not is_heard else [label]
        is_heard &= is_users
    first = labels[0].start() if labels else len(text)
    if before := text[place:first].strip():
        yield Item("text", "assistant", before)
    for label, after in zip_longest(labels, labels[1:]):
        role = _role(label)
        said = text[label.end() if role in ("user", "assistant") else label.start() : after.start() if after else None]
        if said := said.strip():
            yield Item("text", "user" if role == "user" else "assistant", said)


def bare(text: str) -> str:
    """The words of a text alone, without blanks and without who speaks."""
    return "".join(_LABEL.sub("", text).split())


def _role(label: re.Match[str]) -> str | None:
    return _ROLES.get((label[1] or label[2]).strip().lower())


def _is_aiders(text: str) -> bool:
    """Whether it is written as aider writes it, which has no tools."""
    label = _LABEL.search(text)
    return label is not None and label[2] is not None


def _quoted_of(text: str, place: int, words: str, may_be_cut: bool) -> int:
    """How many characters of these words stand at a place of a text: all, or as many as clients keep of long ones."""
    if text.startswith(words, place) and _ends(text, place + len(words)):
        return len(words)
    cut = words[:RESULT_CUT]
    is_cut = may_be_cut and len(words) > RESULT_CUT and text.startswith(cut, place)
    return RESULT_CUT if is_cut and _CUT.match(text, place + RESULT_CUT) else 0


def is_said(item: Item) -> bool:
    """Whether clients quote it: not what they note beside the conversation, and no instructions."""
    if item.kind == "text":
        return item.role in ("user", "assistant") and not is_passing(item.text) and not is_moving(item.text)
    return item.kind == "result" and bool(item.text.strip())


def _ends(text: str, place: int) -> bool:
    """Whether a message ends here: nothing follows, or who speaks next."""
    at = _after_blanks(text, place)
    return at == len(text) or (text[at - 1] == "\n" and _LABEL.match(text, at) is not None)


def _after_blanks(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found else place


class FoundQuote(NamedTuple):
    """What a text quotes."""

    branch: str
    items: list[Item]  # of it, from its beginning to the end of what is quoted
    last: int = 0  # the place in it where that is
    first: int = 0  # of these: where what is quoted begins; the rest is summed up elsewhere
    below: Past | None = None  # as what


class Quotes:
    """Finds the conversations that are quoted."""

    def __init__(self, engine: Engine) -> None:
        self._store = engine.store
        self._summed_up = Recent[tuple[Scope, str], tuple[int, Past]](SUMMED_UP)

    def summed_up(self, scope: Scope, found: FoundQuote, past: Past) -> None:
        """Remember that a conversation was summed up to some place: pi asks for the next part after that."""
        if found.last:
            self._summed_up[scope, found.branch] = found.last, past

    async def find(self, scope: Scope, session: str | None, asked: str) -> FoundQuote | None:
        """The branch that a text quotes, and what of it is quoted."""
        digests = self._digests(scope)
        quote = await in_thread_if(len(asked) > LARGE, lambda: ClientQuote(asked, digests))
        past = quote.past
        if past and not await self._store.sessions(scope, past.branch):  # purged
            past = None
        if past is None or quote.goes_on:
            shared = session is not None and session in await self._store.learned(scope, SHARED_NAMES)
            if session is None or shared:
                found = await self._unnamed(scope, quote)
            else:
                found = await self._named(scope, session, quote)
            if found or past is None:
                return found or await self._part(scope, quote)
        # The summary alone, or, as aider may ask, with what had been left out of it: nothing proves a branch of both.
        _, items = await self.history(scope, past.branch, past.seq)
        return FoundQuote(past.branch, [*items, *await quote.news(Quoted(0, 0, quote.summary_end))])

    async def _part(self, scope: Scope, quote: "ClientQuote") -> FoundQuote | None:
        """What goes on from where a conversation was summed up, just now or by the summary that it begins with.

        Nothing of what stands before is proven by that: whoever asks has to show the summary of it, too.
        """
        if not quote.is_part:
            return None
        just = [(branch, *known) for (of, branch), known in reversed(self._summed_up.items()) if of == scope]
        for branch, place, below in just:
            if found := await self._from(scope, quote, branch, (await self.history(scope, branch))[1], place, below):
                return found
        for branch, _ in (await self._likely(scope, quote.text))[0]:
            trace, items = await self.history(scope, branch)
            at = summary_at(items) if trace.calls else None
            past = logged(self._digests(scope), items[at].text) if at is not None else None
            if past and at is not None and (found := await self._from(scope, quote, branch, items, at + 1, past)):
                return found
        return None

    async def _from(
        self, scope: Scope, quote: "ClientQuote", branch: str, items: list[Item], place: int, below: Past
    ) -> FoundQuote | None:
        """The same on one branch from a place on, before which it is summed up as `below`."""
        found = await quote.work(items, lambda: quoted_from(quote.text, items, place))
        if found.last <= place:
            return None
        told = [*_tellable(items[: found.last]), *await quote.news(found)]
        return FoundQuote(branch, told, found.last, len(_tellable(items[:place])), below)

    def _digests(self, scope: Scope) -> Digests:
        return Digests(self._store.secret, scope)

    async def _named(self, scope: Scope, session: str, quote: "ClientQuote") -> FoundQuote | None:
        own = await self._store.session(scope, session)
        items = (await self.history(scope, own))[1] if own else []
        found = await quote.of(items)
        told = [*_tellable(items[: found.last]), *await quote.news(found)]
        return FoundQuote(own, told, found.last) if own and found.last else None

    async def _unnamed(self, scope: Scope, quote: "ClientQuote") -> FoundQuote | None:
        likely, least = await self._likely(scope, quote.text)
        found = list[QuotedBranch]()
        for branch, count in likely:
            trace, items = await self.history(scope, branch)
            quotes = await quote.of(items)
            # What a model handed over is for those who have its system prompt: who quotes has another one.
            handed_over = any(edit.by.startswith(HANDOFF) for edit in trace.edits)
            if quotes.last and (handed_over or count <= least):  # one that was not compared may be as much like it
                return None
            if quotes.last:
                found.append(QuotedBranch(bool(trace.calls), quotes.size, branch, items[: quotes.last], quotes))
        if not found:
            return None
        best = max(found, key=lambda one: one[:2])
        # One may be how another began, or a copy of it; but where results are cut, two may differ in the rest.
        others = [one.items for one in found if one is not best]
        if not await quote.work(best.items, lambda: all(_is_beginning(other, best.items) for other in others)):
            return None
        return FoundQuote(best.branch, [*_tellable(best.items), *await quote.news(best.quotes)], best.quotes.last)

    async def _likely(self, scope: Scope, text: str) -> tuple[list[tuple[str, int]], int]:
        """Branches in which most paragraphs of a text were said, and how many; how many all others have at most.

        Who began with the same words has these, too, though another one said them first.
        """
        paragraphs = [p[:LONGEST_QUOTE] for p in _PARTS.split(text) if len(p) >= LONG_ENOUGH]
        step = max(1, len(paragraphs) // PARAGRAPHS)
        found: set[str] = set()
        for paragraph in paragraphs[::step][:PARAGRAPHS]:
            found |= set(await self._store.search(scope, paragraph, None, PARAGRAPHS))
        ids = {id for id, _ in await self._store.places(scope, sorted(found))}
        most = Tally(branch for _, branch in await self._store.holders(scope, sorted(ids))).most_common()
        if len(most) <= LIKELY:
            return most, 0
        counts = Tally[str]()  # a fork may have left before what its parent said
        for branch, _ in most[:BEGUN_ALIKE]:
            counts[branch] = len(ids.intersection(place.id for place in (await self._store.load(scope, branch)).said))
        likely = counts.most_common(LIKELY + 1)
        return likely[:LIKELY], max(count for _, count in (likely[LIKELY], *most[BEGUN_ALIKE:][:1]))

    async def history(self, scope: Scope, branch: str, until: int | None = None) -> tuple[Trace, list[Item]]:
        """A branch, and all that was said on it."""
        trace = await self._store.load(scope, branch, until)
        nodes = await self._store.nodes(scope, [place.id for place in trace.said])
        return trace, [nodes[place.id].item for place in trace.said]


def _tellable(items: Sequence[Item]) -> list[Item]:
    """Without instructions: clients quote none, so that nothing proves who quotes was given them."""
    return [item for item in items if item.role != "system"]


def _is_beginning(one: Sequence[Item], other: Sequence[Item]) -> bool:
    """Whether one of two says all that the other does, as far as it goes, whoever is said to say it."""
    said = ("".join(bare(i.text) for i in items if i.kind == "call" or is_said(i)) for items in (one, other))
    short, long = sorted(said, key=len)
    return long.startswith(short)


class QuotedBranch(NamedTuple):
    """A branch that a text quotes; of several, the last by the first two of these is the one."""

    was_asked: bool  # a model, in it: else a quote was written down
    size: int  # of what is quoted
    branch: str
    items: Sequence[Item]  # that are quoted
    quotes: Quoted


class ClientQuote:
    """A conversation that is quoted, and what is said around it."""

    def __init__(self, asked: str, digests: Digests) -> None:
        self.text = quoted(asked)
        self.is_part = is_part(asked)
        self._asked, self._digests = asked, digests
        summary, self.summary_end = leading_summary(self.text)
        self.goes_on = goes_on(self.text, self.summary_end)
        self.past = logged(digests, summary)  # by clew's own line in the summary that it begins with

    async def of(self, items: Sequence[Item]) -> Quoted:
        """How much of a branch this quotes."""
        return await self.work(items, lambda: self._of(items))

    async def news(self, found: Quoted) -> list[Item]:
        """What is quoted beyond a branch."""
        return await self.work((), lambda: list(news(self.text, found.end, found.is_heard)))

    async def work(self, items: Sequence[Item], act: Callable[[], T]) -> T:
        """Do something with the text and some items, where others need not wait for it if there is much of it."""
        return await in_thread_if(len(self._asked) > LARGE or len(items) > LONG, act)

    def _of(self, items: Sequence[Item]) -> Quoted:
        at = summary_at(items)
        if self.past and (at is None or logged(self._digests, items[at].text) != self.past):
            return NOT_QUOTED
        shown = at is not None and self._has_before(items[at].text)
        return is_quoted(self.text, items, shown)

    def _has_before(self, summary: str) -> bool:
        """Whether the summary that a branch begins with stands beside the quote: pi has it updated."""
        inner = summary.partition("<summary>")[2].rpartition("</summary>")[0]
        told = (inner or summary.partition("\n")[2]).strip()
        return len(told) >= LEAST_QUOTED and told in self._asked
