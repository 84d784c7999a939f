"""Conversations that a client quotes in one text, to have them summed up, and whether a branch is the quoted one."""

import re
from collections import Counter as Tally
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import NamedTuple

from clew.core import rawjson
from clew.core.items import Digests, Item, Scope
from clew.engine.engine import Engine
from clew.errors import BadRequest
from clew.recognition.continuation import SHARED_NAMES
from clew.recognition.proof import logged
from clew.recognition.recognise import HANDOFF
from clew.recognition.side_requests import is_continued, summary_at
from clew.store.trace import Trace
from clew.text.decorations import is_moving, is_passing

LEAST_QUOTED = 200  # characters that must be quoted: what is shorter is said in many conversations
COUNTED_OF_RESULT = 200  # characters of one result that count: a file that many have read is one thing in common
RESULT_CUTS = (2_000, 1_000, 500, 200)  # characters of a long result that are quoted: opencode and pi have the first
PARAGRAPHS, LONG_ENOUGH = 6, 60  # of a quoted conversation, and characters: by which it is looked for
LONGEST_QUOTE = 1_200  # characters of one
AGREED = 8  # characters of an answer to a summary, such as "Ok."
LIKELY = 12  # branches that are compared with a quoted conversation
_CUT = re.compile(r"\s{0,4}\[?(?:\.\.\.|…|[^\]\n]{0,60}truncated)")  # what stands where a result was cut
_WITHIN = ("<conversation>", "</conversation>")  # between which opencode and pi quote
# Who speaks: `[User]: ` in opencode and pi, `# USER` on a line of its own in aider.
_LABEL = re.compile(r"^(?:\[([A-Za-z][A-Za-z ]{0,40})\]:? |# (USER|ASSISTANT)$\n)", re.MULTILINE)
_PARTS = re.compile(r"\n\s*\n|^# (?:USER|ASSISTANT)\n", re.MULTILINE)  # the latter between what aider quotes
_BLANK = re.compile(r"\s*")
_TURN = {"assistant": 0, "tool": 1, "user": 2}  # the order of what comes after a request
_ROLES = {"user": "user", "assistant": "assistant", "tool": "tool", "tool result": "tool"}


class Quotes:
    """Finds the conversations that are quoted."""

    def __init__(self, engine: Engine) -> None:
        self._store = engine.store

    async def find(self, scope: Scope, session: str | None, asked: str) -> tuple[str, list[Item]] | None:
        """The branch that a text quotes, and what of it is quoted."""
        quote = ClientQuote(asked, Digests(self._store.secret, scope))
        text, end, past = quote.text, quote.summary_end, quote.past
        if past and not await self._store.sessions(scope, past.branch):  # purged
            past = None
        if past is None or _goes_on(text, end):
            shared = session is not None and session in await self._store.learned(scope, SHARED_NAMES)
            if session is None or shared:
                found = await self._unnamed(scope, quote)
            else:
                found = await self._named(scope, session, quote)
            if found or past is None:
                return found
        # The summary alone, or, as aider may ask, with what had been left out of it: nothing proves a branch of both.
        _, items = await self.said(scope, past.branch, past.seq)
        return past.branch, [*items, *_news(text, end)]

    async def _named(self, scope: Scope, session: str, quote: "ClientQuote") -> tuple[str, list[Item]] | None:
        own = await self._store.session(scope, session)
        items = (await self.said(scope, own))[1] if own else []
        found = quote.of(items)
        return (own, [*items[: found.last], *_news(quote.text, found.end)]) if own and found.last else None

    async def _unnamed(self, scope: Scope, quote: "ClientQuote") -> tuple[str, list[Item]] | None:
        likely = await self._likely(scope, quote.text)
        least = likely[LIKELY][1] if len(likely) > LIKELY else 0  # of those that are not compared
        found = list[tuple[int, bool, str, list[Item], int]]()
        for branch, count in likely[:LIKELY]:
            trace, items = await self.said(scope, branch)
            last, size, end = quote.of(items)
            # What a model handed over is for those who have its system prompt: who quotes has another one.
            handed_over = any(edit.by.startswith(HANDOFF) for edit in trace.edits)
            if last and (handed_over or count <= least):  # one that was not compared may be as much like it
                return None
            if last:  # where no model was ever asked, a quote was written down
                found.append((size, bool(trace.calls), branch, items[:last], end))
        if not found:
            return None
        *_, best, items, end = max(found, key=lambda one: one[:2])
        # One may be how another began, or a copy of it; but where results are cut, two may differ in the rest.
        if any(not _is_beginning(other, items) for *_, other, _ in found):
            return None
        return best, [*items, *_news(quote.text, end)]

    async def _likely(self, scope: Scope, text: str) -> list[tuple[str, int]]:
        """Branches in which some paragraphs of a text were said, those with most of them first, and how many."""
        paragraphs = [p[:LONGEST_QUOTE] for p in _PARTS.split(text) if len(p) >= LONG_ENOUGH]
        step = max(1, len(paragraphs) // PARAGRAPHS)
        found: set[str] = set()
        for paragraph in paragraphs[::step][:PARAGRAPHS]:
            found |= set(await self._store.search(scope, paragraph, None, PARAGRAPHS))
        tally = Tally(branch for _, branch in await self._store.places(scope, sorted(found)))
        return tally.most_common(LIKELY + 1)

    async def said(self, scope: Scope, branch: str, until: int | None = None) -> tuple[Trace, list[Item]]:
        """A branch, and all that was said on it."""
        trace = await self._store.load(scope, branch, until)
        nodes = await self._store.nodes(scope, [place.id for place in trace.said])
        return trace, [nodes[place.id].item for place in trace.said]


def quoted(text: str) -> str:
    """The conversation in a request to sum it up."""
    begin, end = text.find(_WITHIN[0]), text.rfind(_WITHIN[1])
    return text[begin + len(_WITHIN[0]) : end] if 0 <= begin < end else text


def _summary(text: str) -> tuple[str, int]:
    """The summary that what is quoted begins with, if it does, and where that ends."""
    begins, then = [*islice(_LABEL.finditer(text), 2), None, None][:2]
    if begins is None:
        return "", 0
    end = then.start() if then else len(text)
    first = text[begins.end() : end]
    return (first, end) if is_continued([Item("text", "user", first)]) else ("", 0)


def _goes_on(text: str, place: int) -> bool:
    """Whether more is quoted from here on than an answer that aider makes up itself ("Ok.")."""
    then, more = [*islice(_LABEL.finditer(text, place), 2), None, None][:2]
    return more is not None or (then is not None and len(text) - then.end() > AGREED)


def _is_beginning(one: Sequence[Item], other: Sequence[Item]) -> bool:
    """Whether one of two says all that the other does, as far as it goes."""
    said = ([i.text.strip() for i in items if i.kind == "call" or _is_said(i)] for items in (one, other))
    short, long = sorted(said, key=len)
    return long[: len(short)] == short


class ClientQuote:
    """A conversation that is quoted, and what is said around it."""

    def __init__(self, asked: str, digests: Digests) -> None:
        self.text = quoted(asked)
        self._asked, self._digests = asked, digests
        summary, self.summary_end = _summary(self.text)
        self.past = logged(digests, summary)  # by clew's own line in the summary that it begins with

    def of(self, items: Sequence[Item]) -> "Quoted":
        """How much of a branch this quotes."""
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


class Quoted(NamedTuple):
    """How much of a branch a text quotes."""

    last: int  # of its items, up to which it does; 0: not at all
    size: int  # characters
    end: int  # of what it quotes; what stands behind that is not in the log


NOT_QUOTED = Quoted(0, 0, 0)


def is_quoted(text: str, items: Sequence[Item], since_summary: bool = False) -> Quoted:
    """Up to which of its items a text quotes a branch, each message in order and no other, and how much that is.

    A text may go on where the branch ends, with what nobody has sent yet. Of a call, each client writes what it was
    given in its own way: that must stand somewhere. `since_summary`: the one that a branch begins with is not quoted.
    """
    summary = summary_at(items)
    whole = _quoted_up_to(text, items)
    return max(whole, _quoted_up_to(text, items, summary + 1)) if since_summary and summary is not None else whole


def _quoted_up_to(text: str, items: Sequence[Item], first: int = 0) -> Quoted:
    place = 0
    size = last = 0
    spoken = iter([n for n in range(first, len(items)) if _is_said(items[n]) and items[n].kind == "text"])
    given = iter([n for n in range(first, len(items)) if _is_said(items[n]) and items[n].kind == "result"])
    while label := _LABEL.search(text, place):
        place, role = label.end(), _ROLES.get((label[1] or label[2]).strip().lower())
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
        last = max(last, n + 1)
    ended = label is None  # else the text goes on: that is news, if all of the branch is quoted
    whole = next(spoken, None) is None and (next(given, None) is None or _is_aiders(text))
    last = len(items) if whole else last
    if size < LEAST_QUOTED or not (ended or whole) or not all(_stands(i, text) for i in items[first:last]):
        return NOT_QUOTED
    return Quoted(last, size, label.start() if label else len(text))


def _stands(item: Item, text: str) -> bool:
    """Whether all that a call was given stands in a text; aider has no calls."""
    if item.kind != "call" or _is_aiders(text):
        return True
    try:
        given = rawjson.loads(item.text)
    except BadRequest:
        return item.text in text
    return all(rawjson.dumps(word).decode()[1:-1] in text or word in text for word in _words_in(given))


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


def _news(text: str, place: int) -> Iterator[Item]:
    """What stands from here on, as it is written; calls and results are told as the assistant's."""
    labels = [*_LABEL.finditer(text, place)]
    for label, after in zip_longest(labels, labels[1:]):
        end = after.start() if after else len(text)
        role = _ROLES.get((label[1] or label[2]).strip().lower())
        said = text[label.end() if role in ("user", "assistant") else label.start() : end].strip()
        if said:
            yield Item("text", "user" if role == "user" else "assistant", said)


def _is_aiders(text: str) -> bool:
    """Whether it is written as aider writes it, without results."""
    label = _LABEL.search(text)
    return label is not None and label[2] is not None


def _quoted_of(text: str, place: int, words: str, may_be_cut: bool) -> int:
    """How many characters of these words stand at a place of a text: all, or as many as clients keep of long ones."""
    if text.startswith(words, place) and _ends(text, place + len(words)):
        return len(words)
    for cut in RESULT_CUTS if may_be_cut else ():
        end = place + cut
        if len(words) > cut and text.startswith(words[:cut], place):
            return cut if _ends(text, end) or _CUT.match(text, end) else 0
    return 0


def _is_said(item: Item) -> bool:
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
