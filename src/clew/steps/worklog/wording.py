"""Whole sentences and lines: a text is shortened between them, never inside a word, a name or a path."""

import re
from collections.abc import Iterable, Iterator, Sequence

from clew.clients.voices import own_words
from clew.core.caches import remembers

TEXTS = 4096  # kept as they were read: a fold tells of each at several lengths
ENOUGH = 60  # characters: with less room no sentence is begun
ABBREVIATION_CHARACTERS = 12  # characters in which an abbreviation stands
SENTENCE_REACH = 500  # characters in which the ends of a sentence are looked for
DIVIDES = 3  # marks that make a rule
LEAD = 80  # characters of a sentence that leads to a list and is told with it
MORE = "…"  # stands where words are left out
_ENDS = re.compile(r"(?<=[.!?])[\"'”’)]*\s+|(?<=[。！？])|\n+")
_CLAUSES = re.compile(r"(?<=[,;:])\s+|(?<!\s)\s+(?=[(—–])|(?<=[，；：、])")
# "14. Mai" is one, too.
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|no|approx|Mr|Mrs|Ms|Dr|St)|(?:^|\s)(?:\w|\d\d))\.$")
_STOPS = re.compile(r"(?<=[.!?])\s+|\n+")
_FENCE = re.compile(r"^\s*(?:```|~~~)\S*\s*$")
_RULES = ("***", "___", "===")
_TITLE = re.compile(r"^#{1,6}\s+\S|^\s*(?:\d+[.)]\s*)?\*\*[^*]+\*\*\s*$")
_MARKUP = re.compile(r"^#{1,6}\s+|(?<!\*)\*\*(?!\*)|(?<!_)__(?!_)")


def plain(text: str) -> str:
    """Prose without the marks of bold type and the like; a heading leads to what stands under it."""
    return "\n".join(_plain(line) for line in text.splitlines() if not _FENCE.match(line) and not _rules_off(line))


def _rules_off(line: str) -> bool:
    """Whether a line only divides: a rule, or what stands between the head and the rows of a table."""
    marks = line.strip()
    between = not set(marks) - set("-:| ")
    return len(marks) >= DIVIDES and (between or (marks[:DIVIDES] in _RULES and len(set(marks)) == 1))


def _plain(line: str) -> str:
    said = _MARKUP.sub("", line).rstrip()
    return f"{said}:" if _TITLE.match(line) and said[-1:] not in ":.!?…：。！？" else said


@remembers(TEXTS)
def prose(text: str) -> str:
    """Words without the code that stands between them, unless there is nothing else."""
    said = plain(own_words(text)).strip()
    return said or plain(text).strip()


@remembers(TEXTS)
def sentences(text: str) -> Sequence[str]:
    """The sentences and lines of a text."""
    return tuple(_sentences(text))


def _sentences(text: str) -> Iterator[str]:
    begun, at = list[str](), 0
    for end in _ENDS.finditer(text):
        part, at = text[at : end.start()].strip(), end.end()
        if not part:
            continue
        begun.append(part)
        if "\n" in end[0] or not _ABBREVIATED.search(part[-ABBREVIATION_CHARACTERS:]):
            yield " ".join(begun)
            begun = []
    if rest := " ".join([*begun, text[at:].strip()]).strip():
        yield rest


def on_one_line(text: str) -> str:
    """The same words with single spaces between them."""
    return " ".join(text.split())


def opening(text: str, most: int) -> str:
    """As many of the first sentences as have room, on one line; of a long first one its first words."""
    if len(text) <= most and "\n" not in text:
        return text.strip()
    told = ""
    for part in sentences(text):
        longer = f"{told} {on_one_line(part)}" if told else on_one_line(part)
        if len(longer) > most:
            return f"{told} {MORE}" if told else words(longer, most)
        told = longer
    return told


def words(text: str, most: int) -> str:
    """The first words, up to the end of a clause if there is one in their second half."""
    text = on_one_line(text)
    if len(text) <= most:
        return text
    clauses = [m.start() for m in _CLAUSES.finditer(text, most // 2, most)]
    cut = clauses[-1] if clauses else text.rfind(" ", 0, most)
    return f"{text[:cut].rstrip()} {MORE}" if cut > 0 else MORE


def first_lines(text: str, most: int) -> str:
    """As many of the first lines as have room, as they are; `…` where there are more."""
    text = text.strip()
    if len(text) <= most:
        return text
    kept, left = list[str](), most - len(MORE) - 1
    for line in text.splitlines():
        if len(line) + 1 > left:
            if left > ENOUGH and (part := opening(line, left - len(MORE) - 1)) != MORE:
                kept.append(part.removesuffix(MORE).rstrip())
            break
        left -= len(line) + 1
        kept.append(line.rstrip())
    told = "\n".join(kept).rstrip()
    return f"{told}\n{MORE}" if told else opening(text, most)


def around(body: str, lines: Sequence[str]) -> str:
    """The sentences, or the lines, of a text that some pieces of it were cut from."""
    start = body.find(lines[0])
    stop = body.find(lines[-1], start) + len(lines[-1])
    if start < 0 or stop < start:
        return "\n".join(lines)
    ends = [m.end() for m in _STOPS.finditer(body, max(0, start - SENTENCE_REACH), start)]
    after = _STOPS.search(body, stop, stop + SENTENCE_REACH)
    return body[ends[-1] if ends else max(0, start - SENTENCE_REACH) : after.start() if after else stop].strip()


def both_ends(text: str, most: int) -> str:
    """The first and the last lines of a text: a long request begins with what is wanted and ends with how."""
    text = text.strip()
    if len(text) <= most:
        return text
    last, used = list[str](), 0
    for line in reversed(text.splitlines()):
        used += len(line) + 1
        if used > most // 3:
            break
        last.append(line.rstrip())
    end = "\n".join(reversed(last)).strip()
    return f"{first_lines(text, most - len(end) - 1)}\n{end}" if end else first_lines(text, most)


def below(root: str, text: str) -> str:
    """A text in which paths below a folder are told from there."""
    return re.sub(rf"(?<![\w./:~-]){re.escape(root)}(?=[\w.])", "", text) if root and root in text else text


def indented(text: str, by: str = "  ") -> str:
    """A text under a line that leads it: all of its lines but the first further in."""
    return f"\n{by}".join(text.splitlines())  # at every line end there is: none must hide inside a quotation


def listed(names: Iterable[str], most: int) -> str:
    """Names with commas between them, `and N more` at the end where they have no room."""
    all_names = list(names)
    told = list[str]()
    used = 0
    for name in all_names:
        used += len(name) + 2
        if told and used > most:
            return f"{', '.join(told)} and {len(all_names) - len(told)} more"
        told.append(name)
    return ", ".join(told)


CLAUSE = 300  # characters: of a longer sentence each clause is told by itself
PIECE = 60  # characters of a clause at least
FEW_SIGNS = 24  # characters of a sentence that says nothing without the one before it
_BULLET = re.compile(r"^(?:[-*•>]+\s+)+")
_CELLS = re.compile(r" ?\| ?")  # of what stands on one line
_SAYS = re.compile(r"\w")


@remembers(TEXTS)
def lone_sentences(text: str) -> Sequence[str]:
    """The sentences of a text as each may stand by itself: a short one goes with the one before it, what leads to a
    list with its first entry, and of a very long one each clause stands alone."""
    found, lead = list[str](), ""
    for raw in _told(text):
        part = f"{lead} {raw}" if lead else raw
        lead = part if part.endswith((":", "：")) and len(part) <= LEAD else ""
        if lead:
            continue
        if found and min(len(part), len(found[-1])) <= FEW_SIGNS and len(found[-1]) + len(part) < CLAUSE:
            found[-1] += f"{'; ' if found[-1][-1:].isalnum() else ' '}{part}"
        else:
            found.append(part)
    if lead:
        found.append(lead)
    return tuple(piece for part in found for piece in _clauses(part))


def _told(text: str) -> Iterator[str]:
    for part in dict.fromkeys(sentences(text)):  # what is said twice in one text is said
        part = on_one_line(part)
        part = _CELLS.sub(" | ", part).strip(" |") if part.startswith("|") else _BULLET.sub("", part)
        if _SAYS.search(part):
            yield part


def once(text: str) -> str:
    """A line without the sentences that it repeats."""
    return " ".join(dict.fromkeys(sentences(on_one_line(text))))


def _clauses(text: str) -> Iterator[str]:
    at = 0
    while len(text) - at > CLAUSE:
        ends = [m.end() for m in _CLAUSES.finditer(text, at + PIECE, at + CLAUSE)]
        stop = ends[-1] if ends else text.rfind(" ", at + PIECE, at + CLAUSE) + 1 or at + CLAUSE
        yield text[at:stop].strip()
        at = stop
    yield text[at:].strip()
