"""Texts that strain a program, and how its work grows with their size."""

import random
import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from re import _constants as sre  # type: ignore[attr-defined]  # the parser of patterns is nowhere else
from re import _parser as parser  # type: ignore[attr-defined]
from time import process_time
from typing import Any

Shape = Callable[[int], str]  # a text of about so many characters

TRIES = 6  # a machine is busy now and then: the least of these times counts
WORSE = 2.0  # times what four quarters take: work that grows by squares takes four times as much
SIZES = (60, 500, 4_000, 8_000, 32_000)  # characters
SLOW = 0.02  # seconds: where a text takes so long, it is compared
QUICK = 0.001  # and where the last but one takes less, the last does not take long

# What a character class is tried with: one of each kind of sign that patterns tell apart.
SIGNS = " a0_.-/:\n\"'(){}[]<>=,;|&@#*~`\\Aéжz+!?%$^\t\r\u200b漢…‘“"
ENDS = ("", "\x00", "\n", "!", " x", ")")


def repeated(text: str) -> Shape:
    """The same again and again."""
    return lambda size: (text * (size // max(1, len(text)) + 1))[:size]


def numbered(text: str, between: str = "\n") -> Shape:
    """The same again and again with a number in it that differs."""
    return lambda size: between.join(text.replace("#", str(i)) for i in range(size // (len(text) + len(between) + 3)))


def _nested(opened: str, closed: str, inside: str = "") -> Shape:
    return lambda size: opened * (size // (2 * len(opened))) + inside + closed * (size // (2 * len(closed)))


def _mixed(signs: str, between: str = "", length: int = 1) -> Shape:
    def made(size: int) -> str:
        chance = random.Random(7)
        words = ("".join(chance.choices(signs, k=length)) for _ in range(size // (length + len(between))))
        return between.join(words)

    return made


# fmt: off
_REPEATED = (
    *"a0 \n\t.-_[({<\"`'\\/#*|=:&@!…~^%?,;$",
    *("漢字", "👩‍👩‍👧", "\u200b", "e\u0301", "مرحبا ", "\x1b", "\x00", "\ud83d", "\u202e", "\r", "a\r\n", "\u2028"),
    *("a.", "a/", "a_", "a-", "aA", "Aa", "a@a.", "a=a&", "a:a,", "a ", "a\n", " \n", "\n ", ". ", "a. ", "a, ", "- "),
    *("1.", "1,", "1. a\n", "- [ ] a\n", "> > > a\n", "# ", "## a\n", "**", "**a** ", "__", "`a` ", "```\n", "~~~\n"),
    *("```py\nx\n```\n", "--", "| a | b |\n", "|-", "$(", "${a", "$(a `b` ${c}) ", "\"'`", '\\"', "\\\\", "a && "),
    *("a | ", "<<EOF\nx\n", "cat <<EOF\nx\nEOF\n", "<a>", "</a>", "<a", "<a ", "<!--", "<system-reminder>", "<think>"),
    *("<|channel|>", "[recall 0123456789] ", "[truncated]...", '{"a":', '{"a":1},', '["', '"a",', "key: ", "password="),
    *("token = ", "Bearer ", "eyJhbGciOi.", "sk-", "ghp_", "AKIA", "-----BEGIN RSA PRIVATE KEY-----\n", "http://"),
    *("a@", "http://a.b/c?d=e&", "@@ -1 +1 @@\n-x\n+y\n", "--- a\n+++ b\n", "+", "\n+", "error: ", "Error: x\n"),
    *("exit code ", "FAILED a::b - x\n", "Traceback (most recent call last):\n", '  File "a.py", line 1, in f\n'),
    *("def ", "import a\n", "Never do that. ", "do not ", "no a ", "ne a ", "this is ", "the ", "e.g. ", "\x1b["),
    *("10.0.0.1:80 ", "2026-11-17T16:00:00Z ", "12:00:00 ", "a              b", "the same line\n", "x" * 200 + " "),
    "function a(b){return c};",
)
# fmt: on

_SHAPES: Mapping[str, Shape] = {
    **{repr(text): repeated(text) for text in _REPEATED},
    "brackets in brackets": _nested("[", "]"),
    "parentheses in parentheses": _nested("(", ")", "x"),
    "objects in objects": _nested('{"a":', "}", "1"),
    "tags in tags": _nested("<a>", "</a>"),
    "base64": _mixed(string.ascii_letters + string.digits + "+/"),
    "hex": _mixed("0123456789abcdef"),
    "hex words": _mixed("0123456789abcdef", " ", 32),
    "numbers": _mixed("0123456789", " ", 19),
    "signs": _mixed(string.punctuation),
    "all": _mixed(string.printable),
    "words": _mixed(string.ascii_lowercase, " ", 6),
    "new names": numbered("w#", " "),
    "new lines": numbered("line # says w#."),
    "rules": numbered("- Never touch file#.py, always use f# instead."),
    "wishes": numbered("Use name_# for that, not other_#.", " "),
    "tasks": numbered("- [ ] task #"),
    "paths": numbered("src/mod#/file#.py:#: error: x#"),
    "paths in a row": numbered("/a/b#/c.py", " "),
    "failures": numbered("FAILED tests/test_#.py::test_# - AssertionError: #"),
    "definitions": numbered("def name_#(a, b):"),
    "values": numbered("NAME_# = call_#(other_#)"),
    "rows": numbered("#,#,#,#"),
    "objects": numbered('{"id": "id_#", "value": #}'),
    "camels": numbered("FooBar#", ""),
    "snakes": numbered("ab#", "_"),
    "steps in": lambda size: "\n".join(" " * (i * 7 % 100) + "x" for i in range(size // 51)),
    "long link": lambda size: "http://" + repeated("a/b.c-")(size - 7),
}

SHAPES: Mapping[str, Shape] = {name: cache(shape) for name, shape in _SHAPES.items()}


def grows(work: Callable[[str], object], shape: Shape) -> str:
    """What to say of work that grows worse than about as its text does; nothing, if it does not."""
    for size in SIZES:  # what grows worse than by squares would never end at the last of them
        taken = seconds(work, shape(size))
        if taken > SLOW or (size == SIZES[-1] and taken > 8 * QUICK):
            return _compared(work, shape, size)
        if size == SIZES[-2] and taken < QUICK:
            break
    return ""


def _compared(work: Callable[[str], object], shape: Shape, size: int) -> str:
    """A text beside as much of quarters of it, each at its best."""
    quarter, whole = shape(size // 4), shape(size)
    once = four = float("inf")
    for _ in range(TRIES):
        once = min(once, seconds(work, whole))
        four = min(four, sum(seconds(work, quarter) for _ in range(4)))
        if once < max(WORSE * four, 8 * QUICK):
            return ""
    return f"{size:,} characters take {once:.4f} s, as many in four texts {four:.4f} s"


def grown(work: Callable[[int], Callable[[], object]], few: int, many: int, brief: float) -> str:
    """What to say of work of a size that grows worse than about as the size does; nothing if all takes so few seconds.

    What is made for a size is no part of its work.
    """
    small, large = work(few), work(many)
    whole, part = seconds(large), float("inf")
    for _ in range(TRIES):
        if whole < brief:
            return ""
        part = min(part, seconds(small))
        if whole < WORSE * part * many / few:
            return ""
        whole = min(whole, seconds(large))
    return f"{few:,} take {part:.2f} s, {many:,} take {whole:.2f} s:"


def seconds(work: Callable[..., object], *given: str) -> float:
    """Of the processor, once."""
    begun = process_time()
    work(*given)
    return process_time() - begun


# --- texts made from a pattern --------------------------------------------------------------------------------------


def attacks(pattern: str, flags: int) -> Iterator[tuple[str, Shape]]:
    """Texts that almost match, made of what a pattern repeats and of what stands before it."""
    seen = set[tuple[str, str, str]]()
    for before, pumps in _loops(parser.parse(pattern, flags), "", flags):
        for pump in pumps:
            forms = [("", pump, ""), ("", before + pump, ""), ("", before + 3 * pump, ""), ("", before, "")]
            for lead, again, end in [*forms, *((before, pump, end) for end in ENDS)]:
                if again and (lead, again, end) not in seen:
                    seen.add((lead, again, end))
                    yield f"{lead!r} + n * {again!r} + {end!r}", _pumped(lead, again, end)


def _pumped(lead: str, again: str, end: str) -> Shape:
    return lambda size: lead + repeated(again)(max(1, size - len(lead) - len(end))) + end


def _loops(tree: Any, before: str, flags: int) -> Iterator[tuple[str, Sequence[str]]]:
    """For each thing that a pattern repeats: a text that matches what stands before it, texts that match it once."""
    for op, arg in tree:
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            _, most, body = arg
            if most > 1:
                yield before, list(dict.fromkeys(filter(None, _samples(body))))
            yield from _loops(body, before, flags)
            before += _sample([(op, arg)])
        elif op is sre.SUBPATTERN:
            yield from _loops(arg[-1], before, flags)
            before += _sample([(op, arg)])
        elif op is sre.ATOMIC_GROUP:
            yield from _loops(arg, before, flags)
            before += _sample([(op, arg)])
        elif op is sre.BRANCH:
            for branch in arg[1]:
                yield from _loops(branch, before, flags)
            before += _sample([(op, arg)])
        elif op in (sre.ASSERT, sre.ASSERT_NOT):
            if arg[0] > 0:
                yield from _loops(arg[1], before, flags)
        else:
            before += _sample([(op, arg)])


def _samples(tree: Any) -> Iterator[str]:
    """Texts that match: each sign that may stand there if there is one, else some of different parts."""
    nodes = list(tree)
    while len(nodes) == 1 and nodes[0][0] is sre.SUBPATTERN:
        nodes = list(nodes[0][1][-1])
    if len(nodes) == 1 and nodes[0][0] in (sre.IN, sre.ANY, sre.NOT_LITERAL, sre.CATEGORY):
        yield from (sign for sign in SIGNS if _fits(nodes[0], sign))
    elif len(nodes) == 1 and nodes[0][0] is sre.BRANCH:
        for branch in nodes[0][1][1]:
            yield from _samples(branch)
    else:
        for choice in range(6):
            yield _sample(nodes, choice)


def _sample(tree: Any, choice: int = 0) -> str:
    """A short text that matches."""
    out = ""
    for op, arg in tree:
        if op is sre.LITERAL:
            out += chr(arg)
        elif op in (sre.IN, sre.ANY, sre.NOT_LITERAL, sre.CATEGORY):
            fit = [sign for sign in SIGNS if _fits((op, arg), sign)]
            out += fit[choice * 3 % len(fit)] if fit else _first_of(arg)
        elif op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            least, most, body = arg
            out += _sample(body, choice) * max(least, min(int(most), choice % 3))
        elif op is sre.SUBPATTERN:
            out += _sample(arg[-1], choice)
        elif op is sre.ATOMIC_GROUP:
            out += _sample(arg, choice)
        elif op is sre.BRANCH:
            out += _sample(arg[1][choice % len(arg[1])], choice)
        elif op is sre.ASSERT and arg[0] > 0:
            out += _sample(arg[1], choice)
    return out


def _first_of(arg: Any) -> str:
    """A sign of a class that has none of those that are tried."""
    for op, value in arg if isinstance(arg, list) else ():
        if op is sre.LITERAL:
            return chr(value)
        if op is sre.RANGE:
            return chr(value[0])
    return ""


def _fits(node: Any, sign: str) -> bool:
    op, arg = node
    if op is sre.ANY:
        return sign != "\n"
    if op is sre.NOT_LITERAL:
        return bool(ord(sign) != arg)
    if op is sre.CATEGORY:
        return _in_category(arg, sign)
    found = any(_has(kind, value, sign) for kind, value in arg if kind is not sre.NEGATE)
    return found != any(kind is sre.NEGATE for kind, _ in arg)


def _has(kind: Any, value: Any, sign: str) -> bool:
    if kind is sre.LITERAL:
        return bool(ord(sign) == value)
    if kind is sre.RANGE:
        return bool(value[0] <= ord(sign) <= value[1])
    return _in_category(value, sign)


_CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}


def _in_category(category: Any, sign: str) -> bool:
    return re.match(_CATEGORIES[category], sign) is not None
