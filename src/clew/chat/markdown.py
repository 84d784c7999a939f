"""Markdown of an answer as lines of text: marks become styles, and nothing else of it is interpreted."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from textual.content import Content, Span

# Underscores are left alone: in answers they are names such as __init__ far more often than emphasis.
INLINE = re.compile(
    r"(?P<ticks>`+)(?P<code>[^`]+)(?P=ticks)(?!`)"
    r"|\*\*(?P<strong>\S(?:.*?\S)?)\*\*(?!\*)"
    r"|(?<![\w*])\*(?P<emphasis>[^\s*](?:[^*]*[^\s*])?)\*(?!\w)"
    r"|~~(?P<struck>[^\s~](?:[^~]*[^\s~])?)~~"
    r"|\[(?P<label>[^\]\[]+)\]\((?P<address>[^()\s]+)\)"
    r"|\\(?P<escaped>[\\`*_{}\[\]()#+.!|>~-])"
)
STYLES = {"strong": "bold", "emphasis": "italic", "struck": "strike"}
BLOCK = re.compile(
    r"(?P<heading>#{1,6}) +(?P<title>.*)"
    r"|(?P<space> *)(?:(?P<bullet>[-*+])|(?P<number>\d{1,4}[.)])) +(?:\[(?P<task>[ xX])\] +)?(?P<item>.*)"
    r"|(?P<quote>(?:> ?)+)(?P<quoted>.*)"
    r"|(?P<fence> *```+)(?P<language>.*)"
    r"|(?P<rule> {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,}))"
)
RULE_COLUMNS = 40


class MarkedLine(NamedTuple):
    """A line of an answer without its marks: what stands before its text, once and on each further line."""

    content: Content
    first: str = ""
    further: str = ""
    heading: bool = False


def marked(line: str) -> MarkedLine:
    """Read one line; all of it is as safe for a terminal as it was."""
    found = BLOCK.fullmatch(line)
    if found is None:
        return MarkedLine(inline(line))
    if found["heading"]:
        return MarkedLine(inline(found["title"]), heading=True)
    if found["fence"]:
        return MarkedLine(Content(f"─── {found['language'].strip('` ')}".rstrip()))
    if found["rule"]:
        return MarkedLine(Content("─" * RULE_COLUMNS))
    if found["quote"]:
        head = "▏ " * found["quote"].count(">")
        return MarkedLine(inline(found["quoted"]), head, head)
    sign = found["number"] or ("•" if found["task"] is None else "☐" if found["task"] == " " else "☑")
    head = f"{found['space']}{sign} "
    return MarkedLine(inline(found["item"]), head, " " * len(head))


def inline(text: str) -> Content:
    """The words of a line, with a style where it has marks."""
    said, spans = "", []
    for piece, style in _pieces(text, ()):
        spans += [Span(len(said), len(said) + len(piece), name) for name in style if piece]
        said += piece
    return Content(said, spans)


def _pieces(text: str, within: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    at = 0
    for found in INLINE.finditer(text):
        yield text[at : found.start()], within
        at = found.end()
        if found["code"]:
            yield found["code"], (*within, "code")
        elif found["label"]:
            yield from _pieces(found["label"], (*within, "underline"))
            yield f" ({found['address']})", within  # where a link leads is seen before it is followed
        elif found["escaped"]:
            yield found["escaped"], within
        else:
            name = str(found.lastgroup)
            yield from _pieces(found[name], (*within, STYLES[name]))
    yield text[at:], within
