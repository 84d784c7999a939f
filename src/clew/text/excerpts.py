"""Excerpts: some lines of an original, bounded in size, with a note of what is left out and how to get it."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from clew.core.items import SHORT, Node
from clew.core.pointers import pointer
from clew.errors import BadRequest, NotFound
from clew.text.framing import neutral
from clew.text.search import is_made, wording

SIZE = 8_000  # characters
AROUND = 2  # lines shown before and after one that matches
EXCERPT_LINE = 1_000  # characters shown of one line where not all can be
NEXT = 40  # lines that a note proposes to recall next
PATTERN_CHARACTERS = 200  # characters of a pattern
REACH = 40  # characters that `\w+` and its like may span
GREEDY = 1  # of those in one piece of a pattern: more of them, or groups, could take for ever

CLASS = r"\[\^?(?:[^\]\[\\^&~|-]|-(?!-))+\]"
ATOM = rf"(?:\\[wdsWDSbB]|\\[^\w\s]|{CLASS}|[^\\\[\](){{}}*+?|])"
SIMPLE = re.compile(rf"(?:{ATOM}(?:[*+?]\??)?)+")
QUANTIFIED = re.compile(rf"({ATOM})([*+?]?)\??")
GAP = re.compile(r"(?<!\\)\.[*+]\??")

# How the line begins that says who speaks, wherever a line may begin.
_HEADS = re.compile(r"(?:(?<=[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])|\A)──(?=\s{0,9}[0-9a-f]{6,32}\s)")

Matches = Callable[[str], bool]


def full_text(nodes: Sequence[Node]) -> str:
    """The text of one node, or of a span with a line before each node that says what it is."""
    return wording(nodes[0].item) if len(nodes) == 1 else "\n".join(map(headed, nodes))


def headed(node: Node) -> str:
    """A line that says who speaks, and the text of a node, none of whose lines looks like that one."""
    item = node.item
    head = f"── {node.id[:SHORT]} {'program' if is_made(item) else item.role} {item.kind} {' '.join(item.name.split())}"
    return f"{head.rstrip()}\n{_HEADS.sub('--', wording(item))}"


def excerpt(text: str, recall: str, lines: str = "", pattern: str = "", size: int = SIZE) -> str:
    """At most about `size` characters: the lines asked for, or those around what matches, with their numbers."""
    every = text.split("\n")
    if not lines and not pattern and len(text) <= size:
        return text
    first, last = span(lines, len(every))
    wanted = range(first, min(last, len(every)) + 1)
    if not wanted:
        raise NotFound(f"there are only {len(every):,} lines, none of them in {lines}")
    if pattern:
        hits = matching(every[first - 1 : last], pattern, first)
        if not hits:
            return f"[no line of {len(wanted):,} matches {pattern}; {pointer(recall)} has {len(every):,} lines]"
        around = {n for hit in hits for n in range(hit - AROUND, hit + AROUND + 1)}
        chosen = sorted(around & set(wanted))
    else:
        chosen = list(wanted)
    return _shown(every, chosen, recall, size, pattern)


def _shown(every: Sequence[str], chosen: Sequence[int], recall: str, size: int, pattern: str) -> str:
    """Numbered lines while they fit; gaps are marked, and what is left out at the end is told."""
    out: list[str] = []
    before = chosen[0] - 1
    for n in chosen:
        told = f"{n}: {_clipped(every[n - 1], min(EXCERPT_LINE, size))}"
        if n != before + 1:
            told = f"…\n{told}"
        size -= len(told) + 1
        if size < 0 and out:
            out.append(_left_out([c for c in chosen if c >= n], len(every), recall, pattern))
            return "\n".join(out)
        out.append(told)
        before = n
    if (first := chosen[0]) > 1 or before < len(every):
        shown = f"lines {first}-{before}" if before > first else f"line {first}"
        out.append(f"[{'from ' if pattern else ''}{shown} of {len(every):,}; {pointer(recall)}]")
    return "\n".join(out)


def _left_out(rest: Sequence[int], all: int, recall: str, pattern: str) -> str:
    first, last = rest[0], rest[-1]
    what = (
        f"{len(rest):,} lines around matches, in {first}-{last} of {all:,},"
        if pattern
        else f"lines {first}-{last} of {all:,}"
    )
    return f"[… {what} left out; {pointer(recall)} lines {first}-{min(last, first + NEXT - 1)}]"


def _clipped(line: str, most: int) -> str:
    return line if len(line) <= most else f"{line[:most]} [… {len(line) - most:,} more characters]"


def span(lines: str, last: int) -> tuple[int, int]:
    """The first and last line of a wish such as 10-20, 10- or 10; all of them if there is none."""
    if not lines:
        return 1, last
    found = re.fullmatch(r"\s*(\d{1,9})\s*(-\s*(\d{0,9})\s*)?", lines)
    if not found or not int(found[1]):
        raise BadRequest(f"lines {lines}: expected 10-20, 10- or 10; the first line is 1")
    begin = int(found[1])
    return begin, begin if found[2] is None else int(found[3] or last)


# --- patterns: a simple regular expression, else plain words --------------------------------------------------------


def matching(lines: Sequence[str], pattern: str, first: int = 1) -> list[int]:
    """The numbers of the lines that match; where none holds all the words of a plain pattern, those with any."""
    rules: Iterable[Matches] = (simple,) if (simple := compiled(pattern)) else _by_words(pattern)
    for matches in rules:
        if hits := [n for n, line in enumerate(lines, first) if matches(line)]:
            return hits
    return []


def compiled(pattern: str) -> Matches | None:
    """A test for a line, its time linear in the line; None for what is no pattern, or not a simple one.

    Alternatives and `.*` are taken apart, and what repeats a single sign reaches only so far: no pattern takes long.
    """
    tests = []
    for alternative in re.split(r"(?<!\\)\|", pattern):
        pieces = [_bounded(p) for p in GAP.split(alternative) if p]
        if not pieces or None in pieces:
            return None
        tests.append(_InOrder([p for p in pieces if p]))
    return lambda line: any(test(line) for test in tests)


@dataclass(frozen=True, slots=True)
class _InOrder:
    """Whether these stand in a line, one after the other."""

    pieces: Sequence[re.Pattern[str]]

    def __call__(self, line: str) -> bool:
        at = 0
        for piece in self.pieces:
            found = piece.search(line, at)
            if found is None:
                return False
            at = found.end()
        return True


def _bounded(piece: str) -> re.Pattern[str] | None:
    """A piece without groups, in which at most one sign repeats, and that only so far."""
    if len(piece) > PATTERN_CHARACTERS or not SIMPLE.fullmatch(piece):
        return None
    atoms = QUANTIFIED.findall(piece)
    # Whether a line matches does not depend on how far its first or last sign repeats.
    atoms[0], atoms[-1] = _once(*atoms[0]), _once(*atoms[-1])
    if sum(bool(how) for _, how in atoms) > GREEDY:
        return None
    reach = {"": "", "?": "?", "*": f"{{0,{REACH}}}", "+": f"{{1,{REACH}}}"}
    try:
        return re.compile("".join(atom + reach[how] for atom, how in atoms))
    except re.error:
        return None


def _once(atom: str, how: str) -> tuple[str, str]:
    return ("" if how in ("?", "*") else atom), ""


def _by_words(pattern: str) -> Iterable[Matches]:
    plain = pattern.lower()
    words = re.findall(r"\w+", plain)
    yield lambda line: plain in line.lower()
    if words:
        yield lambda line: all(w in line.lower() for w in words)
        yield lambda line: any(w in line.lower() for w in words)


# --- the frame: what is recalled is data ----------------------------------------------------------------------------


def framed(text: str, what: str) -> str:
    """Text as a model may read it: marked as data, with nothing in it that looks like a mark."""
    return f"[data: {neutral(what)}]\n{neutral(text)}\n[end of data]"
