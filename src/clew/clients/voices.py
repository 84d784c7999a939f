"""Who said this: the person, the client, clew, the assistant or a tool, part by part.

Clients put words of their own under the user's role, and so does clew. What they are known by stands in the files of
this folder; from here everybody has the answer, and nobody else looks at a text for it.
"""

import re
import sys
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace as with_
from itertools import chain
from typing import Literal, NamedTuple

from clew.clients.known import BEHIND_SUMMARIES, CLIENTS, MESSAGES, RESULT_FRAMES, SENTENCES, WRAPS, KnownClient, slug
from clew.core.caches import per_object, remembers
from clew.core.items import Item
from clew.core.pointers import without_marks

SaidBy = Literal["person", "client", "clew", "assistant", "tool"]
# What a part is. `pasted`: in a message longer than people type; `copy`: said before, and sent again beside a summary.
PERSON = frozenset({"typed", "fenced", "quoted", "pasted", "copy"})
TOOL = frozenset({"printed", "observed", "framed", "result"})
CLEW = frozenset({"status", "stand-in", "left branch"})
ASSISTANT = frozenset({"answer", "call"})
ACCOUNTS = frozenset({"summary", "left branch", "stand-in"})  # what somebody tells of what was said
# What a client says of its own. All else that it puts there it passes on: files, outputs, what a model wrote.
BOILERPLATE = frozenset(
    "reminder environment instructions skill listing command filler interruption status summary-request".split()
) | {"title-request"}
PASTE = 2_000  # characters: a longer message was not all typed
INDENT = 80  # characters before a mark in which the words would stand that it is amid
FRAME_END = 400  # characters at the end of a result in which its client says how the command ended
REMINDER = 4_000  # characters of a reminder at the end of a result, at most: a page may have its opening anywhere
FIRST = 4  # items of a history that begins with a summary: where the client runs, the summary, what answers it

# After what was typed; to the end it is what the command printed that the user ran.
OWN_COMMAND = "\n\n[I ran a command myself: "
ATTACHED = "[attachment"  # as the label of what a client attached begins
LEFT_BRANCH = "[what was done on a branch that was left]"
RAN_COMMAND = "[the user ran a command: "
FRAMED = "[data: "  # how what a tool said is framed where no call is left that it could answer

_BY_OPENING = {wrap.opening: wrap for wrap in WRAPS}
_OPENING = re.compile(
    "|".join(map(re.escape, sorted((w.opening for w in WRAPS if not w.around), key=len, reverse=True)))
)
_CLOSINGS = frozenset(wrap.closing for wrap in WRAPS if wrap.closing and not wrap.around)
_ENDLESS = tuple(wrap for wrap in WRAPS if wrap.endless)
_LEADING = tuple(message for message in MESSAGES if message.leads)
_LEADING_WRAPS = tuple(wrap for wrap in WRAPS if wrap.leads)
_PASSING = tuple(wrap for wrap in WRAPS if wrap.passing)
_AROUND = re.compile("|".join(re.escape(mark) for w in WRAPS if w.around for mark in (w.opening, w.closing)))
_BEGINNINGS = tuple(message.begins for message in MESSAGES)
_ANSWERS = tuple(message.begins for message in MESSAGES if message.after)  # to an act that stands in words before it
_MOVING = tuple(message.begins for message in MESSAGES if message.moving)
_TAG = re.compile(r"(?i)</?[a-z_-]{1,40}>")
_FENCE = re.compile(r"[ \t]{0,3}(?:```|~~~)")
_FENCES = re.compile(r"^[ \t]{0,3}(?:```|~~~)", re.MULTILINE)


class VoicePart(NamedTuple):
    """A stretch of a text and what it is."""

    kind: str
    start: int
    stop: int

    @property
    def speaker(self) -> SaidBy:
        """Who said it."""
        if self.kind in PERSON:
            return "person"
        if self.kind in TOOL:
            return "tool"
        return "clew" if self.kind in CLEW else "assistant" if self.kind in ASSISTANT else "client"


def attributed(items: Sequence[Item], client: str, begins: bool) -> list[Item]:
    """Items of a client with what their own text does not say: words that only here are its own, what is attached in
    several parts, and copies.

    `begins`: the history begins with the first of them.
    """
    found = [_attributed(items, n, client, begins and not n) for n in range(len(items))]
    for start, stop, kind in _attachments(found):
        found[start:stop] = [with_(item, voice=kind) for item in found[start:stop]]
    for n in range(1, min(len(found), FIRST)) if begins else ():
        if (kind := _answered_kind(found[n], client)) and typed(found[n - 1]):
            found[n - 1] = with_(found[n - 1], voice=kind)
    summed_up = next((n for n, item in enumerate(found) if _is_summary(item)), 0) if begins else 0
    return [with_(item, voice="copy") if n < summed_up and typed(item) else item for n, item in enumerate(found)]


def by_message(items: Sequence[Sequence[Item]], client: str, begins: bool) -> list[list[Item]]:
    """The same for the items of each of several messages."""
    said = iter(attributed([item for message in items for item in message], client, begins))
    return [[next(said) for _ in message] for message in items]


def _attributed(items: Sequence[Item], n: int, client: str, is_first: bool) -> Item:
    item = items[n]
    if item.kind != "text" or item.voice:
        return item
    if item.role == "user" and (is_first or n) and item.text.lstrip().startswith(_ANSWERS):
        before = items[n - 1].text if n and items[n - 1].role == "assistant" else ""
        rows = (row for row in MESSAGES if row.after and row.begins_in(item.text.lstrip()))
        return with_(item, voice="typed") if any(not row.after.search(before) for row in rows if row.after) else item
    if len(item.text) > PASTE:
        return item
    said = (row for row in SENTENCES.get(item.text.strip(), ()) if row.role == item.role)
    row = next((row for row in said if row.client == slug(client) and (is_first or not row.first)), None)
    if row is None or (row.before and (n + 1 == len(items) or items[n + 1].text.strip() != row.before)):
        return item
    return with_(item, voice=row.kind)


def _answered_kind(item: Item, client: str) -> str:
    """What a client has answered with words of its own, where these tell."""
    rows = SENTENCES.get(item.text.strip(), ()) if item.kind == "text" and len(item.text) < PASTE else ()
    return next((row.answers for row in rows if row.role == item.role and row.client == slug(client)), "")


def _attachments(items: Sequence[Item]) -> Iterator[tuple[int, int, str]]:
    """Parts of messages that belong to something attached which an earlier part began, and of what kind it is."""
    for n, item in enumerate(items):
        if item.role != "user" or item.kind != "text" or not (begun := _begun(item.text)):
            continue
        kind, closing, most = begun
        end = min(n + 1 + most, len(items))
        stop = next((m for m in range(n + 1, end) if items[m].opens or items[m].kind not in ("text", "media")), end)
        last = (m + 1 for m in range(stop - 1, n, -1) if closing and closing in items[m].text)
        yield n + 1, next(last, stop), kind


def _begun(text: str) -> tuple[str, str, int] | None:
    """What a text begins and does not end: its kind, how it will end, and how many texts it goes on for at most."""
    for wrap in _ENDLESS:
        if wrap.opening in text and not (wrap.closing and wrap.closing in text):
            return (wrap.kind, wrap.closing, sys.maxsize) if any(p.kind == wrap.kind for p in _segments(text)) else None
    said = text.lstrip()
    messages = ((row.kind, row.leads) for row in _LEADING if row.begins_in(said))
    wraps = ((wrap.kind, wrap.leads) for wrap in _LEADING_WRAPS if said.startswith(wrap.opening))
    return next(((kind, "", most) for kind, most in chain(messages, wraps)), None)


def _is_summary(item: Item) -> bool:
    return item.role == "user" and item.kind == "text" and kind_of(item) == "summary"


@per_object
def parts_of(item: Item) -> tuple[VoicePart, ...]:
    """Who said what of an item, from its beginning to its end."""
    end, whole = len(item.text), item.voice
    match item.kind, item.role:
        case "summary", _:
            whole = "stand-in"
        case "call", _:
            whole = "call"
        case "media", "user" if not item.text and not whole:
            whole = "pasted"  # what clients attach of their own is text
        case ("result" | "media" | "opaque", _) | (_, "tool"):
            whole = "result"
        case _, "assistant" if not whole:
            whole = "filler" if is_moving(item.text) or _is_filler(item) else "answer"
        case _, "system" if not whole:
            return tuple(part._replace(kind="system") if part.kind in PERSON else part for part in _read(item.text, ""))
    if whole in ("", "copy"):
        return tuple(_read(item.text, whole))
    return (VoicePart(whole, 0, end),)


def _is_filler(item: Item) -> bool:
    return len(item.text) < PASTE and any(
        row.everywhere and row.role == item.role for row in SENTENCES.get(item.text.strip(), ())
    )


def typed(item: Item) -> str:
    """What a person said in this item: nothing if a program did."""
    return _typed(item) if item.role == "user" and item.kind == "text" else ""


@per_object
def _typed(item: Item) -> str:
    return "".join(item.text[part.start : part.stop] for part in parts_of(item) if part.kind in PERSON).strip()


def instructions_beside(item: Item) -> str:
    """What a client says, behind all that a person typed in the same item, of how to go about it; what looks like that
    elsewhere may be from a page or a file."""
    found = parts_of(item) if item.role == "user" and typed(item) else ()
    last = [part for part in found if item.text[part.start : part.stop].strip()][-1:]
    return untagged("".join(item.text[part.start : part.stop] for part in last if part.kind == "instructions")).strip()


def is_program_made(item: Item) -> bool:
    """Whether no person said any of it, whatever role it comes under; an empty text is nobody's."""
    return not typed(item) and bool(item.text) and not item.text.isspace()


def kind_of(item: Item) -> str:
    """What an item is: what a person said, if there is any of it, else what most of it is."""
    found = parts_of(item)
    if any(part.kind in PERSON for part in found):
        return "typed"
    return max(found, key=lambda part: part.stop - part.start).kind if found else ""


def attached(item: Item) -> str:
    """What a client passes on beside what a person said: files, pages, what a command printed."""
    kept = (part for part in parts_of(item) if part.kind not in BOILERPLATE and part.speaker != "person")
    return "\n".join(item.text[part.start : part.stop].strip() for part in kept)


def passed_on(item: Item) -> str:
    """What an item says without what a client says of its own, and without the tags around what it passes on."""
    if item.kind == "result":
        return printed(item.text)
    found = parts_of(item)
    kept = (part for part in found if part.kind not in BOILERPLATE)
    text = "".join(item.text[part.start : part.stop] for part in kept)
    return text if item.role in ("assistant", "tool") or item.kind != "text" else untagged(text)


def printed(text: str) -> str:
    """What a tool printed, of the text of its result, without what a client puts around that."""
    start, stop = _printed(text)
    return text[start:stop]


def _printed(text: str) -> tuple[int, int]:
    start, stop = 0, _before_reminders(text)
    for frame in RESULT_FRAMES:
        begins = frame.before.match(text, start, stop)
        if begins and (ends := frame.after.search(text, max(begins.end(), stop - FRAME_END), stop)):
            start, stop = begins.end(), ends.start()
    return start, stop


def _before_reminders(text: str) -> int:
    """Where all that a tool printed ends, and its client says something of its own behind it, in lines of its own."""
    stop = len(text)
    while stop and text[stop - 1].isspace():
        stop -= 1
    while wrap := next((wrap for wrap in _PASSING if text.endswith(wrap.closing, 0, stop)), None):
        start = text.rfind(wrap.opening, max(0, stop - REMINDER), stop)
        if start < 0 or text[max(0, start - INDENT) : start].rpartition("\n")[2].strip():
            break
        while start and text[start - 1].isspace():
            start -= 1
        stop = start
    return stop


def summary_alone(text: str) -> str:
    """What was written of a summary, without what its client says behind it, its tags, and clew's own marks."""
    stops = [at for behind in BEHIND_SUMMARIES if (at := text.rfind(f"\n{behind}")) >= 0]
    return without_marks(untagged(text[: min(stops, default=len(text))]))


def untagged(text: str) -> str:
    """Text without the tags in which programs wrap what they say: their names are nobody's."""
    return _TAG.sub(" ", text) if "</" in text else text


def surroundings(item: Item) -> list[str]:
    """What a client says of where it runs, in marks of its own; not what stands in those of something else."""
    return [item.text[part.start : part.stop] for part in parts_of(item) if part.kind == "environment"]


def lasting(text: str) -> str:
    """Text without what a client puts beside it in one turn and takes away in another; all of it if that is all."""
    return _without_passing(text).strip() or text.strip()


def is_passing(text: str) -> bool:
    """Whether there is nothing but what comes and goes."""
    return not _without_passing(text).strip()


def is_moving(text: str) -> bool:
    """Whether it stands before the newest question, whichever that is."""
    return text.startswith(_MOVING)


def parts_not_by_client(item: Item) -> tuple[VoicePart, ...]:
    """The parts of an item that are not its client's own words, nor clew's: in results, too, clients say things."""
    parts: Sequence[VoicePart] = parts_of(item)
    if item.kind == "result":
        start, stop = _printed(item.text)
        inner = (p._replace(start=max(p.start, start), stop=min(p.stop, stop)) for p in _segments(item.text))
        parts = [part for part in inner if part.start < part.stop]
    return tuple(p for p in parts if p.kind not in BOILERPLATE and p.kind != "system" and p.speaker != "clew")


def undecorated(text: str) -> str:
    """Text without what clients wrap around messages and take away again."""
    outside = "".join(text[part.start : part.stop] for part in _segments(text) if not part.kind)
    return _AROUND.sub("", outside).strip()


def own_words(text: str) -> str:
    """What stands between two fences is somebody else's, or a program's; all of the rest."""
    kept, inside = list[str](), False
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)


def client_of(prompt: str) -> str:
    """The name of the client that a system prompt is of; nothing where none is known by it."""
    found = known_client(prompt)
    return found.name if found else ""


def known_client(prompt: str) -> KnownClient | None:
    """The client that a system prompt is of."""
    return _client_of(prompt[:PROMPT_HEAD])


@remembers(64)  # each turn asks several times, and dozens of patterns look through all of it
def _client_of(head: str) -> KnownClient | None:
    return next((client for client in CLIENTS if client.prompt.search(head)), None)


PROMPT_HEAD = 4_000  # characters of a system prompt in which an agent says who it is


def _without_passing(text: str) -> str:
    if "</" not in text:  # what every closing has, and most text has not
        return text
    for wrap in _PASSING:
        kept, at = [], 0
        while (start := text.find(wrap.opening, at)) >= 0 and (stop := text.find(wrap.closing, start)) >= 0:
            kept.append(text[at:start])
            at = stop + len(wrap.closing)
        text = "".join([*kept, text[at:]]) if at else text
    return text


# --- a text under the user's role, part by part -----------------------------------------------------------------------


def _read(text: str, voice: str) -> Iterator[VoicePart]:
    ran = text.find(OWN_COMMAND)
    until = len(text) if ran < 0 else ran
    found = list(_segments(text[:until] if ran >= 0 else text))
    left = "".join(text[part.start : part.stop] for part in found if not part.kind).strip()
    row = next((row for row in MESSAGES if row.begins_in(left)), None) if left.startswith(_BEGINNINGS) else None
    made = row.kind if row else ""
    if row and row.ends and len(found) == 1 and (at := row.typed_at(text[:until])) < until:
        found = [VoicePart(made, 0, at), VoicePart("typed", at, until)]
    beside, inside = next((part.kind for part in found if part.kind), ""), False
    for part in found:
        beside = part.kind or beside
        if part.kind or made:
            yield part if part.kind else part._replace(kind=made)
        elif beside and text[part.start : part.stop].isspace():
            yield part._replace(kind=beside)  # nobody said what only keeps two wraps apart
        else:
            yield from _split_at_quotes(text, part, voice or ("pasted" if len(left) > PASTE else "typed"), inside)
            if beside:
                fences = sum(_FENCE.match(line) is not None for line in text[part.start : part.stop].splitlines())
                inside = inside is not bool(fences % 2)
    if ran >= 0:
        yield VoicePart("printed", ran, len(text))


def _segments(text: str) -> Iterator[VoicePart]:
    """What clients wrap, each with its kind, and what stands outside of that, without one."""
    at, before = 0, ""
    for wrap in (*_wraps(text), VoicePart("", len(text), len(text))):
        closed = _closed(text, at, wrap.start) if before else at
        if closed > at:
            yield VoicePart(before, at, closed)
        if wrap.start > closed:
            yield VoicePart("", closed, wrap.start)
        if wrap.kind:
            yield wrap
        at, before = wrap.stop, wrap.kind


def _closed(text: str, start: int, stop: int) -> int:
    """Where what stands behind a wrap begins: behind all closings, for what one printed may have closed another."""
    ends = (text.rfind(closing, start, stop) + len(closing) for closing in _CLOSINGS if closing in text[start:stop])
    return max(ends, default=start)


def _wraps(text: str) -> Iterator[VoicePart]:
    """Each wrap with its marks, up to the last closing of its name: before that, it is text that a program shows.

    What is in one opens and closes no other. Nobody was seen to type between two of one name in one text.
    """
    if "</" not in text and not any(wrap.opening in text for wrap in _ENDLESS):  # most text has nothing of it
        return
    look, stop, last = 0, 0, dict[str, int]()
    fences = [line.start() for line in _FENCES.finditer(text)]
    while found := _OPENING.search(text, look):
        wrap, start, look = _BY_OPENING[found[0]], found.start(), found.end()
        if wrap.closing not in last:
            last[wrap.closing] = text.rfind(wrap.closing) if wrap.closing else -1
        end = last[wrap.closing]
        if (shown := _shown(fences, start)) and not wrap.endless:
            look = shown  # a person shows it between two fences: before them, no program spoke in this text
            continue
        before = text[max(stop, start - INDENT) : start].rpartition("\n")[2]
        if before.strip() or (end < look and not wrap.endless):
            continue  # somebody speaks of it: clients begin a line with theirs
        look = stop = end + len(wrap.closing) if end >= look else len(text)
        fences = []
        yield VoicePart(wrap.kind, start, look)


def _shown(fences: Sequence[int], at: int) -> int:
    """Where the fence closes that a place stands behind; 0 if it stands behind none that does."""
    n = bisect_left(fences, at)
    return fences[n] if n % 2 and n < len(fences) else 0


def _split_at_quotes(text: str, part: VoicePart, kind: str, inside: bool) -> Iterator[VoicePart]:
    """What a person said, what they quoted or put between fences apart; the marks of a client around it are its own.

    `inside`: it begins between two fences.
    """
    at, now = part.start, kind
    begun = at
    for line in text[part.start : part.stop].splitlines(keepends=True):
        is_fence = _FENCE.match(line) is not None
        is_now = "fenced" if inside or is_fence else "quoted" if line.startswith(">") else kind
        inside = inside is not is_fence
        if is_now != now:
            if at > begun:
                yield from _unmarked(text, VoicePart(now, begun, at))
            begun, now = at, is_now
        at += len(line)
    if at > begun:
        yield from _unmarked(text, VoicePart(now, begun, at))


def _unmarked(text: str, part: VoicePart) -> Iterator[VoicePart]:
    at = part.start
    for mark in _AROUND.finditer(text, part.start, part.stop):
        if mark.start() > at:
            is_blank = text[at : mark.start()].isspace()
            yield VoicePart("command" if is_blank else part.kind, at, mark.start())
        yield VoicePart("command", mark.start(), mark.end())
        at = mark.end()
    if part.stop > at:
        is_blank = at > part.start and text[at : part.stop].isspace()
        yield VoicePart("command" if is_blank else part.kind, at, part.stop)
