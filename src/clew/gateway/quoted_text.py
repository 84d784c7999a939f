"""How a client writes a conversation that it quotes: who speaks there, and how much of a branch it is."""

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import NamedTuple

from clew.clients.voices import is_moving, is_passing
from clew.core import rawjson
from clew.core.items import Item
from clew.errors import BadRequest
from clew.recognition.side_requests import is_continued, summary_at

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
