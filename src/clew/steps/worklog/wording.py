"""Whole sentences and lines: a text is shortened between them, never inside a word, a name or a path."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence

from clew.clients.voices import own_words
from clew.core.caches import remembers

TEXTS = 4096  # kept as they were read: a fold tells of each at several lengths
ENOUGH = 60  # characters: with less room no sentence is begun
ABBREVIATION_CHARACTERS = 12  # characters in which an abbreviation stands
SENTENCE_REACH = 500  # characters in which the ends of a sentence are looked for
DIVIDES = 3  # marks that make a rule
LEAD = 80  # characters of a sentence that leads to a list and is told with it
LIST_LINES = 4  # lines of a text that may be a list
ENTRY = (400, 300, 220, 160, 120, 90, 70)  # characters of each of them
LEAST_ENTRY = 48  # characters of an entry that tell something: "Updated …" does not
MORE = "…"  # stands where words are left out
_ENDS = re.compile(r"(?<=[.!?])[\"'”’)]*\s+|(?<=[。！？])|\n+")
_CLAUSES = re.compile(r"(?<=[,;:])\s+|(?<!\s)\s+(?=[(—–])|(?<=[，；：、])")
# "14. Mai" is one, too.
_ABBREVIATED = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|no|approx|Mr|Mrs|Ms|Dr|St)|(?:^|\s)(?:\w|\d\d))\.$")
_LEADS = re.compile(r"^.{0,120}[:：]$|^\w+(?: \w+){0,2}[!.]$|^[A-Z]\w*(?:[ /&-]+\w+){0,4}$")
# Words with which somebody says why, or between what they chose.
SAYS_WHY = re.compile(
    r"(?i)\b(?:because|root cause|cause[sd]?|turns out|the (?:issue|problem|bug|reason|fix|culprit)|decid\w+|decision"
    r"|instead|rather than|chose|chosen|choice|options?|alternatives?|approach(?:es)?|recommend\w*|prefer\w*"
    r"|trade-?offs?|pros|cons|downsides?|go(?:ing)? with|so that|since|otherwise|actually|mistake|wrong|broke"
    r"|regression|weil|deshalb|statt|parce que|donc|plutôt|porque|en vez|потому|вместо)\b"
    r"|因为|所以|而不是|なぜなら|代わり"
)
_ENTRY = re.compile(r"(?:[-*•]|\d{1,2}[.)])\s+\S")
_STOPS = re.compile(r"(?<=[.!?])\s+|\n+")
_NUMBERED = re.compile(r"\W{0,4}\d{1,2}(?:[.):]|\s*\|)\s")
_CHOSEN = re.compile(r"(?<![\w./:-])#?\d{1,2}(?![\w/:%-]|\.\d)")
_NEXT = re.compile(
    r"(?i)^(?:(?:now|next|first|then|good|great|ok(?:ay)?|perfect|and|also)[,.!]? )*"
    r"(?:let me|let['’]?s|starting with|lass(?:t)? (?:mich|uns)|laisse[zr]?[- ]moi|d[ée]jame|давай(?:те)?|让我)"
    r"\b.{0,120}$"  # but "I'll use a cache of 512" is a decision
)
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


def unannounced(text: str) -> str:
    """A text without what only says what comes next: once it was done, that is told by what was done."""
    kept = [s for s in sentences(text) if not s.endswith((":", "：")) and (not _NEXT.match(s) or SAYS_WHY.search(s))]
    return " ".join(kept)


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


def gist(text: str, most: int) -> str:
    """The first sentence that says something, then those that say why, then the others; in their order.

    A sentence that leads to a list stands with the first entry; a cheer or a heading says nothing. Of a list in which
    each entry has room for a few words, no entry is left out.
    """
    if told := _entries(text, most):
        return told
    parts, why = _parts(text)
    if not parts or sum(map(len, parts)) + len(parts) <= most:
        return " ".join(parts) or opening(text, most)
    kept, left = set[int](), most - len(MORE) - 1
    for i in sorted(range(len(parts)), key=lambda i: (i > 0, not why[i], i)):
        if len(parts[i]) < left:
            kept.add(i)
            left -= len(parts[i]) + 1
        elif not i:
            return words(parts[0], most)
    return some_of(parts, kept)


def some_of(parts: Sequence[str], kept: Container[int]) -> str:
    """Some of the sentences of a text, in their order, with `…` where others are left out."""
    told = [part if i in kept else MORE for i, part in enumerate(parts)]
    return " ".join(part for i, part in enumerate(told) if part != MORE or i == 0 or told[i - 1] != MORE)


@remembers(TEXTS)
def _parts(text: str) -> tuple[list[str], list[bool]]:
    """The sentences that say something, each with what leads to it, and whether they say why."""
    parts, lead = list[str](), ""
    for part in map(on_one_line, sentences(text)):
        if _LEADS.match(part):
            lead = part if part.endswith((":", "：")) and len(part) <= LEAD else ""
        else:
            parts.append(f"{lead} {part}" if lead else part)
            lead = ""
    return parts, [bool(SAYS_WHY.search(part)) for part in parts]


def _entries(text: str, most: int) -> str:
    """What stands before a list in a sentence, and every entry by its first words; nothing if they have no room."""
    lines = [on_one_line(line) for line in text.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if _ENTRY.match(line)), len(lines))
    entries = [line for line in lines if _ENTRY.match(line)]
    if len(text) <= most or len(entries) < LIST_LINES - 1:
        return ""
    before = [line for line in lines[:first] if not _LEADS.match(line) or line.endswith((":", "："))]
    lead = words(before[-1], most // 3) if before else ""
    each = (most - len(lead)) // len(entries) - 1
    return " ".join([lead, *(words(entry, each) for entry in entries)]).strip() if each >= LEAST_ENTRY else ""


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


def outline(text: str, most: int) -> str:
    """Every line of a text by its first words, so that of a list each entry is told; its first lines, if too many."""
    text = text.strip()
    if len(text) <= most:
        return text
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    cap = next((c for c in ENTRY if sum(min(len(line), c) + 1 for line in lines) <= most), 0)
    if len(lines) < LIST_LINES or not cap:
        return first_lines(text, most)
    return "\n".join(f"{_indent(line)}{words(line, max(ENOUGH, cap - len(_indent(line))))}" for line in lines)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def around(body: str, lines: Sequence[str]) -> str:
    """The sentences, or the lines, of a text that some pieces of it were cut from."""
    start = body.find(lines[0])
    stop = body.find(lines[-1], start) + len(lines[-1])
    if start < 0 or stop < start:
        return "\n".join(lines)
    ends = [m.end() for m in _STOPS.finditer(body, max(0, start - SENTENCE_REACH), start)]
    after = _STOPS.search(body, stop, stop + SENTENCE_REACH)
    return body[ends[-1] if ends else max(0, start - SENTENCE_REACH) : after.start() if after else stop].strip()


def chooses(answer: str, text: str) -> bool:
    """Whether an answer names entries of a numbered list by their numbers."""
    numbers = {n for line in text.splitlines() if (n := _NUMBERED.match(line))}
    return len(numbers) >= LIST_LINES - 1 and _CHOSEN.search(answer) is not None


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
