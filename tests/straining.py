"""Texts that strain a program, and how its work grows with their size."""

import random
import string
from collections.abc import Callable, Mapping
from functools import cache, partial
from time import process_time

Shape = Callable[[int], str]  # a text of about so many characters

RUNGS = (20, 28, 40, 64, 512)  # characters that are tried before texts are compared
QUICK = 0.0001  # seconds: with so little for the last of them, work does not grow by squares
COMPARED = (1_024, 4_096)  # characters: more than any pattern looks ahead
HOPELESS = 0.0001  # seconds for a character: a thousand times what is usual
TRIES = 12  # a machine is busy now and then: the least of these times counts
WORSE = 2.0  # times what as much work in small pieces takes: with work that grows by squares it is four times


def repeated(text: str) -> Shape:
    """The same again and again."""
    return lambda size: (text * (size // max(1, len(text)) + 1))[:size]


def numbered(text: str, between: str = "\n") -> Shape:
    """The same again and again with a number in it that differs."""
    return lambda size: between.join(text.replace("#", str(i)) for i in range(size // len(text + between) + 1))[:size]


def _nested(opened: str, closed: str, inside: str = "") -> Shape:
    return lambda size: opened * (size // (2 * len(opened))) + inside + closed * (size // (2 * len(closed)))


def _ended(text: str) -> Shape:
    return lambda size: repeated(text)(size - 1) + ("!" if text.strip() else "x")


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
    **{f"{text!r} and an end": _ended(text) for text in (" ", "\t", "\n", " \n", "a", "0", "-", "_", ".", "a ", "a.")},
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
    "steps in": lambda size: "\n".join(" " * (i * 7 % 100) + "x" for i in range(size // 20 + 1))[:size],
    "long link": lambda size: "http://" + repeated("a/b.c-")(size - 7),
}

SHAPES: Mapping[str, Shape] = {name: cache(shape) for name, shape in _SHAPES.items()}


def grows(work: Callable[[str], object], shape: Shape) -> str:
    """What to say of work on a text that grows worse than the text does; nothing if it does not."""
    taken = 0.0
    for size in RUNGS:  # what would never end with a long text is seen with a short one
        taken = seconds(work, shape(size))
        if taken > HOPELESS * size:
            return f"{size:,} characters take {taken:.3f} s"
    return grown(lambda size: partial(work, shape(size)), *COMPARED, brief=QUICK) if taken > QUICK else ""


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
    return f"{few:,} take {part:.5f} s, {many:,} take {whole:.5f} s"


def seconds(work: Callable[..., object], *given: str) -> float:
    """Of the processor, once."""
    begun = process_time()
    work(*given)
    return process_time() - begun
